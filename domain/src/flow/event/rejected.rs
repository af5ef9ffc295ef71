//! Claims and completions that were refused, because they do not keep what the task declares.

use crate::TaskId;
use crate::contract::OutputFault;
use serde::{Deserialize, Serialize};

/// See [`super::Event::TaskClaimRejected`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskClaimRejected {
    /// Pending, before and after.
    pub task_id: TaskId,
    /// Who wanted it.
    pub worker: String,
    /// The references without a value, as they are stored.
    pub unresolvable_refs: Vec<String>,
}

/// See [`super::Event::TaskCompletionRejected`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCompletionRejected {
    /// In progress, before and after.
    pub task_id: TaskId,
    /// The attempt that goes on.
    pub attempt: u32,
    /// What is wrong with the result.
    #[serde(flatten)]
    pub fault: OutputFault,
}
