//! What one socket works with: the dispatcher, its caller, and its limits.

use crate::application::Service;
use crate::application::api::{Caller, Session};
use crate::clock::SharedClock;
use crate::transport::budget::{Budget, Holder};
use crate::transport::jsonrpc::Dispatcher;
use crate::transport::overhead::Overhead;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bytes of a message, and of a frame, that is taken: a call with some inputs. Larger calls go over
/// POST.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// What a socket is served with.
pub(crate) struct Sockets<C> {
    pub(crate) dispatcher: Arc<Dispatcher<C>>,
    /// Who tells when messages may be read.
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) clock: SharedClock,
    /// Who has opened it.
    pub(crate) caller: Arc<Caller>,
    /// The address of its client, if it is known.
    pub(crate) address: Option<IpAddr>,
    /// The session that keeps it open; none while authentication is off.
    pub(crate) session: Option<Session>,
    /// When its peer last sent something.
    pub(crate) heard: Arc<Heard>,
    /// Room for requests, shared with all other doors.
    pub(crate) requests: Arc<Semaphore>,
    /// Bytes of answers, shared with all other connections.
    pub(crate) answers: Budget,
    /// Control frames and fragments that its peer may still send.
    pub(crate) overhead: Arc<Overhead>,
    /// What one call may take.
    pub(crate) request_timeout: Duration,
    /// Cancelled when the server stops accepting.
    pub(crate) draining: CancellationToken,
    /// Cancelled when the grace is over.
    pub(crate) cut: CancellationToken,
    /// Calls, which go on without their socket.
    pub(crate) tracker: TaskTracker,
}

impl<C> Sockets<C> {
    /// The caller for whom answers are counted.
    pub(super) fn holder(&self) -> Holder {
        Holder::of(&self.caller, self.address)
    }
}

/// When something was last heard.
#[derive(Debug)]
pub(crate) struct Heard {
    at: Mutex<Instant>,
    /// Told when something is heard.
    news: Notify,
    /// Told when the peer is to say something.
    asked: Notify,
}

impl Heard {
    /// Now.
    pub(crate) fn new() -> Self {
        Self {
            at: Mutex::new(Instant::now()),
            news: Notify::new(),
            asked: Notify::new(),
        }
    }

    pub(super) fn now(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.news.notify_waiters();
    }

    pub(super) fn at(&self) -> Instant {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the peer has sent something behind `begun`, which it is asked to do.
    pub(super) async fn behind(&self, begun: Instant) {
        self.asked.notify_one();
        loop {
            // Made before the look, so that nothing is missed.
            let news = self.news.notified();
            if self.at() > begun {
                return;
            }
            news.await;
        }
    }

    /// Waits until somebody wants to know whether the peer is there.
    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }
}
