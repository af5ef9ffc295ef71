//! Records which events were dropped, and drops more.
//!
//! Owns: the only statements that delete events. Runs on the connection that writes, inside of its
//! open transaction; readers use what only reads.

use super::failure::of_read;
use super::queries::Stream;
use super::row::{self, Row, columns};
use crate::Error;
use crate::chain::Remains;
use crate::retention::{ARCHIVED_KIND, Dropped, Undropped, created_task, not_archived};
use rusqlite::{Connection, OptionalExtension, params};
use taskledger_domain::{FlowId, Position, Timestamp};
use uuid::Uuid;

/// The one row.
const DROPPED: &str = "SELECT horizon, events FROM dropped";
/// By `events_archived`, then by `events_by_stream`: a stream is dropped down to its first event.
const UNDROPPED: &str = "SELECT e.stream, s.flow, e.position
    FROM events AS e
    JOIN streams AS s ON s.number = e.stream
    WHERE e.kind = 'FlowArchived' AND e.stream > ?1
      AND EXISTS (SELECT 1 FROM events AS f WHERE f.stream = e.stream AND f.version = 1)
    ORDER BY e.stream
    LIMIT ?2";
/// By `events_by_stream`.
const KIND: &str = "SELECT kind FROM events WHERE stream = ?1 AND version = ?2";
/// By `events_by_stream`.
const LAST: &str = "SELECT position, version, CASE kind WHEN 'TaskCreated' THEN data END
    FROM events
    WHERE stream = ?1 AND version < ?2
    ORDER BY version DESC
    LIMIT ?3";
/// By `events_by_stream`.
const EVENTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM events AS e
      LEFT JOIN streams AS s ON s.number = e.stream
      WHERE e.stream = ?1 AND e.version >= ?2 AND e.version < ?3 AND e.hash IS NOT NULL"
);
const INSERT_REMAINS: &str = "INSERT INTO dropped_events (position, recorded_at, flow, version, body) VALUES (?1, ?2, ?3, ?4, ?5)";
/// By the primary key.
const REMAINS: &str = "SELECT position, recorded_at, flow, version, body FROM dropped_events
    WHERE position > ?1 AND position <= ?2 ORDER BY position LIMIT ?3";
/// By the primary key. What others hold under the same id is theirs.
const DELETE_CLAIM: &str = "DELETE FROM claims WHERE kind = 1 AND key = ?1 AND value = ?2";
/// By `events_by_stream`.
const DELETE_EVENTS: &str =
    "DELETE FROM events WHERE stream = ?1 AND version >= ?2 AND version < ?3";
/// By the primary key.
const DELETE_SNAPSHOT: &str = "DELETE FROM snapshots WHERE stream = ?1";
const COUNT: &str = "UPDATE dropped SET horizon = max(horizon, ?1), events = events + ?2";

/// See [`crate::EventStore::dropped`].
pub(super) fn dropped(connection: &Connection) -> rusqlite::Result<Dropped> {
    connection.prepare(DROPPED)?.query_row([], |row| {
        Ok(Dropped {
            horizon: row.get::<_, i64>(0)?.cast_unsigned(),
            events: row.get::<_, i64>(1)?.cast_unsigned(),
        })
    })
}

/// See [`crate::EventStore::undropped`].
pub(super) fn undropped(
    connection: &Connection,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Undropped>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare(UNDROPPED)?;
    let rows = statement.query_map((after.cast_signed(), limit), |row| {
        let flow = row.get_ref(1)?.as_blob()?;
        Ok(Undropped {
            number: row.get::<_, i64>(0)?.cast_unsigned(),
            flow: FlowId(Uuid::from_slice(flow).unwrap_or_default()),
            end: row.get::<_, i64>(2)?.cast_unsigned(),
        })
    })?;
    rows.collect()
}

/// Whether the stream ends with the event that says that it was archived.
pub(super) fn is_archived(connection: &Connection, stream: Stream) -> rusqlite::Result<bool> {
    let last = (stream.number, stream.version.cast_signed());
    let kind: Option<String> = connection
        .prepare(KIND)?
        .query_row(last, |row| row.get(0))
        .optional()?;
    Ok(kind.as_deref() == Some(ARCHIVED_KIND))
}

/// Where the next event behind a gap is; `None` when there is none.
pub(super) fn next_position(
    connection: &Connection,
    after: Position,
) -> rusqlite::Result<Option<Position>> {
    let next: Option<i64> = connection
        .prepare("SELECT min(position) FROM events WHERE position > ?1")?
        .query_row([after.cast_signed()], |row| row.get(0))?;
    Ok(next.map(i64::cast_unsigned))
}

