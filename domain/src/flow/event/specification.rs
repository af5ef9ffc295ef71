//! The specification of a task, as events carry it.

use crate::task::RetryPolicy;
use crate::{Payload, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// When a dependency is satisfied.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The task has completed: the dependency is required.
    #[default]
    Completed,
    /// The task has ended in any way: the dependency is optional.
    Ended,
    /// The task has ended in any way, or can no longer run: for steps that clean up.
    Always,
}

impl When {
    /// What the protocol's `required` says.
    #[must_use]
    pub const fn required(required: bool) -> Self {
        if required {
            Self::Completed
        } else {
            Self::Ended
        }
    }

    /// Whether the task must complete.
    #[must_use]
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Completed)
    }
}

/// One entry of a task's dependency list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "DependencyText", into = "DependencyText")]
pub struct Dependency {
    /// The task that is waited for; always of the same flow.
    pub id: TaskId,
    /// When it is satisfied.
    pub when: When,
}

/// How a dependency is written, in events and in answers.
#[derive(Serialize, Deserialize)]
struct DependencyText {
    id: TaskId,
    required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<Word>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Always,
}

impl From<Dependency> for DependencyText {
    fn from(dependency: Dependency) -> Self {
        Self {
            id: dependency.id,
            required: dependency.when.is_required(),
            when: match dependency.when {
                When::Completed | When::Ended => None,
                When::Always => Some(Word::Always),
            },
        }
    }
}

impl From<DependencyText> for Dependency {
    fn from(text: DependencyText) -> Self {
        Self {
            id: text.id,
            when: match text.when {
                None => When::required(text.required),
                Some(Word::Always) => When::Always,
            },
        }
    }
}

/// Everything that an executor needs of a task. Carried whole by each event that changes it,
/// so that one read gives the current one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Specification {
    /// Runtime data.
    pub inputs: Payload,
    /// The protocol's `schemas` as given; absent for a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schemas: Option<Payload>,
    /// The protocol's `params` as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Payload>,
    /// The task's `start_at`: no attempt begins earlier, here and below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// From `params.delay_seconds`: milliseconds that it waits for its first start in a run once it is ready; absent
    /// for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// `schemas.method`: the executor. Absent for a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// From `params.retry` or `params.retry_count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// From `params.timeout_seconds`: milliseconds that one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// From `params.deadline`: the task's own; ancestors' deadlines count too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// `schemas.type` is `remote`: workers carry it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remote: bool,
    /// From `params.schedule_to_start_seconds`: milliseconds that it may wait for its start once it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within_ms: Option<u64>,
    /// From `params.cancel_grace_seconds`: milliseconds that a worker has to stop after a cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_grace_ms: Option<u64>,
}
