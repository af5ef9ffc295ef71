//! Follows the log for the broker: notes which tasks were published, how they ended and which cannot run any more, and
//! forgets flows that were archived. Owns the loop. Each server does it, so that each is woken by what it notes or
//! finds noted; the store takes every event once. Reads the log, writes nothing but the store of the broker.

mod blocked;

use crate::store::{self, EventStore};
use crate::subscription::feed::{BATCH_BYTES_AIM, Feed, payload_bytes};
use blocked::Looks;
use std::sync::Arc;
use std::time::Duration;
use taskledger_broker::BrokerStore;
use taskledger_domain::flow::Event;
use taskledger_domain::{FlowId, Position, Recorded};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

/// How long events are gathered to be noted together while nobody waits for one of them, and up to how
/// many, or [`BATCH_BYTES_AIM`]. Tasks that are published one after the other are stored side by side only by chance:
/// of many at once, more share a page.
const GATHER: Duration = Duration::from_millis(250);
const GATHERED_EVENTS: usize = 8192;
/// Pause after a failure; each is twice the one before, up to the last.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Why a step was not done.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Store(#[from] taskledger_broker::Error),
    #[error("the log cannot be read: {0}")]
    Log(#[from] store::Error),
    #[error(
        "the log ends at position {head}, but the inboxes contain events up to position {position}"
    )]
    Ahead { position: Position, head: Position },
}

/// The loop.
pub(super) struct Follower {
    pub(super) log: Arc<dyn EventStore>,
    pub(super) store: Arc<BrokerStore>,
}

impl Follower {
    /// Follows the log until `stop`. A transaction that is under way then is undone: the next server does it again.
    pub(super) async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.follow()).await;
    }

    async fn follow(&self) {
        let mut pause = RETRY_FIRST;
        let mut feed: Option<Feed> = None;
        let mut looks = Looks::default();
        loop {
            let done = match &mut feed {
                Some(feed) => self.step(feed, &mut looks).await,
                None => self.begin().await.map(|begun| feed = Some(begun)),
            };
            match done {
                Ok(()) => pause = RETRY_FIRST,
                Err(error) => {
                    tracing::warn!(%error, "the inboxes of the broker are not filled for now, trying again");
                    // What is read again may be another log: a backup was restored.
                    (feed, looks) = (None, Looks::default());
                    sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
        }
    }

    async fn begin(&self) -> Result<Feed, Stopped> {
        // In this order: the log grows, and what was noted of it with it.
        let place = self.store.position().await?;
        let head = self.log.head().await?;
        if place > head {
            return Err(Stopped::Ahead {
                position: place,
                head,
            });
        }
        self.store.newest().await?;
        Ok(Feed::new(self.log.clone(), place))
    }

    async fn step(&self, feed: &mut Feed, looks: &mut Looks) -> Result<(), Stopped> {
        let after = feed.position();
        let mut events = feed.next().await?;
        let mut bytes = payload_bytes(&events);
        // Nobody waits for what is published, but requesters for ends, and for what cannot run.
        let mut is_awaited = events.iter().any(|it| is_awaited(&it.event));
        let until = Instant::now() + GATHER;
        while !is_awaited && events.len() < GATHERED_EVENTS && bytes < BATCH_BYTES_AIM {
            let more = tokio::select! {
                more = timeout_at(until, feed.next()) => more,
                () = self.store.hurried() => break,
            };
            let Ok(more) = more else { break };
            let more = more?;
            bytes += payload_bytes(&more);
            is_awaited = more.iter().any(|it| self::is_awaited(&it.event));
            events.extend(more);
        }
        let upto = feed.position();
        let blocked = looks.blocked(&*self.log, &self.store, &events).await?;
        let place = self.store.intake(after, &events, &blocked, upto).await?;
        if place != upto {
            feed.seek(place);
        }
        if place >= upto {
            let gone = archived(&events);
            if !gone.is_empty() {
                self.store.sweep(&gone).await?;
            }
        }
        Ok(())
    }
}

/// Whether requesters may have to be told of an event, or of what cannot run because of it.
fn is_awaited(event: &Event) -> bool {
    let ends = matches!(
        event,
        Event::TaskCompleted(_)
            | Event::TaskFailed(_)
            | Event::TaskCancelled(_)
            | Event::RunEnded(_)
    );
    ends || blocked::asks(event)
}

/// The flows that end in the archive with one of these events, which are their last.
fn archived(events: &[Arc<Recorded>]) -> Vec<FlowId> {
    let last = |it: &&Arc<Recorded>| matches!(it.event.as_ref(), Event::FlowArchived(_));
    events.iter().filter(last).map(|it| it.flow).collect()
}
