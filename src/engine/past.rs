//! Reads from the log what earlier attempts of a task have left: their notes, and the answers to their questions.

use super::executor::{Answered, Keeper, Past};
use crate::application::Flows;
use crate::application::error::Error;
use crate::application::ports::Started;
use crate::store::EventStore;
use async_trait::async_trait;
use std::sync::Arc;
use taskledger_domain::flow::{Command, Event, Flow, OnExpiry, RequeueReason};
use taskledger_domain::limits::MESSAGE_CHARS_MAX;
use taskledger_domain::question::value_of;
use taskledger_domain::task::Progress;
use taskledger_domain::{FlowId, Metadata, TaskId, Version};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Events that are read back for an attempt: about 0.1 s. What lies behind is not looked at.
const SCANNED_MAX: usize = 20_000;
/// Events of one look at the log.
const PIECE_EVENTS: usize = 500;
const PIECE_BYTES_MAX: usize = 1024 * 1024;
/// Notes that an attempt is given: the newest half and the oldest half. What begins something is noted first.
const NOTES_MAX: usize = 64;

/// What was found going back.
struct Walk {
    task: TaskId,
    attempt: u32,
    past: Past,
    is_answered: bool,
}

/// What earlier attempts have left to one that has started. Cost: that of reading back to the last attempt that was not
/// interrupted, at most [`SCANNED_MAX`] events; nothing for a first attempt.
///
/// # Errors
/// [`Error`]: the log cannot be read, or the flow belongs to another node now.
pub(super) async fn past(
    store: &dyn EventStore,
    flows: &Arc<Flows>,
    started: &Started,
) -> Result<Past, Error> {
    let (task, attempt) = (started.launch.task, started.launch.attempt);
    let mut walk = Walk {
        task,
        attempt,
        past: Past {
            since: attempt,
            ..Past::default()
        },
        is_answered: false,
    };
    if attempt > 1 {
        back(store, started.flow, &mut walk).await?;
    }
    if walk.is_answered {
        let metadata = Metadata {
            causation: Some(started.event),
            ..started.metadata.clone()
        };
        let last = move |state: &Flow| state.turns(task).last().copied();
        if let Some(turn) = flows.look(started.flow, metadata, last).await? {
            let versions = [turn.asked_at, turn.answered_at];
            let events = store.read_versions(started.flow, &versions).await?;
            let question = events.first().and_then(|recorded| {
                if let Event::TaskSuspended(e) = &*recorded.event {
                    return Some(e.question.to_map());
                }
                None
            });
            let answer = events.get(1).and_then(|recorded| answer(&recorded.event));
            walk.past.answered = question.zip(answer).map(|(question, answer)| Answered {
                suspension: turn.suspension,
                question,
                answer,
            });
        }
    }
    Ok(walk.past)
}

async fn back(store: &dyn EventStore, flow: FlowId, walk: &mut Walk) -> Result<(), Error> {
    let Some((head, _)) = store.stream_head(flow).await? else {
        return Ok(());
    };
    let (mut before, mut left): (Version, usize) = (head + 1, SCANNED_MAX);
    while left > 0 {
        let piece = store
            .read_stream_back(flow, before, PIECE_EVENTS.min(left), PIECE_BYTES_MAX)
            .await?;
        let Some(oldest) = piece.last() else {
            return Ok(());
        };
        before = oldest.version;
        left = left.saturating_sub(piece.len());
        if piece.iter().any(|recorded| walk.ends_at(&recorded.event)) {
            return Ok(());
        }
    }
    walk.past.is_cut_off = true;
    Ok(())
}

impl Walk {
    /// Takes what an event says, the newest first; whether nothing before it matters.
    fn ends_at(&mut self, event: &Event) -> bool {
        if event.task_id() != Some(self.task) {
            return false;
        }
        if let Event::TaskStarted(e) = event {
            if e.attempt < self.attempt {
                self.past.since = e.attempt;
            }
            return e.attempt <= 1;
        }
        if let Event::TaskProgressed(e) = event
            && let Some(message) = &e.message
            && e.attempt < self.attempt
        {
            if self.past.notes.len() >= NOTES_MAX {
                self.past.notes.remove(NOTES_MAX / 2);
            }
            self.past.notes.push(message.clone());
            return false;
        }
        if let Event::TaskRequeued(e) = event {
            self.is_answered = e.reason == RequeueReason::Answered;
            return e.reason != RequeueReason::Interrupted;
        }
        if let Event::TaskFailed(e) = event {
            return !e.will_retry;
        }
        matches!(event, Event::TaskCompleted(_) | Event::TaskCancelled(_))
    }
}

/// What an event says in answer to a question.
fn answer(event: &Event) -> Option<serde_json::Value> {
    if let Event::TaskAnswered(e) = event {
        return Some(value_of(&e.answer));
    }
    if let Event::TaskSuspensionExpired(e) = event
        && let OnExpiry::Continue { answer } = &e.policy
    {
        return Some(value_of(answer));
    }
    None
}

/// Keeps notes of an attempt as messages beside its progress.
pub(super) struct InTheLog {
    pub(super) flows: Arc<Flows>,
    pub(super) started: Started,
    pub(super) progress: watch::Receiver<Progress>,
    pub(super) stop: CancellationToken,
}

#[async_trait]
impl Keeper for InTheLog {
    async fn keep(&self, note: String) {
        let command = Command::Report {
            task: self.started.launch.task,
            attempt: self.started.launch.attempt,
            progress: *self.progress.borrow(),
            message: Some(note.chars().take(MESSAGE_CHARS_MAX).collect()),
            lease: None,
        };
        self.flows.report(&self.started, command, &self.stop).await;
    }
}
