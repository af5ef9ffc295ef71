//! Parses a `text/event-stream` into events, however its bytes were split on the way.
//!
//! Owns: the rules of WHATWG HTML, 9.2.6 "Interpreting an event stream", and how much a server may make
//! a client hold. Knows nothing of connections.

use std::time::Duration;

/// Limits on what the reader of a stream must hold in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a line.
    pub line_bytes_max: usize,
    /// Bytes of the data of one event, over all of its lines.
    pub event_bytes_max: usize,
}

/// Bytes of an id. It stays from event to event and each event has a copy, so that a long one would multiply what short
/// events take.
pub const ID_BYTES_MAX: usize = 4096;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name; `message` when the stream gave none.
    pub name: String,
    /// The data, lines joined by LF.
    pub data: String,
    /// The place behind it, as far as the stream has named one.
    pub id: String,
}

/// An item of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A complete event.
    Event(Event),
    /// The place has moved on, without an event.
    Place(String),
}

impl Piece {
    /// The place behind it.
    #[must_use]
    pub fn place(&self) -> &str {
        match self {
            Self::Event(event) => &event.id,
            Self::Place(place) => place,
        }
    }
}

/// The stream holds more than its reader is willing to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} has more than {most} bytes")]
pub struct TooLarge {
    what: &'static str,
    most: usize,
}

/// Takes bytes, gives pieces.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    /// The line so far, without its end.
    line: Vec<u8>,
    /// The byte before was a CR: an LF now belongs to it.
    after_cr: bool,
    /// A line was read: no mark of the byte order can follow.
    begun: bool,
    name: String,
    data: Option<String>,
    /// Stays from event to event.
    id: String,
    /// What `id` was at the last blank line: where to go on.
    place: String,
    retry: Option<Duration>,
}

