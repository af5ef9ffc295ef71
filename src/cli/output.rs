//! Where answers go: texts for people, or JSON.

use serde_json::Value;
use std::io::{self, IsTerminal, Write};

/// Standard output, or a buffer in tests. Writing to a closed pipe is an error, never a panic.
pub(super) struct Output {
    writer: Box<dyn Write + Send>,
    json: bool,
    terminal: bool,
}

impl Output {
    /// Standard output.
    pub(super) fn standard(json: bool) -> Self {
        Self {
            writer: Box::new(io::BufWriter::new(io::stdout())),
            json,
            terminal: io::stdout().is_terminal(),
        }
    }

    /// Output to `writer`.
    #[cfg(test)]
    pub(super) fn to(writer: Box<dyn Write + Send>, json: bool, terminal: bool) -> Self {
        Self {
            writer,
            json,
            terminal,
        }
    }

    /// Whether answers are wanted as JSON.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether somebody is looking.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A value as JSON: on one line for programs, on many for people.
    pub(super) fn value(&mut self, value: &Value) -> io::Result<()> {
        if self.terminal {
            serde_json::to_writer_pretty(&mut self.writer, value)?;
        } else {
            serde_json::to_writer(&mut self.writer, value)?;
        }
        self.writer.write_all(b"\n")?;
        self.writer.flush()
    }

    /// One line of many, without a flush.
    pub(super) fn line_of_many(&mut self, line: &str) -> io::Result<()> {
        self.writer.write_all(line.as_bytes())?;
        self.writer.write_all(b"\n")
    }

    /// Hands over what was written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Lines of text.
    pub(super) fn lines<T: AsRef<str>>(
        &mut self,
        lines: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        for line in lines {
            self.writer.write_all(line.as_ref().as_bytes())?;
            self.writer.write_all(b"\n")?;
        }
        self.writer.flush()
    }

    /// One line of text.
    pub(super) fn line(&mut self, line: impl AsRef<str>) -> io::Result<()> {
        self.lines([line])
    }

    /// Bytes as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.writer.flush()
    }
}

/// `text` without anything that a terminal would obey.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The member `name` of an object as text for people; empty when it is absent or null.
pub(super) fn member(object: &Value, name: &str) -> String {
    match object.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => printable(text),
        Some(other) => printable(&other.to_string()),
    }
}

/// So many things: `1 message`, `2 messages`.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Columns of text, each as wide as its widest cell; the last is not padded.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    std::iter::once(line(&head))
        .chain(rows.iter().map(|row| line(row)))
        .collect()
}

#[cfg(test)]
pub(in crate::cli) mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Keeps what was written.
    #[derive(Clone, Default)]
    pub(in crate::cli) struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Buffer {
        pub(in crate::cli) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

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
