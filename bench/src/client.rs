//! A minimal HTTP/1.1 client on a connection that stays open: the load generator shares the
//! machine with the server, so it must cost little. Requests are encoded before the clock starts, and
//! of an answer only the framing and a few bytes are looked at.

mod body;
mod connected;

use body::{Body, Kept};
use connected::{Connected, open};
pub(crate) use connected::{server_arguments, speak_tls};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// In the text of an answer: the server is too busy.
const BUSY: &str = r#""code":-32013,"#;
/// Before a busy server is asked again: shorter than it asks for, to measure when it is ready.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// A server may close a connection on which nothing was asked for longer (taskledger: ten seconds).
const REST_MAX: Duration = Duration::from_secs(5);
/// Read at once.
const READ_BYTES: usize = 128 * 1024;

/// A request, head and body, as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Request(Vec<u8>);

impl Request {
    /// A call of a method.
    pub(crate) fn call(method: &str, params: &Value) -> Self {
        Self::post(&call(method, params))
    }

    /// A `POST` of this body.
    pub(crate) fn post(body: &str) -> Self {
        Self::post_to("/", "", body)
    }

    /// A `POST` of this body to a path, with further header lines.
    pub(crate) fn post_to(path: &str, headers: &str, body: &str) -> Self {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Self([head.as_bytes(), body.as_bytes()].concat())
    }

    pub(crate) fn get(path: &str) -> Self {
        Self(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes())
    }

    /// The same with the token of a caller.
    pub(crate) fn by(&self, token: &str) -> Self {
        let line = self.0.iter().position(|byte| *byte == b'\n');
        let (first, rest) = self.0.split_at(line.map_or(0, |at| at + 1));
        let shown = format!("authorization: Bearer {token}\r\n");
        Self([first, shown.as_bytes(), rest].concat())
    }

    /// As it is sent.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The body of a call.
pub(crate) fn call(method: &str, params: &Value) -> String {
    serde_json::json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}).to_string()
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    /// A result, of so many bytes.
    Result(usize),
    /// The server asks to come back.
    Busy,
}

/// One connection.
pub(crate) struct Client {
    address: String,
    stream: Connected,
    used: Instant,
    buffer: Vec<u8>,
    body: Vec<u8>,
    kept: Kept,
}

impl Client {
    pub(crate) async fn connect(address: &str) -> Result<Self, String> {
        Ok(Self {
            stream: open(address).await?,
            address: address.to_owned(),
            used: Instant::now(),
            buffer: Vec::with_capacity(READ_BYTES),
            body: Vec::new(),
            kept: Kept::default(),
        })
    }

    /// Calls a method and returns its result.
    pub(crate) async fn call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let answer = self.post(&call(method, params)).await?;
        let mut answer: Value = serde_json::from_slice(answer).map_err(|e| e.to_string())?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(format!("{method}: {answer}")),
        }
    }

    /// As [`Self::call`]; a server that is too busy is asked again and again, for so long.
    pub(crate) async fn insist(
        &mut self,
        method: &str,
        params: &Value,
        patience: Duration,
    ) -> Result<Value, String> {
        let began = Instant::now();
        loop {
            match self.call(method, params).await {
                Err(error) if error.contains(BUSY) && began.elapsed() < patience => {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                other => return other,
            }
        }
    }

    /// Posts a body and returns the answer's.
    pub(crate) async fn post(&mut self, body: &str) -> Result<&[u8], String> {
        let mut whole = std::mem::take(&mut self.body);
        whole.clear();
        let sent = self
            .exchange(&Request::post(body), |piece| whole.extend_from_slice(piece))
            .await;
        self.body = whole;
        sent.map(|()| self.body.as_slice())
    }

    /// Sends a request and reads the answer, whatever it is.
    pub(crate) async fn fetch(&mut self, request: &Request) -> Result<(), String> {
        self.exchange(request, |_| {}).await
    }

    /// Sends a call, or a batch of them, and looks whether the answer begins with a result.
    pub(crate) async fn send(&mut self, request: &Request) -> Result<Answer, String> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        let sent = self.exchange(request, |piece| kept.take(piece)).await;
        self.kept = kept;
        sent?;
        let kept = &self.kept;
        if kept.begins_with_result() {
            Ok(Answer::Result(kept.bytes()))
        } else if kept.first().contains(BUSY) {
            Ok(Answer::Busy)
        } else {
            Err(kept.first().into_owned())
        }
    }

    /// Sends a request whose answer must hold a text near its beginning.
    pub(crate) async fn send_for(&mut self, request: &Request, text: &str) -> Result<(), String> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        let sent = self.exchange(request, |piece| kept.take(piece)).await;
        self.kept = kept;
        sent?;
        let first = self.kept.first();
        match first.contains(text) {
            true => Ok(()),
            false => Err(first.into_owned()),
        }
    }

    /// Sends a call that is answered with a stream of events and reads that to its end, which must be the
    /// end of a run that completed.
    pub(crate) async fn follow(&mut self, request: &Request) -> Result<Answer, String> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        let sent = self.exchange(request, |piece| kept.take(piece)).await;
        self.kept = kept;
        sent?;
        let last = self.kept.last();
        let event = last.rsplit("data:").next().unwrap_or_default();
        if event.contains(r#""final":true"#) && event.contains(r#""status":"completed""#) {
            return Ok(Answer::Result(self.kept.bytes()));
        }
        if self.kept.first().contains(BUSY) {
            return Ok(Answer::Busy);
        }
        Err(format!("a run did not complete: {}", self.kept.last()))
    }

    /// Sends, and gives the body of the answer in pieces.
    async fn exchange(
        &mut self,
        request: &Request,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), String> {
        if self.used.elapsed() > REST_MAX {
            self.stream = open(&self.address).await?;
        }
        self.stream
            .write_all(&request.0)
            .await
            .map_err(|e| e.to_string())?;
        self.stream.flush().await.map_err(|e| e.to_string())?;
        self.buffer.clear();
        let (mut body, begin) = loop {
            self.more().await?;
            if let Some(found) = Body::begin(&self.buffer)? {
                break found;
            }
        };
        let mut ended = body.read(&self.buffer[begin..], &mut take)?;
        while !ended {
            self.buffer.clear();
            self.more().await?;
            ended = body.read(&self.buffer, &mut take)?;
        }
        self.used = Instant::now();
        Ok(())
    }

    async fn more(&mut self) -> Result<(), String> {
        let read = self
            .stream
            .read_buf(&mut self.buffer)
            .await
            .map_err(|e| e.to_string())?;
        if read == 0 {
            return Err("the server closed the connection".to_owned());
        }
        Ok(())
    }
}
