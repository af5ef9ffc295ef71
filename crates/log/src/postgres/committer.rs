//! The one writer of this process: a task that commits whatever has arrived.
//!
//! Owns: the queue's far end, the only connection that appends, and the order of things: events are
//! in the ring before the watch moves, and the watch has moved before anybody is answered.
//! Requests come from [`super::PostgresStore`]. No timer: the commit of one batch is the time in
//! which the next one gathers.

use super::arrays::Arrays;
use super::batch::{Batch, Later, Waiting};
use super::call::{self, Verdicts, Writer};
use super::failure::{self, Failed};
use super::head::Head;
use super::link::Link;
use super::options::Options;
use super::queries;
use crate::check::BATCH_EVENTS_MAX;
use crate::ring::Ring;
use crate::{Error, Resolution};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use taskledger_clock::SharedClock;
use taskledger_domain::{EventId, FlowId};
use tokio::sync::{mpsc, oneshot};

/// Appends that are held back because of a neighbour; with more, nothing else is taken in.
const DEFERRED_MAX: usize = BATCH_EVENTS_MAX;
/// Expired claims that one append deletes on its way: a few milliseconds under the head lock.
const SWEEP_ROWS_MAX: i32 = 1_024;
/// Claims with an expiry written between two sweeps; half of a sweep, so that sweeping keeps up.
const SWEEP_AFTER_CLAIMS: usize = 512;
/// Batches between two sweeps when few claims are written.
const SWEEP_AFTER_BATCHES: usize = 1_024;
/// Times that a batch is sent when its epoch turns out to be old. Once is usual, after a month.
const EPOCH_TRIES_MAX: usize = 3;

/// A message to the committer.
#[derive(Debug)]
pub(super) enum Request {
    /// Part of the next batch.
    Append(Box<Waiting>),
    /// Judged after everything that arrived before it; hence final.
    Resolve(Resolve),
    /// Finish what has arrived, then end.
    Close,
}

#[derive(Debug)]
pub(super) struct Resolve {
    pub(super) stream: FlowId,
    pub(super) ids: Vec<EventId>,
    pub(super) reply: oneshot::Sender<Result<Resolution, Error>>,
}

/// What has to wait until everything before it is done.
#[derive(Debug)]
enum Barrier {
    Resolve(Resolve),
    Close,
}

/// What to do next.
enum Turn {
    Write(Batch),
    Barrier(Barrier),
}

/// The committer's surroundings.
pub(super) struct Committer {
    requests: mpsc::Receiver<Request>,
    deferred: VecDeque<Box<Waiting>>,
    barrier: Option<Barrier>,
    link: Link,
    clock: SharedClock,
    ring: Arc<Ring>,
    head: Arc<Head>,
    commits: Arc<AtomicU64>,
    claims_since_sweep: usize,
    batches_since_sweep: usize,
    /// The last batch was not written; so that the log of an outage is two lines, not a flood.
    refusing: bool,
}

impl Committer {
    pub(super) fn new(
        requests: mpsc::Receiver<Request>,
        options: &Options,
        ring: Arc<Ring>,
        head: Arc<Head>,
        commits: Arc<AtomicU64>,
    ) -> Self {
        Self {
            requests,
            deferred: VecDeque::new(),
            barrier: None,
            link: Link::new(options.clone()),
            clock: options.clock.clone(),
            ring,
            head,
            commits,
            claims_since_sweep: 0,
            batches_since_sweep: 0,
            refusing: false,
        }
    }

    /// Serves until the queue is closed and empty, or [`Request::Close`] arrives.
    pub(super) async fn run(mut self) {
        while let Some(turn) = self.next().await {
            match turn {
                Turn::Write(batch) => self.write(batch).await,
                // Whoever has given up is not waited for: a question may take as long as a lock does.
                Turn::Barrier(Barrier::Resolve(asked)) if asked.reply.is_closed() => {}
                Turn::Barrier(Barrier::Resolve(asked)) => {
                    let found = self.resolve(asked.stream, &asked.ids).await;
                    // A caller that is gone does not care.
                    let _ = asked.reply.send(found);
                }
                // Whatever is not in the queue by now is refused.
                Turn::Barrier(Barrier::Close) => self.requests.close(),
            }
        }
        self.link.close().await;
    }

    /// What was held back and whatever else has arrived and fits.
    async fn next(&mut self) -> Option<Turn> {
        let mut batch = Batch::default();
        let mut full = self.admit_deferred(&mut batch);
        if batch.is_empty() {
            if let Some(barrier) = self.barrier.take() {
                return Some(Turn::Barrier(barrier));
            }
            let request = self.requests.recv().await?;
            full = self.take(request, &mut batch);
            if let Some(barrier) = self.barrier.take() {
                return Some(Turn::Barrier(barrier));
            }
        }
        while !full && self.barrier.is_none() && self.deferred.len() < DEFERRED_MAX {
            let Ok(request) = self.requests.try_recv() else {
                break;
            };
            full = self.take(request, &mut batch);
        }
        Some(Turn::Write(batch))
    }

