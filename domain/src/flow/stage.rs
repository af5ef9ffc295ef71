//! The stage of a run, as whoever began it sees it.

use serde::{Deserialize, Serialize};

/// How a run stands for whoever began it: what [`RunState`](super::RunState) says, and of a run that is on, whether it
/// waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    /// Nothing of it has begun.
    Submitted,
    /// Something of it has begun.
    Working,
    /// Something of it waits for an answer.
    InputRequired,
    /// Something of it waits for credentials, which go to it by other ways.
    AuthRequired,
    /// It has ended well.
    Completed,
    /// It has ended, and something failed or stayed blocked.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It has ended, and whoever was to carry it out does not do it.
    Rejected,
}

impl RunStage {
    /// All variants.
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Rejected,
    ];

    /// Whether nothing comes after it.
    #[must_use]
    pub const fn is_end(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }

    /// Whether it waits for whoever began it.
    #[must_use]
    pub const fn waits(self) -> bool {
        match self {
            Self::InputRequired | Self::AuthRequired => true,
            Self::Submitted
            | Self::Working
            | Self::Completed
            | Self::Failed
            | Self::Cancelled
            | Self::Rejected => false,
        }
    }

    /// Its name, as rows hold it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::AuthRequired => "auth_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Rejected => "rejected",
        }
    }
}
