//! `SubscribeToTaskResults`: the inbox of a requester.
//!
//! What was not delivered comes by number, as soon as it is noted. An outcome counts as delivered when its stream
//! still lives some time after the connection took it: of a stream that breaks earlier everything comes again. Ids that
//! are named are told in any case, and then nothing but them.

use super::publish::{DEADLINE_EXCEEDED, ID_CHARS_MAX};
use super::published::{NOBODY, stamp};
use super::values::{invalid, name_of, struct_of, timestamp_of};
use super::{Bus, Sent, Topic, ended, status, wire};
use crate::application::Context;
use crate::application::api::broker::{Blocked, End, Ended, Hindrance, Inbox, NAMES_MAX, Outcome};
use crate::application::api::{Error, UseCase};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use taskledger_domain::flow::Remarks;
use taskledger_domain::limits::KEY_CHARS_MAX;
use taskledger_eventbus::{SubscribeToTaskResultsRequest, TaskResult, TaskStatus};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// How long a stream must live after an outcome was written to it.
const SETTLED_AFTER: Duration = Duration::from_secs(60);
/// How often outcomes are marked.
const MARK_EVERY: Duration = Duration::from_secs(1);
/// Outcomes that a stream has written and that are not marked; with more, it waits.
const UNSETTLED_MAX: usize = 100_000;
/// A stream looks into its inbox now and then, even if nobody says that there is something.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// How the texts begin of tasks that cannot run any more.
const DEPENDENCY_FAILED: &str = "DEPENDENCY_FAILED";
const DEPENDENCY_CANCELLED: &str = "DEPENDENCY_CANCELLED";

/// The inbox that is read, and which tasks of it.
pub(super) struct Asked {
    pub(super) requester: Arc<str>,
    /// `None`: all.
    pub(super) ids: Option<Vec<Arc<str>>>,
}

impl Bus {
    /// Checks a subscription.
    pub(super) fn asked(
        &self,
        context: &Context,
        given: SubscribeToTaskResultsRequest,
    ) -> Result<Asked, Status> {
        if given.requester_agent_id.is_empty() {
            return Err(Status::invalid_argument(
                "requester_agent_id cannot be empty",
            ));
        }
        name_of(
            &given.requester_agent_id,
            "requester_agent_id",
            KEY_CHARS_MAX,
        )?;
        let reading = ("requester_agent_id", UseCase::ReadInbox);
        self.speaks_for(context, &given.requester_agent_id, reading)?;
        if given.task_ids.len() > NAMES_MAX {
            let reason = format!(
                "{} ids; at most {NAMES_MAX} are accepted",
                given.task_ids.len()
            );
            return Err(invalid("task_ids", reason));
        }
        for id in &given.task_ids {
            if id.is_empty() {
                return Err(invalid("task_ids", "an id is empty"));
            }
            name_of(id, "task_ids", ID_CHARS_MAX)?;
        }
        let ids: Vec<Arc<str>> = given.task_ids.into_iter().map(Arc::from).collect();
        Ok(Asked {
            requester: given.requester_agent_id.into(),
            ids: Some(ids).filter(|ids| !ids.is_empty()),
        })
    }

    /// The outcomes of tasks of a requester, without an end.
    pub(super) async fn results(
        self: &Arc<Self>,
        context: Context,
        asked: Asked,
        ending: CancellationToken,
    ) -> Result<(Sent<TaskResult>, Polled), Status> {
        let requester = asked.requester;
        let inbox = self.service.inbox(&context, requester.clone()).await;
        let inbox = inbox.map_err(|error| status::of(&*self.clock, error))?;
        // One at a time: what was taken out of it is on its way.
        let (out, stream) = mpsc::channel(1);
        let unsettled = Arc::new(Unsettled::default());
        let results = Results {
            bus: self.clone(),
            inbox,
            requester,
            ids: asked.ids,
            unsettled: unsettled.clone(),
            out,
        };
        tokio::spawn(results.run(context, ending));
        let polled = Polled(unsettled.clone());
        let taken = move |item: Result<(u64, TaskResult), Status>| {
            item.map(|(number, result)| {
                unsettled.take(number);
                result
            })
        };
        Ok((Box::pin(ReceiverStream::new(stream).map(taken)), polled))
    }
}

/// Goes with the answer to the listener, which says when its connection asks for more of it.
#[derive(Debug, Clone)]
pub(in crate::transport) struct Polled(Arc<Unsettled>);

