//! Writes messages to a socket, one after the other.

use super::outbox::InQueue;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::timeout;

/// How long a peer may take for one message: whoever stops reading must not keep a place.
const WRITE_WAIT: Duration = Duration::from_secs(30);
/// Messages that are handed over before they are pushed out together.
const BATCH_MAX: usize = 32;

/// Why nothing is written any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// There is nobody to write, or to write to.
    Ended,
    /// The peer takes nothing.
    Untaken,
}

/// Writes until a close frame was written, nobody can send any more, or the peer takes nothing.
pub(super) async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut outgoing: mpsc::Receiver<InQueue>,
) -> Written {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while outgoing.recv_many(&mut batch, BATCH_MAX).await > 0 {
        gather(&mut batch, &mut outgoing).await;
        let mut closes = false;
        let writing = async {
            for outgoing in &mut batch {
                let none = Message::Binary(Bytes::new());
                let message = std::mem::replace(&mut outgoing.message, none);
                closes |= matches!(message, Message::Close(_));
                sink.feed(message).await?;
                outgoing.written();
            }
            sink.flush().await
        };
        match timeout(WRITE_WAIT, writing).await {
            Err(_) => return Written::Untaken,
            Ok(Ok(())) if !closes => {}
            Ok(Ok(()) | Err(_)) => return Written::Ended,
        }
        // Only now are their bytes given back.
        batch.clear();
    }
    Written::Ended
}

/// Adds what else is about to be said: whoever is told of one durable append, such as a worker of the end of a task and
/// of the next one, is sent it in one write and wakes up once.
async fn gather(batch: &mut Vec<InQueue>, outgoing: &mut mpsc::Receiver<InQueue>) {
    yield_now().await;
    while batch.len() < BATCH_MAX
        && let Ok(more) = outgoing.try_recv()
    {
        batch.push(more);
    }
}
