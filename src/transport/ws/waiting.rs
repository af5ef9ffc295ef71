//! Delays the reading of messages of a socket whose caller had many calls refused a moment ago.
//!
//! Large ones wait for no turn, as bodies over HTTP do: a message has 64 KiB at most, which are soon read, and a call
//! that makes many tasks waits for its turn once that is known.

use super::sockets::Sockets;
use axum::extract::ws::Utf8Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

/// A message that may be read.
pub(super) struct Read {
    pub(super) text: Utf8Bytes,
    pub(super) arrived: Instant,
    /// Its place among the calls of the socket, if it has waited.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// Those that wait: at most as many as calls run at once. They go with their socket.
pub(super) type Waiting = FuturesUnordered<BoxFuture<'static, Read>>;

impl<C: Send + Sync + 'static> Sockets<C> {
    /// A message that has come, if it is read at once; else it is added to those that wait, with a place that `room`
    /// gives.
    pub(super) fn read(
        &self,
        text: Utf8Bytes,
        waiting: &Waiting,
        room: impl FnOnce() -> OwnedSemaphorePermit,
    ) -> Option<Read> {
        let arrived = Instant::now();
        let read = |room| Read {
            text,
            arrived,
            room,
        };
        let pause = self
            .service
            .as_ref()
            .and_then(|service| service.pause(&self.caller));
        let Some(pause) = pause else {
            return Some(read(None));
        };
        let message = read(Some(room()));
        let wait = async move {
            sleep(pause).await;
            message
        };
        waiting.push(wait.boxed());
        None
    }
}
