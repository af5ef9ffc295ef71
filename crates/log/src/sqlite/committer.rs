//! The one writer of the log: it commits whatever has arrived, on a thread of its own.
//!
//! Owns: the queue's far end, the only connection that writes, and the order of things: events are
//! in the ring before the watch moves, and the watch has moved before anybody is answered. Whoever waits for the watch
//! is woken after that: seven tasks follow the log, and an answer would be carried on behind all of them. Requests come
//! from [`super::SqliteStore`]; answers go back by oneshot. No timer: the sync of one batch is the time in which the
//! next one gathers. An append that nothing else waits beside is committed by whoever brings it ([`super::alone`]).

use super::checkpoint::Checkpoints;
use super::failure;
use super::lock;
use super::writer::Writer;
use crate::check::{BATCH_BYTES_MAX, BATCH_EVENTS_MAX, Size};
use crate::ring::Ring;
use crate::{Append, Error, Outcome, Resolution, Snapshot};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use taskledger_clock::SharedClock;
use taskledger_domain::{EventId, FlowId, Position};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};

/// Called when it is not known whether a commit is on disk. It should end the process: only a
/// restart can tell.
pub type OnFatal = Arc<dyn Fn(String) + Send + Sync>;

type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// Something to write, with whom to tell.
#[derive(Debug)]
pub(super) enum Write {
    Append(Box<Append>, Reply<Outcome>),
    RaiseFence(String, Reply<u64>),
    SaveSnapshot(FlowId, Snapshot, Reply<()>),
    Drop(FlowId, usize, Reply<u64>),
}

/// A message to the committer.
#[derive(Debug)]
pub(super) enum Request {
    /// Part of the next transaction.
    Write {
        write: Write,
        size: Size,
        /// Given back when the write has been answered.
        share: Share,
    },
    /// Judged after everything that arrived before it; hence final.
    Resolve {
        stream: FlowId,
        ids: Vec<EventId>,
        reply: Reply<Resolution>,
    },
    /// Nothing has happened for a while: copy what is in the WAL.
    Rest,
    /// Finish what has arrived, then end.
    Close,
}

/// What a write has of the queue.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) _bytes: OwnedSemaphorePermit,
    pub(super) _counted: Counted,
}

/// One write that is on its way to the queue, in it, or not answered yet.
#[derive(Debug)]
pub(super) struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// One more, until it is dropped.
    pub(super) fn among(queued: &Arc<AtomicUsize>) -> Self {
        queued.fetch_add(1, Ordering::AcqRel);
        Self(queued.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The outcome of a write that is not yet durable.
enum Judged {
    Append(Outcome, Reply<Outcome>),
    Fence(u64, Reply<u64>),
    Snapshot(Result<(), Error>, Reply<()>),
    Drop(Result<u64, Error>, Reply<u64>),
}

/// The connection that writes, with its surroundings. Absent once the log is closed, or an outcome is not known.
pub(super) type Shared = Arc<Mutex<Option<Committer>>>;

/// The committer's surroundings.
pub(super) struct Committer {
    pub(super) writer: Writer,
    pub(super) clock: SharedClock,
    pub(super) ring: Arc<Ring>,
    pub(super) head: watch::Sender<Position>,
    pub(super) checkpoints: Checkpoints,
    pub(super) on_fatal: OnFatal,
    /// The last batch was not written; so that the log of a full disk is two lines, not a flood.
    pub(super) refusing: bool,
    pub(super) last: Last,
}

/// The last commits.
#[derive(Debug, Default)]
pub(super) struct Last {
    /// Writes of the last one.
    pub(super) writes: usize,
    /// How long the last one took that has written events.
    pub(super) took: Duration,
    /// Commits since the thread of the committer looked at the WAL.
    pub(super) unattended: usize,
}

/// The outcome of a commit is not known.
pub(super) struct Fatal;

/// Whoever follows the log, and the thread of checkpoints, learn that a thread panicked which worked with the
/// committer: it is gone then.
pub(super) struct GoneOnPanic<'s>(pub(super) &'s Shared);

impl Drop for GoneOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.0).take();
        }
    }
}

