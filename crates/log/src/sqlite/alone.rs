//! An append that nothing else waits beside, committed on the thread that brings it.
//!
//! To the committer's thread and back are two wake-ups of a thread, as long as half a sync. With nothing to be committed
//! together, they are saved. What must hold: nothing that was sent to the queue before is overtaken; the thread waits for
//! a disk that is fast, while another thread of the runtime goes on.

use super::SqliteStore;
use super::committer::{Committer, Write};
use crate::{Append, Error, Outcome};
use std::sync::TryLockError;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Threads of a runtime of which one may wait for the disk.
const THREADS_MIN: usize = 2;
/// The longest commit after which the next one may be waited for: what else the thread would have done waits too.
const COMMIT_MAX: Duration = Duration::from_millis(1);

impl SqliteStore {
    /// Commits an append, if nothing else is to be committed and it will not take long; else gives it back.
    pub(super) fn alone(&self, append: Append) -> Result<Result<Outcome, Error>, Box<Append>> {
        let append = Box::new(append);
        if self.has_queued() || !may_wait() {
            return Err(append);
        }
        let mut shared = match self.committer.try_lock() {
            Ok(shared) => shared,
            Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => return Err(append),
        };
        let Some(committer) = shared.as_mut() else {
            return Err(append);
        };
        // What was sent before the lock was taken has been counted.
        if self.has_queued() || !committer.is_alone_and_fast() {
            return Err(append);
        }
        let (reply, mut answer) = oneshot::channel();
        let written = committer.commit(vec![Write::Append(append, reply)], Vec::new());
        if written.is_err() {
            shared.take();
        }
        Ok(answer.try_recv().unwrap_or(Ok(Outcome::Unknown)))
    }

    fn has_queued(&self) -> bool {
        self.queued.load(Ordering::Acquire) > 0
    }
}

impl Committer {
    /// Whether the last commit was of one write, and fast.
    fn is_alone_and_fast(&self) -> bool {
        self.last.writes == 1 && self.last.took < COMMIT_MAX
    }
}

fn may_wait() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_workers() >= THREADS_MIN)
}