impl Polled {
    /// The connection has room for more: everything that it took before has a place in the window of the client.
    pub(in crate::transport) fn again(&self) {
        self.0.written(Instant::now());
    }
}

/// One stream.
struct Results {
    bus: Arc<Bus>,
    inbox: Inbox,
    requester: Arc<str>,
    ids: Option<Vec<Arc<str>>>,
    unsettled: Arc<Unsettled>,
    out: mpsc::Sender<Result<(u64, TaskResult), Status>>,
}

impl Results {
    async fn run(self, context: Context, ending: CancellationToken) {
        let end = tokio::select! {
            end = self.tell() => end,
            () = self.mark() => return,
            () = self.out.closed() => return,
            () = ending.cancelled() => ended(&context),
        };
        // One whose receiver is gone needs no reason.
        let _ = self.out.send(Err(end)).await;
    }

    async fn tell(&self) -> Status {
        let _counted = self.bus.figures().stream(Topic::Results);
        let mut changes = self.inbox.changes();
        let wanted: Option<HashSet<&str>> = self
            .ids
            .as_ref()
            .map(|ids| ids.iter().map(|it| &**it).collect());
        let mut told = HashMap::new();
        if let Some(ids) = &self.ids {
            let named = self.answer(|| self.inbox.named(ids)).await;
            for outcome in named {
                told.insert(outcome.task_id, outcome.number);
                if let Err(end) = self.send(&outcome).await {
                    return end;
                }
            }
        }
        let mut last = 0;
        loop {
            changes.borrow_and_update();
            let found = self.answer(|| self.inbox.undelivered(last)).await;
            if found.is_empty() {
                // Nothing told so far comes again: numbers only rise.
                told.clear();
                let _ = timeout(LOOK_EVERY, changes.changed()).await;
                continue;
            }
            for outcome in found {
                last = outcome.number;
                let is_wanted = wanted
                    .as_ref()
                    .is_none_or(|ids| ids.contains(&*outcome.external_id));
                if !is_wanted {
                    continue;
                }
                if let Some(latest) = told.get(&outcome.task_id).filter(|it| **it >= last) {
                    // An earlier end of a task whose latest was told: it is delivered with that.
                    if *latest > last {
                        self.unsettled.pass(last, Instant::now());
                    }
                    continue;
                }
                if let Err(end) = self.send(&outcome).await {
                    return end;
                }
            }
        }
    }

    async fn send(&self, outcome: &Outcome) -> Result<(), Status> {
        while self.unsettled.len() >= UNSETTLED_MAX {
            sleep(PAUSE).await;
        }
        let ended = self
            .answer(|| self.bus.service.end_in_inbox(&self.inbox, outcome))
            .await;
        // What has left the log is told to nobody any more.
        let Some(ended) = ended else { return Ok(()) };
        let bytes_max = self.bus.message_bytes_max;
        let told = (
            outcome.number,
            wire::readable(result(outcome, ended), bytes_max),
        );
        let sent = self.out.send(Ok(told)).await;
        sent.map_err(|_| Status::cancelled("the stream is closed"))?;
        let (topic, after) = (Topic::Results, self.bus.since(outcome.at));
        let figures = self.bus.figures();
        figures.delivered(topic, topic.event(), &self.requester, after);
        Ok(())
    }

