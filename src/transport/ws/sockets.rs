//! What every socket is served with.

use crate::application::Service;
use crate::application::api::{Caller, Session};
use crate::clock::SharedClock;
use crate::transport::budget::Budget;
use crate::transport::jsonrpc::Dispatcher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
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
    /// From where.
    pub(crate) address: Option<IpAddr>,
    /// By which it lives; none while authentication is off.
    pub(crate) session: Option<Session>,
    /// When its peer last sent something.
    pub(crate) heard: Heard,
    /// Room for requests, shared with all other doors.
    pub(crate) requests: Arc<Semaphore>,
    /// Bytes of answers, shared with all other connections.
    pub(crate) answers: Budget,
    /// What one call may take.
    pub(crate) request_timeout: Duration,
    /// Cancelled when the server stops accepting.
    pub(crate) draining: CancellationToken,
    /// Cancelled when the grace is over.
    pub(crate) cut: CancellationToken,
    /// Calls, which go on without their socket.
    pub(crate) tracker: TaskTracker,
}

/// When something was last heard.
#[derive(Debug)]
pub(crate) struct Heard(Mutex<Instant>);

impl Heard {
    /// Now.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    pub(super) fn now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(super) fn at(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
