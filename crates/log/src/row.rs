//! The storage format that the durable backends share: from an event to a row of the log and back.
//!
//! Owns: the form of checksums and of the keys of claims. The backends own columns and the reading of them.

use crate::chain::Hash;
use crate::damage::Damaged;
use crate::transfer::ExportedEvent;
use crate::{ClaimKey, Error, NewEvent};
use std::sync::Arc;
use taskledger_domain::{EventId, FlowId, Metadata, Position, Recorded, Timestamp, Version, codec};
use uuid::Uuid;

/// A row of the log, borrowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) position: Position,
    pub(super) flow: FlowId,
    pub(super) version: Version,
    pub(super) id: EventId,
    pub(super) time: Timestamp,
    pub(super) recorded_at: Timestamp,
    pub(super) kind: &'a str,
    pub(super) schema_version: u16,
    pub(super) actor: &'a str,
    pub(super) correlation: &'a str,
    pub(super) causation: Option<EventId>,
    pub(super) trace: Option<&'a str>,
    pub(super) data: &'a str,
    /// See `chain`; `None` in events that were imported without hashes, and in those that are not written yet.
    pub(super) hash: Option<Hash>,
}

/// Why a row is not believed. `flow` and `version` are what the row claims, where they can be read.
#[derive(Debug, Clone)]
pub(super) struct Damage {
    pub(super) position: Position,
    pub(super) flow: Option<FlowId>,
    pub(super) reason: String,
}

impl From<Damage> for Error {
    fn from(d: Damage) -> Self {
        Self::Corrupt {
            position: d.position,
            flow: d.flow,
            reason: d.reason,
        }
    }
}

impl From<Damage> for Damaged {
    fn from(d: Damage) -> Self {
        Self {
            position: d.position,
            flow: d.flow,
            reason: Arc::from(d.reason),
        }
    }
}

impl<'a> Row<'a> {
    /// An event on its way into the log, without what the log adds: position, time and hash.
    pub(super) fn new(flow: FlowId, version: Version, new: &'a NewEvent) -> Self {
        Self {
            position: 0,
            flow,
            version,
            id: new.id,
            time: new.time,
            recorded_at: Timestamp(0),
            kind: new.encoded.kind,
            schema_version: new.encoded.schema_version,
            actor: &new.metadata.actor,
            correlation: &new.metadata.correlation,
            causation: new.metadata.causation,
            trace: new.metadata.trace.as_deref(),
            data: &new.encoded.data,
            hash: None,
        }
    }
}

impl Row<'_> {
    /// CRC-32 of all that the row says but its hash. Texts go in with their lengths, so that nothing can move
    /// from one into the next. Cost: O(size).
    pub(super) fn checksum(&self) -> u32 {
        let mut fixed = [0u8; 16 * 3 + 8 * 4 + 2 + 1];
        let mut rest: &mut [u8] = &mut fixed;
        put(&mut rest, &self.position.to_le_bytes());
        put(&mut rest, self.flow.0.as_bytes());
        put(&mut rest, &self.version.to_le_bytes());
        put(&mut rest, self.id.0.as_bytes());
        put(&mut rest, &self.time.0.to_le_bytes());
        put(&mut rest, &self.recorded_at.0.to_le_bytes());
        put(&mut rest, &self.schema_version.to_le_bytes());
        let causation = self.causation.map_or(Uuid::nil(), |id| id.0);
        put(&mut rest, causation.as_bytes());
        let options = u8::from(self.causation.is_some()) | (u8::from(self.trace.is_some()) << 1);
        put(&mut rest, &[options]);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&fixed);
        for text in [
            self.kind,
            self.actor,
            self.correlation,
            self.trace.unwrap_or(""),
            self.data,
        ] {
            crc.update(&(text.len() as u64).to_le_bytes());
            crc.update(text.as_bytes());
        }
        crc.finalize()
    }

    /// The row as a line of an export. Cost: O(size).
    pub(super) fn exported(&self) -> Result<ExportedEvent, Damage> {
        let data = serde_json::from_str(self.data).map_err(|e| Damage {
            position: self.position,
            flow: Some(self.flow),
            reason: format!("column `data` is not JSON: {e}"),
        })?;
        Ok(ExportedEvent {
            position: self.position,
            flow_id: self.flow,
            version: self.version,
            event_id: self.id,
            time: self.time,
            recorded_at: self.recorded_at,
            kind: self.kind.to_owned(),
            schema_version: self.schema_version,
            actor: self.actor.to_owned(),
            correlation: self.correlation.to_owned(),
            causation: self.causation,
            trace: self.trace.map(str::to_owned),
            data,
            hash: self.hash,
        })
    }

    /// The row that a line of an export speaks of.
    pub(super) fn of(line: &ExportedEvent) -> Row<'_> {
        Row {
            position: line.position,
            flow: line.flow_id,
            version: line.version,
            id: line.event_id,
            time: line.time,
            recorded_at: line.recorded_at,
            kind: &line.kind,
            schema_version: line.schema_version,
            actor: &line.actor,
            correlation: &line.correlation,
            causation: line.causation,
            trace: line.trace.as_deref(),
            data: line.data.get(),
            hash: line.hash,
        }
    }

    /// The event. Cost: O(size).
    pub(super) fn decode(&self) -> Result<Recorded, Damage> {
        let event =
            codec::decode(self.kind, self.schema_version, self.data).map_err(|e| Damage {
                position: self.position,
                flow: Some(self.flow),
                reason: e.to_string(),
            })?;
        Ok(Recorded {
            position: self.position,
            flow: self.flow,
            version: self.version,
            id: self.id,
            time: self.time,
            recorded_at: self.recorded_at,
            metadata: Metadata {
                actor: Arc::from(self.actor),
                correlation: Arc::from(self.correlation),
                causation: self.causation,
                trace: self.trace.map(Arc::from),
            },
            event: Arc::new(event),
        })
    }
}

/// Writes `bytes` at the beginning of `rest`, which then begins behind them.
pub(super) fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    let (head, tail) = std::mem::take(rest).split_at_mut(bytes.len());
    head.copy_from_slice(bytes);
    *rest = tail;
}

/// CRC-32 of a snapshot, with what it is a snapshot of.
pub(super) fn snapshot_checksum(flow: FlowId, format: u32, version: Version, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(flow.0.as_bytes());
    crc.update(&format.to_le_bytes());
    crc.update(&version.to_le_bytes());
    crc.update(bytes);
    crc.finalize()
}

/// The columns `kind` and `key`.
pub(super) fn claim_columns(key: &ClaimKey) -> (i16, &[u8]) {
    match key {
        ClaimKey::Task(id) => (1, id.0.as_bytes()),
        ClaimKey::Request(text) => (2, text.as_bytes()),
    }
}
