//! The body of an answer: where it ends, and the few bytes of it that are kept.

use std::borrow::Cow;

/// Bytes kept of the beginning: an error and its reason.
const FIRST_BYTES: usize = 2048;
/// Bytes kept of the end: the last event of a stream.
const LAST_BYTES: usize = 8192;
/// In the first bytes of an answer that is no error.
const RESULT: &[u8] = b"\"result\":";
/// Within so many bytes.
const RESULT_WITHIN: usize = 64;

/// How far a body has been read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Body {
    /// So many bytes are to come.
    Length(usize),
    /// In the line before a chunk, with its size so far.
    Size(usize),
    /// In a chunk of which so many bytes are to come.
    Chunk(usize),
    /// In the line break behind a chunk.
    Behind,
    /// Behind the chunk that says it is the last.
    Last,
}

impl Body {
    /// The body and where it begins, when the whole head has come.
    pub(super) fn begin(answer: &[u8]) -> Result<Option<(Self, usize)>, String> {
        let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = std::str::from_utf8(&answer[..end]).map_err(|e| e.to_string())?;
        for line in head.split("\r\n") {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                let length = value.trim().parse().map_err(|e| format!("{line}: {e}"))?;
                return Ok(Some((Self::Length(length), end + 4)));
            }
            if name.eq_ignore_ascii_case("transfer-encoding")
                && value.trim().eq_ignore_ascii_case("chunked")
            {
                return Ok(Some((Self::Size(0), end + 4)));
            }
        }
        Err(format!("an answer of unknown length: {head}"))
    }

    /// Reads on; whether that was its end.
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        take: &mut impl FnMut(&[u8]),
    ) -> Result<bool, String> {
        if *self == Self::Length(0) {
            return Ok(true);
        }
        while let Some(first) = bytes.first() {
            match *self {
                Self::Length(left) => {
                    let here = left.min(bytes.len());
                    take(&bytes[..here]);
                    *self = Self::Length(left - here);
                    return Ok(left == here);
                }
                Self::Chunk(left) => {
                    let here = left.min(bytes.len());
                    take(&bytes[..here]);
                    bytes = &bytes[here..];
                    *self = match left - here {
                        0 => Self::Behind,
                        left => Self::Chunk(left),
                    };
                    continue;
                }
                Self::Size(size) => {
                    *self = match first {
                        b'\r' => Self::Size(size),
                        b'\n' if size == 0 => Self::Last,
                        b'\n' => Self::Chunk(size),
                        digit => {
                            let digit = char::from(*digit).to_digit(16);
                            let digit = digit.ok_or("the size of a chunk is no number")?;
                            Self::Size(size * 16 + digit as usize)
                        }
                    }
                }
                Self::Behind => {
                    if *first == b'\n' {
                        *self = Self::Size(0);
                    }
                }
                Self::Last => {
                    if *first == b'\n' {
                        return Ok(true);
                    }
                }
            }
            bytes = &bytes[1..];
        }
        Ok(false)
    }
}

/// The beginning and the end of a body.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: usize,
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Kept {
    pub(super) fn clear(&mut self) {
        self.bytes = 0;
        self.first.clear();
        self.last.clear();
    }

    pub(super) fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        let room = FIRST_BYTES - self.first.len();
        self.first
            .extend_from_slice(&piece[..room.min(piece.len())]);
        if self.last.len() + piece.len() > 2 * LAST_BYTES {
            let keep = self.last.len().min(LAST_BYTES);
            self.last.drain(..self.last.len() - keep);
        }
        let from = piece.len().saturating_sub(LAST_BYTES);
        if from > 0 {
            self.last.clear();
        }
        self.last.extend_from_slice(&piece[from..]);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn begins_with_result(&self) -> bool {
        let within = &self.first[..self.first.len().min(RESULT_WITHIN)];
        within.windows(RESULT.len()).any(|w| w == RESULT)
    }

    pub(super) fn first(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.first)
    }

    pub(super) fn last(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, Kept, LAST_BYTES};

    /// What is read of an answer that comes in pieces of this size, and whether it has ended.
    fn read(answer: &str, piece: usize) -> (String, bool) {
        let (mut body, begin) = Body::begin(answer.as_bytes())
            .expect("a head")
            .expect("all of it");
        let (mut text, mut ended) = (Vec::new(), false);
        for piece in answer.as_bytes()[begin..].chunks(piece) {
            assert!(!ended, "there is something behind the end");
            ended = body
                .read(piece, &mut |bytes: &[u8]| text.extend_from_slice(bytes))
                .expect("a body");
        }
        (String::from_utf8(text).expect("text"), ended)
    }

    #[test]
    fn a_body_is_the_same_however_its_bytes_are_cut() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world";
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
             6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n";
        for piece in [1, 2, 3, 5, 100] {
            let expected = ("hello world".to_owned(), true);
            assert_eq!(read(whole, piece), expected, "whole, pieces of {piece}");
            assert_eq!(read(chunked, piece), expected, "chunks, pieces of {piece}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_off_has_not_ended() {
        let cut = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nhello \r\n0\r\n";
        assert_eq!(read(cut, 4), ("hello ".to_owned(), false));
        assert_eq!(Body::begin(b"HTTP/1.1 200 OK\r\n"), Ok(None));
    }

    #[test]
    fn the_end_of_a_long_body_is_kept() {
        let mut kept = Kept::default();
        for k in 0..100_000 {
            kept.take(format!("{k:06},").as_bytes());
        }
        assert!(kept.first().starts_with("000000,000001,"));
        assert!(kept.last().ends_with("099998,099999,"));
        assert!(kept.last().len() >= LAST_BYTES);
        assert_eq!(kept.bytes(), 700_000);
    }
}