    /// Whether the batch is full.
    fn admit_deferred(&mut self, batch: &mut Batch) -> bool {
        let mut full = false;
        for waiting in std::mem::take(&mut self.deferred) {
            // Behind one that did not fit nothing overtakes.
            if full {
                self.deferred.push_back(waiting);
            } else {
                full = self.admit(waiting, batch);
            }
        }
        full
    }

    fn take(&mut self, request: Request, batch: &mut Batch) -> bool {
        match request {
            Request::Append(waiting) => return self.admit(waiting, batch),
            Request::Resolve(asked) => self.barrier = Some(Barrier::Resolve(asked)),
            Request::Close => self.barrier = Some(Barrier::Close),
        }
        false
    }

    fn admit(&mut self, waiting: Box<Waiting>, batch: &mut Batch) -> bool {
        match batch.admit(waiting) {
            Ok(()) => false,
            Err((why, waiting)) => {
                self.deferred.push_back(waiting);
                why == Later::Full
            }
        }
    }

    async fn write(&mut self, batch: Batch) {
        let sent = {
            let arrays = Arrays::of(&batch);
            let sweep = self.sweep_due(&batch);
            self.send(&arrays, sweep).await
        };
        match sent {
            Ok(verdicts) => self.answer(batch, verdicts),
            Err(Failed::Nothing(error)) => {
                self.warn(&error.to_string(), "appends are refused");
                batch.refuse(&error);
            }
            Err(Failed::Unknown(reason)) => {
                self.warn(
                    &reason,
                    "the outcome of the last appends has to be looked up",
                );
                self.link.doubt();
                batch.leave_unknown();
            }
            Err(Failed::StaleEpoch) => {
                let reason = "somebody else writes under the id of this process".to_owned();
                self.warn(&reason, "appends are refused");
                batch.refuse(&Error::Unavailable(reason));
            }
        }
    }

    async fn send(&mut self, arrays: &Arrays<'_>, sweep: i32) -> Result<Verdicts, Failed> {
        let mut tries = 1;
        loop {
            let (node, patience) = (self.link.node(), self.link.patience());
            let (connection, epoch) = self.link.ready().await.map_err(Failed::Nothing)?;
            let writer = Writer {
                node,
                epoch,
                now: self.clock.now(),
                sweep,
            };
            let sending = call::append(connection, writer, arrays);
            let failed = match tokio::time::timeout(patience, sending).await {
                Ok(Ok(verdicts)) => return Ok(verdicts),
                Ok(Err(error)) => failure::of_write(&error, self.head.known()),
                Err(_) => Failed::Unknown(format!("no answer within {patience:?}")),
            };
            match failed {
                Failed::StaleEpoch if tries < EPOCH_TRIES_MAX => {
                    tries += 1;
                    self.link.forget_epoch();
                }
                other @ (Failed::StaleEpoch | Failed::Nothing(_) | Failed::Unknown(_)) => {
                    return Err(other);
                }
            }
        }
    }

    fn answer(&mut self, batch: Batch, verdicts: Verdicts) {
        if std::mem::take(&mut self.refusing) {
            tracing::info!("the event log can be written again");
        }
        let head = verdicts.head;
        let (answered, fresh) = verdicts.outcomes(batch);
        if !fresh.is_empty() {
            self.commits.fetch_add(1, Ordering::Relaxed);
            self.ring.push(fresh);
        }
        self.head.note(head);
        for answer in answered {
            // A caller that is gone does not care.
            let _ = answer.waiting.reply.send(Ok(answer.outcome));
        }
    }

    fn warn(&mut self, reason: &str, consequence: &str) {
        if !std::mem::replace(&mut self.refusing, true) {
            tracing::warn!(reason, "the event log cannot be written; {consequence}");
        }
    }

    /// How many expired claims the next batch deletes.
    fn sweep_due(&mut self, batch: &Batch) -> i32 {
        self.claims_since_sweep += batch.expiring_claims();
        self.batches_since_sweep += 1;
        if self.claims_since_sweep < SWEEP_AFTER_CLAIMS
            && self.batches_since_sweep < SWEEP_AFTER_BATCHES
        {
            return 0;
        }
        self.claims_since_sweep = 0;
        self.batches_since_sweep = 0;
        SWEEP_ROWS_MAX
    }

    /// Looks for events after whatever was in doubt can no longer take effect.
    async fn resolve(&mut self, stream: FlowId, ids: &[EventId]) -> Result<Resolution, Error> {
        let patience = self.link.patience();
        let (connection, _) = self.link.ready().await?;
        let finding = queries::find(connection, stream, ids);
        match tokio::time::timeout(patience, finding).await {
            Ok(Ok(Some(events))) => Ok(Resolution::Appended(events)),
            Ok(Ok(None)) => Ok(Resolution::Absent),
            Ok(Err(queries::Stopped::Row(error))) => Err(error),
            Ok(Err(queries::Stopped::Missing(missing))) => Err(missing.before(None)),
            Ok(Err(queries::Stopped::Sql(error))) => {
                if failure::is_broken(&error) {
                    self.link.doubt();
                }
                Err(failure::of_read(&error, 0))
            }
            Err(_) => {
                self.link.doubt();
                Err(Error::Unavailable(format!("no answer within {patience:?}")))
            }
        }
    }
}
