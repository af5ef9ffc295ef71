//! The event that ends a flow in the log.

use crate::RunId;
use serde::{Deserialize, Serialize};

/// See [`Event::FlowArchived`](super::Event::FlowArchived).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowArchived {
    /// Name of the file in the archive's folder.
    pub file: String,
    /// SHA-256 of the whole file, in hexadecimal.
    pub sha256: String,
    /// Events of the flow that are in it: all before this one.
    pub events: u64,
    /// Runs that the flow had: whoever keeps something of them finds it by these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
    /// The flow's last owner, kept while nothing else of the flow is in the log; `None` before version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<LastOwner>,
}

/// The owner of a flow when it was archived.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastOwner {
    /// The user of its root; `None`: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

impl LastOwner {
    /// This user, or nobody.
    #[must_use]
    pub fn of(user: Option<&str>) -> Self {
        Self {
            user_id: user.map(str::to_owned),
        }
    }
}
