//! Figures about the queues for slots: how many flows wait, and for how long.

use super::{Lane, Slots};
use taskledger_domain::Timestamp;
use taskledger_domain::task::Priority;

/// See [`Slots::queues`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// The name of the executor.
    pub executor: String,
    /// Attempts under way.
    pub running: usize,
    /// Attempts that may be under way.
    pub limit: usize,
    /// Flows that wait, by the priority of their most urgent task, in the order of [`Priority::ALL`].
    pub waiting: [usize; Priority::ALL.len()],
    /// Since when the one waits that has waited longest.
    pub oldest: Option<Timestamp>,
}

impl Slots {
    /// How each executor is used, and who waits for it. Cost: O(flows that wait), under the lock that
    /// starts need.
    #[must_use]
    pub fn queues(&self) -> Vec<Queue> {
        let lanes = self.lanes();
        let queues = lanes.iter().map(|(name, lane)| queue(name, lane));
        queues.collect()
    }
}

fn queue(name: &str, lane: &Lane) -> Queue {
    let mut queue = Queue {
        executor: name.to_owned(),
        running: lane.taken.len(),
        limit: lane.limit,
        waiting: [0; Priority::ALL.len()],
        oldest: None,
    };
    for (priority, since, _) in lane.waiting.ranks() {
        queue.waiting[usize::from(priority.get())] += 1;
        let oldest = queue.oldest.get_or_insert(since);
        *oldest = (*oldest).min(since);
    }
    queue
}
