//! The newest events, shared from memory.
//!
//! Owns: a bounded run of events that ends at the head of the log. The committer pushes in order,
//! before it tells anybody; readers that are nearly live never touch the database.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};
use taskledger_domain::{Position, Recorded};

/// Events kept: several seconds of full load, so that a reader that stumbles finds its place.
pub(super) const RING_EVENTS_MAX: usize = 16_384;
/// Bytes kept, estimated: what an idle server may hold on to after a burst of large events.
pub(super) const RING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Estimated bytes of an event besides its payload.
const EVENT_OVERHEAD_BYTES: usize = 400;

/// An event on its way into the ring.
#[derive(Debug, Clone)]
pub(super) struct Fresh {
    /// The event.
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
    bytes: usize,
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
                    // Somebody else has written in between: another node, or whoever holds the file.
                    // What came before is still there to be read.
                    dropped.extend(inner.events.drain(..));
                    inner.bytes = 0;
                }
                inner.bytes += f.data_len + EVENT_OVERHEAD_BYTES;
                inner.events.push_back(f);
            }
            while inner.events.len() > RING_EVENTS_MAX
                || (inner.bytes > RING_BYTES_MAX && inner.events.len() > 1)
            {
                if let Some(old) = inner.events.pop_front() {
                    inner.bytes -= old.data_len + EVENT_OVERHEAD_BYTES;
                    dropped.push(old);
                }
            }
        }
        // Freed outside of the lock, so that readers do not wait for the allocator.
        drop(dropped);
    }

    /// Forgets the events up to `horizon`, some of which were dropped. Cost: O(events forgotten).
    pub(super) fn forget(&self, horizon: Position) {
        let mut dropped = Vec::new();
        {
            let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
            while let Some(old) = inner.events.pop_front_if(|f| f.event.position <= horizon) {
                inner.bytes -= old.data_len + EVENT_OVERHEAD_BYTES;
                dropped.push(old);
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
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let first = inner.events.front()?.event.position;
        let skip = usize::try_from(after.checked_add(1)?.checked_sub(first)?).ok()?;
        let mut bytes = 0;
        Some(
            inner
                .events
                .range(skip.min(inner.events.len())..)
                .take(limit)
                .take_while(|f| {
                    let fits = bytes == 0 || bytes + f.data_len <= bytes_max;
                    bytes += f.data_len;
                    fits
                })
                .map(|f| f.event.clone())
                .collect(),
        )
    }
}
