//! The attempt in templates: `{{task.id}}`, `{{run.id}}`, `{{attempt}}`. A dependency with the name `task` or `run`
//! takes precedence; its references are stored with its id.

use crate::{RunId, TaskId};
use serde_json::Value;

const TASK_ID: &str = "task.id";
const RUN_ID: &str = "run.id";
const ATTEMPT: &str = "attempt";

/// The attempt whose inputs are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptIds {
    /// The task whose attempt it is.
    pub task: TaskId,
    /// The run that the attempt belongs to.
    pub run: RunId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

impl AttemptIds {
    /// The values of the references that name the attempt.
    pub(super) fn values(&self) -> [(&'static str, Value); 3] {
        [
            (TASK_ID, self.task.to_string().into()),
            (RUN_ID, self.run.to_string().into()),
            (ATTEMPT, self.attempt.into()),
        ]
    }
}

/// Whether a reference names the attempt itself and no result.
pub(super) fn is_of_attempt(reference: &str) -> bool {
    [TASK_ID, RUN_ID, ATTEMPT].contains(&reference)
}
