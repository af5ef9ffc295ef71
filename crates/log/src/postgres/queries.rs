//! The queries that readers make: each statement with the index that it relies on, and the check of rows.
//!
//! Owns: the SELECT statements. Bytes are bounded in the database, from the stored lengths, so that
//! what is not wanted does not travel. Every row that leaves is checked; a row that is missing
//! between its neighbours is damage too, and is named.
//! `LIMIT 1` in a look-up keeps it a probe of an index: the server plans statements for any
//! arguments, and would rather scan a table than probe it as often as it fears.

use super::row::{self, columns};
use crate::Error;
use crate::damage::Damaged;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use std::sync::Arc;
use taskledger_domain::{EventId, FlowId, Position, Recorded, Version};
use uuid::Uuid;

/// The one row.
pub(super) const HEAD: &str = "SELECT position FROM taskledger.head";
/// The one row.
pub(super) const CHAIN_HEAD: &str = "SELECT position, hash FROM taskledger.head";
/// Looks at each file of the database.
pub(super) const SIZE: &str = "SELECT pg_database_size(current_database())";
/// By the unique index of `streams.flow`.
pub(super) const STREAM: &str =
    "SELECT version, last_position FROM taskledger.streams WHERE flow = $1";
/// By the unique index of `streams.flow`, then by `events_by_stream`. One row at least, if the
/// stream exists.
pub(super) const STREAM_EVENTS: &str = concat!(
    "SELECT s.version, s.last_position, e.found, ",
    columns!(),
    " FROM taskledger.streams AS s
      LEFT JOIN LATERAL (
          SELECT t.*, count(*) OVER () AS found, row_number() OVER w AS n,
              sum(octet_length(t.data)) OVER w AS bytes
          FROM taskledger.events AS t
          WHERE t.stream = s.number AND t.version > $2 AND t.version <= $3
          WINDOW w AS (ORDER BY t.version)
      ) AS e ON e.n = 1 OR e.bytes <= $4
      WHERE s.flow = $1
      ORDER BY e.version"
);
/// The same backwards: versions below `$2`, but not below `$3`.
pub(super) const STREAM_EVENTS_BACK: &str = concat!(
    "SELECT s.version, s.last_position, e.found, ",
    columns!(),
    " FROM taskledger.streams AS s
      LEFT JOIN LATERAL (
          SELECT t.*, count(*) OVER () AS found, row_number() OVER w AS n,
              sum(octet_length(t.data)) OVER w AS bytes
          FROM taskledger.events AS t
          WHERE t.stream = s.number
            AND t.version < least($2, s.version + 1)
            AND t.version >= least($2, s.version + 1) - $3
          WINDOW w AS (ORDER BY t.version DESC)
      ) AS e ON e.n = 1 OR e.bytes <= $4
      WHERE s.flow = $1
      ORDER BY e.version DESC"
);
/// By the unique index of `streams.flow`, then by `events_by_stream`, one probe for each version.
pub(super) const STREAM_VERSIONS: &str = concat!(
    "SELECT s.last_position, e.n, ",
    columns!(),
    " FROM taskledger.streams AS s
      LEFT JOIN LATERAL (
          SELECT t.*, v.n, sum(octet_length(t.data)) OVER (ORDER BY v.n) AS bytes
          FROM unnest($2::bigint[]) WITH ORDINALITY AS v (version, n)
          CROSS JOIN LATERAL (
              SELECT u.* FROM taskledger.events AS u
              WHERE u.stream = s.number AND u.version = v.version LIMIT 1
          ) AS t
      ) AS e ON e.n = 1 OR e.bytes <= $3
      WHERE s.flow = $1
      ORDER BY e.n"
);
/// By the unique index of `streams.flow`, then by `events_by_stream`. No row if no event of the stream follows.
pub(super) const NEXT_OF_STREAM: &str = "SELECT e.position
      FROM taskledger.streams AS s
      CROSS JOIN LATERAL (
          SELECT t.position FROM taskledger.events AS t
          WHERE t.stream = s.number AND t.version > $2
          ORDER BY t.version
          LIMIT 1
      ) AS e
      WHERE s.flow = $1";
/// By the primary keys of `events` and `streams`. One row at least, since there is a head.
pub(super) const ALL_EVENTS: &str = concat!(
    "SELECT h.position, e.found, ",
    columns!(),
    " FROM (SELECT position FROM taskledger.head LIMIT 1) AS h
      LEFT JOIN LATERAL (
          SELECT t.*, count(*) OVER () AS found, row_number() OVER w AS n,
              sum(octet_length(t.data)) OVER w AS bytes
          FROM taskledger.events AS t
          WHERE t.position > $1 AND t.position <= $2
          WINDOW w AS (ORDER BY t.position)
      ) AS e ON e.n = 1 OR e.bytes <= $3
      LEFT JOIN LATERAL (
          SELECT t.flow FROM taskledger.streams AS t WHERE t.number = e.stream LIMIT 1
      ) AS s ON true
      ORDER BY e.position"
);
/// By `events_by_stream`. Reads the stream once; asked after an accident only.
pub(super) const STREAM_IDS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM taskledger.streams AS s
      JOIN taskledger.events AS e ON e.stream = s.number
      WHERE s.flow = $1 AND e.id = ANY ($2)
      ORDER BY e.version"
);
/// By the primary key, one probe for each key.
pub(super) const CLAIMS: &str = "SELECT c.n, h.value
      FROM unnest($1::smallint[], $2::bytea[]) WITH ORDINALITY AS c (kind, key, n)
      CROSS JOIN LATERAL (
          SELECT t.value FROM taskledger.claims AS t
          WHERE t.kind = c.kind AND t.key = c.key
            AND (t.expires_at IS NULL OR t.expires_at >= $3)
          LIMIT 1
      ) AS h";
