//! A receiver of webhooks on a thread of its own: takes everything, answers at once, and notes how late
//! it came; on `/dead` it takes everything and never answers.

use crate::moment::{now_us, time_us};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Before a path that is never answered.
const DEAD: &[u8] = b"POST /dead";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/// Between two looks at what has come.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What has come so far.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// Milliseconds from the event to its arrival, of each message.
    pub(crate) delays_ms: Vec<f64>,
    /// When the last one came.
    pub(crate) last_us: i64,
    /// Requests that got no answer.
    pub(crate) unanswered: usize,
}

/// The receiver, at every address 127.x.y.z.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    received: Arc<Mutex<Received>>,
}

impl Receiver {
    pub(crate) fn start() -> Result<Self, String> {
        let received = Arc::new(Mutex::new(Received::default()));
        let listener = std::net::TcpListener::bind("0.0.0.0:0").map_err(|e| e.to_string())?;
        listener.set_nonblocking(true).map_err(|e| e.to_string())?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| e.to_string())?;
        let notes = received.clone();
        std::thread::spawn(move || runtime.block_on(accept(listener, notes)));
        Ok(Self { port, received })
    }

    /// What has come since the last call.
    pub(crate) fn take(&self) -> Received {
        std::mem::take(&mut *self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until `enough` of what has come, or for so long; gives whether it was enough.
    pub(crate) async fn wait(
        &self,
        patience: Duration,
        enough: impl Fn(&Received) -> bool,
    ) -> bool {
        let began = Instant::now();
        loop {
            if enough(&self.received.lock().unwrap_or_else(PoisonError::into_inner)) {
                return true;
            }
            if began.elapsed() > patience {
                return false;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

async fn accept(listener: std::net::TcpListener, received: Arc<Mutex<Received>>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, received.clone()));
    }
}

/// Requests with a known length, one after the other.
async fn serve(mut stream: TcpStream, received: Arc<Mutex<Received>>) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let Some((body, end)) = request(&buffer) else {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let is_dead = buffer.starts_with(DEAD);
        {
            let now = now_us();
            let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
            if is_dead {
                received.unanswered += 1;
            } else {
                let sent = time_us(&buffer[body..end]).unwrap_or(now);
                received.delays_ms.push((now - sent) as f64 / 1e3);
                received.last_us = now;
            }
        }
        if !is_dead {
            stream.write_all(ANSWER).await?;
        }
        buffer.drain(..end);
    }
}

/// Where the body of the first request begins and ends, when all of it is there.
fn request(buffer: &[u8]) -> Option<(usize, usize)> {
    let body = buffer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&buffer[..body]).to_ascii_lowercase();
    let (_, length) = head.split_once("content-length:")?;
    let length: usize = length.lines().next()?.trim().parse().ok()?;
    (buffer.len() >= body + length).then_some((body, body + length))
}
