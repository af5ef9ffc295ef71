//! Counts the work that waits for workers.

use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_workers::MethodKey;

/// The work of one method in the flows of this node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemoteWork {
    /// Tasks that nobody has claimed.
    pub ready: usize,
    /// Since when the oldest of them waits, of those that each flow would give away next.
    pub oldest: Option<Timestamp>,
    /// Attempts under way.
    pub leased: usize,
    /// Workers that wait for tasks at this node.
    pub workers_waiting: usize,
}

impl RemoteWork {
    /// The sum over all declarations of each name.
    pub(in crate::application) fn by_name(
        figures: HashMap<MethodKey, Self>,
    ) -> HashMap<Arc<str>, Self> {
        let mut all: HashMap<Arc<str>, Self> = HashMap::new();
        for (method, of) in figures {
            let known = all.entry(method.name).or_default();
            *known = known.beside(of);
        }
        all
    }

    /// The sum of two declarations of a method.
    fn beside(self, other: Self) -> Self {
        let oldest = [self.oldest, other.oldest].into_iter().flatten().min();
        Self {
            ready: self.ready + other.ready,
            oldest,
            leased: self.leased + other.leased,
            workers_waiting: self.workers_waiting + other.workers_waiting,
        }
    }
}
