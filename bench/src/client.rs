//! A minimal HTTP/1.1 client on a connection that stays open: the load generator shares the
//! machine with the server, so it must cost little.

use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// In the text of an answer: the server is too busy.
const BUSY: &str = r#""code":-32013,"#;
/// Before a busy server is asked again: shorter than it asks for, to measure when it is ready.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(|e| format!("{address}: {e}"))?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    /// Calls a method and returns its result.
    pub(crate) async fn call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let body =
            serde_json::json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1})
                .to_string();
        let answer = self.post(&body).await?;
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
        let head = format!(
            "POST / HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), body.as_bytes()].concat();
        self.stream
            .write_all(&request)
            .await
            .map_err(|e| e.to_string())?;
        self.buffer.clear();
        loop {
            self.more().await?;
            let Some(end) = find(&self.buffer, b"\r\n\r\n") else {
                continue;
            };
            match body_length(&self.buffer[..end])? {
                Some(length) if self.buffer.len() < end + 4 + length => {}
                Some(length) => return Ok(&self.buffer[end + 4..end + 4 + length]),
                None => {
                    self.buffer.drain(..end + 4);
                    self.chunks().await?;
                    return Ok(&self.buffer);
                }
            }
        }
    }

    /// Reads a body in chunks, of which the beginning is in the buffer, and leaves it there whole.
    async fn chunks(&mut self) -> Result<(), String> {
        let (mut read_to, mut body_len) = (0, 0);
        loop {
            let size = match find(&self.buffer[read_to..], b"\r\n") {
                None => {
                    self.more().await?;
                    continue;
                }
                Some(end) => {
                    let line = String::from_utf8_lossy(&self.buffer[read_to..read_to + end]);
                    let size = usize::from_str_radix(line.trim(), 16)
                        .map_err(|e| format!("{line}: {e}"))?;
                    read_to += end + 2;
                    size
                }
            };
            while self.buffer.len() < read_to + size + 2 {
                self.more().await?;
            }
            self.buffer.copy_within(read_to..read_to + size, body_len);
            body_len += size;
            read_to += size + 2;
            if size == 0 {
                self.buffer.truncate(body_len);
                return Ok(());
            }
        }
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

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

/// Bytes of the body; `None` when it comes in chunks.
fn body_length(head: &[u8]) -> Result<Option<usize>, String> {
    let head = std::str::from_utf8(head).map_err(|e| e.to_string())?;
    let field = |wanted: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim())
    };
    if field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        return Ok(None);
    }
    match field("content-length").map(str::parse) {
        Some(Ok(length)) => Ok(Some(length)),
        _ => Err(format!("an answer of unknown length: {head}")),
    }
}