/// See [`crate::EventStore::drop_archived`]; part of the open transaction.
pub(super) fn drop_archived(
    connection: &Connection,
    flow: FlowId,
    stream: Option<Stream>,
    limit: usize,
) -> rusqlite::Result<Result<u64, Error>> {
    let Some(stream) = stream else {
        return Ok(Err(not_archived(flow)));
    };
    if !is_archived(connection, stream)? {
        return Ok(Err(not_archived(flow)));
    }
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (mut count, mut horizon, mut first) = (0_i64, 0_i64, stream.version.cast_signed());
    let mut tasks = Vec::new();
    {
        let mut last = connection.prepare(LAST)?;
        let mut rows = last.query((stream.number, first, limit))?;
        while let Some(row) = rows.next()? {
            let position: i64 = row.get(0)?;
            first = row.get(1)?;
            count += 1;
            horizon = horizon.max(position);
            if let Some(data) = row
                .get_ref(2)?
                .as_str_or_null()
                .map_err(rusqlite::Error::from)?
            {
                match created_task(position.cast_unsigned(), data) {
                    Ok(task) => tasks.push(task),
                    // Nothing was deleted yet.
                    Err(error) => return Ok(Err(error)),
                }
            }
        }
    }
    if count == 0 {
        return Ok(Ok(0));
    }
    let range = (stream.number, first, stream.version.cast_signed());
    let remains = match remains_of(connection, range)? {
        Ok(remains) => remains,
        // Nothing was deleted yet.
        Err(error) => return Ok(Err(error)),
    };
    put_remains(connection, &remains)?;
    let flow = flow.to_string();
    let mut delete = connection.prepare(DELETE_CLAIM)?;
    for task in tasks {
        delete.execute(params![task.0.as_bytes(), flow])?;
    }
    connection.prepare(DELETE_EVENTS)?.execute(range)?;
    connection
        .prepare(DELETE_SNAPSHOT)?
        .execute([stream.number])?;
    connection.prepare(COUNT)?.execute((horizon, count))?;
    Ok(Ok((first - 1).cast_unsigned()))
}

/// What stays of the events with versions in `first .. last` of a stream.
fn remains_of(
    connection: &Connection,
    range: (i64, i64, i64),
) -> rusqlite::Result<Result<Vec<Remains>, Error>> {
    let mut statement = connection.prepare(EVENTS)?;
    let mut rows = statement.query(range)?;
    let mut remains = Vec::new();
    while let Some(sql) = rows.next()? {
        match Row::read(sql) {
            Ok(row) => remains.push(row.remains()),
            Err(damage) => return Ok(Err(damage.into())),
        }
    }
    Ok(Ok(remains))
}

/// Part of the open transaction.
pub(super) fn put_remains(connection: &Connection, remains: &[Remains]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(INSERT_REMAINS)?;
    for r in remains {
        insert.execute(params![
            r.position.cast_signed(),
            r.recorded_at.0,
            r.flow_id.0.as_bytes(),
            r.version.cast_signed(),
            r.body.as_bytes()
        ])?;
    }
    Ok(())
}

/// What stayed of up to `limit` dropped events with positions in `after + 1 ..= last`.
pub(super) fn remains(
    connection: &Connection,
    after: Position,
    last: Position,
    limit: usize,
) -> rusqlite::Result<Vec<Remains>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare(REMAINS)?;
    let range = (after.cast_signed(), last.cast_signed(), limit);
    let rows = statement.query_map(range, |row| {
        Ok(Remains {
            position: row.get::<_, i64>(0)?.cast_unsigned(),
            recorded_at: Timestamp(row.get(1)?),
            flow_id: FlowId(Uuid::from_slice(row.get_ref(2)?.as_blob()?).unwrap_or_default()),
            version: row.get::<_, i64>(3)?.cast_unsigned(),
            body: row::hash(row.get_ref(4)?)?,
        })
    })?;
    rows.collect()
}

/// [`dropped`] for readers.
pub(super) fn read_dropped(connection: &Connection) -> Result<Dropped, Error> {
    dropped(connection).map_err(|e| of_read(&e, 0))
}

/// What is missing of a log that is made from lines.
pub(super) fn set_dropped(connection: &Connection, dropped: Dropped) -> rusqlite::Result<()> {
    let Dropped { horizon, events } = dropped;
    connection.execute(
        "UPDATE dropped SET horizon = ?1, events = ?2",
        (horizon.cast_signed(), events.cast_signed()),
    )?;
    Ok(())
}
