//! The events of a task that waits for a person: asked, reminded, answered, or given up.

use crate::question::{Asks, Escalation};
use crate::{Payload, SuspensionId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// See [`super::Event::TaskSuspended`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSuspended {
    /// In progress, before and after.
    pub task_id: TaskId,
    /// The attempt that asked, which has no lease and no slot from now on.
    pub attempt: u32,
    /// Names this wait.
    pub suspension_id: SuspensionId,
    /// What is asked, in the form of [`crate::question`].
    pub question: Payload,
    /// What the task waits for.
    #[serde(default, skip_serializing_if = "Asks::is_input")]
    pub asks: Asks,
    /// What an answer is to the task.
    pub on_answer: OnAnswer,
    /// When nobody will answer any more; absent for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Milliseconds between two reminders; absent without reminders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_every_ms: Option<u64>,
    /// Reminders in all.
    #[serde(default)]
    pub reminders: u32,
    /// The receivers of reminders, in steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ladder: Vec<Escalation>,
    /// What happens at `expires_at`.
    pub on_expiry: OnExpiry,
}

/// The consequences of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnAnswer {
    /// The task is ready again, for the next attempt.
    Continue,
    /// The task completes with it.
    Complete,
    /// The task completes with it, but fails when the answer is `false`.
    CompleteOrDecline,
}

impl OnAnswer {
    /// Whether the task fails with this answer.
    #[must_use]
    pub fn declines(self, answer: &serde_json::Value) -> bool {
        self == Self::CompleteOrDecline && *answer == false
    }
}

/// The consequences when nobody has answered in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// The task fails.
    Fail,
    /// The task completes.
    Complete {
        /// With this result.
        result: Payload,
    },
    /// The task goes on as if this had been answered: it is ready again, or fails where the answer declines.
    Continue {
        /// An object with `value`.
        answer: Payload,
    },
}

impl OnExpiry {
    /// Bytes of what it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Fail => 0,
            Self::Complete { result: kept } | Self::Continue { answer: kept } => {
                kept.as_str().len()
            }
        }
    }
}

/// See [`super::Event::TaskReminded`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReminded {
    /// In progress.
    pub task_id: TaskId,
    /// The attempt that asked.
    pub attempt: u32,
    /// Identifies the wait.
    pub suspension_id: SuspensionId,
    /// From 1.
    pub number: u32,
    /// How many there are at most.
    pub of: u32,
    /// The receivers of this reminder, if the question names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
}

/// See [`super::Event::TaskAnswered`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAnswered {
    /// In progress, until the next event of the same append.
    pub task_id: TaskId,
    /// The attempt that asked.
    pub attempt: u32,
    /// The wait, which is over.
    pub suspension_id: SuspensionId,
    /// What was said: an object with `value`.
    pub answer: Payload,
    /// The principal that said it.
    pub responded_by: String,
    /// The person on whose behalf the principal answered, if it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
}

/// See [`super::Event::TaskSuspensionExpired`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSuspensionExpired {
    /// In progress, until the next event of the same append.
    pub task_id: TaskId,
    /// The attempt that asked.
    pub attempt: u32,
    /// The wait, which is over.
    pub suspension_id: SuspensionId,
    /// What follows.
    pub policy: OnExpiry,
}
