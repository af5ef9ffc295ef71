//! The file of an export or archive, line by line, for `events import` and `events verify FILE`.
//!
//! Owns: the order of the kinds of lines, the closing line, and the number that a fault is told with.

use crate::cli::CliError;
use crate::store::chain::{Followed, Mark};
use crate::store::transfer::{LINE_BYTES_MAX, Line, Receipt, Tally};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use taskledger_domain::Position;

/// An export or archive that is being read.
pub(super) struct Lines {
    input: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    /// Of the file, if it is known.
    size: Option<u64>,
    bytes: u64,
    /// Of the last line that was read, from 1.
    number: u64,
    tally: Tally,
    is_archive: bool,
    had_keys: bool,
    /// Position of the first event, dropped ones included.
    first: Option<Position>,
    ended: bool,
    /// Where the hash chain ends, as the closing line says.
    head: Option<Mark>,
}

impl Lines {
    /// Opens a file; `-` is standard input.
    pub(super) fn open(file: &str) -> Result<Self, CliError> {
        let (input, size): (Box<dyn BufRead + Send>, _) = if file == "-" {
            (Box::new(BufReader::new(io::stdin())), None)
        } else {
            let opened = File::open(file).and_then(|f| Ok((f.metadata()?.len(), f)));
            let (size, opened) = opened.map_err(|e| CliError::Usage(format!("`{file}`: {e}")))?;
            (Box::new(BufReader::new(opened)), Some(size))
        };
        Ok(Self {
            input,
            buffer: Vec::new(),
            size,
            bytes: 0,
            number: 0,
            tally: Tally::default(),
            is_archive: false,
            had_keys: false,
            first: None,
            ended: false,
            head: None,
        })
    }

    /// The next line that stands before the closing one, with its text; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<(Line, String)>, CliError> {
        loop {
            let Some(line) = self.parse()? else {
                return Ok(None);
            };
            if self.ended {
                let reason = "there is data after the end of the export";
                return Err(self.fault(reason));
            }
            let text = line.text();
            self.tally.add(&line, &text);
            match &line {
                Line::End(end) => {
                    let found = self.receipt();
                    if found != end.end {
                        return Err(self.fault(format!(
                            "the export had {}, this file has {found}: it was cut off or changed",
                            end.end
                        )));
                    }
                    self.ended = true;
                    self.head = end.head;
                    continue;
                }
                Line::Archive(_) if self.number > 1 => {
                    return Err(self.fault("an archive starts with this line"));
                }
                Line::Archive(_) => self.is_archive = true,
                Line::Key(_) => self.had_keys = true,
                Line::Event(_) | Line::Dropped(_) if self.had_keys => {
                    return Err(self.fault("there is an event after the keys"));
                }
                Line::Event(_) | Line::Dropped(_) if self.first.is_some() => {}
                Line::Event(event) => self.first = Some(event.position),
                Line::Dropped(line) => self.first = Some(line.dropped.position),
            }
            return Ok(Some((line, text)));
        }
    }

    fn parse(&mut self) -> Result<Option<Line>, CliError> {
        self.number += 1;
        self.buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let read = (&mut self.input).take(limit);
        let read = { read }.read_until(b'\n', &mut self.buffer);
        if read.map_err(|e| self.fault(e.to_string()))? == 0 {
            self.number -= 1;
            return Ok(None);
        }
        if self.buffer.len() > LINE_BYTES_MAX {
            return Err(self.fault(format!("it has more than {LINE_BYTES_MAX} bytes")));
        }
        self.bytes += self.buffer.len() as u64;
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let line = std::str::from_utf8(line).map_err(|e| self.fault(e.to_string()))?;
        Line::parse(line).map(Some).map_err(|e| self.fault(e))
    }

    /// A fault of the last line that was read.
    pub(super) fn fault(&self, reason: impl Into<String>) -> CliError {
        CliError::Usage(self.placed(&reason.into()))
    }

    /// A reason with the number of the last line that was read.
    pub(super) fn placed(&self, reason: &str) -> String {
        format!("line {}: {reason}", self.number)
    }

    /// What the file is, if it begins behind the first event of a log: then no rule of a whole log holds for it.
    pub(super) fn part(&self) -> Option<String> {
        let first = self.first.filter(|it| *it > 1 && !self.is_archive)?;
        Some(format!(
            "the file begins at position {first}: a part of a log, as `events export --after {}` writes it, can neither be \
             verified nor imported; expected an export from the first event on. `taskledger events verify` with \
             --data-dir or --database-url checks the log itself",
            first - 1
        ))
    }

    /// A reason why the lines are no log, with what the file is instead.
    pub(super) fn explained(&self, reason: String) -> String {
        match self.part() {
            Some(part) => format!("{reason}\n  {part}"),
            None => reason,
        }
    }

    /// What was read so far.
    pub(super) fn receipt(&self) -> Receipt {
        self.tally.clone().receipt()
    }

    /// Bytes read, and of how many if that is known.
    pub(super) const fn progress(&self) -> (u64, Option<u64>) {
        (self.bytes, self.size)
    }

    /// Whether the first line says that the file is an archive.
    pub(super) const fn is_archive(&self) -> bool {
        self.is_archive
    }

    /// Whether the closing line was met.
    pub(super) const fn is_whole(&self) -> bool {
        self.ended
    }

    /// Compares the end of the hash chain with the one that the closing line names, so that events which are missing
    /// before a closing line that was made again are noticed.
    ///
    /// # Errors
    /// How they differ.
    pub(super) fn check_head(&self, chain: Option<Followed>) -> Result<(), String> {
        let followed = chain.map(|chain| chain.head);
        if !self.ended || self.is_archive || followed == self.head {
            return Ok(());
        }
        let shown =
            |head: Option<Mark>| head.map_or_else(|| "none".to_owned(), |it| it.to_string());
        Err(self.placed(&format!(
            "the closing line says that the hash chain ends with {}, the events end with {}: the export was changed",
            shown(self.head),
            shown(followed)
        )))
    }

    /// What is missing when the closing line is.
    pub(super) fn missing_end(&self) -> String {
        format!(
            "line {}: expected the closing line `{{\"end\": ..}}`, which holds the number and the SHA-256 of \
             the lines before it, but the file ends before it",
            self.number + 1
        )
    }
}
