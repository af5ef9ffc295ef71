//! The one writer of the log: a thread that commits whatever has arrived.
//!
//! Owns: the queue's far end, the only connection that writes, and the order of things: events are
//! in the ring before the watch moves, and the watch has moved before anybody is answered. Whoever waits for the watch is
//! woken after that: seven tasks follow the log, and an answer would be carried on behind all of them.
//! Requests come from [`super::SqliteStore`]; answers go back by oneshot. No timer: the sync of one
//! batch is the time in which the next one gathers.

use super::checkpoint::Checkpoints;
use super::failure;
use super::writer::Writer;
use crate::check::{BATCH_BYTES_MAX, BATCH_EVENTS_MAX, Size};
use crate::ring::Ring;
use crate::{Append, Error, Outcome, Resolution, Snapshot};
use std::sync::Arc;
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
        /// The bytes' share of the queue, given back when the write has been answered.
        share: OwnedSemaphorePermit,
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

/// What became of a write that is not yet durable.
enum Judged {
    Append(Outcome, Reply<Outcome>),
    Fence(u64, Reply<u64>),
    Snapshot(Result<(), Error>, Reply<()>),
    Drop(Result<u64, Error>, Reply<u64>),
}

/// The committer's surroundings.
pub(super) struct Committer {
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) clock: SharedClock,
    pub(super) ring: Arc<Ring>,
    pub(super) head: watch::Sender<Position>,
    pub(super) checkpoints: Checkpoints,
    pub(super) on_fatal: OnFatal,
    /// The last batch was not written; so that the log of a full disk is two lines, not a flood.
    pub(super) refusing: bool,
}

/// The outcome of a commit is not known.
struct Fatal;

impl Committer {
    /// Serves until the queue is closed and empty, [`Request::Close`] arrives, or an outcome is not
    /// known.
    pub(super) fn run(mut self, connection: &rusqlite::Connection, mut writer: Writer<'_>) {
        let alarm = PanicAlarm(self.on_fatal.clone());
        let mut kept = None;
        self.checkpoints.begin(connection);
        while let Some(request) = kept.take().or_else(|| self.requests.blocking_recv()) {
            match request {
                Request::Write { write, size, share } => {
                    let (batch, next) = self.gather(write, size, share);
                    kept = next;
                    if self.commit(&mut writer, batch).is_err() {
                        return;
                    }
                    self.checkpoints.after_commit(connection);
                }
                Request::Resolve { stream, ids, reply } => {
                    let found = writer.find(stream, &ids);
                    let _ = reply.send(found.map(|events| match events {
                        Some(events) => Resolution::Appended(events),
                        None => Resolution::Absent,
                    }));
                }
                Request::Rest => self.checkpoints.rest(connection),
                // Whatever comes after this one is refused, whatever came before it is done.
                Request::Close => self.requests.close(),
            }
        }
        self.checkpoints.truncate(connection);
        drop(alarm);
    }

    /// The first write and whatever else has arrived and fits, and the request that did not.
    fn gather(
        &mut self,
        first: Write,
        mut total: Size,
        share: OwnedSemaphorePermit,
    ) -> (Vec<(Write, OwnedSemaphorePermit)>, Option<Request>) {
        let mut batch = vec![(first, share)];
        loop {
            match self.requests.try_recv() {
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

    fn commit(
        &mut self,
        writer: &mut Writer<'_>,
        batch: Vec<(Write, OwnedSemaphorePermit)>,
    ) -> Result<(), Fatal> {
        let head = writer.head();
        let (writes, shares): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let mut judged = Vec::with_capacity(writes.len());
        let mut waiting = writes.into_iter();
        if let Err(error) = judge(writer, &self.clock, &mut waiting, &mut judged) {
            let error = failure::of_write(&error, head);
            return self.refuse_all(writer, judged, waiting, &error);
        }
        match writer.commit() {
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
                    self.ring.forget(writer.horizon());
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
                self.refuse_all(writer, judged, waiting, &error)
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
        writer: &mut Writer<'_>,
        judged: Vec<Judged>,
        waiting: std::vec::IntoIter<Write>,
        error: &Error,
    ) -> Result<(), Fatal> {
        if !std::mem::replace(&mut self.refusing, true) {
            tracing::warn!(%error, "the event log cannot be written; appends are refused");
        }
        let rolled_back = writer.roll_back();
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
    writer: &mut Writer<'_>,
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
struct PanicAlarm(OnFatal);

impl Drop for PanicAlarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)("the event log's writer panicked. Ending now".to_owned());
        }
    }
}
