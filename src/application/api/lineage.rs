//! The inputs of an attempt, and where each value came from.

use serde::{Deserialize, Serialize};
use taskledger_domain::{EventId, Payload, TaskId, Version};

/// The origin of an input value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Where it stands in the inputs, as a JSON pointer.
    pub input: String,
    /// The reference, as it is stored.
    pub reference: String,
    /// The task whose result has it.
    pub task: TaskId,
    /// The attempt of that task.
    pub attempt: u32,
    /// The event with the result.
    pub event: EventId,
    /// Its place in the history of the flow.
    pub sequence: Version,
}

/// The inputs of an attempt that are not all literal, with their origins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lineage {
    /// Where values came from.
    pub origins: Vec<Origin>,
    /// All of it; `None` when a result has been replaced since, or it is too large.
    pub input: Option<Payload>,
}
