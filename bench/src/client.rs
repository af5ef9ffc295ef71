//! A minimal HTTP/1.1 client on a connection that stays open: the load generator shares the
//! machine with the server, so it must cost little.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

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
            let read = self
                .stream
                .read_buf(&mut self.buffer)
                .await
                .map_err(|e| e.to_string())?;
            if read == 0 {
                return Err("the server closed the connection".to_owned());
            }
            let Some(end) = find(&self.buffer, b"\r\n\r\n") else {
                continue;
            };
            let length = content_length(&self.buffer[..end])?;
            let total = end + 4 + length;
            if self.buffer.len() >= total {
                return Ok(&self.buffer[end + 4..total]);
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

fn content_length(head: &[u8]) -> Result<usize, String> {
    let head = std::str::from_utf8(head).map_err(|e| e.to_string())?;
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(|| format!("an answer without content-length: {head}"))
}
