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
    /// The flow's last owner, kept while nothing else of the flow is in the log; `None`: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}
