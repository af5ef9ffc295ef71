//! Facts about tasks in an explanation that only events hold: names, errors, actors and times.

use crate::application::facts;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::flow::explain::TaskRef;
use taskledger_domain::flow::{CancelReason, Event, FailureReason};
use taskledger_domain::{Recorded, Timestamp, Version};

/// The outcome of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// When that was decided.
    pub time: Timestamp,
    /// Who caused it.
    pub actor: Arc<str>,
    /// The request that led there.
    pub correlation: Arc<str>,
    /// How the task ended.
    pub end: TaskEnd,
}

/// The kinds of ends of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskEnd {
    /// It completed.
    Completed,
    /// It failed, with this error.
    Failed(FailureReason, String),
    /// It was cancelled, with this error.
    Cancelled(CancelReason, String),
}

/// Names and outcomes of the tasks in an explanation, by the version of the event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    names: HashMap<Version, String>,
    outcomes: HashMap<Version, TaskOutcome>,
    limits: HashMap<Version, Limits>,
}

/// What a specification says about time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Limits {
    timeout_ms: Option<u64>,
    max_elapsed_ms: Option<u64>,
}

impl Facts {
    /// The name of a task; empty when it is not known.
    #[must_use]
    pub fn name(&self, task: &TaskRef) -> &str {
        self.names.get(&task.name_at).map_or("", String::as_str)
    }

    /// How a task ended, if it has and somebody asks.
    #[must_use]
    pub fn outcome(&self, task: &TaskRef) -> Option<&TaskOutcome> {
        self.outcomes.get(&task.outcome_at)
    }

    /// What a task that ended badly said.
    #[must_use]
    pub fn error(&self, task: &TaskRef) -> Option<&str> {
        match &self.outcome(task)?.end {
            TaskEnd::Failed(_, error) | TaskEnd::Cancelled(_, error) => Some(error),
            TaskEnd::Completed => None,
        }
    }

    /// What an attempt may take by the specification in this event.
    #[must_use]
    pub fn timeout_ms(&self, spec_at: Version) -> Option<u64> {
        self.limits.get(&spec_at)?.timeout_ms
    }

    /// Milliseconds after the first attempt of a run within which the last must begin, by the specification in this
    /// event.
    #[must_use]
    pub fn max_elapsed_ms(&self, spec_at: Version) -> Option<u64> {
        self.limits.get(&spec_at)?.max_elapsed_ms
    }

    pub(super) fn learn(&mut self, recorded: &Recorded) {
        let (version, event) = (recorded.version, recorded.event.as_ref());
        if let Some(name) = facts::name(event) {
            self.names.insert(version, name.to_owned());
        }
        if let Some(specification) = facts::specification(event) {
            let limits = Limits {
                timeout_ms: specification.timeout_ms,
                max_elapsed_ms: specification.retry.and_then(|retry| retry.max_elapsed_ms),
            };
            self.limits.insert(version, limits);
        }
        let end = if let Event::TaskCompleted(_) = event {
            TaskEnd::Completed
        } else if let Event::TaskFailed(e) = event {
            TaskEnd::Failed(e.reason, e.error.clone())
        } else if let Event::TaskCancelled(e) = event {
            TaskEnd::Cancelled(e.reason, e.error.clone())
        } else {
            return;
        };
        let outcome = TaskOutcome {
            time: recorded.time,
            actor: recorded.metadata.actor.clone(),
            correlation: recorded.metadata.correlation.clone(),
            end,
        };
        self.outcomes.insert(version, outcome);
    }
}
