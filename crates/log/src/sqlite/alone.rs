//! An append that nothing else waits beside, committed on the thread that brings it; and claims that are read there.
//!
//! To another thread and back are two wake-ups of a thread, as long as half a sync. With nothing to be committed
//! together, they are saved. What must hold: nothing that was sent to the queue before is overtaken, and the disk is
//! fast.

use super::SqliteStore;
use super::committer::{Committer, GoneOnPanic, Write};
use super::failure::of_read;
use super::queries::Queries;
use crate::check::Size;
use crate::{Append, ClaimKey, Error, Outcome};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;
use taskledger_domain::Timestamp;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// Events and bytes of an append that is committed where it comes from: well below a millisecond.
const EVENTS_MAX: usize = 32;
const BYTES_MAX: usize = 64 * 1024;
/// Commits behind which the thread of the committer gets the next one, because it looks after the WAL: fewer than the
/// file has room for ([`super::ahead`]).
const UNATTENDED_MAX: usize = 16;
/// Claims that are read where they are asked for.
const CLAIMS_MAX: usize = 4;
/// The longest commit after which the next one may be waited for: what else the thread would have done waits too.
const COMMIT_MAX: Duration = Duration::from_millis(1);

impl SqliteStore {
    /// Commits an append, if nothing else is to be committed and it will not take long; else gives it back.
    pub(super) fn alone(
        &self,
        append: Append,
        size: Size,
    ) -> Result<Result<Outcome, Error>, Box<Append>> {
        let append = Box::new(append);
        if size.events > EVENTS_MAX || size.bytes > BYTES_MAX {
            return Err(append);
        }
        // Dropped behind the lock.
        let _gone = GoneOnPanic(&self.committer);
        let Some(mut shared) = self.idle() else {
            return Err(append);
        };
        let Some(committer) = shared.as_mut().filter(|it| it.is_alone_and_fast()) else {
            return Err(append);
        };
        let alarm = committer.alarm();
        let (reply, mut answer) = oneshot::channel();
        let written = committer.commit(vec![Write::Append(append, reply)], Vec::new());
        if written.is_err() {
            shared.take();
        }
        drop(alarm);
        Ok(answer.try_recv().unwrap_or(Ok(Outcome::Unknown)))
    }

    /// Values of a few claims, if nothing is to be committed.
    pub(super) fn claims_alone(
        &self,
        keys: &[ClaimKey],
        now: Timestamp,
    ) -> Option<Result<Vec<Option<Arc<str>>>, Error>> {
        if keys.len() > CLAIMS_MAX {
            return None;
        }
        let shared = self.idle()?;
        let committer = shared.as_ref().filter(|it| it.last.took < COMMIT_MAX)?;
        let queries = Queries::on(committer.writer.connection());
        let held = |key| queries.held_claim(key, now).map_err(|e| of_read(&e, 0));
        Some(keys.iter().map(held).collect())
    }

    /// The committer, if nothing is queued for it and this thread may wait.
    fn idle(&self) -> Option<MutexGuard<'_, Option<Committer>>> {
        if self.has_queued() || !may_wait() {
            return None;
        }
        let shared = self.committer.try_lock().ok()?;
        // What was sent before the lock was taken has been counted.
        (!self.has_queued()).then_some(shared)
    }

    fn has_queued(&self) -> bool {
        self.queued.load(Ordering::Acquire) > 0
    }
}

impl Committer {
    /// Whether the last commit was of one write, and fast, and the WAL was looked at lately.
    fn is_alone_and_fast(&self) -> bool {
        let last = &self.last;
        last.writes == 1 && last.took < COMMIT_MAX && last.unattended < UNATTENDED_MAX
    }
}

/// Not in a runtime whose only thread also is that of its caller.
fn may_wait() -> bool {
    Handle::try_current().is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread)
}
