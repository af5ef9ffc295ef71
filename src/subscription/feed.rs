//! The log from a position on: history first, then whatever is committed, without a seam.

use crate::store::{Error, EventStore};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{Position, Recorded};
use tokio::sync::watch;

/// The longest that a lost wake-up delays a reader: reading is the truth, waking only saves time.
const POLL: Duration = Duration::from_secs(1);

/// One reader's place in the log.
#[derive(Debug)]
pub struct Feed {
    store: Arc<dyn EventStore>,
    head: watch::Receiver<Position>,
    after: Position,
    batch_len: usize,
}

impl Feed {
    /// A reader that has seen everything up to `after` and takes at most `batch_len` events at once.
    #[must_use]
    pub fn new(store: Arc<dyn EventStore>, after: Position, batch_len: usize) -> Self {
        let head = store.watch();
        Self { store, head, after, batch_len }
    }

    /// Position of the last event that was given out.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.after
    }

    /// Goes back, or forward, to right after this position.
    pub fn seek(&mut self, after: Position) {
        self.after = after;
    }

    /// The next events, at least one; waits for them. Cancel-safe: nothing is skipped.
    ///
    /// # Errors
    /// [`Error`]; the place is kept.
    pub async fn next(&mut self) -> Result<Vec<Arc<Recorded>>, Error> {
        loop {
            // Marked as seen before reading, so that a commit during the read wakes the next wait.
            let head = *self.head.borrow_and_update();
            if head > self.after {
                let page = self.store.read_all(self.after, self.batch_len).await?;
                if !page.events.is_empty() {
                    self.after = page.next;
                    return Ok(page.events);
                }
            }
            if let Ok(Err(_)) = tokio::time::timeout(POLL, self.head.changed()).await {
                return Err(Error::Unavailable("the log is closed".to_owned()));
            }
        }
    }
}
