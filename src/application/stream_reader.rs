//! Reads one flow's history piece by piece in either direction. What a piece may hold is bounded by the store
//! ([`PIECE_EVENTS_MAX`], [`PIECE_BYTES_MAX`]), whatever the events carry.

use super::error::Error;
use crate::store::{EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};
use std::sync::Arc;
use taskledger_domain::{FlowId, Recorded, Version};

/// Reads one stream.
#[derive(Clone, Copy)]
pub(super) struct StreamReader<'a> {
    store: &'a dyn EventStore,
    flow: FlowId,
}

impl<'a> StreamReader<'a> {
    pub(super) fn of(store: &'a dyn EventStore, flow: FlowId) -> Self {
        Self { store, flow }
    }

    /// The next events with versions above `after`, in order; empty at the end of the stream.
    ///
    /// # Errors
    /// `Failed`: the log cannot be read.
    pub(super) async fn after(&self, after: Version) -> Result<Vec<Arc<Recorded>>, Error> {
        let piece = self
            .store
            .read_stream(self.flow, after, PIECE_EVENTS_MAX, PIECE_BYTES_MAX);
        Ok(piece.await?)
    }

    /// The nearest events with versions below `before`, up to `limit`, the newest first; empty at
    /// the beginning.
    ///
    /// # Errors
    /// `Failed`: the log cannot be read.
    pub(super) async fn before(
        &self,
        before: Version,
        limit: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let limit = limit.min(PIECE_EVENTS_MAX);
        let piece = self
            .store
            .read_stream_back(self.flow, before, limit, PIECE_BYTES_MAX);
        Ok(piece.await?)
    }

    /// The events with these versions, in the order asked for. Not bounded as a piece: `each` is
    /// given one at a time, and at most a piece of them is held.
    ///
    /// # Errors
    /// `Failed`: the log cannot be read.
    pub(super) async fn versions(
        &self,
        versions: &[Version],
        mut each: impl FnMut(&Recorded) + Send,
    ) -> Result<(), Error> {
        let mut left = versions;
        while !left.is_empty() {
            let piece = self
                .store
                .read_versions_within(self.flow, left, PIECE_BYTES_MAX)
                .await?;
            assert!(!piece.is_empty(), "a piece has at least one event");
            piece.iter().for_each(|recorded| each(recorded));
            left = &left[piece.len()..];
        }
        Ok(())
    }
}
