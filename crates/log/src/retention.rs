//! Describes events that the log no longer has, because their flow was archived.
//!
//! Owns: the words for it. A stream that was archived ends with `FlowArchived`; what stands before is
//! dropped from its end to its beginning, so that at any moment what is left is the first events of
//! the stream, then a gap, then its last event: whoever folds the log in the middle of it can.
//! Positions of dropped events are missing for ever. Up to the *horizon* a missing position may be
//! one of them, above it is damage; how many there are is counted, so that `events verify` can tell
//! both apart below it too.

use super::Error;
use serde::Deserialize;
use taskledger_domain::{FlowId, Position, TaskId};

/// Stored name of the event that ends an archived stream.
pub const ARCHIVED_KIND: &str = "FlowArchived";
/// Events that one transaction drops: a few milliseconds of the one writer's time.
pub const DROP_EVENTS_MAX: usize = 256;

/// The events that are missing from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// No dropped event had a higher position; 0 = nothing was dropped.
    pub horizon: Position,
    /// How many were dropped.
    pub events: u64,
}

/// An archived stream of which events are still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undropped {
    /// Goes up in order of creation; pages go on behind it.
    pub number: u64,
    /// The archived flow.
    pub flow: FlowId,
    /// Position of its last event: whoever has read so far needs nothing of it any more.
    pub end: Position,
}

/// The task whose creation this is, by the stored form of the event.
pub(super) fn created_task(position: Position, data: &str) -> Result<TaskId, Error> {
    /// What of a creation is looked at.
    #[derive(Deserialize)]
    struct Created {
        task_id: TaskId,
    }
    let created: Created = serde_json::from_str(data).map_err(|e| Error::Corrupt {
        position,
        flow: None,
        reason: format!("the creation of a task cannot be read: {e}"),
    })?;
    Ok(created.task_id)
}

/// Why a stream keeps its events.
pub(super) fn not_archived(flow: FlowId) -> Error {
    Error::Invalid(format!(
        "flow `{flow}` does not end with `{ARCHIVED_KIND}`; only archived flows are dropped"
    ))
}

/// A reader was on its way through a stream when it was dropped.
pub(super) fn being_dropped(flow: FlowId) -> Error {
    Error::Unavailable(format!("flow `{flow}` is being archived"))
}

/// Whether a log was left alone while it was exported.
pub(super) fn unchanged(before: Dropped, after: Dropped) -> Result<(), Error> {
    if before == after {
        return Ok(());
    }
    let count = after.events - before.events;
    Err(Error::Unavailable(format!(
        "{count} events of archived flows were dropped while the log was exported; export it again"
    )))
}
