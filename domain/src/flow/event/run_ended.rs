//! The event that a run has ended.

use crate::task::{Progress, Status};
use crate::{RunId, TaskId};
use serde::{Deserialize, Serialize};

/// The states of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Something of it can still move.
    Running,
    /// All of it that counts completed.
    Completed,
    /// Something failed or stayed blocked.
    Failed,
    /// Its root was cancelled.
    Cancelled,
}

/// Tasks by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StatusCounts {
    /// Not started.
    pub pending: u32,
    /// Under way.
    pub in_progress: u32,
    /// Ended with a result.
    pub completed: u32,
    /// Ended with an error.
    pub failed: u32,
    /// Stopped.
    pub cancelled: u32,
}

/// See [`super::Event::RunEnded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// Identifies the run that has ended.
    pub run_id: RunId,
    /// The task that the run was asked for.
    pub task_id: TaskId,
    /// Its verdict; never `Running`.
    pub state: RunState,
    /// Covered tasks by status at the end, without groups.
    pub counts: StatusCounts,
    /// The state of the run's root.
    pub root: RootAtEnd,
    /// Runs of the flow that go on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: u32,
    /// Whether it failed for nothing but that tasks were rejected by their workers or executors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
}

/// The state of a run's root at the end of the run: it may be pending still, when it was blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootAtEnd {
    /// The root's status at the end of the run.
    pub status: Status,
    /// How far its last attempt came.
    pub progress: Progress,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}
