//! HTTP/2 by hand, for what no client would send.

use taskledger_testkit::server::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Types of frames.
const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
/// The flag of headers that are all there.
const END_HEADERS: u8 = 4;
/// The flag of a frame that is the last one of its stream.
const END_STREAM: u8 = 1;
const CANCEL: u32 = 8;
/// Bytes of a frame that any peer takes.
const FRAME_BYTES_MAX: usize = 16_384;

/// A connection.
pub(super) struct Wire {
    socket: TcpStream,
    address: String,
    next: u32,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header that is in no table and enters none.
fn header(name: &str, value: &str) -> Vec<u8> {
    let mut header = vec![0];
    for text in [name, value] {
        // One byte says lengths below 127 of a text that is not compressed.
        assert!(text.len() < 127);
        header.push(u8::try_from(text.len()).unwrap());
        header.extend(text.as_bytes());
    }
    header
}

impl Wire {
    pub(super) async fn open(server: &Server) -> Self {
        let address = server.api.url.strip_prefix("http://").unwrap();
        let address = address.trim_end_matches('/').to_owned();
        let mut socket = TcpStream::connect(&address).await.unwrap();
        let beginning = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        socket.write_all(&beginning).await.unwrap();
        Self {
            socket,
            address,
            next: 1,
        }
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.write_all(bytes).await
    }

    fn headers(&self, path: &str) -> Vec<u8> {
        let headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", &self.address),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        headers.map(|(name, value)| header(name, value)).concat()
    }

    /// A call that is taken back at once, before its message or within.
    pub(super) fn reset_call(&mut self, path: &str, has_body: bool) -> Vec<u8> {
        let id = self.next;
        self.next += 2;
        let mut bytes = frame(HEADERS, END_HEADERS, id, &self.headers(path));
        if has_body {
            bytes.extend(frame(DATA, 0, id, &[0; 100]));
        }
        bytes.extend(frame(RST_STREAM, 0, id, &CANCEL.to_be_bytes()));
        bytes
    }

    /// A call with this message, and the frames of its answer: each with its type, and whether it ends the answer.
    pub(super) async fn call(&mut self, path: &str, message: &[u8]) -> Vec<(u8, bool)> {
        let id = self.next;
        self.next += 2;
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let body = [&[0][..], &length, message].concat();
        let head = frame(HEADERS, END_HEADERS, id, &self.headers(path));
        let call = [head, frame(DATA, END_STREAM, id, &body)].concat();
        self.send(&call).await.unwrap();
        let mut frames = Vec::new();
        while frames.last().is_none_or(|(_, is_last)| !is_last) {
            let mut head = [0; 9];
            self.socket.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.socket.read_exact(&mut payload).await.unwrap();
            if head[5..] == id.to_be_bytes() {
                frames.push((head[3], head[4] & END_STREAM != 0));
            }
        }
        frames
    }

    /// The beginning of headers without their end.
    pub(super) fn unfinished_headers(&self, path: &str) -> Vec<u8> {
        frame(HEADERS, 0, self.next, &self.headers(path))
    }

    /// More of them.
    pub(super) fn continuation(&self) -> Vec<u8> {
        let more = header("x-more", &"y".repeat(120));
        let more = more.repeat(FRAME_BYTES_MAX / more.len());
        frame(CONTINUATION, 0, self.next, &more)
    }

    /// Reads to the end of the connection. The error with which the server has ended it, if it said one.
    pub(super) async fn ended(&mut self) -> Option<u32> {
        let mut error = None;
        loop {
            let mut head = [0; 9];
            if self.socket.read_exact(&mut head).await.is_err() {
                return error;
            }
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            if self.socket.read_exact(&mut payload).await.is_err() {
                return error;
            }
            if head[3] == GOAWAY {
                error = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
            }
        }
    }
}
