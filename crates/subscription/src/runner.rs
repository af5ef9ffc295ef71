//! Keeps the read models up to date with the log.
//!
//! Owns: the loop that reads a page, folds it and publishes how far it is. Transient errors
//! are retried for ever with growing pauses. A flow with an event that cannot be read or folded is folded no further,
//! and named; all other flows go on.
//!
//! Of several servers on one database one folds at a time; somebody else decides which. The others
//! follow what it has done.

mod beside;
mod damaged;
mod options;
mod readers;

pub(crate) use damaged::damaged_flows;
pub use options::{Gather, Options};

use super::feed::Feed;
use damaged::name_new;
use futures_util::StreamExt;
use readers::Readers;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Position;
use taskledger_log::{EventStore, Page};
use taskledger_projections::TaskProjector;
use taskledger_projections::{self as projections, Error as ReadError, Projector, ReadModels};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often a server that does not fold asks how far the rows are, while somebody waits for them.
const ASK_WHEN_WANTED: Duration = Duration::from_millis(50);
/// How often it asks when nobody waits. Between, it is woken by whoever folds.
const ASK_WHEN_IDLE: Duration = Duration::from_secs(1);

/// The state of the projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It follows the log.
    Running,
    /// It fills empty rows, beside those that serve.
    Filling {
        /// Up to here.
        position: Position,
        /// The end of the log when it began, or further.
        of: Position,
    },
    /// The last try failed; it tries again.
    Retrying {
        /// The error of the last try, in words for people.
        reason: Arc<str>,
    },
    /// It has stopped before an event that it cannot fold, because too many flows are damaged.
    Failed {
        /// Position of the event that cannot be folded.
        position: Position,
        /// Why the event cannot be folded, in words for people.
        reason: Arc<str>,
    },
}

/// The read models have not come as far as was asked for in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the read models are at position {checkpoint}, {wanted} is wanted")]
pub struct Lagging {
    /// Where they are.
    pub checkpoint: Position,
    /// What was asked for.
    pub wanted: Position,
    /// True: waiting longer does not help, the projection of this server has stopped. Of another
    /// server that folds, nobody is told here that it has.
    pub stopped: bool,
}

/// Drives the read models.
pub struct Service {
    store: Arc<dyn EventStore>,
    read_models: Arc<ReadModels>,
    options: Options,
    checkpoint: watch::Sender<Position>,
    state: watch::Sender<State>,
    wanted: watch::Receiver<Position>,
    /// Whether this server is the one that folds.
    folds: watch::Receiver<bool>,
    /// The end of the log when the server started.
    first: Position,
}

/// A handle by which other parts observe the projection. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    fill_from: Position,
    /// The end of the log when the server started.
    first: Position,
    checkpoint: watch::Receiver<Position>,
    state: watch::Receiver<State>,
    head: watch::Receiver<Position>,
    /// The furthest position that a reader waits for, or has waited for.
    wanted: Arc<watch::Sender<Position>>,
}

/// How a batch ended.
enum Step {
    Done,
    Again(String),
    Stop(Position, String),
}

impl Service {
    /// A runner that stands where the read models are.
    ///
    /// # Errors
    /// The read models cannot be read.
    pub async fn new(
        store: Arc<dyn EventStore>,
        read_models: Arc<ReadModels>,
        options: Options,
    ) -> Result<(Self, Handle), ReadError> {
        let position = match read_models.checkpoint().await {
            // Nothing of this version is there yet.
            Err(ReadError::OtherVersion { .. }) => 0,
            // Of another log: they are about to be emptied.
            Ok(position) if position > *store.watch().borrow() => 0,
            other => other?,
        };
        let (checkpoint, checkpoint_seen) = watch::channel(position);
        let of = *store.watch().borrow();
        let state = if position == 0 && of >= options.fill_from {
            State::Filling { position, of }
        } else {
            State::Running
        };
        let (state, state_seen) = watch::channel(state);
        let (wanted, wanted_seen) = watch::channel(0);
        let handle = Handle {
            fill_from: options.fill_from,
            first: of,
            checkpoint: checkpoint_seen,
            state: state_seen,
            head: store.watch(),
            wanted: Arc::new(wanted),
        };
        let service = Self {
            store,
            read_models,
            options,
            checkpoint,
            state,
            wanted: wanted_seen,
            folds: watch::channel(true).1,
            first: of,
        };
        Ok((service, handle))
    }

    /// A runner that folds only while `folds` is true, and else follows what another server folds.
    /// When it turns true, the runner goes on from the stored checkpoint with nothing in memory; when
    /// it turns false, it stops behind the batch that is under way.
    #[must_use]
    pub fn folding_while(mut self, folds: watch::Receiver<bool>) -> Self {
        self.folds = folds;
        self
    }

