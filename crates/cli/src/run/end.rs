//! The ways in which a run can end.

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Failed,
    Cancelled,
}

impl End {
    /// Reads a state; `None` while it runs.
    pub(crate) fn parse(state: &str) -> Option<Self> {
        match state {
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }

    /// How it is said.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "been cancelled",
        }
    }

    /// The exit code of `run`.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Cancelled => 3,
        }
    }
}
