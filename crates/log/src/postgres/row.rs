//! One row of the log: its columns in Postgres.
//!
//! Owns: the order of the columns, and what `taskledger.append_chained` does to a checksum. A row is
//! believed only when its checksum agrees; every read path goes through [`read`].

use crate::chain::Hash;
pub(super) use crate::row::{Damage, Row};
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row as _, Type};
use taskledger_domain::{EventId, FlowId, Timestamp};
use uuid::Uuid;

/// The columns that [`read`] expects, of `taskledger.events AS e` joined with
/// `taskledger.streams AS s`; before them may come others.
macro_rules! columns {
    () => {
        "e.position, s.flow, e.version, e.id, e.time, e.recorded_at, e.kind, e.schema_version, \
         e.actor, e.correlation, e.causation, e.trace, e.checksum, e.data, e.hash"
    };
}
pub(super) use columns;

/// Reads and checks a row of a `SELECT` whose column `first` is the first of [`columns!`].
/// Cost: O(size).
pub(super) fn read(sql: &PgRow, first: usize) -> Result<Row<'_>, Damage> {
    let position = sql.try_get::<i64, _>(first).unwrap_or(0);
    let mut damage = Damage {
        position: position.cast_unsigned(),
        flow: None,
        reason: String::new(),
    };
    let Ok(flow) = sql.try_get::<Uuid, _>(first + 1).map(FlowId) else {
        damage.reason = "its stream is not known".to_owned();
        return Err(damage);
    };
    damage.flow = Some(flow);
    let row = parts(sql, first, position.cast_unsigned(), flow).and_then(|row| {
        let stored: i64 = value(sql, first + 12, "checksum")?;
        let actual = checksum(&row);
        if stored == actual {
            Ok(row)
        } else {
            Err(format!(
                "the checksum is {actual:08x}, the row says {stored:08x}"
            ))
        }
    });
    row.map_err(|reason| Damage { reason, ..damage })
}

fn parts(sql: &PgRow, first: usize, position: u64, flow: FlowId) -> Result<Row<'_>, String> {
    let trace: Option<&[u8]> = value(sql, first + 11, "trace")?;
    Ok(Row {
        position,
        flow,
        version: value::<i64>(sql, first + 2, "version")?.cast_unsigned(),
        id: EventId(value(sql, first + 3, "id")?),
        time: Timestamp(value(sql, first + 4, "time")?),
        recorded_at: Timestamp(value(sql, first + 5, "recorded_at")?),
        kind: value(sql, first + 6, "kind")?,
        schema_version: u16::try_from(value::<i32>(sql, first + 7, "schema_version")?)
            .map_err(|_| "column `schema_version` is out of range".to_owned())?,
        actor: text(value(sql, first + 8, "actor")?, "actor")?,
        correlation: text(value(sql, first + 9, "correlation")?, "correlation")?,
        causation: value::<Option<Uuid>>(sql, first + 10, "causation")?.map(EventId),
        trace: trace.map(|bytes| text(bytes, "trace")).transpose()?,
        data: value(sql, first + 13, "data")?,
        hash: value::<Option<&[u8]>>(sql, first + 14, "hash")?
            .map(hash)
            .transpose()?,
    })
}

/// The checksum as the row has it: that of the row as it was sent, without what the database adds,
/// and the database's additions by XOR, halves of 64 bits folded into one of 32.
pub(super) fn checksum(row: &Row<'_>) -> i64 {
    let sent = Row {
        position: 0,
        recorded_at: Timestamp(0),
        ..*row
    };
    let position = row.position.cast_signed();
    let added = position ^ (position >> 32) ^ row.recorded_at.0 ^ (row.recorded_at.0 >> 32);
    i64::from(sent.checksum()) ^ (added & 0xffff_ffff)
}

/// A column, with its name in the reason when it cannot be read.
fn value<'r, T: Decode<'r, Postgres> + Type<Postgres>>(
    sql: &'r PgRow,
    index: usize,
    name: &str,
) -> Result<T, String> {
    sql.try_get(index)
        .map_err(|e| format!("column `{name}`: {e}"))
}

pub(super) fn hash(bytes: &[u8]) -> Result<Hash, String> {
    let found = Hash::from_slice(bytes);
    found.ok_or_else(|| format!("column `hash`: it has {} bytes, expected 32", bytes.len()))
}

fn text<'r>(bytes: &'r [u8], name: &str) -> Result<&'r str, String> {
    std::str::from_utf8(bytes).map_err(|e| format!("column `{name}`: {e}"))
}
