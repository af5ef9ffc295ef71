//! The inbox of a requester of the agent broker, with the outcomes of its tasks. Opened by `service/broker.rs`, which
//! asks whether the caller may.
//!
//! It belongs to a principal and one of its agents; nobody else's can be named. Which tasks ended lies beside the log
//! (`crates/broker`); what they returned is read from the log.

use super::App;
use super::api::broker::{Attempt, Blocked, End, Ended, Hindrance, Running};
use super::context::Context;
use super::error::{Error, Failure};
use super::limits::HeldPlace;
use super::queries::Consistency;
use super::stream_reader::StreamReader;
use std::sync::Arc;
use std::time::Duration;
use taskledger_broker::{BrokerStore, NAMES_MAX, Outcome, Owner, ROWS_MAX};
use taskledger_domain::flow::{CancelReason, Event, FailureReason, Refusal, Remarks};
use taskledger_domain::limits::LIST_LIMIT_MAX;
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, Payload, Recorded, TaskId, Timestamp, Version};
use taskledger_projections::{ListFilter, Order, Start};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// What a caller is told to wait when the store of the broker does not answer, in milliseconds.
const AWAY_RETRY_MS: u64 = 1000;
/// How long is waited until the store has noted what is in the log, and how often it is looked.
const CATCH_UP_WAIT: Duration = Duration::from_secs(5);
const CATCH_UP_STEP: Duration = Duration::from_millis(20);
/// Events of a flow that are looked at first, to find when an attempt began, and at most.
const LOOK_BACK_EVENTS_FIRST: usize = 8;
const LOOK_BACK_EVENTS_MAX: usize = 8192;
/// Running tasks among which those of an inbox are looked for: the newest.
const RUNNING_MAX: u32 = LIST_LIMIT_MAX;

/// The ends of tasks that an agent of the caller has published. Holds a place among the caller's streams.
#[derive(Debug)]
pub struct Inbox {
    pub(super) app: Arc<App>,
    pub(super) store: Arc<BrokerStore>,
    pub(super) context: Context,
    pub(super) owner: Owner,
    pub(super) requester: Arc<str>,
    pub(super) _place: Option<HeldPlace>,
}

