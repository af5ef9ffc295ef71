//! Connected workers, and those that get no new work.

use std::sync::Arc;
use taskledger_domain::Timestamp;
use uuid::Uuid;

/// The way in which a worker is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Connection {
    /// It polls.
    Poll,
    /// It holds a socket.
    Socket,
}

impl Connection {
    /// The name, which never changes: it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Socket => "socket",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Poll, Self::Socket]
            .into_iter()
            .find(|connection| connection.as_str() == text)
    }
}

/// A worker that asks for work, as one server has seen it. A worker that is connected to several servers has
/// one of these for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// What it calls itself; unique for its principal only.
    pub worker: Arc<str>,
    /// With whose credentials it came: `user:ann`, `service:ci`, `anonymous`.
    pub principal: Arc<str>,
    /// The user whose flows alone it may claim of; `None`: those of all users.
    pub owner: Option<Arc<str>>,
    /// The server that it is connected to; `None`: one that is alone.
    pub node: Option<Uuid>,
    /// The methods that it last asked for, in its order.
    pub methods: Arc<[Arc<str>]>,
    /// How it last asked.
    pub connection: Connection,
    /// Since when it has asked without a long pause.
    pub since: Timestamp,
    /// When it last asked.
    pub last_seen_at: Timestamp,
}

/// A worker that gets no new work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    /// What it calls itself.
    pub worker: Arc<str>,
    /// The caller that the worker authenticated as; its name is unique only for this caller.
    pub principal: Arc<str>,
    /// Since when.
    pub drained_at: Timestamp,
}
