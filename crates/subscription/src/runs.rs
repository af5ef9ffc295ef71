//! Finds the tasks that a run consists of, from the log.

use std::collections::HashSet;
use taskledger_domain::flow::covers;
use taskledger_domain::flow::{Event, RunStarted};
use taskledger_domain::{FlowId, TaskId, Version};
use taskledger_log::damage::read_stream_over;
use taskledger_log::{Error, EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};

/// The tasks that a run covers from its start on, which has the version `at` in its flow. Those that
/// join it later are not among them. Cost: O(events of the flow up to there).
///
/// # Errors
/// [`Error`]: the log cannot be read.
pub async fn covered(
    log: &dyn EventStore,
    flow: FlowId,
    started: &RunStarted,
    at: Version,
) -> Result<HashSet<TaskId>, Error> {
    let (mut tasks, mut after) = (HashSet::new(), 0);
    while after < at {
        let piece = read_stream_over(log, flow, after, PIECE_EVENTS_MAX, PIECE_BYTES_MAX).await?;
        let Some(last) = piece.last() else { break };
        after = last.version;
        for recorded in piece.iter().filter(|recorded| recorded.version < at) {
            if let Event::TaskCreated(created) = recorded.event.as_ref()
                && covers(&started.covers, created.ordinal)
            {
                tasks.insert(created.task_id);
            }
        }
    }
    Ok(tasks)
}
