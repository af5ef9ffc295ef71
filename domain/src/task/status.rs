//! The states of a task and the moves between them. spec: validation / State Transition Validation

use serde::{Deserialize, Serialize};
use std::fmt;

/// The states of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not started.
    Pending,
    /// An attempt is under way; for a group, its run has reached it.
    InProgress,
    /// Ended with a result.
    Completed,
    /// Ended with an error; may run again.
    Failed,
    /// Stopped for good.
    Cancelled,
}

impl Status {
    /// All states, in the order of the protocol.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::InProgress,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Completed, failed or cancelled.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Completed or cancelled: no run starts it again.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }

    /// The transition table.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Pending, Self::InProgress | Self::Cancelled)
                | (
                    Self::InProgress,
                    Self::Completed | Self::Failed | Self::Cancelled
                )
                | (Self::Failed, Self::Pending)
        )
    }

    /// The protocol's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the protocol's name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Status::{self, Cancelled, Completed, Failed, InProgress, Pending};

    #[test]
    fn only_the_moves_of_the_protocol_are_legal() {
        let legal = [
            (Pending, InProgress),
            (Pending, Cancelled),
            (InProgress, Completed),
            (InProgress, Failed),
            (InProgress, Cancelled),
            (Failed, Pending),
        ];
        for from in Status::ALL {
            for to in Status::ALL {
                assert_eq!(
                    from.may_become(to),
                    legal.contains(&(from, to)),
                    "{from} -> {to}"
                );
            }
        }
    }
}