    /// Asks until there is an answer.
    async fn answer<T, F: Future<Output = Result<T, Error>>>(&self, ask: impl Fn() -> F) -> T {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(error) => {
                    tracing::warn!(%error, "an inbox of the broker waits for its store");
                    self.bus.figures().cut_off();
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Marks what has been on its way for long enough.
    async fn mark(&self) {
        let mut ticks = interval(MARK_EVERY);
        loop {
            ticks.tick().await;
            let due = self.unsettled.due(Instant::now());
            if due.is_empty() {
                continue;
            }
            match self.inbox.deliver(&due).await {
                Ok(()) => self.unsettled.settle(due.len()),
                Err(error) => {
                    tracing::warn!(%error, "outcomes were not marked as delivered, trying again");
                }
            }
        }
    }
}

/// What a stream has given to its connection and what is not marked, in that order.
#[derive(Debug, Default)]
struct Unsettled(Mutex<Given>);

#[derive(Debug, Default)]
struct Given {
    /// It may be in a buffer that waits for the client to make room.
    taken: Vec<u64>,
    /// It is on its way, since then.
    written: VecDeque<(u64, Instant)>,
}

impl Unsettled {
    fn all(&self) -> MutexGuard<'_, Given> {
        // What a panic left are lists of numbers still.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, number: u64) {
        self.all().taken.push(number);
    }

    /// It needs no way any more: what stands for it was told.
    fn pass(&self, number: u64, at: Instant) {
        self.all().written.push_back((number, at));
    }

    /// What was taken is on its way.
    fn written(&self, at: Instant) {
        let Given { taken, written } = &mut *self.all();
        written.extend(taken.drain(..).map(|number| (number, at)));
    }

    fn len(&self) -> usize {
        let all = self.all();
        all.taken.len() + all.written.len()
    }

    /// The first of them, as far as they were written long enough ago.
    fn due(&self, now: Instant) -> Vec<u64> {
        let all = self.all();
        let due = all
            .written
            .iter()
            .take_while(|(_, at)| now.duration_since(*at) >= SETTLED_AFTER);
        due.map(|(number, _)| *number).collect()
    }

    /// Forgets so many.
    fn settle(&self, count: usize) {
        self.all().written.drain(..count);
    }
}

/// An outcome as its requester is told of it.
fn result(outcome: &Outcome, ended: Ended) -> TaskResult {
    let Remarks {
        data,
        execution,
        completed_at,
    } = ended.remarks.unwrap_or_default();
    // The message is the agent's: its time is delivered as it was written.
    let written = completed_at.as_deref().and_then(stamp);
    let partial = data.map(|it| struct_of(it.to_map()));
    let too_late = || (TaskStatus::Failed, None, DEADLINE_EXCEEDED.to_owned());
    let (status, result, error_message) = match ended.end {
        End::Completed(output) => (
            TaskStatus::Completed,
            Some(struct_of(output.to_map())),
            String::new(),
        ),
        End::TooLate(_) => too_late(),
        // It was so when it was published.
        End::Cancelled(error) if *error == *DEADLINE_EXCEEDED => too_late(),
        End::Failed(error) => (TaskStatus::Failed, partial, error.to_string()),
        End::Cancelled(error) => (TaskStatus::Cancelled, partial, error.to_string()),
        End::Blocked(blocked) => {
            let (status, reason) = hindered(&blocked);
            (status, None, reason)
        }
    };
    TaskResult {
        task_id: outcome.external_id.to_string(),
        status: status.into(),
        result,
        error_message,
        executor_agent_id: ended.worker.as_deref().unwrap_or(NOBODY).to_owned(),
        completed_at: Some(written.unwrap_or_else(|| timestamp_of(outcome.at.0))),
        execution_metadata: execution.map(|it| struct_of(it.to_map())),
    }
}

/// What a requester is told of a task that cannot run any more.
fn hindered(Blocked { by, how }: &Blocked) -> (TaskStatus, String) {
    let by = match by {
        Some(by) => format!("`{by}`"),
        None => "a task that this one depends on".to_owned(),
    };
    match how {
        Hindrance::Failed => (
            TaskStatus::Failed,
            format!("{DEPENDENCY_FAILED}: {by} failed, so this task cannot run"),
        ),
        Hindrance::Cancelled => (
            TaskStatus::Cancelled,
            format!("{DEPENDENCY_CANCELLED}: {by} was cancelled, so this task cannot run"),
        ),
        Hindrance::NotRun => (
            TaskStatus::Failed,
            format!(
                "{DEPENDENCY_FAILED}: the run ended before {by} had completed, so this task cannot run"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_due_when_they_were_written_long_enough_ago() {
        let (unsettled, start) = (Unsettled::default(), Instant::now());
        unsettled.take(7);
        assert!(
            unsettled.due(start + SETTLED_AFTER).is_empty(),
            "it waits for room"
        );
        unsettled.written(start);
        unsettled.take(5);
        unsettled.written(start + Duration::from_secs(30));
        unsettled.take(3);
        assert!(unsettled.due(start + Duration::from_secs(59)).is_empty());
        let due = unsettled.due(start + SETTLED_AFTER);
        assert_eq!(due, [7]);
        unsettled.settle(due.len());
        assert_eq!(unsettled.due(start + SETTLED_AFTER * 2), [5]);
        assert_eq!(unsettled.len(), 2);
    }
}
