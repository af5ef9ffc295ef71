//! Messages of a socket that wait before they are read: large ones for a turn of their caller, and all of a caller
//! many of whose calls were refused a moment ago. Other messages of the socket are read meanwhile.

use super::Sockets;
use crate::application::api::{Error, Turn};
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
    /// In which it is read, if it is large; the error, if its time ended before.
    pub(super) turn: Result<Option<Turn>, Error>,
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
        let at_once = |text| Read {
            text,
            arrived,
            turn: Ok(None),
            room: None,
        };
        let Some(service) = &self.service else {
            return Some(at_once(text));
        };
        let pause = service.pause(&self.caller);
        if pause.is_none() && !service.is_large(&self.caller, text.len()) {
            return Some(at_once(text));
        }
        let (service, caller) = (service.clone(), self.caller.clone());
        let (room, deadline) = (room(), arrived + self.request_timeout);
        let wait = async move {
            if let Some(pause) = pause {
                sleep(pause).await;
            }
            let turn = service.turn_to_read(&caller, text.len(), deadline).await;
            Read {
                text,
                arrived,
                turn,
                room: Some(room),
            }
        };
        waiting.push(wait.boxed());
        None
    }
}