/// By the primary key of `fences`, with the head locked.
pub(super) const RAISE_FENCE: &str = "SELECT taskledger.raise_fence($1)";
/// By the unique index of `streams.flow` and the primary key.
pub(super) const SNAPSHOT: &str = "SELECT s.version, n.version, n.checksum, n.bytes
      FROM taskledger.streams AS s
      JOIN taskledger.snapshots AS n ON n.stream = s.number
      WHERE s.flow = $1 AND n.format = $2";
/// The same. An older snapshot never replaces a newer one of the same format; says how many streams
/// have come as far as the snapshot.
pub(super) const PUT_SNAPSHOT: &str = "WITH known AS (
          SELECT number FROM taskledger.streams WHERE flow = $1 AND version >= $3
      ), put AS (
          INSERT INTO taskledger.snapshots AS o (stream, format, version, checksum, bytes)
          SELECT number, $2, $3, $4, $5 FROM known
          ON CONFLICT (stream) DO UPDATE
              SET format = excluded.format, version = excluded.version,
                  checksum = excluded.checksum, bytes = excluded.bytes
              WHERE excluded.format <> o.format OR excluded.version >= o.version
      )
      SELECT count(*) FROM known";

/// Why a read gave nothing.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The database did not answer, or not well.
    Sql(sqlx::Error),
    /// A row cannot be believed.
    Row(Error),
    /// A stream lacks a version.
    Missing(Missing),
}

/// A version that a stream lacks. Where its row was is not known.
#[derive(Debug)]
pub(super) struct Missing {
    pub(super) flow: FlowId,
    pub(super) version: Version,
    /// That of the last event of the stream, as the stream itself says.
    pub(super) last_position: Position,
}

impl Missing {
    /// The error. `next`: the position of the next event of the stream that exists.
    pub(super) fn before(&self, next: Option<Position>) -> Error {
        let Self { flow, version, .. } = self;
        Error::Corrupt {
            position: next.unwrap_or(self.last_position),
            flow: Some(*flow),
            reason: format!("stream `{flow}` has no event with version {version}"),
        }
    }
}

impl From<sqlx::Error> for Stopped {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<row::Damage> for Stopped {
    fn from(damage: row::Damage) -> Self {
        Self::Row(damage.into())
    }
}

/// The versions of a stream to read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Range {
    /// Up to `limit` above `after`, upwards.
    After { after: Version, limit: u64 },
    /// Up to `limit` below `before`, downwards.
    Before { before: Version, limit: u64 },
}

impl Range {
    /// How many versions of it exist in a stream with `version`, and the first of them.
    fn expected(self, version: Version) -> (u64, Version) {
        match self {
            Self::After { after, limit } => {
                let last = after.saturating_add(limit).min(version);
                (last.saturating_sub(after), after.saturating_add(1))
            }
            Self::Before { before, limit } => {
                let before = before.min(version + 1);
                (
                    before.saturating_sub(1).min(limit),
                    before.saturating_sub(1),
                )
            }
        }
    }

    const fn next(self, version: Version) -> Version {
        match self {
            Self::After { .. } => version + 1,
            Self::Before { .. } => version.saturating_sub(1),
        }
    }
}

/// The events in the rows of [`STREAM_EVENTS`] or [`STREAM_EVENTS_BACK`]. Cost: O(bytes).
pub(super) fn stream_range(
    rows: &[PgRow],
    flow: FlowId,
    range: Range,
) -> Result<Vec<Arc<Recorded>>, Stopped> {
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let version = first.try_get::<i64, _>(0)?.cast_unsigned();
    let last_position = first.try_get::<i64, _>(1)?.cast_unsigned();
    let found = first
        .try_get::<Option<i64>, _>(2)?
        .unwrap_or(0)
        .cast_unsigned();
    let (expected, mut next) = range.expected(version);
    if expected == 0 {
        return Ok(Vec::new());
    }
    if found == 0 {
        return Err(missing_version(flow, next, last_position));
    }
    let mut events = Vec::with_capacity(rows.len());
    for sql in rows {
        let event = match row::read(sql, 3).and_then(|row| row.decode()) {
            Ok(event) if event.version == next => event,
            // The next read begins with it.
            Ok(_) | Err(_) if !events.is_empty() => return Ok(events),
            Ok(_) => return Err(missing_version(flow, next, last_position)),
            Err(damage) => return Err(damage.into()),
        };
        next = range.next(next);
        events.push(Arc::new(event));
    }
    if events.is_empty() && found != expected {
        // Somewhere behind what was bounded in bytes; the next page will meet it, or this was all.
        let all_here = events.len() as u64 == found;
        if all_here {
            return Err(missing_version(flow, next, last_position));
        }
    }
    Ok(events)
}

