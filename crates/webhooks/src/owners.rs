//! Finds the owner of a message's flow at the time when the message is sent.
//!
//! A message may wait for days, and a flow may be given to somebody else meanwhile. So the log is asked before each
//! attempt, not what was known when the message was noted. May not touch: the store, what is sent.

use crate::delivery::Unavailable;
use async_trait::async_trait;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_domain::flow::Event;
use taskledger_domain::{FlowId, Recorded, Version};
use taskledger_log::{EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};

/// Flows that are remembered, so that only later events are read; the oldest leave first. About 1 MB.
const FLOWS_MAX: usize = 8192;

/// The port that tells who owns a flow now.
#[async_trait]
pub trait Owners: Send + Sync + std::fmt::Debug {
    /// The present owner of a flow.
    ///
    /// # Errors
    /// [`Unavailable`]: it cannot be said now; ask again before anything is sent.
    async fn of(&self, flow: FlowId) -> Result<Owner, Unavailable>;
}

/// The owner of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The `user_id` of its root.
    User(Arc<str>),
    /// Its root has no `user_id`.
    Nobody,
    /// The log does not say any more: the flow was archived before its last event named the owner.
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

/// The owner that an event gives its flow, or says that it had in the end.
fn owner_in(recorded: &Recorded) -> Option<Owner> {
    let user = if let Event::FlowArchived(archived) = &*recorded.event {
        archived.owner.as_deref()
    } else {
        let (task, user) = recorded.event.user_said()?;
        if task != recorded.flow.root() {
            return None;
        }
        user
    };
    Some(user.map_or(Owner::Nobody, |user| Owner::User(Arc::from(user))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_clock::ManualClock;
    use taskledger_domain::flow::{FlowArchived, UserChanged};
    use taskledger_domain::testing::{START, id};
    use taskledger_log::memory::MemoryStore;
    use taskledger_subscription::testing::append_event;

    /// A flow that was given to each of these users in turn, archived by an event that says so, and dropped.
    async fn archived(users: &[&str], owner: Option<&str>) -> Owner {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::at(START))));
        for (version, user) in (0..).zip(users) {
            let given = UserChanged {
                task_id: id("task"),
                user_id: Some((*user).to_owned()),
            };
            append_event(&store, version, Event::UserChanged(given)).await;
        }
        let events = users.len() as u64;
        let end = FlowArchived {
            file: "file".to_owned(),
            sha256: "digest".to_owned(),
            events,
            runs: Vec::new(),
            owner: owner.map(str::to_owned),
        };
        append_event(&store, events, Event::FlowArchived(end)).await;
        let flow = id("task").as_flow();
        let left = store.drop_archived(flow, 100).await;
        assert_eq!(left.expect("it is archived"), 0);
        let owners = OwnersInLog::new(store);
        owners.of(flow).await.expect("the log can be read")
    }

    #[tokio::test]
    async fn a_flow_that_has_left_the_log_is_its_last_owners() {
        let owner = archived(&["ann", "bob"], Some("bob")).await;
        assert!(owner.allows("bob") && !owner.allows("ann"), "{owner:?}");
        let owner = archived(&["ann"], None).await;
        assert!(!owner.allows("ann"), "{owner:?}");
    }
}
