//! Drives the read models along the log: reads, applies, tells how far it is.
//!
//! A fault that passes is tried again with growing pauses. An event that cannot be projected stops
//! the projection at its position: it is never skipped, and health says so.

use super::feed::Feed;
use crate::store::{self, EventStore};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{Position, Recorded};
use taskledger_projections::{Error, ReadModels};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How the runner works.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Events in one transaction.
    pub batch_len: usize,
    /// The first pause after a fault; it doubles.
    pub retry_after: Duration,
    /// The longest pause after a fault.
    pub retry_after_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { batch_len: 2000, retry_after: Duration::from_millis(50), retry_after_max: Duration::from_secs(5) }
    }
}

/// How the projection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It follows the log.
    Running,
    /// It waits before trying again.
    Retrying {
        /// What went wrong.
        reason: String,
    },
    /// It has stopped before this event and needs a mended program, then a restart.
    Failed {
        /// The event.
        position: Position,
        /// Why.
        reason: String,
    },
}

/// The read models did not reach a position in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the read models are at {checkpoint}, {position} was awaited")]
pub struct Lagging {
    /// Where they are.
    pub checkpoint: Position,
    /// What was awaited.
    pub position: Position,
}

/// What others may know of the projection. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    checkpoint: watch::Receiver<Position>,
    state: watch::Receiver<State>,
}

impl Handle {
    /// Position of the last event that queries see.
    #[must_use]
    pub fn checkpoint(&self) -> Position {
        *self.checkpoint.borrow()
    }

    /// How it stands.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits until queries see `position`.
    ///
    /// # Errors
    /// [`Lagging`]: not within `patience`.
    pub async fn wait_for(&self, position: Position, patience: Duration) -> Result<(), Lagging> {
        let mut checkpoint = self.checkpoint.clone();
        match tokio::time::timeout(patience, checkpoint.wait_for(|at| *at >= position)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Lagging { checkpoint: self.checkpoint(), position }),
        }
    }
}

/// See the module.
pub struct Service {
    feed: Feed,
    models: Arc<ReadModels>,
    options: Options,
    checkpoint: watch::Sender<Position>,
    state: watch::Sender<State>,
}

impl Service {
    /// A runner from where the read models are. Read models that are ahead of the log (a restored
    /// backup) are emptied and built again.
    ///
    /// # Errors
    /// [`Error`]: the read models do not answer.
    pub async fn new(
        store: Arc<dyn EventStore>,
        models: Arc<ReadModels>,
        options: Options,
    ) -> Result<(Self, Handle), Error> {
        let mut at = models.checkpoint().await?;
        let head = *store.watch().borrow();
        if at > head {
            tracing::warn!(checkpoint = at, head, "the read models are ahead of the log; they are built again");
            models.clear().await?;
            at = 0;
        }
        let (checkpoint, checkpoint_seen) = watch::channel(at);
        let (state, state_seen) = watch::channel(State::Running);
        let feed = Feed::new(store, at, options.batch_len);
        let handle = Handle { checkpoint: checkpoint_seen, state: state_seen };
        Ok((Self { feed, models, options, checkpoint, state }, handle))
    }

    /// Follows the log until cancelled or stopped by an event that cannot be projected.
    pub async fn run(mut self, cancel: CancellationToken) {
        let mut pause = self.options.retry_after;
        loop {
            let before = self.feed.position();
            let events = tokio::select! {
                () = cancel.cancelled() => return,
                events = self.feed.next() => events,
            };
            let reason = match events {
                Ok(events) => match self.apply(&events).await {
                    Ok(()) => {
                        pause = self.options.retry_after;
                        continue;
                    }
                    Err(Error::Poison { position, reason }) => return self.fail(position, reason),
                    Err(error) => error.to_string(),
                },
                Err(store::Error::Corrupt { position, reason }) => return self.fail(position, reason),
                Err(error) => error.to_string(),
            };
            tracing::warn!(position = before, error = %reason, "the read models were not moved on; trying again");
            self.state.send_replace(State::Retrying { reason });
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(self.options.retry_after_max);
            // Whoever moved the checkpoint: the table knows where to go on.
            self.feed.seek(self.models.checkpoint().await.unwrap_or(before));
        }
    }

    async fn apply(&self, events: &[Arc<Recorded>]) -> Result<(), Error> {
        let position = self.models.apply(events).await?;
        self.checkpoint.send_replace(position);
        self.state.send_if_modified(|state| {
            let changed = *state != State::Running;
            *state = State::Running;
            changed
        });
        Ok(())
    }

    fn fail(&self, position: Position, reason: String) {
        tracing::error!(position, reason, "the projection has stopped at an event");
        self.checkpoint.send_replace(position.saturating_sub(1).max(*self.checkpoint.borrow()));
        self.state.send_replace(State::Failed { position, reason });
    }
}

/// Empties the read models and builds them from the log, as far as it reaches now. `progress` is
/// told positions. Offline: nobody else may feed them meanwhile.
///
/// # Errors
/// A fault of the log or of the read models, as text.
pub async fn rebuild(
    store: Arc<dyn EventStore>,
    models: &ReadModels,
    mut progress: impl FnMut(Position, Position),
) -> Result<Position, String> {
    models.clear().await.map_err(|e| e.to_string())?;
    let head = store.head().await.map_err(|e| e.to_string())?;
    let mut at = 0;
    while at < head {
        let page = store.read_all(at, Options::default().batch_len).await.map_err(|e| e.to_string())?;
        at = models.apply(&page.events).await.map_err(|e| e.to_string())?;
        progress(at, head);
    }
    Ok(at)
}
