//! Runs with a callback, and the tasks that they cover.

use crate::store::Recipient;
use std::collections::HashSet;
use std::sync::Arc;
use taskledger_domain::flow::covers;
use taskledger_domain::flow::{Event, RunStarted};
use taskledger_domain::{FlowId, Recorded, RunId, TaskId};
use taskledger_log::damage::read_stream_over;
use taskledger_log::{Error, EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};
use taskledger_subscription::notice::Notice;
use taskledger_subscription::runs::covered;

/// A run that goes on.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    pub(super) to: Recipient,
    tasks: HashSet<TaskId>,
}

impl Run {
    /// A new task belongs to it.
    pub(super) fn join(&mut self, task: TaskId) {
        self.tasks.insert(task);
    }

    /// Whether a notice of its flow is about it: about one of its tasks, and not the end of another
    /// run. The end of a task and that of the run are told once, with the result or the error: callers look at
    /// `status` alone.
    /// spec: interface / Push Notifications
    pub(super) fn wants(&self, notice: &Notice) -> bool {
        match notice.run {
            Some(run) => run.id == self.id && notice.is_final,
            None => !notice.is_followed && self.tasks.contains(&notice.task_id),
        }
    }
}

/// The run that an event starts. Cost: O(events of its flow up to there).
pub(super) async fn started(
    log: &Arc<dyn EventStore>,
    to: Recipient,
    recorded: &Recorded,
    started: &RunStarted,
) -> Result<Run, Error> {
    let tasks = covered(&**log, recorded.flow, started, recorded.version).await?;
    let id = started.run_id;
    Ok(Run { id, to, tasks })
}

/// A run that started earlier, with what has joined it since; `None`: it is not in the log. Tasks that
/// join after the place of the outbox are known early, which changes nothing. Cost: O(events of its
/// flow).
pub(super) async fn found(
    log: &Arc<dyn EventStore>,
    to: Recipient,
    id: RunId,
    flow: FlowId,
) -> Result<Option<Run>, Error> {
    let mut ordinals = Vec::new();
    let mut tasks = HashSet::new();
    let mut at_start = None;
    each(log, flow, |event| {
        if let Event::TaskCreated(created) = event {
            if created.run_id == Some(id) {
                tasks.insert(created.task_id);
            } else {
                ordinals.push((created.ordinal, created.task_id));
            }
        } else if let Event::RunStarted(started) = event
            && started.run_id == id
        {
            let mut ordinals = std::mem::take(&mut ordinals);
            ordinals.retain(|(ordinal, _)| covers(&started.covers, *ordinal));
            at_start = Some(ordinals);
        }
    })
    .await?;
    Ok(at_start.map(|at_start| {
        tasks.extend(at_start.into_iter().map(|(_, task)| task));
        Run { id, to, tasks }
    }))
}

/// Shows the events of a flow, in order.
async fn each(
    log: &Arc<dyn EventStore>,
    flow: FlowId,
    mut show: impl FnMut(&Event) + Send,
) -> Result<(), Error> {
    let mut after = 0;
    loop {
        let piece =
            read_stream_over(&**log, flow, after, PIECE_EVENTS_MAX, PIECE_BYTES_MAX).await?;
        let Some(end) = piece.last().map(|event| event.version) else {
            return Ok(());
        };
        for recorded in &piece {
            show(&recorded.event);
        }
        after = end;
    }
}
