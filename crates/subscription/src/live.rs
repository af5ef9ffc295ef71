//! New notices for all watchers, made once and shared.
//!
//! Owns: the reader of the log that follows its end while somebody watches, and what it has published:
//! one tail for those who watch everything, one for each flow that is watched. Memory is only a fast
//! path: a watcher that falls behind goes back to the log ([`super::stream`]). While nobody watches,
//! nothing is read.

mod published;
mod tail;
mod watchers;

pub use published::{Chunk, Format, Published};
use tail::{Found, Tail};
use watchers::Watchers;

use super::cursor::{Cursor, PARTS_ALL};
use super::descriptions::Descriptions;
use super::feed::Feed;
use super::notice::at_rest;
use super::stream::Filter;
use super::users::Users;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use taskledger_domain::{FlowId, Position, Recorded, Version};
use taskledger_log::{Error, EventStore};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// Bytes kept for those who watch everything: a second or so of full load.
const ALL_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes kept for each watched flow, shared by its watchers.
const FLOW_BYTES_MAX: usize = 32 * 1024;
/// Bytes of one chunk, unless a single notice has more: what a watcher writes at a time.
const CHUNK_BYTES_MAX: usize = 64 * 1024;
/// Pages of history that are read at once, for all watchers together: a thousand that come back at the
/// same time must not keep others from the log.
const HISTORY_READS_MAX: usize = 4;
/// Pause after the log could not be read.
const RETRY: Duration = Duration::from_millis(500);
/// Events of a flow up to which it is read before they are published: a few pages of the log.
const DESCRIBED_EVENTS_MAX: Version = 4096;
/// How long events wait at most until reads show them, before they are published all the same.
const SHOWN_WAIT: Duration = Duration::from_millis(100);

/// What reads of this server show.
pub trait Reads: Send + Sync + fmt::Debug + 'static {
    /// Waits until reads show a flow as it is after its event at this position: at once for flows whose
    /// reads do not rest on the memory of this server.
    fn show(&self, flow: FlowId, position: Position) -> BoxFuture<'_, ()>;
}

/// Publishes what happens. One per server.
#[derive(Debug)]
pub struct Live {
    pub(super) store: Arc<dyn EventStore>,
    /// Whoever was told of an event may read at once, and must not find less than that.
    reads: Arc<dyn Reads>,
    /// The users of flows.
    pub(super) users: Users,
    /// How tasks are described.
    descriptions: Descriptions,
    /// Who reads history has one of these.
    pub(super) history: Semaphore,
    state: Mutex<State>,
    begun: Notify,
}

#[derive(Debug)]
struct State {
    /// All events up to here were published to whoever watched.
    position: Position,
    /// Whether the log is followed.
    follows: bool,
    all: Arc<Tail>,
    watching_all: usize,
    /// Those who need to know whose flows are whose.
    watching_users: usize,
    flows: HashMap<FlowId, Watched>,
    /// Rises when somebody begins to watch something that nobody watched.
    generation: u64,
}

#[derive(Debug)]
struct Watched {
    tail: Arc<Tail>,
    watchers: usize,
}

/// Follows the log for [`Live`].
#[derive(Debug)]
pub struct Service(Arc<Live>);

impl Live {
    /// Nothing is followed until the service runs.
    #[must_use]
    pub fn new(store: Arc<dyn EventStore>, reads: Arc<dyn Reads>) -> (Service, Arc<Self>) {
        let state = State {
            position: 0,
            follows: false,
            all: Arc::new(Tail::new(ALL_BYTES_MAX)),
            watching_all: 0,
            watching_users: 0,
            flows: HashMap::new(),
            generation: 0,
        };
        let live = Arc::new(Self {
            users: Users::new(store.clone()),
            descriptions: Descriptions::new(store.clone()),
            store,
            reads,
            history: Semaphore::new(HISTORY_READS_MAX),
            state: Mutex::new(state),
            begun: Notify::new(),
        });
        (Service(live.clone()), live)
    }

    /// Those who watch now.
    #[must_use]
    pub fn watchers(&self) -> usize {
        let state = self.lock();
        state.watching_all + state.flows.values().map(|w| w.watchers).sum::<usize>()
    }

    /// Begins to watch one flow, or all, for somebody who stands at `place`. Everything above
    /// [`Watch::from`] comes through it.
    pub(super) fn watch(self: &Arc<Self>, filter: &Filter, place: Cursor) -> Watch {
        let (flow, by_user) = (filter.flow, filter.user.is_some());
        let mut state = self.lock();
        if !state.follows {
            state.position = *self.store.watch().borrow();
            state.follows = true;
            self.begun.notify_one();
        }
        if by_user {
            if state.watching_users == 0 {
                // What was changed while nobody asked was not learned.
                self.users.forget();
            }
            state.watching_users += 1;
        }
        let tail = match flow {
            None => {
                if state.watching_all == 0 {
                    state.generation += 1;
                }
                state.watching_all += 1;
                state.all.clone()
            }
            Some(flow) => {
                if !state.flows.contains_key(&flow) {
                    state.generation += 1;
                }
                let watched = state.flows.entry(flow).or_insert_with(|| Watched {
                    tail: Arc::new(Tail::new(FLOW_BYTES_MAX)),
                    watchers: 0,
                });
                watched.watchers += 1;
                watched.tail.clone()
            }
        };
        // Who was away for a moment finds what it missed in memory.
        let kept = tail.behind(place);
        let from = kept.map_or(state.position, |_| place.position);
        Watch {
            next: kept.unwrap_or_else(|| tail.next()),
            moved: tail.watch(),
            from,
            tail,
            flow,
            by_user,
            live: self.clone(),
        }
    }

