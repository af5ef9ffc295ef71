//! Answers with events, read as cheaply as can be: the client shares the machine with the server.
//! Bytes in, in any pieces; out come the id and the data of each event that has data.

/// Longest line, and longest data of an event, that is kept; more is a server gone mad.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// One answer, as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    place: Place,
    /// A line of which the end has not come.
    line: Vec<u8>,
    /// Hash of the last id, as `EventSource` remembers it.
    id: u64,
    /// Data of the event that is being read.
    data: Vec<u8>,
    /// The head, while it is being read.
    head: Vec<u8>,
    chunked: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Place {
    #[default]
    Head,
    /// In the line before a chunk, with its size so far.
    Size(usize),
    /// In a chunk, or in a body without chunks, of which so many bytes are to come.
    Body(usize),
    /// In the line break behind a chunk.
    Behind,
}

impl Frames {
    /// Whether the head of a good answer has been read.
    pub(crate) fn is_open(&self) -> bool {
        self.place != Place::Head
    }

    /// Reads on; `event` is given the hash of the id and the data of each event.
    ///
    /// # Errors
    /// It is not an answer with events.
    pub(crate) fn read(
        &mut self,
        mut bytes: &[u8],
        mut event: impl FnMut(u64, &[u8]),
    ) -> Result<(), String> {
        while let Some(first) = bytes.first() {
            match self.place {
                Place::Head => bytes = self.read_head(bytes)?,
                Place::Size(size) => {
                    self.place = match first {
                        b'\n' if size == 0 => return Err("the answer has ended".to_owned()),
                        b'\n' => Place::Body(size),
                        b'\r' => Place::Size(size),
                        digit => {
                            let digit = char::from(*digit).to_digit(16);
                            let digit = digit.ok_or("the size of a chunk is no number")?;
                            Place::Size(size * 16 + digit as usize)
                        }
                    };
                    bytes = &bytes[1..];
                }
                Place::Body(left) => {
                    let (here, rest) = bytes.split_at(left.min(bytes.len()));
                    self.lines(here, &mut event)?;
                    let left = left - here.len();
                    self.place = match (left, self.chunked) {
                        (0, true) => Place::Behind,
                        (left, true) => Place::Body(left),
                        (_, false) => Place::Body(usize::MAX),
                    };
                    bytes = rest;
                }
                Place::Behind => {
                    if *first == b'\n' {
                        self.place = Place::Size(0);
                    }
                    bytes = &bytes[1..];
                }
            }
        }
        Ok(())
    }

    fn read_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], String> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let Some(end) = self.head.windows(4).position(|w| w == b"\r\n\r\n") else {
            return Ok(&[]);
        };
        let head = String::from_utf8_lossy(&self.head[..end]).to_ascii_lowercase();
        if !head.starts_with("http/1.1 200") || !head.contains("text/event-stream") {
            return Err(format!("no stream of events: {head}"));
        }
        self.chunked = head.contains("transfer-encoding: chunked");
        self.place = match self.chunked {
            true => Place::Size(0),
            false => Place::Body(usize::MAX),
        };
        self.head = Vec::new();
        Ok(&bytes[end + 4 - before..])
    }

    fn lines(
        &mut self,
        mut bytes: &[u8],
        event: &mut impl FnMut(u64, &[u8]),
    ) -> Result<(), String> {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            if self.line.is_empty() {
                self.line_read(&bytes[..end], event);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.line_read(&line, event);
                line.clear();
                self.line = line;
            }
            bytes = &bytes[end + 1..];
        }
        self.line.extend_from_slice(bytes);
        if self.line.len().max(self.data.len()) > KEPT_BYTES_MAX {
            return Err("an event is too large".to_owned());
        }
        Ok(())
    }

    fn line_read(&mut self, line: &[u8], event: &mut impl FnMut(u64, &[u8])) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            if !self.data.is_empty() {
                event(self.id, &self.data);
                self.data.clear();
            }
        } else if let Some(id) = line.strip_prefix(b"id:") {
            self.id = hash(id);
        } else if let Some(data) = line.strip_prefix(b"data:") {
            self.data.extend_from_slice(data);
        }
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::{Frames, hash};

    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    const EVENTS: &str = "retry: 2000\n: hello\n\nid: 1\nevent: a\ndata: {\"x\":1}\n\nid: 2\n\n\
         id: 3\r\ndata: y\r\n\r\n";

    fn read(answer: &str, piece: usize) -> Vec<(u64, String)> {
        let (mut frames, mut seen) = (Frames::default(), Vec::new());
        for piece in answer.as_bytes().chunks(piece) {
            let take =
                |id, data: &[u8]| seen.push((id, String::from_utf8_lossy(data).into_owned()));
            frames.read(piece, take).expect("a stream of events");
        }
        assert!(frames.is_open());
        seen
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let expected = vec![
            (hash(b" 1"), " {\"x\":1}".to_owned()),
            (hash(b" 3"), " y".to_owned()),
        ];
        let whole = format!("{HEAD}\r\n{EVENTS}");
        let mut chunked = format!("{HEAD}transfer-encoding: chunked\r\n\r\n");
        for chunk in EVENTS.as_bytes().chunks(17) {
            let text = String::from_utf8_lossy(chunk);
            chunked += &format!("{:x}\r\n{text}\r\n", chunk.len());
        }
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(read(&whole, piece), expected, "whole, pieces of {piece}");
            assert_eq!(read(&chunked, piece), expected, "chunks, pieces of {piece}");
        }
    }

    #[test]
    fn another_answer_or_its_end_is_an_error() {
        let refused = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: text/plain\r\n\r\n";
        let ended = format!("{HEAD}transfer-encoding: chunked\r\n\r\n0\r\n\r\n");
        for answer in [refused, &ended] {
            let mut frames = Frames::default();
            assert!(
                frames.read(answer.as_bytes(), |_, _| {}).is_err(),
                "{answer}"
            );
        }
    }
}
