//! One row of the log: its columns.
//!
//! Owns: the order of the columns. A row is believed only when its checksum agrees; every read path
//! goes through [`Row::read`].

use crate::chain::Hash;
pub(super) use crate::row::{Damage, Row};
use rusqlite::types::{FromSqlError, ValueRef};
use rusqlite::{Statement, params};
use taskledger_domain::{EventId, FlowId, Timestamp};
use uuid::Uuid;

/// The columns that [`Row::read`] expects, of `events AS e` joined with `streams AS s`.
macro_rules! columns {
    () => {
        "e.position, s.flow, e.version, e.id, e.time, e.recorded_at, e.kind, e.schema_version, \
         e.actor, e.correlation, e.causation, e.trace, e.checksum, e.data, e.hash"
    };
}
pub(super) use columns;

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
            hash: value(sql, 14, "hash", hash_or_null)?,
        })
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
            self.hash.as_ref().map(Hash::as_bytes),
        ])?;
        Ok(())
    }
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

/// The hash of an event, if it has one.
pub(super) fn hash_or_null(raw: ValueRef<'_>) -> Result<Option<Hash>, FromSqlError> {
    (raw != ValueRef::Null).then(|| hash(raw)).transpose()
}

/// The 32 bytes of a hash.
pub(super) fn hash(raw: ValueRef<'_>) -> Result<Hash, FromSqlError> {
    let bytes = raw.as_blob()?;
    Hash::from_slice(bytes).ok_or(FromSqlError::InvalidBlobSize {
        expected_size: 32,
        blob_size: bytes.len(),
    })
}