    fn leave(&self, watch: &Watch) {
        let mut state = self.lock();
        if watch.by_user {
            state.watching_users -= 1;
        }
        match watch.flow {
            None => {
                state.watching_all -= 1;
                if state.watching_all == 0 {
                    // What comes now is not published, so what is kept would have a hole.
                    state.all = Arc::new(Tail::new(ALL_BYTES_MAX));
                }
            }
            Some(flow) => {
                if let Some(watched) = state.flows.get_mut(&flow) {
                    watched.watchers -= 1;
                    if watched.watchers == 0 {
                        state.flows.remove(&flow);
                    }
                }
            }
        }
    }

    /// Stops following when nobody watches.
    fn rest(&self) -> bool {
        let mut state = self.lock();
        if state.watching_all == 0 && state.flows.is_empty() {
            state.follows = false;
        }
        !state.follows
    }

    /// Gives events to those who watch. Makes notices without the lock; with it, when somebody came meanwhile
    /// for whom nothing was made, so that a stream of newcomers cannot keep it from ending.
    async fn publish(&self, events: &[Arc<Recorded>]) {
        let Some(last) = events.last() else { return };
        let end = Cursor::behind(last, PARTS_ALL);
        // What does not show in time is shown by the read models later: an append with an unknown outcome.
        let _ = tokio::time::timeout(SHOWN_WAIT, self.shown(events)).await;
        let watched = self.lock().watched(events);
        for event in events {
            if watched.by_user {
                self.users.learn(event);
            }
            self.descriptions.learn(event, watched.takes(event.flow));
        }
        self.read_descriptions(&watched, events).await;
        let mut news = watched.chunks(events, end, &self.descriptions);
        let mut state = self.lock();
        if state.generation != watched.generation {
            let watched = state.watched(events);
            news = watched.chunks(events, end, &self.descriptions);
        }
        for (tail, chunks) in &news {
            match chunks {
                Some(chunks) => chunks.iter().for_each(|chunk| tail.push(chunk.clone())),
                None => tail.lose(),
            }
        }
        state.position = last.position;
        drop(state);
        for (tail, _) in &news {
            tail.tell();
        }
    }

    /// Reads how tasks of watched flows are described, where that is not known. Of long flows it is left to those
    /// who watch them, so that others do not wait. Cost: O(events of flows that are not known).
    async fn read_descriptions(&self, watched: &Watchers, events: &[Arc<Recorded>]) {
        let mut ends = HashMap::new();
        for event in events.iter().filter(|event| watched.takes(event.flow)) {
            ends.insert(event.flow, event.version);
        }
        for (flow, version) in ends {
            if version <= DESCRIBED_EVENTS_MAX
                && let Err(error) = self.descriptions.read(flow, version).await
            {
                tracing::warn!(%error, "live streams wait for the log");
                return;
            }
        }
    }

    /// The notices of an event as they are published. Cost: O(1) when the flow is known, else O(its events).
    ///
    /// # Errors
    /// [`Error`]: the log cannot be read.
    pub async fn published(&self, recorded: &Recorded) -> Result<Vec<Arc<Published>>, Error> {
        let notices = self.descriptions.notices(recorded).await?;
        Ok(Published::all(recorded, notices).collect())
    }

    /// What ends the stream of a task that has ended with this event, and that nothing runs. Cost: as
    /// [`Self::published`].
    ///
    /// # Errors
    /// [`Error`]: the log cannot be read.
    pub async fn at_rest(&self, recorded: &Recorded) -> Result<Option<Arc<Published>>, Error> {
        let Some(mut notice) = at_rest(recorded) else {
            return Ok(None);
        };
        self.descriptions.describe(&mut notice, recorded).await?;
        Ok(Some(Published::last(recorded, notice)))
    }

    /// Waits until reads show all of these events. Cost: O(events).
    async fn shown(&self, events: &[Arc<Recorded>]) {
        let mut ends = HashMap::new();
        for event in events {
            ends.insert(event.flow, event.position);
        }
        for (flow, position) in ends {
            self.reads.show(flow, position).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn watched(&self, events: &[Arc<Recorded>]) -> Watchers {
        let mut flows = HashMap::new();
        if !self.flows.is_empty() {
            for event in events {
                if let Some(watched) = self.flows.get(&event.flow) {
                    flows
                        .entry(event.flow)
                        .or_insert_with(|| watched.tail.clone());
                }
            }
        }
        Watchers {
            generation: self.generation,
            by_user: self.watching_users > 0,
            all: (self.watching_all > 0).then(|| self.all.clone()),
            flows,
        }
    }
}

impl Service {
    /// Follows the log while somebody watches, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let live = self.0;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = live.begun.notified() => {}
            }
            let from = live.lock().position;
            let mut feed = Feed::new(live.store.clone(), from);
            while !live.rest() {
                let read = tokio::select! {
                    () = stop.cancelled() => return,
                    read = feed.next() => read,
                };
                match read {
                    Ok(events) => live.publish(&events).await,
                    Err(error) => {
                        tracing::warn!(%error, position = feed.position(), "live streams wait for the log");
                        tokio::select! {
                            () = stop.cancelled() => return,
                            () = tokio::time::sleep(RETRY) => {}
                        }
                    }
                }
            }
        }
    }
}