/// The first of the events in those rows, up to where one is missing: of an archived stream.
pub(super) fn prefix(rows: &[PgRow], range: Range) -> Result<Vec<Arc<Recorded>>, Stopped> {
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let version = first.try_get::<i64, _>(0)?.cast_unsigned();
    let (_, mut next) = range.expected(version);
    let mut events = Vec::with_capacity(rows.len());
    if first.try_get::<Option<i64>, _>(2)?.is_none() {
        return Ok(events);
    }
    for sql in rows {
        let event = match row::read(sql, 3).and_then(|row| row.decode()) {
            Ok(event) => event,
            Err(_) if !events.is_empty() => break,
            Err(damage) => return Err(damage.into()),
        };
        if event.version != next {
            break;
        }
        next = range.next(next);
        events.push(Arc::new(event));
    }
    Ok(events)
}

/// The events in the rows of [`STREAM_VERSIONS`].
pub(super) fn versions(
    rows: &[PgRow],
    flow: FlowId,
    versions: &[Version],
    is_bounded: bool,
) -> Result<Vec<Arc<Recorded>>, Stopped> {
    let missing = |index: usize, position| match versions.get(index) {
        Some(version) => Err(missing_version(flow, *version, position)),
        None => Ok(Vec::new()),
    };
    let Some(first) = rows.first() else {
        return missing(0, 0);
    };
    let last_position = first.try_get::<i64, _>(0)?.cast_unsigned();
    let mut events = Vec::with_capacity(rows.len());
    for (index, sql) in rows.iter().enumerate() {
        let number: Option<i64> = sql.try_get(1)?;
        if number != i64::try_from(index + 1).ok() {
            return missing(index, last_position);
        }
        events.push(Arc::new(row::read(sql, 2)?.decode()?));
    }
    // What a bound has cut off is asked for again.
    if events.len() < versions.len() && !is_bounded {
        return missing(events.len(), last_position);
    }
    Ok(events)
}

/// A part of the whole log.
#[derive(Debug, Default)]
pub(super) struct Span {
    pub(super) events: Vec<Arc<Recorded>>,
    pub(super) damaged: Vec<Damaged>,
    /// Whether rows are missing; they are among the damaged ones.
    pub(super) has_gap: bool,
    /// Up to where it has been read.
    pub(super) next: Position,
    /// Position of the last event of the log.
    pub(super) head: Position,
}

impl Span {
    fn miss(&mut self, position: Position) {
        self.has_gap = true;
        self.damaged.push(Damaged::missing(position));
    }
}

/// The part of the log in the rows of [`ALL_EVENTS`]. Up to `horizon` positions may be missing.
pub(super) fn all(
    rows: &[PgRow],
    after: Position,
    limit: u64,
    horizon: Position,
) -> Result<Span, sqlx::Error> {
    let first = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let head = first.try_get::<i64, _>(0)?.cast_unsigned();
    let found = first
        .try_get::<Option<i64>, _>(1)?
        .unwrap_or(0)
        .cast_unsigned();
    let last = after.saturating_add(limit).min(head);
    let mut span = Span {
        next: after,
        head,
        ..Span::default()
    };
    if found > 0 {
        for sql in rows {
            let read = row::read(sql, 2).and_then(|row| row.decode());
            let position = match &read {
                Ok(event) => event.position,
                Err(damage) => damage.position,
            };
            if position != span.next + 1 && position - 1 > horizon {
                span.miss(span.next + 1);
            }
            span.next = position;
            match read {
                Ok(event) => span.events.push(Arc::new(event)),
                Err(damage) => span.damaged.push(damage.into()),
            }
        }
    }
    // Else bytes were bounded, and the next page begins with what is left.
    if found == 0 || rows.len() as u64 == found {
        if span.next < last && last > horizon {
            span.miss(span.next + 1);
        }
        span.next = span.next.max(last);
    }
    Ok(span)
}

/// The events of `flow` with these ids, in order of version; `None` unless all are there.
/// Cost: O(events of the stream), in the database.
pub(super) async fn find(
    connection: &mut PgConnection,
    flow: FlowId,
    ids: &[EventId],
) -> Result<Option<Vec<Arc<Recorded>>>, Stopped> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query(STREAM_IDS)
        .bind(flow.0)
        .bind(&ids)
        .fetch_all(connection)
        .await?;
    if rows.len() != ids.len() {
        return Ok(None);
    }
    let mut events = Vec::with_capacity(rows.len());
    for sql in &rows {
        events.push(Arc::new(row::read(sql, 0)?.decode()?));
    }
    Ok(Some(events))
}

fn missing_version(flow: FlowId, version: Version, last_position: Position) -> Stopped {
    Stopped::Missing(Missing {
        flow,
        version,
        last_position,
    })
}
