//! Whose flow a message is about at the moment when it is sent.
//!
//! A message may wait for days, and a flow may be given to somebody else meanwhile. So the log is asked before each
//! attempt, not what was known when the message was noted. May not touch: the store, what is sent.

use crate::delivery::Unavailable;
use async_trait::async_trait;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_domain::{FlowId, Recorded, Version};
use taskledger_log::{EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};

/// Flows that are remembered, so that only later events are read; the oldest leave first. About 1 MB.
const FLOWS_MAX: usize = 8192;

/// Whose flow is it now?
#[async_trait]
pub trait Owners: Send + Sync + std::fmt::Debug {
    /// The present owner of a flow.
    ///
    /// # Errors
    /// [`Unavailable`]: it cannot be said now; ask again before anything is sent.
    async fn of(&self, flow: FlowId) -> Result<Owner, Unavailable>;
}

/// Whose a flow is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The `user_id` of its root.
    User(Arc<str>),
    /// Its root has no `user_id`.
    Nobody,
    /// The log does not say any more: the flow was archived. It has not changed its owner since.
    Unknown,
}

impl Owner {
    /// Whether messages about the flow may be sent to a webhook of this user.
    #[must_use]
    pub fn allows(&self, user: &str) -> bool {
        match self {
            Self::User(owner) => **owner == *user,
            Self::Nobody => false,
            Self::Unknown => true,
        }
    }
}

/// Asks the log.
#[derive(Debug)]
pub struct OwnersInLog {
    log: Arc<dyn EventStore>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    flows: HashMap<FlowId, Said>,
    order: VecDeque<FlowId>,
}

/// What the events of a flow say, up to a version.
#[derive(Debug, Clone)]
struct Said {
    up_to: Version,
    owner: Owner,
}

impl OwnersInLog {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(log: Arc<dyn EventStore>) -> Self {
        Self {
            log,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Owners for OwnersInLog {
    /// Cost: O(events of the flow since it was asked for last).
    async fn of(&self, flow: FlowId) -> Result<Owner, Unavailable> {
        let known = self.known().flows.get(&flow).cloned();
        let mut said = known.unwrap_or(Said {
            up_to: 0,
            owner: Owner::Unknown,
        });
        loop {
            let read = self
                .log
                .read_stream(flow, said.up_to, PIECE_EVENTS_MAX, PIECE_BYTES_MAX);
            let piece = read.await.map_err(|error| Unavailable(error.to_string()))?;
            let Some(last) = piece.last() else { break };
            said.up_to = last.version;
            if let Some(owner) = piece.iter().rev().find_map(|event| owner_in(event)) {
                said.owner = owner;
            }
        }
        self.known().put(flow, said.clone());
        Ok(said.owner)
    }
}

impl Known {
    fn put(&mut self, flow: FlowId, said: Said) {
        let former = self.flows.get(&flow).map(|known| known.up_to);
        if former.is_some_and(|former| former >= said.up_to) {
            return;
        }
        self.flows.insert(flow, said);
        if former.is_none() {
            self.order.push_back(flow);
        }
        if self.order.len() > FLOWS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.flows.remove(&oldest);
        }
    }
}

/// The owner that an event gives its flow.
fn owner_in(recorded: &Recorded) -> Option<Owner> {
    let (task, user) = recorded.event.user_said()?;
    let owner = user.map_or(Owner::Nobody, |user| Owner::User(Arc::from(user)));
    (task == recorded.flow.root()).then_some(owner)
}