/// A watcher's end of a tail.
#[derive(Debug)]
pub(super) struct Watch {
    /// Events above this position come through it.
    pub(super) from: Position,
    next: u64,
    moved: watch::Receiver<u64>,
    tail: Arc<Tail>,
    flow: Option<FlowId>,
    by_user: bool,
    live: Arc<Live>,
}

impl Watch {
    /// What has come, waiting until there is something; `None`: too much has come, watch anew.
    pub(super) async fn next(&mut self, bytes_max: usize) -> Option<Vec<Arc<Chunk>>> {
        loop {
            self.moved.borrow_and_update();
            match self.tail.read(self.next, bytes_max) {
                Found::Lost => return None,
                Found::Chunks(chunks) if chunks.is_empty() => {
                    // The sender lives as long as the tail, which this watcher holds.
                    let _ = self.moved.changed().await;
                }
                Found::Chunks(chunks) => {
                    self.next += chunks.len() as u64;
                    return Some(chunks);
                }
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.live.leave(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Immediate, append_event};
    use futures_util::FutureExt;
    use taskledger_clock::ManualClock;
    use taskledger_domain::flow::{Event, UserChanged};
    use taskledger_domain::testing::{START, id};
    use taskledger_log::memory::MemoryStore;

    /// Appends that the flow is `user`'s now, behind so many events.
    async fn said(store: &MemoryStore, version: u64, user: &str) -> Vec<Arc<Recorded>> {
        let task_id = id("task");
        let event = Event::UserChanged(UserChanged {
            task_id,
            user_id: Some(user.to_owned()),
        });
        append_event(store, version, event).await;
        store.read_all(version, 1).await.unwrap().events
    }

    #[tokio::test]
    async fn whose_flows_are_whose_is_learned_while_somebody_asks() {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::at(START))));
        let (_service, live) = Live::new(store.clone(), Arc::new(Immediate));
        let by_user = Filter {
            user: Some(Arc::from("ann")),
            ..Filter::default()
        };
        let user = async || live.users.of(id("task").as_flow()).await.unwrap();
        // Somebody watches everything.
        let _all = live.watch(&Filter::default(), Cursor::BEGINNING);
        live.publish(&said(&store, 0, "bob").await).await;
        assert_eq!(live.users.known(), 0);
        // Somebody watches a user.
        let watch = live.watch(&by_user, Cursor::BEGINNING);
        live.publish(&said(&store, 1, "ann").await).await;
        assert_eq!(live.users.known(), 1);
        assert_eq!(user().await.as_deref(), Some("ann"));
        // What is said while nobody asks is found later.
        drop(watch);
        live.publish(&said(&store, 2, "cyd").await).await;
        let _again = live.watch(&by_user, Cursor::BEGINNING);
        assert_eq!(user().await.as_deref(), Some("cyd"));
    }

    /// Reads that show nothing until they are told to.
    #[derive(Debug, Default)]
    struct Behind(Notify);

    impl Reads for Behind {
        fn show(&self, _: FlowId, _: Position) -> BoxFuture<'_, ()> {
            self.0.notified().boxed()
        }
    }

    fn behind() -> (Arc<MemoryStore>, Arc<Behind>, Arc<Live>) {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::at(START))));
        let reads = Arc::new(Behind::default());
        let (_service, live) = Live::new(store.clone(), reads.clone());
        (store, reads, live)
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_told_what_reads_do_not_show_yet() {
        let (store, reads, live) = behind();
        let mut watch = live.watch(&Filter::default(), Cursor::BEGINNING);
        let said = said(&store, 0, "bob").await;
        let mut publishing = Box::pin(live.publish(&said));
        assert!(publishing.as_mut().now_or_never().is_none());
        assert!(watch.next(CHUNK_BYTES_MAX).now_or_never().is_none());
        reads.0.notify_one();
        assert!(publishing.as_mut().now_or_never().is_some());
        assert!(watch.next(CHUNK_BYTES_MAX).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn reads_that_stay_behind_hold_nobody_up_for_long() {
        let (store, _reads, live) = behind();
        let mut watch = live.watch(&Filter::default(), Cursor::BEGINNING);
        let begun = tokio::time::Instant::now();
        live.publish(&said(&store, 0, "bob").await).await;
        assert_eq!(begun.elapsed(), SHOWN_WAIT);
        assert!(watch.next(CHUNK_BYTES_MAX).now_or_never().is_some());
    }
}
