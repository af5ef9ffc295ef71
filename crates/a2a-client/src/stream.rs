//! Streams of events, read within limits.
//!
//! The rules are those of WHATWG HTML, 9.2.6, as far as agents use them.

use crate::Error;
use crate::agent::{Binding, invalid};
use crate::binding;
use crate::http::{Body, Unanswered};
use http::StatusCode;
use std::collections::VecDeque;
use std::time::Duration;
use taskledger_a2a::{StreamResponse, Wire};
use tokio::time::timeout;

/// Bytes of one event, over all of its lines: what other clients take, too.
pub const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A stream that says nothing for so long, not even that it lives, is taken for broken.
pub const SILENCE_MAX: Duration = Duration::from_secs(120);

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The place behind it, if the agent names places.
    pub id: Option<String>,
    /// What it tells.
    pub item: StreamResponse,
}

/// The events of a stream; dropping it ends the stream and nothing else.
pub struct Events {
    binding: Binding,
    body: Box<dyn Body>,
    url: String,
    parser: Parser,
    ready: VecDeque<Piece>,
}

impl Events {
    pub(crate) fn new(binding: Binding, body: Box<dyn Body>, url: String) -> Self {
        Self {
            binding,
            body,
            url,
            parser: Parser::default(),
            ready: VecDeque::new(),
        }
    }

    /// The next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`Error`]; nothing comes after it.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                let result = binding::result(self.binding, StatusCode::OK, piece.data.as_bytes())?;
                let item = StreamResponse::from_json(result);
                let item = item.map_err(|faults| invalid("event", &faults))?;
                return Ok(Some(Event { id: piece.id, item }));
            }
            let broken = |reason| Error::Unanswered {
                url: self.url.clone(),
                reason,
            };
            let came = timeout(SILENCE_MAX, self.body.chunk()).await;
            let came = came.map_err(|_| {
                let text = format!("the stream was silent for {} s", SILENCE_MAX.as_secs());
                broken(Unanswered::Broken(text))
            })?;
            let Some(bytes) = came.map_err(broken)? else {
                return Ok(None);
            };
            self.parser.feed(&bytes, &mut self.ready)?;
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Piece {
    id: Option<String>,
    data: String,
}

/// Takes bytes, gives pieces.
#[derive(Debug, Default)]
struct Parser {
    /// The line so far.
    line: Vec<u8>,
    /// The byte before was a CR: an LF now belongs to it.
    after_cr: bool,
    begun: bool,
    data: Option<String>,
    id: String,
}

impl Parser {
    /// Cost: O(bytes). Pieces are at most as many as the bytes have blank lines.
    fn feed(&mut self, mut bytes: &[u8], out: &mut VecDeque<Piece>) -> Result<(), Error> {
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
            self.line = line;
            self.line.clear();
        }
        Ok(())
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.line.len() + bytes.len() > EVENT_BYTES_MAX {
            return Err(too_large());
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, line: &[u8], out: &mut VecDeque<Piece>) -> Result<(), Error> {
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if !self.begun => rest,
            Some(_) | None => line,
        };
        self.begun = true;
        if line.is_empty() {
            if let Some(data) = self.data.take() {
                let id = (!self.id.is_empty()).then(|| self.id.clone());
                out.push_back(Piece { id, data });
            }
            return Ok(());
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                let held = self.data.as_ref().map_or(0, |data| data.len() + 1);
                if held + value.len() > EVENT_BYTES_MAX {
                    return Err(too_large());
                }
                match &mut self.data {
                    None => self.data = Some(value.to_owned()),
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                }
            }
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            // Names of events say nothing that the data does not; comments have an empty name.
            _ => {}
        }
        Ok(())
    }
}

const fn too_large() -> Error {
    Error::TooLarge {
        what: "an event",
        max: EVENT_BYTES_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<Piece> {
        let (mut parser, mut out) = (Parser::default(), VecDeque::new());
        for part in parts {
            parser.feed(part, &mut out).expect("within limits");
        }
        out.into()
    }

    fn piece(id: &str, data: &str) -> Piece {
        Piece {
            id: Some(id.to_owned()).filter(|it| !it.is_empty()),
            data: data.to_owned(),
        }
    }

    #[test]
    fn every_cut_of_a_stream_gives_the_same_events() {
        let stream = "\u{feff}: hi\r\n\r\nid: a\r\nevent: x\ndata: \u{1f980}\rdata:2\r\n\r\ndata: 3\n\n:\n\nid\ndata\n\ndata: lost".as_bytes();
        let expected = [piece("a", "\u{1f980}\n2"), piece("a", "3"), piece("", "")];
        assert_eq!(read([stream]), expected);
        assert_eq!(read(stream.chunks(1)), expected);
        for cut in 0..stream.len() {
            assert_eq!(read([&stream[..cut], &stream[cut..]]), expected, "{cut}");
        }
    }

    #[test]
    fn an_agent_cannot_make_it_hold_more_than_an_event() {
        let part = vec![b'x'; EVENT_BYTES_MAX];
        let mut parser = Parser::default();
        let mut out = VecDeque::new();
        assert!(parser.feed(&part, &mut out).is_ok());
        assert_eq!(parser.feed(b"x", &mut out), Err(too_large()));
        let mut parser = Parser::default();
        let line = [b"data:", &part[5..], b"\n"].concat();
        assert!(parser.feed(&line, &mut out).is_ok());
        assert_eq!(parser.feed(&line, &mut out), Err(too_large()));
    }
}
