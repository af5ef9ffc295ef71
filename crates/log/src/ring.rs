//! The newest events, in memory and shared by all readers.
//!
//! Owns: a bounded run of events that ends at the head of the log, and where in it each stream has its
//! events. The committer pushes in order, before it tells anybody; readers that are nearly live never
//! touch the database.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use taskledger_domain::{FlowId, Position, Recorded, Version};

/// Events kept: several seconds of full load, so that a reader that stumbles finds its place.
pub(super) const RING_EVENTS_MAX: usize = 16_384;
/// Bytes kept, estimated: what an idle server may hold on to after a burst of large events.
pub(super) const RING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Estimated bytes of an event besides its payload.
const EVENT_OVERHEAD_BYTES: usize = 500;

/// An event on its way into the ring.
#[derive(Debug, Clone)]
pub(super) struct Fresh {
    pub(super) event: Arc<Recorded>,
    /// Bytes of its stored form.
    pub(super) data_len: usize,
}

/// The newest events; positions are dense.
#[derive(Debug, Default)]
pub(super) struct Ring(RwLock<Inner>);

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<Fresh>,
    /// Positions of the events of each stream that has some here. Their versions are dense.
    streams: HashMap<FlowId, VecDeque<Position>>,
    bytes: usize,
}

impl Inner {
    fn push(&mut self, fresh: Fresh) {
        self.bytes += fresh.data_len + EVENT_OVERHEAD_BYTES;
        let (flow, position) = (fresh.event.flow, fresh.event.position);
        self.streams.entry(flow).or_default().push_back(position);
        self.events.push_back(fresh);
    }

    fn pop(&mut self) -> Option<Fresh> {
        let old = self.events.pop_front()?;
        self.bytes -= old.data_len + EVENT_OVERHEAD_BYTES;
        let flow = old.event.flow;
        if let Some(of_stream) = self.streams.get_mut(&flow) {
            of_stream.pop_front();
            if of_stream.is_empty() {
                self.streams.remove(&flow);
            }
        }
        Some(old)
    }

    fn at(&self, position: Position) -> Option<&Fresh> {
        let first = self.events.front()?.event.position;
        self.events
            .get(usize::try_from(position.checked_sub(first)?).ok()?)
    }

    /// The events of a stream from a version on; `None` when they are not all here.
    fn of_stream(&self, flow: FlowId, from: Version) -> Option<impl Iterator<Item = &Fresh>> {
        let positions = self.streams.get(&flow)?;
        let first = self.at(*positions.front()?)?.event.version;
        let skip = usize::try_from(from.checked_sub(first)?).ok()?;
        let wanted = positions.range(skip.min(positions.len())..);
        Some(wanted.filter_map(|position| self.at(*position)))
    }
}

impl Ring {
    /// Adds the next events in commit order. Cost: O(events).
    pub(super) fn push(&self, fresh: Vec<Fresh>) {
        let mut dropped = Vec::new();
        {
            let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
            for f in fresh {
                let last = inner.events.back().map(|f| f.event.position);
                if last.is_some_and(|p| p + 1 != f.event.position) {
                    // Somebody else has written in between: another node. What came before is still there
                    // to be read.
                    dropped.extend(std::iter::from_fn(|| inner.pop()));
                }
                inner.push(f);
            }
            while inner.events.len() > RING_EVENTS_MAX
                || (inner.bytes > RING_BYTES_MAX && inner.events.len() > 1)
            {
                dropped.extend(inner.pop());
            }
        }
        // Most of it is freed outside of the lock, so that readers do not wait for the allocator.
        drop(dropped);
    }

    /// Forgets the events up to `horizon`, some of which were dropped. Cost: O(events forgotten).
    pub(super) fn forget(&self, horizon: Position) {
        let mut dropped = Vec::new();
        {
            let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
            while inner
                .events
                .front()
                .is_some_and(|f| f.event.position <= horizon)
            {
                dropped.extend(inner.pop());
            }
        }
        drop(dropped);
    }

    /// Up to `limit` events and about `bytes_max` bytes after `after`; `None` when the first of
    /// them is no longer here (or nothing is). Cost: O(events returned).
    pub(super) fn read(
        &self,
        after: Position,
        limit: usize,
        bytes_max: usize,
    ) -> Option<Vec<Arc<Recorded>>> {
        let inner = self.inner();
        let first = inner.events.front()?.event.position;
        let skip = usize::try_from(after.checked_add(1)?.checked_sub(first)?).ok()?;
        let events = inner.events.range(skip.min(inner.events.len())..);
        Some(within(events, limit, bytes_max))
    }

