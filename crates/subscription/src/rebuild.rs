//! Rebuilds the read models from the log, beside the rows that serve.
//!
//! Owns the one rebuild that a server may have under way ([`Rebuilds`]), its progress and its end.

use super::feed::Feed;
use super::runner::damaged_flows;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Position;
use taskledger_log::{EventStore, Page};
use taskledger_projections::{Error as ReadError, ReadModels, Rebuild, Swap, with_sources};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Events in one batch of a rebuild beside the serving rows: nobody waits for them, and a task whose
/// start and end are in the batch of its creation is written once. As many as a page of the log has.
const BATCH_EVENTS: usize = 10_000;
/// Pause before the next try to swap, when somebody was reading.
const SWAP_PAUSE: Duration = Duration::from_millis(250);
/// Tries to swap: with [`SWAP_PAUSE`] some five minutes, more than the longest answers take.
const SWAP_TRIES_MAX: u32 = 1200;
/// Tries without a pause, as long as the serving rows are ahead each time.
const HURRIED_TRIES: u32 = 50;

/// Why a rebuild stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log could not be read.
    #[error("the log cannot be read")]
    Store(#[from] taskledger_log::Error),
    /// The rows could not be written, or an event cannot be projected.
    #[error("the read models cannot be written")]
    ReadModels(#[from] ReadError),
    /// There was no moment without readers, or the serving rows are ahead of the log.
    #[error("the new read models could not take the place of the old ones, which are at {0:?}")]
    NotSwapped(Swap),
}

/// Folds the whole log into rows beside those that serve, and puts them in their place; meanwhile
/// the old ones serve and are folded. `progress` is told, after each batch, the position reached and
/// the position of the last event when the rebuild began. A rebuild that is broken off, at whatever
/// moment, leaves the old rows or the new ones. Returns the position reached, which is at least that
/// of the last event when it began. Cost: O(log).
///
/// # Errors
/// [`Error`]; the old rows go on serving. Repeating starts from the beginning.
pub async fn beside(
    store: Arc<dyn EventStore>,
    read_models: &Arc<ReadModels>,
    progress: impl FnMut(Position, Position) + Send,
) -> Result<Position, Error> {
    let rebuild = read_models.begin_rebuild().await?;
    carry_out(rebuild, store, read_models, progress).await
}

async fn carry_out(
    mut rebuild: Rebuild,
    store: Arc<dyn EventStore>,
    read_models: &ReadModels,
    progress: impl FnMut(Position, Position) + Send,
) -> Result<Position, Error> {
    let done = fold_and_swap(&mut rebuild, store, read_models, progress).await;
    if done.is_err() {
        rebuild.abandon().await;
    }
    done
}

async fn fold_and_swap(
    rebuild: &mut Rebuild,
    store: Arc<dyn EventStore>,
    read_models: &ReadModels,
    mut progress: impl FnMut(Position, Position) + Send,
) -> Result<Position, Error> {
    let head = store.head().await?;
    let mut feed = Feed::new(store.clone(), 0).in_batches_of(BATCH_EVENTS);
    let (mut reached, mut tries) = (0, 0);
    let mut page = feed.ready_page().await?;
    loop {
        while let Some(Page {
            events,
            damaged,
            next: to,
            ..
        }) = page
        {
            let damaged = damaged_flows(&damaged);
            // The next page is read and decoded while this one is folded.
            let (folded, next) =
                tokio::join!(rebuild.apply_page(events, damaged, to), feed.ready_page());
            (reached, page) = (folded?, next?);
            progress(reached, head.max(reached));
            // Where others append all the time, the end of the log may never be seen.
            let enough = head.max(read_models.checkpoint().await.unwrap_or(Position::MAX));
            if reached >= enough {
                break;
            }
        }
        let swapped = rebuild.swap().await?;
        if swapped == Swap::Done {
            // Else the next page that is folded shows them.
            let _ = read_models.read_damaged_flows().await;
            return Ok(reached);
        }
        tries += 1;
        // Rows of events that the log does not have: no event will ever bring these as far.
        let ahead = matches!(swapped, Swap::Behind(at) if at > store.head().await?);
        if ahead || tries == SWAP_TRIES_MAX {
            return Err(Error::NotSwapped(swapped));
        }
        // Whoever is behind hurries: a pause would leave it behind again.
        if swapped == Swap::InUse || tries % HURRIED_TRIES == 0 {
            tokio::time::sleep(SWAP_PAUSE).await;
        }
        if page.is_none() {
            page = feed.ready_page().await?;
        }
    }
}

/// The state of this server's last rebuild.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It folds.
    Running {
        /// Up to here.
        position: Position,
        /// The end of the log when it began, or further.
        of: Position,
    },
    /// The new rows serve.
    Done {
        /// They contained the log up to here.
        position: Position,
    },
    /// The old rows serve on; unless the connection broke behind the swap, of which nobody here knows:
    /// then the new ones do. Either rows are whole.
    Failed {
        /// The error, in words for people.
        reason: Arc<str>,
    },
}

/// Rebuilds beside the serving rows, one at a time. One per server.
#[derive(Debug)]
pub struct Rebuilds {
    store: Arc<dyn EventStore>,
    read_models: Arc<ReadModels>,
    status: watch::Sender<Option<Status>>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Rebuilds {
    /// None is under way.
    #[must_use]
    pub fn new(store: Arc<dyn EventStore>, read_models: Arc<ReadModels>) -> Self {
        Self {
            store,
            read_models,
            status: watch::channel(None).0,
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Begins one and returns at once, with the position of the last event so far.
    ///
    /// # Errors
    /// [`ReadError::RebuildUnderWay`] inside [`Error::ReadModels`]: here or on another server.
    pub async fn start(&self) -> Result<Position, Error> {
        let head = self.store.head().await?;
        let rebuild = self.read_models.begin_rebuild().await?;
        self.status.send_replace(Some(Status::Running {
            position: 0,
            of: head,
        }));
        let (store, models) = (self.store.clone(), self.read_models.clone());
        let (status, stop) = (self.status.clone(), self.stop.clone());
        self.tracker.spawn(async move {
            let progress = |position, of| {
                status.send_replace(Some(Status::Running { position, of }));
            };
            let done = tokio::select! {
                // What it leaves is removed by the next one.
                () = stop.cancelled() => return,
                done = carry_out(rebuild, store, &models, progress) => done,
            };
            status.send_replace(Some(match done {
                Ok(position) => {
                    tracing::info!(position, "the read models were rebuilt and serve");
                    Status::Done { position }
                }
                Err(error) => {
                    let reason = with_sources(&error);
                    tracing::error!(reason, "the read models could not be rebuilt");
                    Status::Failed {
                        reason: reason.into(),
                    }
                }
            }));
        });
        Ok(head)
    }

    /// How the last one stands; `None` when there was none since the start.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        self.status.borrow().clone()
    }

    /// Breaks off what is under way and waits for its end.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
