//! The events of claims and completions that were refused because they break what the task declares.

use crate::TaskId;
use crate::contract::{Breach, Broken, OutputFault};
use crate::task::Progress;
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
    /// The error that the worker got, with the names of tasks at that time.
    pub breach: Breach,
}

impl TaskClaimRejected {
    /// The fault, with references as they are stored.
    pub(crate) fn found(&self) -> Broken {
        match &self.breach.broken {
            Broken::Inputs { incomplete, .. } => Broken::Inputs {
                unresolvable_refs: self.unresolvable_refs.clone(),
                incomplete: incomplete.clone(),
            },
            other @ (Broken::Upstream { .. } | Broken::Output(_)) => other.clone(),
        }
    }
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
    /// The name that the task had at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_name: Option<String>,
    /// The progress of the attempt.
    #[serde(default, skip_serializing_if = "Progress::is_zero")]
    pub progress: Progress,
}

impl TaskCompletionRejected {
    /// The error that the worker got.
    #[must_use]
    pub fn breach(&self) -> Breach {
        Breach {
            phase_name: self.phase_name.clone(),
            broken: Broken::Output(self.fault.clone()),
        }
    }
}
