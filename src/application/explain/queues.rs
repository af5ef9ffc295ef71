//! What a task waits in line for: a slot of an executor, or a worker.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use taskledger_domain::flow::explain::Place;
use taskledger_domain::{TaskId, Timestamp};

/// The line for the slots of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Where the task stands in it.
    pub place: Place,
    /// Attempts that may run at once.
    pub limit: usize,
    /// Attempts that run.
    pub running: usize,
    /// Other flows that come first, as far as they were counted.
    pub flows_ahead: usize,
    /// Whether there are more than those.
    pub more_flows_ahead: bool,
    /// Whether owners share the executor fairly, which decides who comes first within a priority.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fair_share: bool,
    /// Some of the attempts that run.
    pub holders: Vec<SlotHolder>,
}

/// The workers that a task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedWorkers {
    /// Workers that ask for its method now, or are busy.
    pub asking: usize,
    /// Workers that are there and drained; not among the others.
    #[serde(default)]
    pub drained: usize,
    /// When one last asked, within the last day.
    pub last_asked_at: Option<Timestamp>,
    /// How long ago that was.
    #[serde(default)]
    pub silent_ms: Option<u64>,
    /// Attempts of the method under way, of the flows of the node that answers.
    pub running: usize,
    /// How many there may be; absent for any number.
    pub limit: Option<usize>,
    /// Tasks of other flows of that node that come first, as far as they were counted.
    pub tasks_ahead: usize,
    /// Whether there are more than those.
    pub more_tasks_ahead: bool,
    /// Whether there are as many attempts as there may be.
    #[serde(default)]
    pub is_full: bool,
    /// Owners share workers fairly.
    #[serde(default)]
    pub fair_share: bool,
}

impl AwaitedWorkers {
    /// The same for a caller who sees only their own flows: of the others it says none, few or many.
    pub(super) fn in_steps(mut self) -> Self {
        (self.tasks_ahead, self.more_tasks_ahead) = match self.tasks_ahead {
            0 => (0, false),
            1..=FEW_FLOWS => (1, true),
            _ => (FEW_FLOWS, true),
        };
        self.running = self.running.min(1);
        self
    }
}

/// Flows ahead up to which a caller who sees only their own flows learns `a few`; more are `many`.
const FEW_FLOWS: usize = 10;

impl Queue {
    /// The same for a caller who sees only their own flows: of the others it says none, few or many.
    pub(super) fn in_steps(mut self) -> Self {
        let ahead = if self.more_flows_ahead {
            usize::MAX
        } else {
            self.flows_ahead
        };
        (self.flows_ahead, self.more_flows_ahead) = match ahead {
            0 => (0, false),
            1..=FEW_FLOWS => (1, true),
            _ => (FEW_FLOWS, true),
        };
        self
    }
}

/// An attempt that holds a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotHolder {
    /// Its task.
    pub task: TaskId,
    /// Its number.
    pub attempt: u32,
    /// The root of the task's flow.
    pub root: Option<TaskId>,
    /// The task's name; absent when it was deleted meanwhile.
    pub name: Option<Arc<str>>,
}
