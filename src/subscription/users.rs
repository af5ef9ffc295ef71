//! Whose flows are whose: for those who watch the flows of one user.
//!
//! The user of a flow is that of its root, as it is now; what happened before counts as theirs.

use crate::store::{Error, EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use taskledger_domain::flow::Event;
use taskledger_domain::{FlowId, Recorded};

/// Flows whose users are remembered, oldest out first: about 2 MB.
const FLOWS_MAX: usize = 16_384;

/// The user, if there is one.
type User = Option<Arc<str>>;

/// Remembers users of flows.
#[derive(Debug)]
pub struct Users {
    store: Arc<dyn EventStore>,
    known: Mutex<(HashMap<FlowId, User>, VecDeque<FlowId>)>,
}

impl Users {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(store: Arc<dyn EventStore>) -> Self {
        Self {
            store,
            known: Mutex::default(),
        }
    }

    /// Takes over what an event says of a flow that was asked for. To be told of all events, in order.
    pub fn learn(&self, recorded: &Recorded) {
        let Some(user) = said(recorded) else { return };
        if let Some(known) = self.lock().0.get_mut(&recorded.flow) {
            *known = user;
        }
    }

    /// Forgets everything: some events were not told.
    pub fn forget(&self) {
        *self.lock() = Default::default();
    }

    /// The user of a flow; none for a flow that does not exist. Cost: O(1) when it is known, else the
    /// flow's history is read.
    ///
    /// # Errors
    /// [`Error`]: the log cannot be read.
    pub async fn of(&self, flow: FlowId) -> Result<User, Error> {
        if let Some(user) = self.lock().0.get(&flow) {
            return Ok(user.clone());
        }
        let (mut after, mut user) = (0, None);
        loop {
            let piece = self
                .store
                .read_stream(flow, after, PIECE_EVENTS_MAX, PIECE_BYTES_MAX)
                .await?;
            let Some(last) = piece.last() else { break };
            after = last.version;
            if let Some(said) = piece.iter().rev().find_map(|recorded| said(recorded)) {
                user = said;
            }
        }
        Ok(self.remember(flow, user))
    }

    /// Keeps what was read, unless something newer was learned meanwhile.
    fn remember(&self, flow: FlowId, read: User) -> User {
        let mut known = self.lock();
        let (users, order) = &mut *known;
        if let Some(newer) = users.get(&flow) {
            return newer.clone();
        }
        users.insert(flow, read.clone());
        order.push_back(flow);
        if order.len() > FLOWS_MAX
            && let Some(oldest) = order.pop_front()
        {
            users.remove(&oldest);
        }
        read
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (HashMap<FlowId, User>, VecDeque<FlowId>)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an event says of its flow's user.
fn said(recorded: &Recorded) -> Option<User> {
    let root = recorded.flow.root();
    let user = match recorded.event.as_ref() {
        Event::TaskCreated(e) if e.task_id == root => &e.user_id,
        Event::UserChanged(e) if e.task_id == root => &e.user_id,
        Event::TaskCreated(_)
        | Event::UserChanged(_)
        | Event::TaskRenamed(_)
        | Event::PriorityChanged(_)
        | Event::TaskMoved(_)
        | Event::DependenciesChanged(_)
        | Event::TaskRespecified(_)
        | Event::TaskDeleted(_)
        | Event::RunStarted(_)
        | Event::TaskStarted(_)
        | Event::TaskProgressed(_)
        | Event::TaskCompleted(_)
        | Event::TaskFailed(_)
        | Event::TaskRequeued(_)
        | Event::TaskCancelled(_)
        | Event::RunEnded(_) => return None,
    };
    Some(user.as_deref().map(Arc::from))
}
