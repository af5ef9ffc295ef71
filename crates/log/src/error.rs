//! The errors of the log.

use taskledger_domain::{FlowId, Position};

/// The store could not do its work. Never a refusal.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Not reachable, or closing; retry.
    #[error("the event store is not available: {0}")]
    Unavailable(String),
    /// The disk is full or read-only; nothing was written.
    #[error("the event store cannot write: {0}")]
    NotWritable(String),
    /// A row of the log cannot be believed.
    #[error("the log is damaged at position {position}: {reason}")]
    Corrupt {
        /// Position of the damaged row.
        position: Position,
        /// Its flow, if that is known.
        flow: Option<FlowId>,
        /// What is wrong with it.
        reason: String,
    },
    /// The append breaks a rule of this port or a limit; a fault of the caller.
    #[error("the append is not valid: {0}")]
    Invalid(String),
}
