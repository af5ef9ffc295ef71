//! A task as readers see it: its row, and what other rows say about it. Doors write it in their own format. Doors put
//! it into words.

use crate::TaskRow;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use taskledger_domain::flow::{RunState, StatusCounts};
use taskledger_domain::task::Status;
use taskledger_domain::{RunId, TaskId};

/// A required dependency that keeps a pending task from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocker {
    /// The dependency that blocks the task.
    pub id: TaskId,
    /// Failed or cancelled.
    pub status: Status,
}

/// The run of a task, as readers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// Identifies the run in its flow.
    pub id: RunId,
    /// How it stands.
    pub state: RunState,
    /// Its tasks by status, groups left out.
    pub counts: StatusCounts,
}

/// A task with what other rows say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskView {
    /// Its own row, shared with whatever else shows it.
    pub row: Arc<TaskRow>,
    /// Required dependencies that failed or were cancelled; empty unless it is pending.
    pub blocked_by: Vec<Blocker>,
    /// Whether it is pending and the latest run that covered it has ended: that run did not come to it.
    pub skipped: bool,
    /// The latest run that covers it, when it is the root of that run or of its flow.
    pub run: Option<RunView>,
}

impl RunView {
    /// Tasks that the run has left pending at its end, groups left out; `None` while it goes on.
    #[must_use]
    pub const fn skipped(&self) -> Option<u32> {
        match self.state {
            RunState::Running => None,
            RunState::Completed | RunState::Failed | RunState::Cancelled => {
                Some(self.counts.pending)
            }
        }
    }
}

impl TaskView {
    /// A task about which other rows say nothing.
    #[must_use]
    pub fn plain(row: impl Into<Arc<TaskRow>>) -> Self {
        Self {
            row: row.into(),
            blocked_by: Vec::new(),
            skipped: false,
            run: None,
        }
    }
}
