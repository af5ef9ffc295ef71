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
    /// What its worker was told, with names as they were then. Since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breach: Option<Breach>,
}

impl TaskClaimRejected {
    /// What was wrong. References are as they are stored, whatever the worker was told.
    pub(crate) fn found(&self) -> Broken {
        let refs = || self.unresolvable_refs.clone();
        match self.breach.as_ref().map(|it| &it.broken) {
            Some(Broken::Inputs { incomplete, .. }) => Broken::Inputs {
                unresolvable_refs: refs(),
                incomplete: incomplete.clone(),
            },
            Some(other @ (Broken::Upstream { .. } | Broken::Output(_))) => other.clone(),
            None => Broken::Inputs {
                unresolvable_refs: refs(),
                incomplete: Vec::new(),
            },
        }
    }

    /// What the worker was told. Of older events without names.
    #[must_use]
    pub fn told(&self) -> Breach {
        let unnamed = || Breach {
            phase_name: None,
            broken: self.found(),
        };
        self.breach.clone().unwrap_or_else(unnamed)
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
    /// The name that the task had then. Since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_name: Option<String>,
    /// How far the attempt had come. Since version 3; zero in older events.
    #[serde(default, skip_serializing_if = "Progress::is_zero")]
    pub progress: Progress,
}

impl TaskCompletionRejected {
    /// What the worker was told. Of older events without the name.
    #[must_use]
    pub fn told(&self) -> Breach {
        Breach {
            phase_name: self.phase_name.clone(),
            broken: Broken::Output(self.fault.clone()),
        }
    }
}
