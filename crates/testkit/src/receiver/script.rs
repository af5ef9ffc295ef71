//! The script of a receiver: what it does with a request.

use std::time::Duration;

/// An answer as it should be.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    /// Without a body.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// With one header more.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// As it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Status\r\n", self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !matches!(self.status, 204 | 304) {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// The continuation of a connection.
#[derive(Debug, Clone, Copy)]
pub enum Then {
    /// The next request is awaited.
    Keep,
    /// It is closed in order.
    Close,
    /// It is reset.
    Reset,
    /// Nothing ever happens again.
    Hang,
    /// Nothing more is sent, but everything is read.
    HalfClose,
}

/// The behaviour of a receiver.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Answers, and keeps the connection.
    Answer(Answer),
    /// Answers late.
    Delayed(Duration, Answer),
    /// Sends these bytes, which need not be HTTP.
    Raw(Vec<u8>, Then),
    /// Sends `head`, then `piece` for as long as the client takes it.
    Endless {
        /// What comes first.
        head: Vec<u8>,
        /// What comes again and again.
        piece: Vec<u8>,
        /// Between two pieces.
        pause: Duration,
    },
    /// Reads nothing of a new connection.
    Unread(Then),
    /// Reads the head and so many bytes of the body.
    MidRequest {
        /// Bytes of the body that are read.
        bytes: usize,
        /// What comes then.
        then: Then,
    },
}

impl From<Answer> for Behaviour {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl Behaviour {
    /// Bytes that are no valid answer.
    pub fn raw(bytes: impl Into<Vec<u8>>, then: Then) -> Self {
        Self::Raw(bytes.into(), then)
    }

    /// 200 and a body that never ends, in pieces of 64 KiB.
    pub fn endless_body() -> Self {
        const PIECE_BYTES: usize = 0x10000;
        let piece = [b"10000\r\n".as_slice(), &[b'x'; PIECE_BYTES], b"\r\n"].concat();
        Self::Endless {
            head: b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
            piece,
            pause: Duration::ZERO,
        }
    }

    /// 200 and a body of which one byte comes at a time.
    pub fn drip(pause: Duration) -> Self {
        Self::Endless {
            head: b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
            piece: b"1\r\nx\r\n".to_vec(),
            pause,
        }
    }

    /// Headers that never end.
    pub fn endless_headers() -> Self {
        Self::Endless {
            head: b"HTTP/1.1 200 OK\r\n".to_vec(),
            piece: b"x-more: and more and more and more and more\r\n".repeat(100),
            pause: Duration::ZERO,
        }
    }

    /// Interim answers that never end.
    pub fn flood_of_interim_answers() -> Self {
        Self::Endless {
            head: Vec::new(),
            piece: b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100),
            pause: Duration::from_millis(1),
        }
    }
}