impl Parser {
    /// At the beginning of a stream.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            line: Vec::new(),
            after_cr: false,
            begun: false,
            name: String::new(),
            data: None,
            id: String::new(),
            place: String::new(),
            retry: None,
        }
    }

    /// The pause before a new connection that the stream asks for.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Reads on. What is unfinished waits for more, and is gone if no more comes. Cost: O(bytes).
    ///
    /// # Errors
    /// [`TooLarge`]; nothing comes after it.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<Piece>) -> Result<(), TooLarge> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                return self.hold(bytes);
            };
            self.hold(&bytes[..end])?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.read(&line, out)?;
            // Its memory is used again.
            self.line = line;
            self.line.clear();
        }
        Ok(())
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        let most = self.limits.line_bytes_max;
        if self.line.len() + bytes.len() > most {
            let what = "a line";
            return Err(TooLarge { what, most });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, line: &[u8], out: &mut Vec<Piece>) -> Result<(), TooLarge> {
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if !self.begun => rest,
            Some(_) | None => line,
        };
        self.begun = true;
        if line.is_empty() {
            self.dispatch(out);
            return Ok(());
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                let held = self.data.as_ref().map_or(0, |data| data.len() + 1);
                let most = self.limits.event_bytes_max;
                if held + value.len() > most {
                    let what = "an event";
                    return Err(TooLarge { what, most });
                }
                match &mut self.data {
                    None => self.data = Some(value.to_owned()),
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                }
            }
            "event" => value.clone_into(&mut self.name),
            "id" if value.len() > ID_BYTES_MAX => {
                return Err(TooLarge {
                    what: "an id",
                    most: ID_BYTES_MAX,
                });
            }
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                // Longer than a number can say is longer than anybody waits.
                self.retry = Some(Duration::from_millis(value.parse().unwrap_or(u64::MAX)));
            }
            // Comments have an empty name; other fields mean nothing.
            _ => {}
        }
        Ok(())
    }

    /// At a blank line.
    fn dispatch(&mut self, out: &mut Vec<Piece>) {
        let moved = self.place != self.id;
        if moved {
            self.id.clone_into(&mut self.place);
        }
        let name = std::mem::take(&mut self.name);
        match self.data.take() {
            Some(data) => out.push(Piece::Event(Event {
                name: if name.is_empty() {
                    "message".to_owned()
                } else {
                    name
                },
                data,
                id: self.place.clone(),
            })),
            None if moved => out.push(Piece::Place(self.place.clone())),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        line_bytes_max: 8 << 20,
        event_bytes_max: 16 << 20,
    };

    fn event(name: &str, data: &str, id: &str) -> Piece {
        Piece::Event(Event {
            name: name.to_owned(),
            data: data.to_owned(),
            id: id.to_owned(),
        })
    }

    fn place(id: &str) -> Piece {
        Piece::Place(id.to_owned())
    }

    /// The pieces of a stream that arrives in these parts.
    fn read<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<Piece> {
        let (mut parser, mut pieces) = (Parser::new(LIMITS), Vec::new());
        for part in parts {
            parser.feed(part, &mut pieces).unwrap();
        }
        pieces
    }

    #[test]
    fn a_stream_means_what_the_standard_says() {
        let cases: &[(&str, Vec<Piece>)] = &[
            // The examples of the standard.
            (
                "data: YHOO\ndata: +2\ndata: 10\n\n",
                vec![event("message", "YHOO\n+2\n10", "")],
            ),
            (
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
                vec![
                    event("message", "first event", "1"),
                    event("message", "second event", ""),
                ],
            ),
            (
                "data\n\ndata\ndata\n\ndata:",
                vec![event("message", "", ""), event("message", "\n", "")],
            ),
            (
                "data:test\n\ndata: test\n\n",
                vec![event("message", "test", ""), event("message", "test", "")],
            ),
            (
                "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\ndata: x\n\n",
                vec![
                    event("add", "73857293", ""),
                    event("remove", "2153", ""),
                    event("message", "x", ""),
                ],
            ),
            // Ends of lines, in any mixture.
            (
                "data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\rdata: e\n\n",
                vec![
                    event("message", "a\nb\nc", ""),
                    event("message", "d", ""),
                    event("message", "e", ""),
                ],
            ),
            // One mark of the byte order, and only at the beginning.
            (
                "\u{feff}data: a\n\n\u{feff}data: b\n\n",
                vec![event("message", "a", "")],
            ),
            // An id counts without data, stays, is ignored with NUL, and is reset when empty.
            (
                "id: 1\n\ndata: a\n\nid: x\0y\ndata: b\n\nid\n\n: beat\n\n",
                vec![
                    place("1"),
                    event("message", "a", "1"),
                    event("message", "b", "1"),
                    place(""),
                ],
            ),
            // The name of an event without data is forgotten.
            ("event: x\n\ndata: a\n\n", vec![event("message", "a", "")]),
            // One space belongs to the colon, no more; fields are case-sensitive.
            (
                "data:  a: b\nData: no\nother: no\ndata\u{20}: no\n\n",
                vec![event("message", " a: b", "")],
            ),
            (
                "data: \u{1f980}\u{2028}\n\n",
                vec![event("message", "\u{1f980}\u{2028}", "")],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(&read([text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn every_cut_of_a_stream_gives_the_same_events() {
        let stream = "\u{feff}: hello\r\nretry: 10\r\n\r\nid: a\r\nevent: n\ndata: \u{1f980}\rdata: 2\r\n\r\nid: b\n\ndata: 3\n\nid: c\ndata: lost"
            .as_bytes();
        let whole = read([stream]);
        assert_eq!(
            whole,
            [
                event("n", "\u{1f980}\n2", "a"),
                place("b"),
                event("message", "3", "b")
            ]
        );
        assert_eq!(read(stream.chunks(1)), whole);
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let parts = [&stream[..first], &stream[first..second], &stream[second..]];
                assert_eq!(read(parts), whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn the_pause_is_a_number_or_nothing() {
        let mut parser = Parser::new(LIMITS);
        let mut retry = |text: &str| {
            parser.feed(text.as_bytes(), &mut Vec::new()).unwrap();
            parser.retry().map(|pause| pause.as_millis())
        };
        assert_eq!(retry("retry: 1.5\nretry: -1\nretry:\nretry: 5s\n"), None);
        assert_eq!(retry("retry: 1500\n"), Some(1500));
        assert_eq!(retry("retry: x\n"), Some(1500));
        let endless = "retry: 99999999999999999999999\n";
        assert_eq!(retry(endless), Some(u128::from(u64::MAX)));
    }

    #[test]
    fn what_is_not_utf_8_is_replaced() {
        let read = read([&b"data: a\xff\xe2\x82\n\n"[..]]);
        assert_eq!(read, [event("message", "a\u{fffd}\u{fffd}", "")]);
    }

    #[test]
    fn a_server_cannot_make_it_hold_more_than_the_limits() {
        let mut parser = Parser::new(LIMITS);
        let part = vec![b'x'; LIMITS.line_bytes_max];
        assert!(parser.feed(&part, &mut Vec::new()).is_ok());
        let error = parser.feed(b"x", &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "a line has more than 8388608 bytes");

        let mut parser = Parser::new(LIMITS);
        let line = [b"data:", &part[5..], b"\n"].concat();
        assert!(parser.feed(&line, &mut Vec::new()).is_ok());
        assert!(parser.feed(&line, &mut Vec::new()).is_ok());
        let error = parser.feed(&line, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "an event has more than 16777216 bytes");

        let mut parser = Parser::new(LIMITS);
        let id = |bytes| format!("id: {}\n", "x".repeat(bytes));
        let held = parser.feed(id(ID_BYTES_MAX).as_bytes(), &mut Vec::new());
        assert!(held.is_ok());
        let error = parser.feed(id(ID_BYTES_MAX + 1).as_bytes(), &mut Vec::new());
        let error = error.unwrap_err();
        assert_eq!(error.to_string(), "an id has more than 4096 bytes");
    }
}
