//! Streams of a task: first a snapshot, then its updates, each with the cursor after it.

use super::mapping::modes;
use super::mapping::views::{self, Named};
use crate::application::api::runs::{
    RunChange, RunItem, RunPlace, RunStage, RunUpdate, RunUpdates, WatchedRun,
};
use futures_util::stream::unfold;
use std::time::Duration;
use taskledger_a2a::{Error, ErrorKind, StreamResponse};
use taskledger_domain::RunId;
use tokio::time::sleep;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

/// Pause after the log could not be read.
const PAUSE: Duration = Duration::from_secs(1);
/// Failures to read the log, one after the other, after which the stream ends; its client comes back.
const FAILURES_MAX: u32 = 30;
/// What a client is told to wait then, in milliseconds.
const RETRY_MS: u64 = 1000;

/// A run that is followed, or the only item of a stream.
pub(in super::super) struct Followed {
    first: Option<(Option<RunPlace>, StreamResponse)>,
    /// The first item says that nothing follows.
    is_over: bool,
    updates: Option<(RunUpdates, Named)>,
    failures: u32,
    /// Results are told as texts.
    in_text: bool,
}

/// What a stream tells.
pub(in super::super) enum StreamEvent {
    /// Something, and from where a stream goes on that comes after this one.
    Item(Option<RunPlace>, Box<StreamResponse>),
    /// Nothing has happened for a while.
    Silence,
    /// The stream ends with this.
    Failed(Error),
}

impl Followed {
    /// A stream of one item.
    pub(super) fn only(item: StreamResponse) -> Self {
        Self {
            first: Some((None, item)),
            is_over: false,
            updates: None,
            failures: 0,
            in_text: false,
        }
    }

    /// The stream of a run.
    pub(super) fn of(run: RunId, watched: WatchedRun) -> Self {
        let named = Named::of(run, watched.context);
        let is_over = |stage: RunStage| stage.is_end();
        let cursor = watched.cursor;
        let (first, is_over) = match watched.snapshot {
            Some(view) => {
                let is_over = is_over(view.status.stage);
                let item = StreamResponse::Task(super::mapping::bounds::whole(*view));
                (Some((Some(cursor), item)), is_over)
            }
            None => (None, false),
        };
        Self {
            first,
            is_over,
            updates: Some((watched.updates, named)),
            failures: 0,
            in_text: false,
        }
    }

    /// The same with results as texts, if that is wanted.
    pub(super) const fn in_text(mut self, is_wanted: bool) -> Self {
        self.in_text = is_wanted;
        self
    }

    /// Whether the run had ended when the stream began.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// What it tells, until it ends or is told to.
    pub(in super::super) fn told(
        self,
        ending: CancellationToken,
    ) -> impl Stream<Item = StreamEvent> + Send + 'static {
        unfold(Some(self), move |followed| {
            let ending = ending.clone();
            async move {
                let mut followed = followed?;
                let told = tokio::select! {
                    biased;
                    () = ending.cancelled() => Some(StreamEvent::Failed(cut_off())),
                    told = followed.next() => told,
                }?;
                let goes_on = !matches!(told, StreamEvent::Failed(_));
                Some((told, goes_on.then_some(followed)))
            }
        })
    }

    async fn next(&mut self) -> Option<StreamEvent> {
        let mut told = self.next_told().await?;
        if let (true, StreamEvent::Item(_, item)) = (self.in_text, &mut told) {
            modes::item_as_text(item);
        }
        Some(told)
    }

    async fn next_told(&mut self) -> Option<StreamEvent> {
        if let Some((cursor, item)) = self.first.take() {
            return Some(StreamEvent::Item(cursor, Box::new(item)));
        }
        let (updates, named) = self.updates.as_mut()?;
        loop {
            match updates.next().await? {
                Ok(RunItem::Update(update)) => {
                    self.failures = 0;
                    let (cursor, item) = told(*update, named);
                    return Some(StreamEvent::Item(Some(cursor), Box::new(item)));
                }
                Ok(RunItem::Silence) => return Some(StreamEvent::Silence),
                Ok(RunItem::Reset(_)) => {
                    let reason =
                        "what comes is not all that was; read the task, then subscribe again";
                    let error = Error::new(ErrorKind::Unavailable, reason);
                    return Some(StreamEvent::Failed(error.after(RETRY_MS)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a stream waits for the log");
                    self.failures += 1;
                    if self.failures >= FAILURES_MAX {
                        let reason = "the log cannot be read";
                        let error = Error::new(ErrorKind::Unavailable, reason);
                        return Some(StreamEvent::Failed(error.after(RETRY_MS)));
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Without it a client would take a task that goes on for one that has ended.
fn cut_off() -> Error {
    let reason = "the server stops, or the credentials have expired; the task continues: subscribe to it again";
    Error::new(ErrorKind::Unavailable, reason).after(RETRY_MS)
}

fn told(update: RunUpdate, named: &Named) -> (RunPlace, StreamResponse) {
    let item = match update.change {
        RunChange::Status(status) => views::status_update(status, named),
        RunChange::Artifact(piece) => views::artifact_update(piece, named),
        RunChange::Node(node) => views::node_update(&node, update.at, named),
    };
    (update.cursor, item)
}
