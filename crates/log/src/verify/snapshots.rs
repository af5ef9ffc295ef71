//! Compares a snapshot with the state that the events of its flow make.
//!
//! Owns: the comparison. A snapshot is loaded without the events before it, so one that was changed, with its checksum
//! made again, would be believed. Backends read the rows; one flow is in memory at a time.

use super::Report;
use crate::PIECE_BYTES_MAX;
use crate::row::{Damage, Row};
use std::panic::{AssertUnwindSafe, catch_unwind};
use taskledger_domain::codec::snapshot;
use taskledger_domain::flow::{Event, Flow};
use taskledger_domain::{FlowId, Recorded, Version};

/// Snapshots of other formats are never loaded.
pub(crate) const FORMAT: u32 = snapshot::FORMAT;

/// A flow that is replayed up to the version of its snapshot.
pub(crate) struct Replay {
    flow: FlowId,
    version: Version,
    bytes: Vec<u8>,
    state: Flow,
    /// Events to replay, and bytes of their payloads: what a replay derives from the state costs O(tasks) each time.
    events: Vec<Recorded>,
    bytes_of_events: usize,
    /// An event is damaged, which is a fault of its own, or was dropped.
    is_stopped: bool,
}

impl Replay {
    pub(crate) fn new(flow: FlowId, version: Version, bytes: Vec<u8>) -> Self {
        Self {
            flow,
            version,
            bytes,
            state: Flow::default(),
            events: Vec::new(),
            bytes_of_events: 0,
            is_stopped: false,
        }
    }

    /// The versions to read next: above the first, up to the second. `None`: no more are needed.
    pub(crate) fn wants(&mut self) -> Option<(Version, Version)> {
        self.replay();
        let after = self.state.version();
        (!self.is_stopped && after < self.version).then_some((after, self.version))
    }

    /// Replays the next event.
    pub(crate) fn row(&mut self, row: Result<Row<'_>, Damage>) {
        if self.is_stopped {
            return;
        }
        let bytes = row.as_ref().map_or(0, |row| row.data.len());
        let recorded = row.and_then(|row| row.decode());
        let next = self.state.version() + self.events.len() as Version + 1;
        let recorded = recorded
            .ok()
            .filter(|it| it.version == next && !matches!(*it.event, Event::FlowArchived(_)));
        let Some(recorded) = recorded else {
            self.is_stopped = true;
            return;
        };
        self.events.push(recorded);
        self.bytes_of_events += bytes;
        if self.bytes_of_events >= PIECE_BYTES_MAX {
            self.replay();
        }
    }

    fn replay(&mut self) {
        let events = std::mem::take(&mut self.events);
        self.bytes_of_events = 0;
        let state = &mut self.state;
        // Events that contradict each other are no history, and no snapshot can be right about them.
        let replayed = catch_unwind(AssertUnwindSafe(|| state.replay(&events)));
        self.is_stopped |= replayed.is_err();
    }

    /// No more events are there.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Compares both, if all events were there.
    pub(crate) fn finish(&self, report: &mut Report) {
        if self.state.version() != self.version {
            return;
        }
        let decoded = catch_unwind(|| snapshot::decode(&self.bytes));
        let is_equal = matches!(decoded, Ok(Ok(state)) if state == self.state);
        if !is_equal {
            let reason = format!(
                "the snapshot of version {} is not the state that the events make; delete its row, and the flow is \
                 loaded from its events",
                self.version
            );
            report.add(None, Some(self.flow), reason);
        }
    }
}
