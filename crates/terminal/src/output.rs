//! The format of answers: text for people, or JSON.

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
    telling: Option<Box<dyn Telling>>,
    options: String,
}

/// How an answer is written for people.
pub trait Telling: Send {
    /// A time that stands alone; what is no time is told as it is.
    fn time(&self, time: &str) -> String;

    /// A sentence in which times may stand.
    fn sentence(&self, text: &str) -> String;
}

/// The look of texts for people.
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
            telling: None,
            options: String::new(),
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
            telling: None,
            options: String::new(),
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

    /// The same that tells times so.
    #[must_use]
    pub fn telling(mut self, telling: impl Telling + 'static) -> Self {
        self.telling = Some(Box::new(telling));
        self
    }

    /// Sets what commands that are printed need to reach what this one has reached: options, each behind a blank.
    pub fn calls_with(&mut self, options: String) {
        self.options = options;
    }

    /// A command to be pasted, behind which its options stand, or before ` -- ` and what another program gets.
    #[must_use]
    pub fn command(&self, command: &str) -> String {
        match command.split_once(" -- ") {
            Some((own, other)) => format!("{own}{} -- {other}", self.options),
            None => format!("{command}{}", self.options),
        }
    }

    /// A time as people read it.
    #[must_use]
    pub fn time(&self, time: &str) -> String {
        let telling = self.telling.as_ref();
        telling.map_or_else(|| time.to_owned(), |telling| telling.time(time))
    }

    /// A sentence with times as people read them.
    #[must_use]
    pub fn sentence(&self, text: &str) -> String {
        let telling = self.telling.as_ref();
        telling.map_or_else(|| text.to_owned(), |telling| telling.sentence(text))
    }

    /// A line of text with meaning, broken at the columns that there are.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn text(&mut self, text: &Text) -> io::Result<()> {
        self.texts([text])
    }

    /// Lines of text with meaning, each broken at the columns that there are.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn texts<'a>(&mut self, texts: impl IntoIterator<Item = &'a Text>) -> io::Result<()> {
        for text in texts {
            self.text_of_many(text)?;
        }
        self.flush()
    }

    /// One line of text with meaning of many, without a flush.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn text_of_many(&mut self, text: &Text) -> io::Result<()> {
        let Look { coloured, columns } = self.look;
        let Some(columns) = columns else {
            return self.line_of_many(&text.render(coloured));
        };
        for line in text.wrapped(columns) {
            self.line_of_many(&line.render(coloured))?;
        }
        Ok(())
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

    /// Lines of text, each broken at the columns that there are.
    ///
    /// # Errors
    /// The output takes nothing.
    pub fn lines<T: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = T>) -> io::Result<()> {
        for line in lines {
            // A text of several lines is as many, also where each is broken.
            for line in line.as_ref().split('\n') {
                self.text_of_many(&Text::plain(line))?;
            }
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
