//! The progress of everything below a task: counts, tasks that wait for a person, tasks that cannot be claimed.

use super::Capacity;
use super::explain::{Listed, TaskRef};
use super::state::{Flow, NONE, Standing, Waits};
use crate::task::{Progress, Status};
use crate::{TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// Tasks listed for one reason; the rest is counted.
pub const OVERVIEW_LISTED_MAX: usize = 100;

/// The tasks below a task, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// The task itself.
    pub task: TaskRef,
    /// How far it has come.
    pub progress: Progress,
    /// Everything below it, by status; of the pending ones, those that only a slot or a worker is missing to are ready.
    pub counts: Counts,
    /// Those that wait for a person, in the order of the tree.
    pub suspended: Listed<(TaskRef, Waits)>,
    /// Those whose turn it is and that no worker may claim, with the references that have no value.
    pub lacking: Listed<(TaskRef, Vec<String>)>,
}

/// Tasks by what has become of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// All of them.
    pub total: usize,
    /// Not begun.
    pub pending: usize,
    /// Of these: it is their turn.
    pub ready: usize,
    /// Begun; those that wait for a person among them.
    pub in_progress: usize,
    /// Of these: they wait for a person.
    pub suspended: usize,
    /// Done.
    pub completed: usize,
    /// Ended with an error.
    pub failed: usize,
    /// Ended by a cancellation or a passed deadline.
    pub cancelled: usize,
}

impl Flow {
    /// What is below a live task; `None` for any other id. Cost: O(subtree).
    #[must_use]
    pub fn overview(
        &self,
        id: TaskId,
        now: Timestamp,
        capacity: &dyn Capacity,
    ) -> Option<Overview> {
        let root = self.live(id)?;
        let mut overview = Overview {
            task: self.task_ref(root),
            progress: self.progress_of(root),
            counts: Counts::default(),
            suspended: Listed::default(),
            lacking: Listed::default(),
        };
        // The first is the root.
        for i in self.subtree(root).into_iter().skip(1) {
            self.add_to(&mut overview, i, now, capacity);
        }
        Some(overview)
    }

    fn add_to(&self, overview: &mut Overview, i: u32, now: Timestamp, capacity: &dyn Capacity) {
        let task = self.at(i);
        let counts = &mut overview.counts;
        counts.total += 1;
        match task.status {
            Status::Pending => {
                counts.pending += 1;
                let is_due = task.run != NONE && task.unsatisfied == 0 && task.ready_since <= now;
                if !is_due || task.is_group() {
                    return;
                }
                if task.lacking && self.standing(task.line(), capacity) == Standing::Remote {
                    let refs = || (self.task_ref(i), self.unresolvable(task.id));
                    overview.lacking.add(OVERVIEW_LISTED_MAX, refs);
                } else {
                    counts.ready += 1;
                }
            }
            Status::InProgress => {
                counts.in_progress += 1;
                if let Some(waits) = self.waits(task.id) {
                    counts.suspended += 1;
                    let one = || (self.task_ref(i), waits);
                    overview.suspended.add(OVERVIEW_LISTED_MAX, one);
                }
            }
            Status::Completed => counts.completed += 1,
            Status::Failed => counts.failed += 1,
            Status::Cancelled => counts.cancelled += 1,
        }
    }
}
