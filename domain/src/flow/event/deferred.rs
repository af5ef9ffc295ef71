//! The event that a task starts later than it could.

use crate::{RunId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// The member of a task that says when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// The task names a time: `start_at`.
    StartAt,
    /// `params.delay_seconds`.
    DelaySeconds,
}

/// See [`Event::TaskDeferred`](super::Event::TaskDeferred). Recorded once when the task becomes ready in a run, and
/// again when its timers are changed before it has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDeferred {
    /// Pending, with all dependencies satisfied.
    pub task_id: TaskId,
    /// The run that will start it.
    pub run_id: RunId,
    /// Its next attempt does not begin before this time.
    pub next_attempt_at: Timestamp,
    /// Which of its timers decides; absent when it has none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerKind>,
}
