//! Streams of events, read within limits.

use crate::Error;
use crate::agent::{Binding, invalid};
use crate::binding;
use crate::http::{Body, Unanswered};
use http::StatusCode;
use std::collections::VecDeque;
use std::time::Duration;
use taskledger_a2a::{StreamResponse, Wire};
use taskledger_event_stream::{self as event_stream, Limits, Parser};
use tokio::time::timeout;

/// Bytes of one event, over all of its lines: what other clients take, too.
pub const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
const LIMITS: Limits = Limits {
    line_bytes_max: EVENT_BYTES_MAX,
    event_bytes_max: EVENT_BYTES_MAX,
};
/// A stream that says nothing for so long, not even that it lives, is taken for broken.
pub const SILENCE_MAX: Duration = Duration::from_secs(120);

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The place behind it, if the agent names places.
    pub id: Option<String>,
    /// The parsed item.
    pub item: StreamResponse,
}

/// The events of a stream; dropping it ends the stream and nothing else.
pub struct Events {
    binding: Binding,
    body: Box<dyn Body>,
    url: String,
    pieces: Pieces,
    ready: VecDeque<Piece>,
}

impl Events {
    pub(crate) fn new(binding: Binding, body: Box<dyn Body>, url: String) -> Self {
        Self {
            binding,
            body,
            url,
            pieces: Pieces::new(),
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
            self.pieces.feed(&bytes, &mut self.ready)?;
        }
    }
}

/// What an agent says: names of events say nothing that the data does not.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    id: Option<String>,
    data: String,
}

/// Takes bytes, gives pieces.
#[derive(Debug)]
struct Pieces(Parser);

impl Pieces {
    const fn new() -> Self {
        Self(Parser::new(LIMITS))
    }

    /// Cost: O(bytes). Pieces are at most as many as the bytes have blank lines.
    fn feed(&mut self, bytes: &[u8], out: &mut VecDeque<Piece>) -> Result<(), Error> {
        let mut read = Vec::new();
        let fed = self.0.feed(bytes, &mut read);
        out.extend(read.into_iter().filter_map(|piece| match piece {
            event_stream::Piece::Event(event) => Some(Piece {
                id: Some(event.id).filter(|id| !id.is_empty()),
                data: event.data,
            }),
            event_stream::Piece::Place(_) => None,
        }));
        fed.map_err(|_| too_large())
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
        let (mut parser, mut out) = (Pieces::new(), VecDeque::new());
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
        let mut parser = Pieces::new();
        let mut out = VecDeque::new();
        assert!(parser.feed(&part, &mut out).is_ok());
        assert_eq!(parser.feed(b"x", &mut out), Err(too_large()));
        let mut parser = Pieces::new();
        let line = [b"data:", &part[5..], b"\n"].concat();
        assert!(parser.feed(&line, &mut out).is_ok());
        assert_eq!(parser.feed(&line, &mut out), Err(too_large()));
    }
}
