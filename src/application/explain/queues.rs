//! The queues that a task waits in, as its explanation shows them.
//!
//! A caller who sees only their own flows learns of those of others that there are none, a few or many; no number
//! stands for another one.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use taskledger_domain::flow::explain::Place;
use taskledger_domain::{TaskId, Timestamp};

/// Flows or tasks ahead up to which a caller who sees only their own flows learns `few`; more are `many`.
const FEW: usize = 10;

/// How many tasks of other flows are ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ahead {
    /// Counted up to a bound.
    Counted {
        /// How many are ahead.
        count: usize,
        /// Whether there are more than those.
        more: bool,
    },
    /// At least one, and at most ten.
    Few,
    /// More than ten.
    Many,
}

impl Ahead {
    /// Nobody is ahead.
    pub const NONE: Self = Self::Counted {
        count: 0,
        more: false,
    };

    /// The same for a caller who sees only their own flows.
    const fn in_steps(self) -> Self {
        match self {
            Self::Counted {
                count: 0,
                more: false,
            } => Self::NONE,
            Self::Counted {
                count: ..=FEW,
                more: false,
            }
            | Self::Few => Self::Few,
            Self::Counted { .. } | Self::Many => Self::Many,
        }
    }
}

/// The line for the slots of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Where the task stands in it.
    pub place: Place,
    /// Attempts that may run at once.
    pub limit: usize,
    /// Attempts that run; absent where some of them are not the caller's to know.
    pub running: Option<usize>,
    /// Other flows that come first.
    pub flows_ahead: Ahead,
    /// Whether owners share the executor fairly, which decides who comes first within a priority.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fair_share: bool,
    /// Some of the attempts that run.
    pub holders: Vec<SlotHolder>,
}

impl Queue {
    /// The same for a caller who sees only their own flows. That all slots are taken it may know: it is why the task
    /// waits.
    pub(super) fn in_steps(mut self) -> Self {
        self.flows_ahead = self.flows_ahead.in_steps();
        self.running = all_or_unknown(self.running, self.limit);
        self
    }

    /// Whether a slot is free, as far as the caller may know.
    #[must_use]
    pub fn has_free_slot(&self) -> bool {
        self.running.is_none_or(|running| running < self.limit)
    }
}

/// The number of attempts that run for a caller who does not see all of them: known when it is as large as it may be.
fn all_or_unknown(running: Option<usize>, limit: usize) -> Option<usize> {
    running
        .is_some_and(|running| running >= limit)
        .then_some(limit)
}

/// The workers that a task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedWorkers {
    /// The owner of the flow: only workers that may claim its tasks count.
    pub owner: Option<Arc<str>>,
    /// Workers that ask for its method now, or are busy.
    pub asking: usize,
    /// Workers that are there and drained; not among the others.
    pub drained: usize,
    /// When one last asked, within the last day.
    pub last_asked_at: Option<Timestamp>,
    /// How long ago that was.
    pub silent_ms: Option<u64>,
    /// Attempts of the method under way, of the flows of the node that answers; absent where some of them are not the
    /// caller's to know.
    pub running: Option<usize>,
    /// How many there may be; absent for any number.
    pub limit: Option<usize>,
    /// Tasks of other flows of that node that come first.
    pub tasks_ahead: Ahead,
    /// For a caller who sees only their own flows, those of them that are of the same owner: only they compete for the
    /// workers of that one. Else the same.
    pub own_ahead: Ahead,
    /// Whether there are as many attempts as there may be.
    pub is_full: bool,
    /// Owners share workers fairly.
    pub fair_share: bool,
}

impl AwaitedWorkers {
    /// No worker is there that takes tasks of all users: those of others come before none of this owner.
    pub fn of_own_workers(&mut self) {
        if self.owner.is_some() {
            self.tasks_ahead = self.own_ahead;
        }
    }

    /// The same for a caller who sees only their own flows, of which those of the same owner are.
    pub(super) fn in_steps(mut self) -> Self {
        self.tasks_ahead = self.tasks_ahead.in_steps();
        self.running = self.limit.filter(|_| self.is_full);
        self
    }
}

/// An attempt that holds a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotHolder {
    /// The task that the attempt belongs to.
    pub task: TaskId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The root of the task's flow.
    pub root: Option<TaskId>,
    /// The task's name; absent when it was deleted meanwhile.
    pub name: Option<Arc<str>>,
}

#[cfg(test)]
mod tests {
    use super::{Ahead, all_or_unknown};

    #[test]
    fn other_flows_are_told_without_a_number_that_is_not_theirs() {
        let counted = |count, more| Ahead::Counted { count, more };
        for (known, told) in [
            (counted(0, false), Ahead::NONE),
            (counted(1, false), Ahead::Few),
            (counted(10, false), Ahead::Few),
            (counted(11, false), Ahead::Many),
            (counted(5, true), Ahead::Many),
        ] {
            assert_eq!(known.in_steps(), told, "{known:?}");
            assert_eq!(told.in_steps(), told, "{told:?}");
        }
    }

    #[test]
    fn attempts_that_run_are_told_when_they_are_all_that_may() {
        assert_eq!(all_or_unknown(Some(0), 4), None);
        assert_eq!(all_or_unknown(Some(3), 4), None);
        assert_eq!(all_or_unknown(Some(4), 4), Some(4));
        assert_eq!(all_or_unknown(Some(6), 4), Some(4));
    }
}
