//! Finds out whether anything is left to run in a flow that never ran, since no end of a run says so.

use std::collections::HashSet;
use std::sync::Arc;
use taskledger_domain::flow::Event;
use taskledger_domain::{FlowId, Position, Recorded, TaskId};
use taskledger_log::damage::read_stream_over;
use taskledger_log::{Error, EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};

/// The result of the search.
pub(super) enum Found {
    /// It has run by now: ends of runs will tell.
    Runs,
    /// Something may still run.
    Waits,
    /// Everything asked for was cancelled.
    Over {
        /// What it ended with.
        end: Arc<Recorded>,
        /// Where this was seen.
        position: Position,
    },
}

/// Looks at a flow, or at one task of it. Cost: O(events of the flow).
pub(super) async fn of_unrun(
    log: &dyn EventStore,
    flow: FlowId,
    task: Option<TaskId>,
) -> Result<Found, Error> {
    let subject = task.unwrap_or(flow.root());
    let (mut open, mut end) = (HashSet::new(), None);
    let (mut after, mut position) = (0, 0);
    loop {
        let piece = read_stream_over(log, flow, after, PIECE_EVENTS_MAX, PIECE_BYTES_MAX).await?;
        let Some(last) = piece.last() else { break };
        (after, position) = (last.version, last.position);
        for recorded in &piece {
            if let Event::TaskCreated(created) = recorded.event.as_ref() {
                open.insert(created.task_id);
            } else if let Event::TaskDeleted(deleted) = recorded.event.as_ref() {
                open.remove(&deleted.task_id);
            } else if let Event::TaskCancelled(cancelled) = recorded.event.as_ref() {
                open.remove(&cancelled.task_id);
                if cancelled.task_id == subject {
                    end = Some(recorded.clone());
                }
            } else if matches!(recorded.event.as_ref(), Event::RunStarted(_)) {
                return Ok(Found::Runs);
            }
        }
    }
    Ok(match end {
        Some(end) if task.is_some() || open.is_empty() => Found::Over { end, position },
        Some(_) | None => Found::Waits,
    })
}
