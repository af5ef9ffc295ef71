//! How much there is for workers.

use taskledger_domain::Timestamp;

/// What there is of a method, of the flows of this node.
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
    /// That of two declarations of a method together.
    pub(in crate::application) fn beside(self, other: Self) -> Self {
        let oldest = [self.oldest, other.oldest].into_iter().flatten().min();
        Self {
            ready: self.ready + other.ready,
            oldest,
            leased: self.leased + other.leased,
            workers_waiting: self.workers_waiting + other.workers_waiting,
        }
    }
}