    /// Follows the log until `stop`, or until an event cannot be folded (then it waits for `stop`
    /// in [`State::Failed`]). A batch that is under way when `stop` comes is finished.
    pub async fn run(self, stop: CancellationToken) {
        let mut feed = Feed::new(Arc::clone(&self.store), 0);
        let mut pause = self.options.retry_first;
        let mut started = false;
        let mut readers = Readers::default();
        loop {
            if !*self.folds.borrow() {
                self.follow_others(&stop).await;
                started = false;
                pause = self.options.retry_first;
                self.read_models.forget().await;
            }
            if stop.is_cancelled() {
                return;
            }
            let step = if started {
                self.follow(&mut feed, &mut readers, &stop).await
            } else {
                let mut folds = self.folds.clone();
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    // Whoever folds now begins anew what breaks off here.
                    Ok(_) = folds.wait_for(|folds| !folds) => continue,
                    step = self.start(&mut feed) => step,
                }
            };
            if stop.is_cancelled() {
                return;
            }
            match step {
                // Finding the place again does not yet prove that it works again.
                Step::Done if !started => started = true,
                Step::Done => {
                    pause = self.options.retry_first;
                    self.show(State::Running);
                }
                Step::Again(reason) => {
                    tracing::warn!(
                        position = feed.position(),
                        reason,
                        "the read models could not be updated, trying again"
                    );
                    self.show(State::Retrying {
                        reason: reason.into(),
                    });
                    // What was read but not folded is read again.
                    started = false;
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = (pause * 2).min(self.options.retry_max);
                }
                Step::Stop(position, reason) => {
                    tracing::error!(
                        position,
                        reason,
                        "the read models have stopped before an event that cannot be projected"
                    );
                    self.show(State::Failed {
                        position,
                        reason: reason.into(),
                    });
                    let mut folds = self.folds.clone();
                    tokio::select! {
                        () = stop.cancelled() => return,
                        Ok(_) = folds.wait_for(|folds| !folds) => started = false,
                    }
                }
            }
        }
    }

    /// Finds the position to continue from. Rows that are ahead of the log may be the last copy of what it has lost,
    /// so they stay, and nothing is folded until the log has caught up: a server that starts refuses such a log.
    async fn start(&self, feed: &mut Feed) -> Step {
        let mut position = match self.read_models.checkpoint().await {
            Ok(position) => position,
            // Rows of a newer version are for newer servers; replacing them would set off a contest.
            // Version 1 is the first, so nobody meets newer ones yet. When it is raised: this server
            // keeps the right to fold while it can do nothing with it, so either the old servers are
            // stopped before the first new one starts, or the right must be given back here.
            Err(ReadError::OtherVersion { found }) if found < TaskProjector::VERSION => {
                return self.replace(found).await;
            }
            Err(error) => return unfolded(&error),
        };
        let head = match self.store.head().await {
            Ok(head) => head,
            Err(error) => return unread(&error),
        };
        if position > head {
            return Step::Again(format!(
                "the log ends at position {head}, but the read models contain events up to position {position}"
            ));
        }
        if position == 0 && head >= self.options.fill_from {
            match self.fill(head).await {
                Ok(filled) => position = filled,
                Err(step) => return step,
            }
        }
        if let Err(error) = self.read_models.read_damaged_flows().await {
            return unfolded(&error);
        }
        feed.seek(position);
        self.checkpoint.send_replace(position);
        Step::Done
    }

    /// Shows how far somebody else has folded, until this server folds or `stop`.
    async fn follow_others(&self, stop: &CancellationToken) {
        // One wait goes on over all turns of the loop: listening takes longer to begin than a turn.
        let elsewhere = self.read_models.elsewhere();
        let changes = futures_util::stream::unfold(elsewhere, |mut elsewhere| async {
            elsewhere.changed().await;
            Some(((), elsewhere))
        });
        let mut changes = std::pin::pin!(changes);
        let (mut folds, mut wanted) = (self.folds.clone(), self.wanted.clone());
        loop {
            let now = *wanted.borrow_and_update();
            match self.read_models.checkpoint().await {
                Ok(position) => {
                    if self.reached(position)
                        && let Err(error) = self.read_models.read_damaged_flows().await
                    {
                        tracing::debug!(%error, "the damaged flows could not be read");
                    }
                    self.show(State::Running);
                }
                Err(error) => {
                    let reason = projections::with_sources(&error).into();
                    self.show(State::Retrying { reason });
                }
            }
            let waited_for = now > *self.checkpoint.borrow();
            let pause = if waited_for {
                ASK_WHEN_WANTED
            } else {
                ASK_WHEN_IDLE
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(_) = folds.wait_for(|folds| *folds) => return,
                Some(()) = changes.next() => {}
                Ok(()) = wanted.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Whether it had not been reached before.
    fn reached(&self, position: Position) -> bool {
        self.checkpoint.send_if_modified(|shown| {
            let moved = *shown != position;
            *shown = position;
            moved
        })
    }

    async fn follow(
        &self,
        feed: &mut Feed,
        readers: &mut Readers,
        stop: &CancellationToken,
    ) -> Step {
        let mut folds = self.folds.clone();
        let next = tokio::select! {
            () = stop.cancelled() => return Step::Done,
            Ok(_) = folds.wait_for(|folds| !folds) => return Step::Done,
            next = async {
                self.gather(feed.position(), readers).await;
                feed.next_page().await
            } => next,
        };
        match next {
            Ok(page) => self.fold(page).await,
            Err(error) => unread(&error),
        }
    }

    /// Waits until there is something behind `position` and it is time to fold it. Up to where the log ended at the
    /// start that is at once: until then the server is not ready.
    async fn gather(&self, position: Position, readers: &mut Readers) {
        if position < self.first {
            return;
        }
        let (mut head, mut wanted) = (self.store.watch(), self.wanted.clone());
        if head.wait_for(|at| *at > position).await.is_err() {
            return;
        }
        readers.note(*wanted.borrow());
        let gather = self.options.gather_after(readers.away());
        tokio::select! {
            biased;
            Ok(wanted) = wanted.wait_for(|at| *at > position) => readers.note(*wanted),
            _ = head.wait_for(|at| *at >= position + gather.events) => {}
            () = tokio::time::sleep(gather.within) => {}
        }
    }

    async fn fold(&self, page: Page) -> Step {
        let before = self.read_models.damaged_flows();
        let damaged = damaged_flows(&page.damaged);
        let folded = self.read_models.apply_page(page.events, damaged, page.next);
        let folded = folded.await;
        name_new(&before, &self.read_models.damaged_flows());
        match folded {
            Ok(position) => {
                self.checkpoint.send_replace(position);
                Step::Done
            }
            Err(error) => {
                if let Ok(position) = self.read_models.checkpoint().await {
                    self.checkpoint.send_replace(position);
                }
                unfolded(&error)
            }
        }
    }

    fn show(&self, state: State) {
        self.state.send_if_modified(|shown| {
            let changed = *shown != state;
            *shown = state;
            changed
        });
    }
}

fn unread(error: &taskledger_log::Error) -> Step {
    match error {
        taskledger_log::Error::Corrupt { position, .. } => Step::Stop(*position, error.to_string()),
        taskledger_log::Error::Unavailable(_)
        | taskledger_log::Error::NotWritable(_)
        | taskledger_log::Error::Invalid(_) => Step::Again(error.to_string()),
    }
}

fn unfolded(error: &ReadError) -> Step {
    match error {
        ReadError::Poison { position, reason } => Step::Stop(*position, reason.clone()),
        ReadError::Unavailable(source) => Step::Again(format!("{error}: {source}")),
        ReadError::Sqlite(source) => Step::Again(format!("{error}: {source}")),
        ReadError::Migration(source) => Step::Again(format!("{error}: {source}")),
        ReadError::File { source, .. } => Step::Again(format!("{error}: {source}")),
        ReadError::CheckpointMoved { .. }
        | ReadError::Damaged(_)
        | ReadError::Place(_)
        | ReadError::OtherVersion { .. }
        | ReadError::RebuildUnderWay
        | ReadError::InUse
        | ReadError::BadCursor => Step::Again(error.to_string()),
    }
}

impl Handle {
    /// Position of the last event that the rows contain.
    #[must_use]
    pub fn checkpoint(&self) -> Position {
        *self.checkpoint.borrow()
    }

    /// Whether the rows are empty behind a long log: what they say is not even old.
    #[must_use]
    pub fn is_unfilled(&self) -> bool {
        self.checkpoint() == 0 && *self.head.borrow() >= self.fill_from
    }

    /// Where the log ended when the server started, until the rows contain everything up to there: before that, reads
    /// wait in vain.
    #[must_use]
    pub fn catching_up_to(&self) -> Option<Position> {
        (self.checkpoint() < self.first).then_some(self.first)
    }

    /// How the projection stands.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Events between the rows and the end of the log as this process knows it.
    #[must_use]
    pub fn lag(&self) -> u64 {
        let head = *self.head.borrow();
        head.saturating_sub(self.checkpoint())
    }

    /// Waits until the rows contain the event at `position`. Cost: O(1) when they do already.
    ///
    /// # Errors
    /// [`Lagging`] after `timeout`, or at once when the projection has stopped before it.
    pub async fn wait_for(&self, position: Position, timeout: Duration) -> Result<(), Lagging> {
        if self.checkpoint() >= position {
            return Ok(());
        }
        self.wanted.send_if_modified(|wanted| {
            let further = position > *wanted;
            *wanted = position.max(*wanted);
            further
        });
        let mut checkpoint = self.checkpoint.clone();
        let mut state = self.state.clone();
        let failed = |state: &State| matches!(state, State::Failed { .. });
        let reached = async {
            tokio::select! {
                biased;
                reached = checkpoint.wait_for(|&p| p >= position) => reached.is_ok(),
                _ = state.wait_for(failed) => false,
            }
        };
        let outcome = tokio::time::timeout(timeout, reached).await;
        // A stop that came together with the last rows does not make them stale.
        let now = self.checkpoint();
        if now >= position {
            return Ok(());
        }
        Err(Lagging {
            checkpoint: now,
            wanted: position,
            stopped: outcome.is_ok(),
        })
    }
}