    /// The same of one stream, above a version; `None` when some of them are not here. Only where this
    /// process alone writes: what others wrote is not here. Cost: O(events returned).
    pub(super) fn read_stream(
        &self,
        flow: FlowId,
        after: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Option<Vec<Arc<Recorded>>> {
        let inner = self.inner();
        let events = inner.of_stream(flow, after.checked_add(1)?)?;
        Some(within(events, limit, bytes_max))
    }

    /// The same backwards: versions below `before`, the newest first. Cost: O(events returned).
    pub(super) fn read_stream_back(
        &self,
        flow: FlowId,
        before: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Option<Vec<Arc<Recorded>>> {
        let inner = self.inner();
        let positions = inner.streams.get(&flow)?;
        let last = inner.at(*positions.back()?)?.event.version;
        let before = before.min(last + 1);
        let from = before.saturating_sub(limit as u64).max(1);
        let mut events: Vec<&Fresh> = inner
            .of_stream(flow, from)?
            .take_while(|f| f.event.version < before)
            .collect();
        events.reverse();
        Some(within(events.into_iter(), limit, bytes_max))
    }

    /// The last event of a stream, if it is here; under the same condition. Cost: O(1).
    pub(super) fn last_of(&self, flow: FlowId) -> Option<Arc<Recorded>> {
        let inner = self.inner();
        let last = inner.streams.get(&flow)?.back()?;
        inner.at(*last).map(|f| f.event.clone())
    }

    /// Events of a stream by their versions, when all of them are here; under the same condition.
    /// Cost: O(events).
    pub(super) fn read_versions(
        &self,
        flow: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Option<Vec<Arc<Recorded>>> {
        let inner = self.inner();
        let found: Option<Vec<&Fresh>> = versions
            .iter()
            .map(|version| inner.of_stream(flow, *version)?.next())
            .collect();
        Some(within(found?.into_iter(), usize::MAX, bytes_max))
    }

    fn inner(&self) -> RwLockReadGuard<'_, Inner> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As many as fit, at least one.
fn within<'f>(
    events: impl Iterator<Item = &'f Fresh>,
    limit: usize,
    bytes_max: usize,
) -> Vec<Arc<Recorded>> {
    let mut bytes = 0;
    events
        .take(limit)
        .take_while(|f| {
            let fits = bytes == 0 || bytes + f.data_len <= bytes_max;
            bytes += f.data_len;
            fits
        })
        .map(|f| f.event.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::flow::{Event, TaskRenamed};
    use taskledger_domain::{EventId, Metadata, TaskId, Timestamp};
    use uuid::Uuid;

    fn flow(n: u128) -> FlowId {
        FlowId(Uuid::from_u128(n))
    }

    /// An event of 10 stored bytes.
    fn fresh(position: Position, n: u128, version: Version) -> Fresh {
        let task_id = TaskId(flow(n).0);
        let name = "name".to_owned();
        let event = Recorded {
            position,
            flow: flow(n),
            version,
            id: EventId(Uuid::from_u128(u128::from(position))),
            time: Timestamp(1),
            recorded_at: Timestamp(1),
            metadata: Metadata {
                actor: Arc::from("test"),
                correlation: Arc::from("test"),
                causation: None,
                trace: None,
            },
            event: Arc::new(Event::TaskRenamed(TaskRenamed { task_id, name })),
        };
        Fresh {
            event: Arc::new(event),
            data_len: 10,
        }
    }

    fn positions(events: Option<Vec<Arc<Recorded>>>) -> Option<Vec<Position>> {
        events.map(|events| events.iter().map(|e| e.position).collect())
    }

    #[test]
    fn a_stream_is_read_from_memory_only_when_all_that_is_wanted_is_there() {
        let ring = Ring::default();
        // Of the first stream, versions 1 to 4 were before.
        ring.push(vec![fresh(10, 1, 5), fresh(11, 2, 1), fresh(12, 1, 6)]);
        let read = |n, after| positions(ring.read_stream(flow(n), after, 9, usize::MAX));
        assert_eq!(read(1, 3), None);
        assert_eq!(read(1, 4), Some(vec![10, 12]));
        assert_eq!(read(1, 5), Some(vec![12]));
        assert_eq!(read(1, 6), Some(vec![]));
        assert_eq!(read(1, u64::MAX), None);
        assert_eq!(read(2, 0), Some(vec![11]));
        assert_eq!(read(3, 0), None, "nothing is known of it");
        let few = ring.read_stream(flow(1), 4, 9, 15);
        assert_eq!(positions(few), Some(vec![10]));
        let back =
            |before, limit| positions(ring.read_stream_back(flow(1), before, limit, usize::MAX));
        assert_eq!(back(u64::MAX, 1), Some(vec![12]));
        assert_eq!(back(u64::MAX, 2), Some(vec![12, 10]));
        assert_eq!(back(6, 1), Some(vec![10]));
        assert_eq!(back(u64::MAX, 3), None);
        assert_eq!(back(5, 1), None);
        let few = ring.read_stream_back(flow(1), 9, 2, 15);
        assert_eq!(positions(few), Some(vec![12]));
        assert_eq!(ring.last_of(flow(1)).unwrap().position, 12);
        let versions = |v: &[Version]| positions(ring.read_versions(flow(1), v, usize::MAX));
        assert_eq!(versions(&[6, 5, 6]), Some(vec![12, 10, 12]));
        assert_eq!(versions(&[4, 5]), None);
        assert_eq!(versions(&[7]), None);
        ring.forget(10);
        assert_eq!(read(1, 4), None);
        assert_eq!(read(1, 5), Some(vec![12]));
        // Somebody else has written position 13.
        ring.push(vec![fresh(14, 2, 3)]);
        assert_eq!(read(1, 5), None);
        assert!(ring.last_of(flow(1)).is_none());
        assert_eq!(read(2, 2), Some(vec![14]));
    }

    #[test]
    fn what_leaves_the_ring_leaves_its_streams() {
        let ring = Ring::default();
        let all = RING_EVENTS_MAX as u64 + 100;
        for position in 1..=all {
            ring.push(vec![fresh(
                position,
                u128::from(position % 7),
                position / 7 + 1,
            )]);
        }
        let inner = ring.inner();
        assert_eq!(inner.events.len(), RING_EVENTS_MAX);
        let listed: usize = inner.streams.values().map(VecDeque::len).sum();
        assert_eq!(listed, RING_EVENTS_MAX);
        drop(inner);
        ring.forget(all);
        assert!(ring.inner().streams.is_empty());
        assert_eq!(ring.inner().bytes, 0);
    }
}
