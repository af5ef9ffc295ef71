//! The state of a task's timers.

use crate::Timestamp;
use crate::flow::event::Specification;
use serde::{Deserialize, Serialize};

/// What a task says of when it starts, and what has become of that in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Timer {
    pub(crate) start_at: Option<Timestamp>,
    pub(crate) delay_ms: Option<u64>,
    /// When it was ready for the first time in its run; known once a time was recorded for it.
    pub(crate) ready_at: Option<Timestamp>,
    /// The time that follows from it is recorded.
    pub(crate) is_told: bool,
}

impl Timer {
    pub(crate) fn of(specification: &Specification) -> Self {
        Self {
            start_at: specification.start_at,
            delay_ms: specification.delay_ms,
            ready_at: None,
            is_told: false,
        }
    }

    /// Whether a time must be recorded for the task, which is ready since then. What only a passed `start_at` says
    /// needs none.
    pub(crate) fn is_due_for(&self, ready_since: Timestamp) -> bool {
        let starts_later = self.start_at.is_some_and(|at| at >= ready_since);
        !self.is_told && (starts_later || self.delay_ms.is_some() || self.ready_at.is_some())
    }
}
