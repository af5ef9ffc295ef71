//! The log in memory, for tests: the same contract, nothing survives.
//!
//! Owns: a vector of events and maps beside it, under one lock. It doubles as the oracle that says
//! what a durable backend should answer.

use super::{Append, ClaimKey, Error, EventStore, Fence, Outcome, Page, Resolution, Snapshot};
use crate::clock::SharedClock;
use async_trait::async_trait;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_domain::{EventId, FlowId, Position, Recorded, Timestamp, Version, codec};
use tokio::sync::watch;

/// The log in memory.
pub struct MemoryStore {
    state: Mutex<State>,
    head: watch::Sender<Position>,
    clock: SharedClock,
}

#[derive(Default)]
struct State {
    /// Position p is at index p - 1.
    log: Vec<Arc<Recorded>>,
    streams: HashMap<FlowId, Vec<Arc<Recorded>>>,
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
        self.streams.get(&stream).map_or(0, |s| s.len() as u64)
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
        let stream = self.streams.entry(append.stream).or_default();
        for new in append.events {
            let event = Arc::new(Recorded {
                position: self.log.len() as u64 + 1,
                flow: append.stream,
                version: stream.len() as u64 + 1,
                id: new.id,
                time: new.time,
                recorded_at: self.recorded_at,
                metadata: new.metadata,
                event: new.event,
            });
            self.log.push(event.clone());
            stream.push(event.clone());
            recorded.push(event);
        }
        recorded
    }
}

#[async_trait]
impl EventStore for MemoryStore {
    async fn append(&self, append: Append) -> Result<Outcome, Error> {
        if append.events.is_empty() {
            return Err(Error::Invalid(
                "an append has at least one event".to_owned(),
            ));
        }
        let mut keys = HashSet::new();
        if !append.claims.iter().all(|c| keys.insert(c.key.clone())) {
            return Err(Error::Invalid(
                "an append claims something twice".to_owned(),
            ));
        }
        let mut state = self.state();
        state.recorded_at = state.recorded_at.max(self.clock.now());
        if let Some(refusal) = state.judge(&append) {
            return Ok(refusal);
        }
        let recorded = state.write(append);
        // Under the lock, so that the watch follows the order of the log.
        self.head.send_replace(state.log.len() as u64);
        Ok(Outcome::Appended(recorded))
    }

    async fn resolve(&self, stream: FlowId, ids: &[EventId]) -> Result<Resolution, Error> {
        if ids.is_empty() {
            return Err(Error::Invalid("no event ids to resolve".to_owned()));
        }
        let state = self.state();
        let events = state.streams.get(&stream).map_or(&[][..], Vec::as_slice);
        let found: Vec<_> = events
            .iter()
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
        let events = state.streams.get(&stream).map_or(&[][..], Vec::as_slice);
        Ok(within(slice(events, after, limit), bytes_max))
    }

    async fn read_stream_back(
        &self,
        stream: FlowId,
        before: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let state = self.state();
        let events = state.streams.get(&stream).map_or(&[][..], Vec::as_slice);
        let older = events.iter().rev().skip_while(|e| e.version >= before);
        Ok(within(older.take(limit).cloned().collect(), bytes_max))
    }

    async fn read_versions_within(
        &self,
        stream: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let state = self.state();
        let events = state.streams.get(&stream).map_or(&[][..], Vec::as_slice);
        let found: Result<Vec<_>, Error> = versions
            .iter()
            .map(|version| {
                let index = version.checked_sub(1).and_then(|i| usize::try_from(i).ok());
                let event = index.and_then(|i| events.get(i));
                event.cloned().ok_or_else(|| Error::Corrupt {
                    position: events.last().map_or(0, |e| e.position),
                    reason: format!("stream `{stream}` has no event with version {version}"),
                })
            })
            .collect();
        Ok(within(found?, bytes_max))
    }

    async fn read_all(&self, after: Position, limit: usize) -> Result<Page, Error> {
        let state = self.state();
        let events = slice(&state.log, after, limit);
        let next = events.last().map_or(after, |e| e.position);
        Ok(Page {
            events,
            next,
            at_end: next >= state.log.len() as u64,
        })
    }

    async fn head(&self) -> Result<Position, Error> {
        Ok(self.state().log.len() as u64)
    }

    async fn stream_head(&self, stream: FlowId) -> Result<Option<(Version, Position)>, Error> {
        let state = self.state();
        let last = state.streams.get(&stream).and_then(|s| s.last());
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

fn slice(events: &[Arc<Recorded>], after: u64, limit: usize) -> Vec<Arc<Recorded>> {
    let skip = usize::try_from(after).unwrap_or(usize::MAX);
    events.iter().skip(skip).take(limit).cloned().collect()
}
