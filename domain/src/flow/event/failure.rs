//! The kinds of failure of an attempt.

use serde::{Deserialize, Serialize};

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The executor said so.
    Executor,
    /// `timeout_seconds` passed.
    Timeout,
    /// The deadline passed.
    Deadline,
    /// No executor of that name appeared in time.
    ExecutorNotFound,
    /// The server stopped while it ran, or the lease of its worker ended.
    Interrupted,
    /// The inputs do not conform to a schema.
    InvalidInputs,
    /// The executor returned something that cannot be a result.
    InvalidResult,
    /// A group: not all of it completed.
    Group,
    /// Its worker gave it back.
    Released,
    /// Its worker said that another attempt would end the same way.
    NotRetryable,
    /// It was ready and nobody started it in time.
    NotStarted,
    /// A question of it was not answered in time.
    Unanswered,
    /// The person who was asked said no.
    Declined,
    /// Whoever carries it out does not do it: a policy, not a fault.
    Rejected,
}

impl FailureReason {
    /// Its word, as events and answers have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Executor => "executor",
            Self::Timeout => "timeout",
            Self::Deadline => "deadline",
            Self::ExecutorNotFound => "executor_not_found",
            Self::Interrupted => "interrupted",
            Self::InvalidInputs => "invalid_inputs",
            Self::InvalidResult => "invalid_result",
            Self::Group => "group",
            Self::Released => "released",
            Self::NotRetryable => "not_retryable",
            Self::NotStarted => "not_started",
            Self::Unanswered => "unanswered",
            Self::Declined => "declined",
            Self::Rejected => "rejected",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FailureReason;
    use serde_json::json;

    #[test]
    fn words_are_those_of_events() {
        for reason in [
            FailureReason::Executor,
            FailureReason::Timeout,
            FailureReason::Deadline,
            FailureReason::ExecutorNotFound,
            FailureReason::Interrupted,
            FailureReason::InvalidInputs,
            FailureReason::InvalidResult,
            FailureReason::Group,
            FailureReason::Released,
            FailureReason::NotRetryable,
            FailureReason::NotStarted,
            FailureReason::Unanswered,
            FailureReason::Declined,
            FailureReason::Rejected,
        ] {
            assert_eq!(json!(reason), reason.as_str());
        }
    }
}
