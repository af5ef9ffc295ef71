//! Attempts that were taken from their workers.

use taskledger_domain::flow::FailureReason;

/// Why an attempt was taken from whoever did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenBack {
    /// Somebody has cancelled the task.
    Cancelled,
    /// The time of the attempt was up.
    TimedOut,
    /// The deadline has passed.
    Deadline,
    /// The lease of its worker ended.
    Lost,
}

impl TakenBack {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Deadline => "deadline",
            Self::Lost => "lost",
        }
    }

    /// Why an attempt that failed so was taken back; `None`: its worker has ended it, or nobody held it.
    #[must_use]
    pub const fn by_failure(reason: FailureReason) -> Option<Self> {
        match reason {
            FailureReason::Timeout => Some(Self::TimedOut),
            FailureReason::Deadline => Some(Self::Deadline),
            FailureReason::Interrupted => Some(Self::Lost),
            FailureReason::Executor
            | FailureReason::ExecutorNotFound
            | FailureReason::InvalidInputs
            | FailureReason::InvalidResult
            | FailureReason::Group
            | FailureReason::Released
            | FailureReason::NotRetryable
            | FailureReason::NotStarted
            | FailureReason::Unanswered
            | FailureReason::Declined
            | FailureReason::Rejected => None,
        }
    }
}
