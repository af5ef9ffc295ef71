//! One flow's history, read piece by piece: no piece holds more than a bounded number of bytes,
//! whatever the events carry.

use super::error::Error;
use super::facts;
use crate::store::EventStore;
use std::sync::Arc;
use taskledger_domain::{FlowId, Recorded, Version};

/// Bytes that a piece aims at. Its number of events follows the mean size of those of the piece
/// before, so a piece after a jump in size can be larger.
const PIECE_BYTES: usize = 4 * 1024 * 1024;
/// Events of the first piece, of which nothing is known: at three payloads of 1 MiB each, 96 MiB.
const FIRST_EVENTS: usize = 32;
/// Events of a piece at least, so that reading gets on.
const EVENTS_MIN: usize = 8;
/// Events of a piece at most: what is decoded at a time.
const EVENTS_MAX: usize = 1000;

/// Reads pieces of one stream.
pub(super) struct Pieces<'a> {
    store: &'a dyn EventStore,
    flow: FlowId,
    events: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(store: &'a dyn EventStore, flow: FlowId) -> Self {
        Self {
            store,
            flow,
            events: FIRST_EVENTS,
        }
    }

    /// The next events with versions above `after`, in order; empty at the end of the stream.
    ///
    /// # Errors
    /// `Failed`: the log cannot be read.
    pub(super) async fn after(&mut self, after: Version) -> Result<Vec<Arc<Recorded>>, Error> {
        self.read(after, self.events).await
    }

    /// The nearest events with versions below `before`, the newest first; empty at the beginning.
    ///
    /// # Errors
    /// `Failed`: the log cannot be read.
    pub(super) async fn before(&mut self, before: Version) -> Result<Vec<Arc<Recorded>>, Error> {
        let last = before.saturating_sub(1);
        let after = last.saturating_sub(self.events as Version);
        let limit = usize::try_from(last - after).unwrap_or(EVENTS_MAX);
        let mut events = self.read(after, limit).await?;
        events.reverse();
        Ok(events)
    }

    async fn read(&mut self, after: Version, limit: usize) -> Result<Vec<Arc<Recorded>>, Error> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let events = self.store.read_stream(self.flow, after, limit).await?;
        let bytes: usize = events.iter().map(|e| facts::bytes(&e.event)).sum();
        if let Some(mean) = bytes.checked_div(events.len()) {
            self.events = (PIECE_BYTES / mean.max(1)).clamp(EVENTS_MIN, EVENTS_MAX);
        }
        Ok(events)
    }
}
