//! Where answers go: texts for people, or JSON.

use crate::style::Text;
use serde_json::Value;
use std::fmt;
use std::io::{self, IsTerminal, Write};

/// Standard output, or whatever a test gives. Writing to a closed pipe is an error, never a panic.
pub struct Output {
    writer: Box<dyn Write + Send>,
    json: bool,
    terminal: bool,
    look: Look,
}

/// How texts for people look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// With colours.
    pub coloured: bool,
    /// Columns that there are; `None`: as many as a text needs, as in a pipe.
    pub columns: Option<usize>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("json", &self.json)
            .field("terminal", &self.terminal)
            .finish_non_exhaustive()
    }
}

impl Output {
    /// Standard output; `json`: for programs.
    #[must_use]
    pub fn standard(json: bool) -> Self {
        Self {
            writer: Box::new(io::BufWriter::new(io::stdout())),
            json,
            terminal: io::stdout().is_terminal(),
            look: Look::default(),
        }
    }

    /// Output to `writer`, as if it were a terminal or not.
    #[must_use]
    pub fn to(writer: Box<dyn Write + Send>, json: bool, terminal: bool) -> Self {
        Self {
            writer,
            json,
            terminal,
            look: Look::default(),
        }
    }

    /// The same with this look.
    #[must_use]
    pub const fn looking(mut self, look: Look) -> Self {
        self.look = look;
        self
    }

    /// How texts look.
    #[must_use]
    pub const fn look(&self) -> Look {
        self.look
    }

    /// A line of text with meaning, cut to the columns that there are.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn text(&mut self, text: &Text) -> io::Result<()> {
        self.texts([text])
    }

    /// Lines of text with meaning, each cut to the columns that there are.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn texts<'a>(&mut self, texts: impl IntoIterator<Item = &'a Text>) -> io::Result<()> {
        let Look { coloured, columns } = self.look;
        for text in texts {
            let line = match columns {
                Some(columns) => text.cut(columns).render(coloured),
                None => text.render(coloured),
            };
            self.line_of_many(&line)?;
        }
        self.flush()
    }

    /// Whether answers are wanted as JSON.
    #[must_use]
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether somebody is looking.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A value as JSON: on one line for programs, on many for people.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn value(&mut self, value: &Value) -> io::Result<()> {
        if self.terminal {
            serde_json::to_writer_pretty(&mut self.writer, value)?;
        } else {
            serde_json::to_writer(&mut self.writer, value)?;
        }
        self.bytes(b"\n")
    }

    /// One line of many, without a flush.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn line_of_many(&mut self, line: &str) -> io::Result<()> {
        self.writer.write_all(line.as_bytes())?;
        self.writer.write_all(b"\n")
    }

    /// Hands over what was written.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Lines of text.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn lines<T: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = T>) -> io::Result<()> {
        for line in lines {
            self.line_of_many(line.as_ref())?;
        }
        self.flush()
    }

    /// One line of text.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn line(&mut self, line: impl AsRef<str>) -> io::Result<()> {
        self.lines([line])
    }

    /// Bytes as they are.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.writer.flush()
    }
}