/// Serves until the queue is closed and empty, [`Request::Close`] arrives, or an outcome is not
/// known. Gives the connection back.
pub(super) fn run(mut requests: mpsc::Receiver<Request>, shared: &Shared) -> Option<Committer> {
    let alarm = lock(shared).as_ref().map(Committer::alarm);
    let _gone = GoneOnPanic(shared);
    if let Some(committer) = &mut *lock(shared) {
        let Committer {
            writer,
            checkpoints,
            ..
        } = committer;
        checkpoints.begin(writer.connection());
    }
    let mut kept = None;
    while let Some(request) = kept.take().or_else(|| requests.blocking_recv()) {
        // Whoever committed something may have panicked, or does not know the outcome.
        let mut shared = shared.lock().ok()?;
        let committer = shared.as_mut()?;
        match request {
            Request::Write { write, size, share } => {
                let (batch, next) = gather(&mut requests, write, size, share);
                kept = next;
                let (writes, shares) = batch.into_iter().unzip();
                if committer.commit(writes, shares).is_err() {
                    return shared.take();
                }
                committer.last.unattended = 0;
                let connection = committer.writer.connection();
                committer.checkpoints.after_commit(connection);
            }
            Request::Resolve { stream, ids, reply } => {
                let found = committer.writer.find(stream, &ids);
                let _ = reply.send(found.map(|events| match events {
                    Some(events) => Resolution::Appended(events),
                    None => Resolution::Absent,
                }));
            }
            Request::Rest => committer.checkpoints.rest(committer.writer.connection()),
            // Whatever comes after this one is refused, whatever came before it is done.
            Request::Close => requests.close(),
        }
    }
    let committer = lock(shared).take()?;
    committer
        .checkpoints
        .truncate(committer.writer.connection());
    drop(alarm);
    Some(committer)
}

/// The first write and whatever else has arrived and fits, and the request that did not.
fn gather(
    requests: &mut mpsc::Receiver<Request>,
    first: Write,
    mut total: Size,
    share: Share,
) -> (Vec<(Write, Share)>, Option<Request>) {
    let mut batch = vec![(first, share)];
    loop {
        match requests.try_recv() {
            Ok(Request::Write { write, size, share }) => {
                total.events += size.events;
                total.bytes += size.bytes;
                if total.events > BATCH_EVENTS_MAX || total.bytes > BATCH_BYTES_MAX {
                    return (batch, Some(Request::Write { write, size, share }));
                }
                batch.push((write, share));
            }
            Ok(other) => return (batch, Some(other)),
            Err(_) => return (batch, None),
        }
    }
}

impl Committer {
    /// Commits writes together and answers them.
    ///
    /// # Errors
    /// [`Fatal`]: it is not known whether they are on disk.
    pub(super) fn commit(&mut self, writes: Vec<Write>, shares: Vec<Share>) -> Result<(), Fatal> {
        let (begun, head) = (Instant::now(), self.writer.head());
        self.last.writes = writes.len();
        self.write(writes, shares)?;
        // A refusal says nothing of the disk.
        if self.writer.head() > head {
            self.last.took = begun.elapsed();
        }
        self.last.unattended += 1;
        Ok(())
    }

    /// Sounds if the thread that holds it panics.
    pub(super) fn alarm(&self) -> PanicAlarm {
        PanicAlarm(self.on_fatal.clone())
    }

    fn write(&mut self, writes: Vec<Write>, shares: Vec<Share>) -> Result<(), Fatal> {
        let head = self.writer.head();
        let mut judged = Vec::with_capacity(writes.len());
        let mut waiting = writes.into_iter();
        if let Err(error) = judge(&mut self.writer, &self.clock, &mut waiting, &mut judged) {
            let error = failure::of_write(&error, head);
            return self.refuse_all(judged, waiting, &error);
        }
        match self.writer.commit() {
            Ok(fresh) => {
                if std::mem::take(&mut self.refusing) {
                    tracing::info!("the event log can be written again");
                }
                self.checkpoints.committed();
                let moved = fresh.last().map(|last| last.event.position);
                if let Some(position) = moved {
                    self.ring.push(fresh);
                    self.head.send_if_modified(|head| {
                        *head = position;
                        false
                    });
                }
                if judged.iter().any(|j| matches!(j, Judged::Drop(Ok(_), _))) {
                    self.ring.forget(self.writer.horizon());
                }
                drop(shares);
                for j in judged {
                    j.answer();
                }
                if moved.is_some() {
                    // Wakes those who follow.
                    self.head.send_if_modified(|_| true);
                }
                Ok(())
            }
            Err(error) if failure::commit_is_certainly_absent(&error) => {
                let error = failure::of_write(&error, head);
                self.refuse_all(judged, waiting, &error)
            }
            Err(error) => {
                (self.on_fatal)(format!(
                    "the event log cannot tell whether its last commit is on disk: {error}. \
                     Ending now; on restart the log itself decides. Check the disk under the data \
                     folder first"
                ));
                Err(Fatal)
            }
        }
    }