impl Inbox {
    /// Wakes whoever waits for outcomes, of any inbox. Cost: O(1).
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.store.changes()
    }

    /// The outcomes with numbers above `after` that were not delivered, by number; not always all, but one if there
    /// is any.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn undelivered(&self, after: u64) -> Result<Vec<Outcome>, Error> {
        let found = self
            .store
            .undelivered(&self.owner, &self.requester, after, ROWS_MAX);
        Ok(found.await?)
    }

    /// The latest outcomes of these ids, delivered or not, by number.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn named(&self, ids: &[Arc<str>]) -> Result<Vec<Outcome>, Error> {
        let mut all = Vec::new();
        for ids in ids.chunks(NAMES_MAX) {
            let found = self.store.outcomes_of(&self.owner, &self.requester, ids);
            let found = found.await?.map_err(|it| Failure::Broken(it.to_string()))?;
            all.extend(found);
        }
        all.sort_unstable_by_key(|it| it.number);
        Ok(all)
    }

    /// Notes that outcomes were delivered. A crash of the machine may undo it.
    ///
    /// # Errors
    /// [`Error`]: they may be delivered again.
    pub async fn deliver(&self, numbers: &[u64]) -> Result<(), Error> {
        let now = self.app.clock.now();
        for numbers in numbers.chunks(ROWS_MAX as usize) {
            self.store.deliver(numbers, now).await?;
        }
        Ok(())
    }

    /// How a task ended; `None` when its flow has left the log, or is not the caller's any more. Cost: O(events of
    /// its last attempt in its flow).
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn end_of(&self, outcome: &Outcome) -> Result<Option<Ended>, Error> {
        let flow = outcome.flow;
        let foreign = || Refusal::FlowNotFound { flow };
        match self.app.is_owned(&self.context, flow, foreign).await {
            Ok(()) => {}
            Err(Error::Refused(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        let reader = StreamReader::of(&*self.app.store, flow);
        // Often the attempt has begun among them.
        let found = reader
            .before(outcome.version + 1, LOOK_BACK_EVENTS_FIRST)
            .await?;
        let Some(recorded) = found.first().filter(|it| it.version == outcome.version) else {
            return Ok(None);
        };
        if let Some((by, how)) = hindrance(&recorded.event, outcome.task_id) {
            let by = match by {
                Some(by) => Some(by),
                None => self.missing(outcome.task_id).await?,
            };
            let by = match by {
                Some(by) => Some(self.called(by).await?),
                None => None,
            };
            return Ok(Some(Ended {
                end: End::Blocked(Blocked { by, how }),
                worker: None,
                remarks: None,
            }));
        }
        let Some((end, attempt, remarks)) = end(&recorded.event) else {
            return Ok(None);
        };
        let worker = match attempt {
            None => None,
            Some(attempt) => {
                let of = Attempt {
                    flow,
                    task: outcome.task_id,
                    attempt,
                };
                let mut said = Said::default();
                let oldest = found.last().map_or(outcome.version, |it| it.version);
                match found.iter().any(|recorded| said.takes(recorded, of)) {
                    true => said.worker,
                    false => self.said(of, oldest).await?.worker,
                }
            }
        };
        Ok(Some(Ended {
            end,
            worker,
            remarks: remarks.cloned(),
        }))
    }

    /// What a task waits for still, the first of it.
    async fn missing(&self, task: TaskId) -> Result<Option<TaskId>, Error> {
        let status = async |task| -> Result<_, Error> {
            let seen = self.app.get(&self.context, task, Consistency::Strong).await;
            match seen {
                Ok(view) => Ok(Some(view.row)),
                Err(Error::Refused(_)) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let Some(row) = status(task).await? else {
            return Ok(None);
        };
        for dependency in &row.dependencies {
            let other = status(dependency.id).await?;
            if other.is_none_or(|it| it.status != Status::Completed) {
                return Ok(Some(dependency.id));
            }
        }
        Ok(None)
    }

    /// What the requester calls a task that it has published, or else its id.
    async fn called(&self, task: TaskId) -> Result<Arc<str>, Error> {
        let found = self.store.published(&self.owner.tenant, task).await?;
        let own = found.filter(|it| it.owner == self.owner && it.requester == self.requester);
        Ok(own.map_or_else(|| Arc::from(task.to_string()), |it| it.external_id))
    }

    /// What agents call a task of this inbox; `None`: it is not of this inbox.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn name_of(&self, task: TaskId) -> Result<Option<Arc<str>>, Error> {
        let tenant = &self.owner.tenant;
        let mut found = self.store.published(tenant, task).await?;
        if found.is_none() {
            caught_up(&self.app, &self.store).await?;
            found = self.store.published(tenant, task).await?;
        }
        let own = found.filter(|it| it.owner == self.owner && it.requester == self.requester);
        Ok(own.map(|it| it.external_id))
    }

    /// The worker of an attempt; `None`: it runs in the server. Cost: O(events behind its start).
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn worker_of(&self, attempt: Attempt) -> Result<Option<Arc<str>>, Error> {
        Ok(self.said(attempt, Version::MAX).await?.worker)
    }

    /// The tasks of this inbox that are in progress, with their flows, among so many of the newest of the caller's
    /// tasks. Cost: O(them).
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn running(&self) -> Result<Vec<(FlowId, Running)>, Error> {
        let filter = ListFilter {
            status: Some(Status::InProgress),
            ..ListFilter::default()
        };
        let page = self.app.list(
            &self.context,
            filter,
            Order::Descending,
            Start::Offset(0),
            RUNNING_MAX,
            Consistency::Strong,
        );
        let mut running = Vec::new();
        for view in page.await?.tasks.into_iter().rev() {
            let row = view.row;
            let params = row.params.as_ref();
            if !params.is_some_and(|it| it.as_str().contains(taskledger_broker::MEMBER)) {
                continue;
            }
            let Some(external_id) = self.name_of(row.id).await? else {
                continue;
            };
            let of = Attempt {
                flow: row.flow_id,
                task: row.id,
                attempt: row.attempt,
            };
            let said = self.said(of, Version::MAX).await?;
            let one = Running {
                external_id,
                progress: row.progress,
                message: said.message,
                data: said.data,
                worker: said.worker,
                at: said.at.map_or(row.updated_at, |at| at),
            };
            running.push((row.flow_id, one));
        }
        Ok(running)
    }

    /// What was said of an attempt before an event, from it back to the start of the attempt.
    async fn said(&self, of: Attempt, before: Version) -> Result<Said, Error> {
        let reader = StreamReader::of(&*self.app.store, of.flow);
        let (mut before, mut limit) = (before, LOOK_BACK_EVENTS_FIRST);
        let mut said = Said::default();
        let mut looked = 0;
        while looked < LOOK_BACK_EVENTS_MAX {
            let piece = reader.before(before, limit).await?;
            let Some(oldest) = piece.last() else { break };
            before = oldest.version;
            looked += piece.len();
            limit *= 4;
            if piece.iter().any(|recorded| said.takes(recorded, of)) {
                break;
            }
        }
        Ok(said)
    }
}

/// What events say of an attempt.
#[derive(Default)]
struct Said {
    worker: Option<Arc<str>>,
    message: Option<Arc<str>>,
    data: Option<Payload>,
    at: Option<Timestamp>,
}

impl Said {
    /// Takes over what an event says, of which later ones have been taken; whether it is the attempt's first.
    fn takes(&mut self, recorded: &Recorded, of: Attempt) -> bool {
        if let Event::TaskProgressed(said) = recorded.event.as_ref()
            && (said.task_id, said.attempt) == (of.task, of.attempt)
            && self.at.is_none()
        {
            self.message = said.message.as_deref().map(Arc::from);
            self.data = said.remarks.as_ref().and_then(|it| it.data.clone());
            self.at = Some(recorded.time);
        }
        if let Event::TaskStarted(started) = recorded.event.as_ref()
            && (started.task_id, started.attempt) == (of.task, of.attempt)
        {
            self.worker = started.lease.as_ref().map(|it| Arc::from(&*it.worker));
            self.at.get_or_insert(recorded.time);
            return true;
        }
        false
    }
}

/// Why a task cannot run any more, if that follows from an event of another one, and which that is.
fn hindrance(event: &Event, task: TaskId) -> Option<(Option<TaskId>, Hindrance)> {
    if let Event::RunEnded(_) = event {
        return Some((None, Hindrance::NotRun));
    }
    let (by, how) = if let Event::TaskFailed(e) = event {
        (e.task_id, Hindrance::Failed)
    } else if let Event::TaskCancelled(e) = event {
        (e.task_id, Hindrance::Cancelled)
    } else {
        return None;
    };
    (by != task).then_some((Some(by), how))
}

/// The end that an event is, of which attempt, and what was said beside it.
fn end(event: &Event) -> Option<(End, Option<u32>, Option<&Remarks>)> {
    let text = |text: &str| Arc::from(text);
    if let Event::TaskCompleted(e) = event {
        let end = End::Completed(e.result.clone());
        return Some((end, Some(e.attempt), e.remarks.as_ref()));
    }
    if let Event::TaskFailed(e) = event {
        let is_late = e.reason == FailureReason::Deadline;
        let end = match is_late {
            true => End::TooLate(text(&e.error)),
            false => End::Failed(text(&e.error)),
        };
        return Some((end, Some(e.attempt), e.remarks.as_ref()));
    }
    if let Event::TaskCancelled(e) = event {
        let end = match e.reason {
            CancelReason::Deadline => End::TooLate(text(&e.error)),
            CancelReason::Requested => End::Cancelled(text(&e.error)),
        };
        return Some((end, e.attempt, e.remarks.as_ref()));
    }
    None
}

/// Waits until the store shows everything that is in the log now, for a few seconds at most.
pub(super) async fn caught_up(app: &App, store: &BrokerStore) -> Result<(), Error> {
    let head = app.store.head().await?;
    let until = Instant::now() + CATCH_UP_WAIT;
    while store.position().await? < head {
        if Instant::now() >= until {
            return Err(Error::Busy {
                reason: "the inboxes of the broker are behind the log".to_owned(),
                retry_after_ms: AWAY_RETRY_MS,
            });
        }
        store.hurry();
        sleep(CATCH_UP_STEP).await;
    }
    Ok(())
}

impl From<taskledger_broker::Error> for Error {
    fn from(error: taskledger_broker::Error) -> Self {
        use taskledger_broker::Error as Stored;
        match error {
            Stored::Database(_) | Stored::Late => {
                tracing::warn!(%error, "a call did not reach the store of the broker");
                Self::Busy {
                    reason: "the store of the broker does not answer".to_owned(),
                    retry_after_ms: AWAY_RETRY_MS,
                }
            }
            Stored::Damaged(_) => Failure::Broken(error.to_string()).into(),
        }
    }
}
