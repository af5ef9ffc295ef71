//! The names of notices, by which subscribers, webhooks and the command line refer to what happens to tasks and runs.

use serde::{Serialize, Serializer};

/// The kinds of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `task_status_update`
    StatusUpdate,
    /// `task_progress_update`
    ProgressUpdate,
    /// `task_output_appended`: an attempt has made a part of its output.
    OutputAppended,
    /// `task_completed`
    Completed,
    /// `task_failed`
    Failed,
    /// `task_cancelled`
    Cancelled,
    /// `task_suspended`: it waits for a person.
    Suspended,
    /// `task_suspension_reminder`: the person has not answered yet.
    SuspensionReminder,
    /// `task_suspension_ended`: answered, or given up.
    SuspensionEnded,
    /// `task_claim_rejected`: a worker wanted it, and its inputs cannot be resolved, or not yet.
    ClaimRejected,
    /// `task_completion_rejected`: what a worker returned is not what the task declares.
    CompletionRejected,
    /// `run_completed`: a run has ended, and all of it that counts completed.
    RunCompleted,
    /// `run_failed`: a run has ended, and something of it failed or stayed blocked.
    RunFailed,
    /// `run_cancelled`: a run has ended, because its root was cancelled.
    RunCancelled,
}

impl Kind {
    /// All variants.
    pub const ALL: [Self; 14] = [
        Self::StatusUpdate,
        Self::ProgressUpdate,
        Self::OutputAppended,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Suspended,
        Self::SuspensionReminder,
        Self::SuspensionEnded,
        Self::ClaimRejected,
        Self::CompletionRejected,
        Self::RunCompleted,
        Self::RunFailed,
        Self::RunCancelled,
    ];

    /// The name in the protocol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StatusUpdate => "task_status_update",
            Self::ProgressUpdate => "task_progress_update",
            Self::OutputAppended => "task_output_appended",
            Self::Completed => "task_completed",
            Self::Failed => "task_failed",
            Self::Cancelled => "task_cancelled",
            Self::Suspended => "task_suspended",
            Self::SuspensionReminder => "task_suspension_reminder",
            Self::SuspensionEnded => "task_suspension_ended",
            Self::ClaimRejected => "task_claim_rejected",
            Self::CompletionRejected => "task_completion_rejected",
            Self::RunCompleted => "run_completed",
            Self::RunFailed => "run_failed",
            Self::RunCancelled => "run_cancelled",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