    /// Undoes the transaction and tells everybody in it. A refusal may rest on a neighbour that is
    /// undone as well, so refusals are not given either.
    fn refuse_all(
        &mut self,
        judged: Vec<Judged>,
        waiting: std::vec::IntoIter<Write>,
        error: &Error,
    ) -> Result<(), Fatal> {
        if !std::mem::replace(&mut self.refusing, true) {
            tracing::warn!(%error, "the event log cannot be written; appends are refused");
        }
        let rolled_back = self.writer.roll_back();
        for j in judged {
            j.refuse(error.clone());
        }
        for write in waiting {
            write.refuse(error.clone());
        }
        rolled_back.map_err(|error| {
            (self.on_fatal)(format!(
                "the event log cannot undo a transaction that failed: {error}. Ending now; on \
                 restart the log itself decides"
            ));
            Fatal
        })
    }
}

/// Judges and writes all of `waiting` in one transaction that stays open. On an error the write
/// that met it is in `judged`, those behind it are still in `waiting`.
fn judge(
    writer: &mut Writer,
    clock: &SharedClock,
    waiting: &mut std::vec::IntoIter<Write>,
    judged: &mut Vec<Judged>,
) -> rusqlite::Result<()> {
    writer.begin(clock.now())?;
    for write in waiting {
        match write {
            Write::Append(append, reply) => match writer.append(*append) {
                Ok(outcome) => judged.push(Judged::Append(outcome, reply)),
                Err(error) => {
                    judged.push(Judged::Append(Outcome::Unknown, reply));
                    return Err(error);
                }
            },
            Write::RaiseFence(name, reply) => match writer.raise_fence(&name) {
                Ok(token) => judged.push(Judged::Fence(token, reply)),
                Err(error) => {
                    judged.push(Judged::Fence(0, reply));
                    return Err(error);
                }
            },
            Write::SaveSnapshot(flow, snapshot, reply) => {
                match writer.save_snapshot(flow, &snapshot) {
                    Ok(saved) => judged.push(Judged::Snapshot(saved, reply)),
                    Err(error) => {
                        judged.push(Judged::Snapshot(Ok(()), reply));
                        return Err(error);
                    }
                }
            }
            Write::Drop(flow, limit, reply) => match writer.drop_archived(flow, limit) {
                Ok(left) => judged.push(Judged::Drop(left, reply)),
                Err(error) => {
                    judged.push(Judged::Drop(Ok(0), reply));
                    return Err(error);
                }
            },
        }
    }
    writer.sweep_when_due()
}

impl Judged {
    // A caller that is gone does not care.
    fn answer(self) {
        match self {
            Self::Append(outcome, reply) => drop(reply.send(Ok(outcome))),
            Self::Fence(token, reply) => drop(reply.send(Ok(token))),
            Self::Snapshot(saved, reply) => drop(reply.send(saved)),
            Self::Drop(left, reply) => drop(reply.send(left)),
        }
    }

    fn refuse(self, error: Error) {
        match self {
            Self::Append(_, reply) => drop(reply.send(Err(error))),
            Self::Fence(_, reply) => drop(reply.send(Err(error))),
            Self::Snapshot(_, reply) => drop(reply.send(Err(error))),
            Self::Drop(_, reply) => drop(reply.send(Err(error))),
        }
    }
}

impl Write {
    fn refuse(self, error: Error) {
        match self {
            Self::Append(_, reply) => drop(reply.send(Err(error))),
            Self::RaiseFence(_, reply) => drop(reply.send(Err(error))),
            Self::SaveSnapshot(_, _, reply) => drop(reply.send(Err(error))),
            Self::Drop(_, _, reply) => drop(reply.send(Err(error))),
        }
    }
}

/// A committer that panics leaves outcomes unknown.
pub(super) struct PanicAlarm(OnFatal);

impl Drop for PanicAlarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)("the event log's writer panicked. Ending now".to_owned());
        }
    }
}
