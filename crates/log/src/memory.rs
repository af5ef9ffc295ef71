//! The log in memory, for tests: the same contract, nothing survives.
//!
//! Owns: a vector of events and maps beside it, under one lock. It doubles as the oracle that says
//! what a durable backend should answer.

use super::chain::{Hash, Mark};
use super::check;
use super::damage::DamageRegister;
use super::retention::{Dropped, Undropped, being_dropped, not_archived};
use super::row::Row;
use super::{Append, ClaimKey, Error, EventStore, Fence, Outcome, Page, Resolution, Snapshot};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_clock::SharedClock;
use taskledger_domain::flow::Event;
use taskledger_domain::{EventId, FlowId, Position, Recorded, Timestamp, Version, codec};
use tokio::sync::watch;

/// The log in memory.
pub struct MemoryStore {
    state: Mutex<State>,
    head: watch::Sender<Position>,
    clock: SharedClock,
    damage: DamageRegister,
}

#[derive(Default)]
struct State {
    /// By position.
    log: BTreeMap<Position, Arc<Recorded>>,
    /// By version.
    streams: HashMap<FlowId, BTreeMap<Version, Arc<Recorded>>>,
    /// Streams in order of creation.
    flows: Vec<FlowId>,
    head: Position,
    /// Hash of the last event.
    hash: Option<Hash>,
    dropped: Dropped,
    claims: HashMap<ClaimKey, (Arc<str>, Option<Timestamp>)>,
    fences: HashMap<Arc<str>, u64>,
    snapshots: HashMap<FlowId, Snapshot>,
    recorded_at: Timestamp,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("head", &*self.head.borrow())
            .finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty log; `clock` gives `recorded_at`.
    #[must_use]
    pub fn new(clock: SharedClock) -> Self {
        Self {
            state: Mutex::new(State::default()),
            head: watch::channel(0).0,
            clock,
            damage: DamageRegister::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_fenced(&self, fence: &Fence) -> bool {
        self.fences
            .get(&fence.name)
            .is_some_and(|token| *token > fence.token)
    }

    fn version(&self, stream: FlowId) -> Version {
        self.last(stream).map_or(0, |event| event.version)
    }

    fn last(&self, stream: FlowId) -> Option<&Arc<Recorded>> {
        let (_, last) = self.streams.get(&stream)?.last_key_value()?;
        Some(last)
    }

    /// The events of a stream, and of an archived one those that it is certain to have.
    fn events(&self, stream: FlowId) -> impl DoubleEndedIterator<Item = &Arc<Recorded>> {
        self.streams
            .get(&stream)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    fn held(&self, key: &ClaimKey, now: Timestamp) -> Option<Arc<str>> {
        self.claims
            .get(key)
            .filter(|(_, expires_at)| expires_at.is_none_or(|at| at >= now))
            .map(|(value, _)| value.clone())
    }

    fn judge(&self, append: &Append) -> Option<Outcome> {
        if append.fence.as_ref().is_some_and(|f| self.is_fenced(f)) {
            return Some(Outcome::Fenced);
        }
        let actual = self.version(append.stream);
        if actual != append.expected {
            return Some(Outcome::Conflict { actual });
        }
        append.claims.iter().find_map(|claim| {
            self.held(&claim.key, self.recorded_at)
                .map(|value| Outcome::Exists {
                    key: claim.key.clone(),
                    value,
                })
        })
    }

    fn write(&mut self, append: Append) -> Vec<Arc<Recorded>> {
        for claim in append.claims {
            self.claims
                .insert(claim.key, (claim.value, claim.expires_at));
        }
        let mut recorded = Vec::with_capacity(append.events.len());
        let before = self.version(append.stream);
        if before == 0 {
            self.flows.push(append.stream);
        }
        let stream = self.streams.entry(append.stream).or_default();
        for (version, new) in (before + 1..).zip(append.events) {
            self.head += 1;
            let content = Row::new(append.stream, version, &new).content();
            let previous = self.hash.unwrap_or(Hash::BEFORE_FIRST);
            self.hash = Some(previous.link(self.head, self.recorded_at, content));
            let event = Arc::new(Recorded {
                position: self.head,
                flow: append.stream,
                version,
                id: new.id,
                time: new.time,
                recorded_at: self.recorded_at,
                metadata: new.metadata,
                event: new.event,
            });
            self.log.insert(event.position, event.clone());
            stream.insert(event.version, event.clone());
            recorded.push(event);
        }
        recorded
    }
}

#[async_trait]
impl EventStore for MemoryStore {
    async fn append(&self, append: Append) -> Result<Outcome, Error> {
        check::append(&append)?;
        let mut state = self.state();
        state.recorded_at = state.recorded_at.max(self.clock.now());
        if let Some(refusal) = state.judge(&append) {
            return Ok(refusal);
        }
        let recorded = state.write(append);
        // Under the lock, so that the watch follows the order of the log.
        self.head.send_replace(state.head);
        Ok(Outcome::Appended(recorded))
    }

    async fn resolve(&self, stream: FlowId, ids: &[EventId]) -> Result<Resolution, Error> {
        check::resolved(ids)?;
        let state = self.state();
        let found: Vec<_> = state
            .events(stream)
            .filter(|e| ids.contains(&e.id))
            .cloned()
            .collect();
        Ok(if found.len() == ids.len() {
            Resolution::Appended(found)
        } else {
            Resolution::Absent
        })
    }

    async fn read_stream(
        &self,
        stream: FlowId,
        after: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let state = self.state();
        let events = state.events(stream).filter(|e| e.version > after);
        // A piece is a span of versions, which may end before a gap.
        let mut events: Vec<_> = events.take(limit).cloned().collect();
        let dense = (0..events.len())
            .take_while(|&i| i == 0 || events[i].version == events[i - 1].version + 1)
            .count();
        events.truncate(dense);
        Ok(within(events, bytes_max))
    }

    async fn read_stream_back(
        &self,
        stream: FlowId,
        before: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let state = self.state();
        let before = before.min(state.version(stream) + 1);
        let older = state.events(stream).rev().filter(|e| e.version < before);
        let dense = older
            .zip((0..before).rev())
            .take_while(|(e, v)| e.version == *v);
        let older = dense.take(limit).map(|(e, _)| e.clone());
        Ok(within(older.collect(), bytes_max))
    }

    async fn read_versions_within(
        &self,
        stream: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let state = self.state();
        let events = state.streams.get(&stream);
        let last = state.last(stream);
        let found: Result<Vec<_>, Error> = versions
            .iter()
            .map(|version| {
                let event = events.and_then(|events| events.get(version));
                event.cloned().ok_or_else(|| match last {
                    Some(last) if is_end(last) && *version > 0 && *version < last.version => {
                        being_dropped(stream)
                    }
                    Some(_) | None => Error::Corrupt {
                        position: last.map_or(0, |e| e.position),
                        flow: Some(stream),
                        reason: format!("stream `{stream}` has no event with version {version}"),
                    },
                })
            })
            .collect();
        Ok(within(found?, bytes_max))
    }

    async fn read_all(&self, after: Position, limit: usize) -> Result<Page, Error> {
        let state = self.state();
        let above = (Bound::Excluded(after), Bound::Unbounded);
        let events = state.log.range(above).take(limit);
        let events: Vec<_> = events.map(|(_, event)| event.clone()).collect();
        let next = events.last().map_or(after, |e| e.position);
        Ok(Page {
            events,
            damaged: Vec::new(),
            next,
            at_end: next >= state.head,
        })
    }

    fn damage(&self) -> &DamageRegister {
        &self.damage
    }

    async fn head(&self) -> Result<Position, Error> {
        Ok(self.state().head)
    }

    async fn chain_head(&self) -> Result<Option<Mark>, Error> {
        let state = self.state();
        let position = state.head;
        Ok(state.hash.map(|hash| Mark { position, hash }))
    }

    async fn stream_head(&self, stream: FlowId) -> Result<Option<(Version, Position)>, Error> {
        let state = self.state();
        let last = state.last(stream);
        Ok(last.map(|e| (e.version, e.position)))
    }

    fn watch(&self) -> watch::Receiver<Position> {
        self.head.subscribe()
    }

    async fn claims(
        &self,
        keys: &[ClaimKey],
        now: Timestamp,
    ) -> Result<Vec<Option<Arc<str>>>, Error> {
        let state = self.state();
        Ok(keys.iter().map(|key| state.held(key, now)).collect())
    }

    async fn raise_fence(&self, name: &str) -> Result<u64, Error> {
        let mut state = self.state();
        let token = state.fences.entry(Arc::from(name)).or_default();
        *token += 1;
        Ok(*token)
    }

    async fn load_snapshot(&self, stream: FlowId, format: u32) -> Result<Option<Snapshot>, Error> {
        let state = self.state();
        let found = state.snapshots.get(&stream);
        Ok(found.filter(|s| s.format == format).cloned())
    }

    async fn save_snapshot(&self, stream: FlowId, snapshot: Snapshot) -> Result<(), Error> {
        let mut state = self.state();
        if state.version(stream) < snapshot.version.max(1) {
            return Err(Error::Invalid(format!(
                "flow `{stream}` has no version {} to take a snapshot of",
                snapshot.version
            )));
        }
        let older = state
            .snapshots
            .get(&stream)
            .is_none_or(|s| s.format != snapshot.format || s.version <= snapshot.version);
        if older {
            state.snapshots.insert(stream, snapshot);
        }
        Ok(())
    }

    async fn dropped(&self) -> Result<Dropped, Error> {
        Ok(self.state().dropped)
    }

    async fn undropped(&self, after: u64, limit: usize) -> Result<Vec<Undropped>, Error> {
        let state = self.state();
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        let flows = state.flows.iter().zip(1..).skip(skip);
        let undropped = flows.filter_map(|(flow, number)| {
            let last = state.last(*flow).filter(|last| is_end(last))?;
            let has_first = state.streams[flow].contains_key(&1) && last.version > 1;
            has_first.then_some(Undropped {
                number,
                flow: *flow,
                end: last.position,
            })
        });
        Ok(undropped.take(limit).collect())
    }

    async fn drop_archived(&self, stream: FlowId, limit: usize) -> Result<u64, Error> {
        let mut state = self.state();
        let state = &mut *state;
        if !state.last(stream).is_some_and(|last| is_end(last)) {
            return Err(not_archived(stream));
        }
        let events = state.events(stream).rev().skip(1).take(limit);
        let gone: Vec<_> = events.cloned().collect();
        for event in &gone {
            state.log.remove(&event.position);
            if let Some(kept) = state.streams.get_mut(&stream) {
                kept.remove(&event.version);
            }
            if let Event::TaskCreated(created) = &*event.event {
                state.claims.remove(&ClaimKey::Task(created.task_id));
            }
            state.dropped.events += 1;
            state.dropped.horizon = state.dropped.horizon.max(event.position);
        }
        state.snapshots.remove(&stream);
        Ok(state.streams[&stream].len() as u64 - 1)
    }
}

/// As many as have payloads of up to `bytes_max` together, but at least one.
fn within(mut events: Vec<Arc<Recorded>>, bytes_max: usize) -> Vec<Arc<Recorded>> {
    if bytes_max == usize::MAX {
        return events;
    }
    let mut bytes = 0;
    let fits = events.iter().take_while(|recorded| {
        let first = bytes == 0;
        bytes += codec::encode(&recorded.event).data.len();
        first || bytes <= bytes_max
    });
    let count = fits.count();
    events.truncate(count);
    events
}

fn is_end(recorded: &Recorded) -> bool {
    matches!(*recorded.event, Event::FlowArchived(_))
}
