//! One row of the log: its columns, its checksum, and the way back to an event.
//!
//! Owns: the order of the columns, the form of the checksum. A row is believed only when its
//! checksum agrees; every read path goes through [`Row::read`].

use crate::store::Error;
use rusqlite::types::{FromSqlError, ValueRef};
use rusqlite::{Statement, params};
use std::sync::Arc;
use taskledger_domain::{EventId, FlowId, Metadata, Position, Recorded, Timestamp, Version, codec};
use uuid::Uuid;

/// The columns that [`Row::read`] expects, of `events AS e` joined with `streams AS s`.
macro_rules! columns {
    () => {
        "e.position, s.flow, e.version, e.id, e.time, e.recorded_at, e.kind, e.schema_version, \
         e.actor, e.correlation, e.causation, e.trace, e.checksum, e.data"
    };
}
pub(super) use columns;

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
            reason: d.reason,
        }
    }
}

impl<'a> Row<'a> {
    /// Reads and checks a row of a `SELECT` of [`columns!`]. Cost: O(size).
    pub(super) fn read(sql: &'a rusqlite::Row<'_>) -> Result<Self, Damage> {
        let position = sql.get_ref(0).map_or(0, |v| v.as_i64().unwrap_or(0));
        let mut damage = Damage {
            position: position.cast_unsigned(),
            flow: None,
            reason: String::new(),
        };
        let flow = match value(sql, 1, "stream", uuid) {
            Ok(id) => FlowId(id),
            Err(_) => {
                damage.reason = "its stream is not known".to_owned();
                return Err(damage);
            }
        };
        damage.flow = Some(flow);
        let row = Self::columns(sql, position.cast_unsigned(), flow).and_then(|row| {
            let stored = value(sql, 12, "checksum", |v| v.as_i64())?;
            let actual = row.checksum();
            if stored == i64::from(actual) {
                Ok(row)
            } else {
                Err(format!(
                    "the checksum is {actual:08x}, the row says {stored:08x}"
                ))
            }
        });
        row.map_err(|reason| Damage { reason, ..damage })
    }

    fn columns(sql: &'a rusqlite::Row<'_>, position: u64, flow: FlowId) -> Result<Self, String> {
        let int = |i, name| value(sql, i, name, |v| v.as_i64());
        let text = |i, name| value(sql, i, name, |v| v.as_str());
        Ok(Self {
            position,
            flow,
            version: int(2, "version")?.cast_unsigned(),
            id: EventId(value(sql, 3, "id", uuid)?),
            time: Timestamp(int(4, "time")?),
            recorded_at: Timestamp(int(5, "recorded_at")?),
            kind: text(6, "kind")?,
            schema_version: u16::try_from(int(7, "schema_version")?)
                .map_err(|_| "column `schema_version` is out of range".to_owned())?,
            actor: text(8, "actor")?,
            correlation: text(9, "correlation")?,
            causation: value(sql, 10, "causation", |v| {
                (v != ValueRef::Null).then(|| uuid(v)).transpose()
            })?
            .map(EventId),
            trace: value(sql, 11, "trace", |v| v.as_str_or_null())?,
            data: text(13, "data")?,
        })
    }

    /// CRC-32 of all that the row says. Texts go in with their lengths, so that nothing can move
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

    /// Writes it by `insert`, which is prepared from `INSERT_EVENT`. Cost: O(size).
    pub(super) fn insert(&self, insert: &mut Statement<'_>, stream: i64) -> rusqlite::Result<()> {
        insert.execute(params![
            self.position.cast_signed(),
            stream,
            self.version.cast_signed(),
            self.id.0.as_bytes(),
            self.time.0,
            self.recorded_at.0,
            self.kind,
            self.schema_version,
            self.actor,
            self.correlation,
            self.causation.as_ref().map(|id| id.0.as_bytes().as_slice()),
            self.trace,
            self.checksum(),
            self.data,
        ])?;
        Ok(())
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

fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    let (head, tail) = std::mem::take(rest).split_at_mut(bytes.len());
    head.copy_from_slice(bytes);
    *rest = tail;
}

/// A column, read by `read`, with the column's name in the reason when that fails.
fn value<'a, T>(
    sql: &'a rusqlite::Row<'_>,
    index: usize,
    name: &str,
    read: impl FnOnce(ValueRef<'a>) -> Result<T, FromSqlError>,
) -> Result<T, String> {
    let raw = sql
        .get_ref(index)
        .map_err(|e| format!("column `{name}`: {e}"))?;
    read(raw).map_err(|e| format!("column `{name}`: {e}"))
}

/// The 16 bytes of a UUID.
pub(super) fn uuid(raw: ValueRef<'_>) -> Result<Uuid, FromSqlError> {
    let bytes = raw.as_blob()?;
    Uuid::from_slice(bytes).map_err(|_| FromSqlError::InvalidBlobSize {
        expected_size: 16,
        blob_size: bytes.len(),
    })
}
