//! Reads the log from a position on: first stored events, then new ones.

use std::sync::Arc;
use taskledger_domain::flow::{Event, Specification};
use taskledger_domain::{Payload, Position, Recorded};
use taskledger_log::{Error, EventStore, Page};
use tokio::sync::watch;

/// Events in one batch: enough to share the cost of a transaction, few enough to keep memory and
/// the wait of a query small.
pub const BATCH_EVENTS_MAX: usize = 2048;
/// Bytes of payloads that a batch aims at. Events of a megabyte exist; batches shrink to them.
pub const BATCH_BYTES_AIM: usize = 8 * 1024 * 1024;

/// Reads the log in order, batch by batch. Each reader has a feed of its own.
pub struct Feed {
    store: Arc<dyn EventStore>,
    head: watch::Receiver<Position>,
    after: Position,
    /// Events to ask for next, and at most.
    limit: usize,
    limit_max: usize,
}

impl Feed {
    /// A feed of the events above `after`.
    #[must_use]
    pub fn new(store: Arc<dyn EventStore>, after: Position) -> Self {
        let head = store.watch();
        Self {
            store,
            head,
            after,
            limit: BATCH_EVENTS_MAX,
            limit_max: BATCH_EVENTS_MAX,
        }
    }

    /// The same with other batches, for whoever has nobody waiting.
    #[must_use]
    pub const fn in_batches_of(mut self, events: usize) -> Self {
        (self.limit, self.limit_max) = (events, events);
        self
    }

    /// Position of the last event that was handed out.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.after
    }

    /// Goes on behind `after` instead.
    pub const fn seek(&mut self, after: Position) {
        self.after = after;
    }

    /// The next events, at least one; waits until there are some. Damaged events are stepped over. Dropping the future
    /// loses nothing. Cost: O(events).
    ///
    /// # Errors
    /// Those of [`EventStore::read_all`]; asking again reads from the same place.
    pub async fn next(&mut self) -> Result<Vec<Arc<Recorded>>, Error> {
        loop {
            let page = self.next_page().await?;
            if !page.events.is_empty() {
                return Ok(page.events);
            }
        }
    }

    /// The next events if there are any now; `None` at the end of the log. Damaged events are stepped over.
    ///
    /// # Errors
    /// Those of [`EventStore::read_all`].
    pub async fn ready(&mut self) -> Result<Option<Vec<Arc<Recorded>>>, Error> {
        while let Some(page) = self.ready_page().await? {
            if !page.events.is_empty() {
                return Ok(Some(page.events));
            }
        }
        Ok(None)
    }

    /// The next page: events, damaged events, or both. Waits as [`Self::next`] does.
    ///
    /// # Errors
    /// Those of [`EventStore::read_all`]; asking again reads from the same place.
    pub async fn next_page(&mut self) -> Result<Page, Error> {
        loop {
            // Marked as seen before reading: a commit after this line wakes the wait below.
            self.head.borrow_and_update();
            if let Some(page) = self.ready_page().await? {
                return Ok(page);
            }
            if self.head.changed().await.is_err() {
                return Err(Error::Unavailable("the event store has closed".to_owned()));
            }
        }
    }

    /// The next page if there is one now; `None` at the end of the log.
    ///
    /// # Errors
    /// Those of [`EventStore::read_all`].
    pub async fn ready_page(&mut self) -> Result<Option<Page>, Error> {
        loop {
            let page = self.store.read_all(self.after, self.limit).await?;
            if page.next <= self.after {
                return Ok(None);
            }
            self.after = page.next;
            if !page.events.is_empty() {
                self.limit = next_limit(&page.events, self.limit_max);
            }
            if !page.events.is_empty() || !page.damaged.is_empty() {
                return Ok(Some(page));
            }
            // A page may hold nothing and still not be the end (positions need not be dense).
            if page.at_end {
                return Ok(None);
            }
        }
    }
}

/// As many events as would make [`BATCH_BYTES_AIM`] if they were like these.
fn next_limit(events: &[Arc<Recorded>], limit_max: usize) -> usize {
    let mean = payload_bytes(events) / events.len().max(1);
    (BATCH_BYTES_AIM / mean.max(1)).clamp(1, limit_max)
}

/// Bytes of the texts of events that may be large.
#[must_use]
pub fn payload_bytes(events: &[Arc<Recorded>]) -> usize {
    events.iter().map(|it| payload_bytes_of(&it.event)).sum()
}

fn payload_bytes_of(event: &Event) -> usize {
    let specification = |s: &Specification| {
        s.inputs.as_str().len() + optional(s.schemas.as_ref()) + optional(s.params.as_ref())
    };
    match event {
        Event::TaskCreated(e) => {
            specification(&e.specification) + e.dependencies.len() * 64 + e.labels.bytes()
        }
        Event::LabelsChanged(e) => e.labels.bytes(),
        Event::TaskRespecified(e) => specification(&e.specification),
        Event::DependenciesChanged(e) => e.dependencies.len() * 64,
        Event::TaskOutputAppended(e) => e.part.bytes(),
        Event::TaskCompleted(e) => e.result.as_str().len(),
        Event::TaskSuspended(e) => e.question.as_str().len() + e.on_expiry.bytes(),
        Event::TaskAnswered(e) => e.answer.as_str().len(),
        Event::TaskSuspensionExpired(e) => e.policy.bytes(),
        Event::TaskFailed(e) => e.error.len() + e.breach.as_ref().map_or(0, |it| it.bytes()),
        Event::TaskClaimRejected(e) => e.breach.bytes(),
        Event::TaskCompletionRejected(e) => e.fault.bytes(),
        Event::TaskCancelled(e) => e.error.len(),
        Event::RunStarted(e) => {
            let message = e.origin.as_ref().and_then(|it| it.message.as_ref());
            e.covers.len() * 8 + optional(message)
        }
        Event::MessageReceived(e) => e.message.as_str().len(),
        Event::TaskRenamed(_)
        | Event::PriorityChanged(_)
        | Event::UserChanged(_)
        | Event::TaskMoved(_)
        | Event::TaskDeleted(_)
        | Event::TaskStarted(_)
        | Event::TaskProgressed(_)
        | Event::TaskReminded(_)
        | Event::TaskRequeued(_)
        | Event::TaskDeferred(_)
        | Event::RunEnded(_)
        | Event::FlowArchived(_) => 0,
    }
}

fn optional(payload: Option<&Payload>) -> usize {
    payload.map_or(0, |p| p.as_str().len())
}
