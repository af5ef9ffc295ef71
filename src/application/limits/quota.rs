//! The resources that a quota limits.

use serde::{Deserialize, Serialize};

/// The things that a quota limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Quota {
    /// Flows whose root has not ended.
    OpenFlows,
    /// Pending tasks.
    WaitingTasks,
    /// Webhook endpoints that exist.
    Webhooks,
    /// Streams of notices.
    Streams,
    /// Callbacks of runs that go on.
    Callbacks,
    /// Claims that wait for a task.
    WaitingClaims,
}

impl Quota {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenFlows => "open_flows",
            Self::WaitingTasks => "waiting_tasks",
            Self::Webhooks => "webhooks",
            Self::Streams => "streams",
            Self::Callbacks => "callbacks",
            Self::WaitingClaims => "waiting_claims",
        }
    }
}
