//! The users of flows, for those who watch the flows of one user.
//!
//! The user of a flow is that of its root, as it is now; what happened before counts as theirs.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use taskledger_domain::{FlowId, Recorded, Version};
use taskledger_log::{Error, EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};

/// Flows whose users are remembered, oldest out first: about 2 MB.
const FLOWS_MAX: usize = 16_384;

/// The user, if there is one.
type User = Option<Arc<str>>;

/// Remembers users of flows.
#[derive(Debug)]
pub struct Users {
    store: Arc<dyn EventStore>,
    known: Mutex<Known>,
    /// One flow is read at a time: many who ask for the same one must not read it many times.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    /// With the version of the event that said so.
    users: HashMap<FlowId, (Version, User)>,
    order: VecDeque<FlowId>,
}

impl Users {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(store: Arc<dyn EventStore>) -> Self {
        Self {
            store,
            known: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// Takes over what an event says. To be told of all events while somebody asks; of those that it was
    /// not told of, see [`Self::forget`].
    pub fn learn(&self, recorded: &Recorded) {
        if let Some(user) = said(recorded) {
            self.lock().put(recorded.flow, recorded.version, user);
        }
    }

    /// Forgets everything: some events were not told.
    pub fn forget(&self) {
        *self.lock() = Known::default();
    }

    /// The user of a flow; none for a flow that does not exist. Cost: O(1) when it is known, else the
    /// flow's history is read.
    ///
    /// # Errors
    /// [`Error`]: the log cannot be read.
    pub async fn of(&self, flow: FlowId) -> Result<User, Error> {
        if let Some(user) = self.lock().get(flow) {
            return Ok(user);
        }
        let _turn = self.reading.lock().await;
        if let Some(user) = self.lock().get(flow) {
            return Ok(user);
        }
        let (mut after, mut found) = (0, (0, None));
        loop {
            let piece = self
                .store
                .read_stream(flow, after, PIECE_EVENTS_MAX, PIECE_BYTES_MAX)
                .await;
            let piece = match piece {
                // A later event may name another user: nobody's rather than the wrong one's.
                Err(Error::Corrupt { .. }) => return Ok(None),
                piece => piece?,
            };
            let Some(last) = piece.last() else { break };
            after = last.version;
            let said = |recorded: &Arc<Recorded>| Some((recorded.version, said(recorded)?));
            if let Some(newest) = piece.iter().rev().find_map(said) {
                found = newest;
            }
        }
        let (version, user) = found;
        let mut known = self.lock();
        known.put(flow, version, user);
        Ok(known.get(flow).flatten())
    }

    /// Flows whose users are remembered.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.lock().users.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn get(&self, flow: FlowId) -> Option<User> {
        self.users.get(&flow).map(|(_, user)| user.clone())
    }

    /// Keeps what was said, unless something newer is known.
    fn put(&mut self, flow: FlowId, version: Version, user: User) {
        match self.users.entry(flow) {
            Entry::Occupied(mut known) => {
                if known.get().0 < version {
                    known.insert((version, user));
                }
                return;
            }
            Entry::Vacant(unknown) => _ = unknown.insert((version, user)),
        }
        self.order.push_back(flow);
        if self.order.len() > FLOWS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.users.remove(&oldest);
        }
    }
}

/// What an event says of its flow's user.
fn said(recorded: &Recorded) -> Option<User> {
    let (task, user) = recorded.event.user_said()?;
    (task == recorded.flow.root()).then(|| user.map(Arc::from))
}
