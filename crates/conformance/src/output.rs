//! Where the report goes: a text for people, or JSON.

use serde_json::Value;
use std::io::{self, IsTerminal, Write};

/// Standard output, or a buffer in tests. Writing to a closed pipe is an error, never a panic.
pub(crate) struct Output {
    writer: Box<dyn Write + Send>,
    json: bool,
    terminal: bool,
}

impl Output {
    /// Standard output.
    pub(crate) fn standard(json: bool) -> Self {
        Self {
            writer: Box::new(io::BufWriter::new(io::stdout())),
            json,
            terminal: io::stdout().is_terminal(),
        }
    }

    /// Text for people, to `writer`.
    #[cfg(test)]
    pub(crate) fn to(writer: Box<dyn Write + Send>) -> Self {
        Self {
            writer,
            json: false,
            terminal: false,
        }
    }

    /// Whether the report is wanted as JSON.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// A value as JSON: on one line for programs, on many for people.
    pub(crate) fn value(&mut self, value: &Value) -> io::Result<()> {
        if self.terminal {
            serde_json::to_writer_pretty(&mut self.writer, value)?;
        } else {
            serde_json::to_writer(&mut self.writer, value)?;
        }
        self.bytes(b"\n")
    }

    /// Lines of text.
    pub(crate) fn lines(&mut self, lines: &[String]) -> io::Result<()> {
        for line in lines {
            self.writer.write_all(line.as_bytes())?;
            self.writer.write_all(b"\n")?;
        }
        self.writer.flush()
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.writer.flush()
    }
}

/// `text` without anything that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Columns of text, each as wide as its widest cell; the last is not padded.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let all = || std::iter::once(&head).chain(rows);
    let mut widths = vec![0; head.len()];
    for row in all() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().zip(&widths);
        let padded: Vec<String> = padded
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    all().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [
            vec!["1".to_owned(), "é".to_owned()],
            vec!["22".to_owned(), "long".to_owned()],
        ];
        assert_eq!(
            table(&["ID", "NAME"], &rows),
            ["ID  NAME", "1   é", "22  long"]
        );
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed() {
        assert_eq!(printable("a\x1b[2Jb\nc\u{9b}d"), "a\u{fffd}[2Jb c\u{fffd}d");
    }
}
