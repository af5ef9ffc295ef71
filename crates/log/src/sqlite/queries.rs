//! The queries that readers make. One prepared statement each, kept by the connection for its life.
//!
//! Owns: the SELECT statements. Every row that leaves is checked; a row that is missing between its
//! neighbours is damage too, and is named.

use super::failure::of_read;
use super::retention;
use super::row::{self, Row, columns};
use super::span::ALL_EVENTS;
use crate::chain::Mark;
use crate::retention::{Dropped, Undropped, being_dropped};
use crate::row::{claim_columns, snapshot_checksum};
use crate::{ClaimKey, Error, Snapshot};
use rusqlite::{CachedStatement, Connection, OptionalExtension};
use std::sync::Arc;
use taskledger_domain::{EventId, FlowId, Position, Recorded, Timestamp, Version};

/// By the unique index of `streams.flow`.
const STREAM: &str = "SELECT number, version, last_position FROM streams WHERE flow = ?1";
/// By `events_by_stream`.
const STREAM_EVENTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM events AS e
      LEFT JOIN streams AS s ON s.number = e.stream
      WHERE e.stream = ?1 AND e.version > ?2 AND e.version <= ?3
      ORDER BY e.version"
);
/// By `events_by_stream`.
const STREAM_EVENTS_BACK: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM events AS e
      LEFT JOIN streams AS s ON s.number = e.stream
      WHERE e.stream = ?1 AND e.version >= ?2 AND e.version < ?3
      ORDER BY e.version DESC"
);
/// By `events_by_stream`.
const NEXT_OF_STREAM: &str =
    "SELECT position FROM events WHERE stream = ?1 AND version > ?2 ORDER BY version LIMIT 1";
/// By `events_by_stream`, from the newest, since what is looked for was written last.
const STREAM_IDS: &str = "SELECT version, id FROM events WHERE stream = ?1 ORDER BY version DESC";
/// By the primary key.
const CLAIM: &str = "SELECT value, expires_at FROM claims WHERE kind = ?1 AND key = ?2";
/// By the primary key.
const SNAPSHOT: &str =
    "SELECT version, checksum, bytes FROM snapshots WHERE stream = ?1 AND format = ?2";

/// By the primary key.
const CHAIN_HEAD: &str = "SELECT position, hash FROM events ORDER BY position DESC LIMIT 1";

/// A row of `streams`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) number: i64,
    pub(super) version: Version,
    pub(super) last_position: Position,
}

/// Statements of the writer ([`super::writer`], [`super::beside`], [`super::checkpoint`]) beside these.
const OTHER_STATEMENTS: usize = 16;
const STATEMENTS: [&str; 7] = [
    STREAM,
    STREAM_EVENTS,
    STREAM_EVENTS_BACK,
    ALL_EVENTS,
    STREAM_IDS,
    CLAIM,
    SNAPSHOT,
];

/// The questions, asked on one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queries<'c> {
    pub(super) connection: &'c Connection,
}

impl<'c> Queries<'c> {
    /// Has the connection keep what is prepared on it, and prepares all of these statements.
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        connection.set_prepared_statement_cache_capacity(STATEMENTS.len() + OTHER_STATEMENTS);
        for sql in STATEMENTS {
            connection.prepare_cached(sql)?;
        }
        Ok(Self::on(connection))
    }

    /// On a connection for which they were prepared. Cost: none.
    pub(super) const fn on(connection: &'c Connection) -> Self {
        Self { connection }
    }

    pub(super) fn stream(&self, flow: FlowId) -> rusqlite::Result<Option<Stream>> {
        self.connection
            .prepare_cached(STREAM)?
            .query_row([flow.0.as_bytes()], |row| {
                Ok(Stream {
                    number: row.get(0)?,
                    version: row.get::<_, i64>(1)?.cast_unsigned(),
                    last_position: row.get::<_, i64>(2)?.cast_unsigned(),
                })
            })
            .optional()
    }

    pub(super) fn statement(&self, sql: &str) -> Result<CachedStatement<'c>, Error> {
        let statement = self.connection.prepare_cached(sql);
        statement.map_err(|e| of_read(&e, 0))
    }

    /// See [`crate::EventStore::stream_head`].
    pub(super) fn stream_head(&self, flow: FlowId) -> Result<Option<(Version, Position)>, Error> {
        let stream = self.stream(flow).map_err(|e| of_read(&e, 0))?;
        Ok(stream.map(|s| (s.version, s.last_position)))
    }

    /// See [`crate::EventStore::read_stream`].
    pub(super) fn read_stream(
        &self,
        flow: FlowId,
        after: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let Some(stream) = self.stream(flow).map_err(|e| of_read(&e, 0))? else {
            return Ok(Vec::new());
        };
        let last = after.saturating_add(limit as u64).min(stream.version);
        if last <= after {
            return Ok(Vec::new());
        }
        self.stream_range(flow, stream, after, last, bytes_max)
    }

    /// See [`crate::EventStore::read_stream_back`].
    pub(super) fn read_stream_back(
        &self,
        flow: FlowId,
        before: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let fail = |e: rusqlite::Error| of_read(&e, 0);
        let Some(stream) = self.stream(flow).map_err(fail)? else {
            return Ok(Vec::new());
        };
        let before = before.min(stream.version + 1);
        let first = before.saturating_sub(limit as u64).max(1);
        if before <= first {
            return Ok(Vec::new());
        }
        let range = (stream.number, first.cast_signed(), before.cast_signed());
        let mut statement = self.statement(STREAM_EVENTS_BACK)?;
        let rows = statement.query(range).map_err(fail)?;
        let versions = (first..before).rev();
        let (events, missing) = checked(rows, versions, bytes_max)?;
        match missing {
            Some(version) if events.is_empty() && !self.is_archived(stream)? => {
                Err(self.missing_version(flow, stream, version))
            }
            Some(_) | None => Ok(events),
        }
    }

    /// The error for a version that a stream lacks. Where its row was is not known: the position is that of the next
    /// event of the stream that exists, and that of the last event of the stream if there is none.
    fn missing_version(&self, flow: FlowId, stream: Stream, version: Version) -> Error {
        let behind = (stream.number, version.cast_signed());
        let position = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let next = self.connection.query_row(NEXT_OF_STREAM, behind, position);
        match next.optional() {
            Ok(next) => {
                let position = next.map_or(stream.last_position, i64::cast_unsigned);
                missing_version(flow, version, position)
            }
            Err(error) => of_read(&error, 0),
        }
    }

    fn is_archived(&self, stream: Stream) -> Result<bool, Error> {
        retention::is_archived(self.connection, stream).map_err(|e| of_read(&e, 0))
    }

    /// See [`crate::EventStore::chain_head`].
    pub(super) fn chain_head(&self) -> Result<Option<Mark>, Error> {
        let found = self.connection.query_row(CHAIN_HEAD, [], |sql| {
            let position = sql.get::<_, i64>(0)?.cast_unsigned();
            let hash = row::hash_or_null(sql.get_ref(1)?)?;
            Ok(hash.map(|hash| Mark { position, hash }))
        });
        let found = found.optional().map_err(|e| of_read(&e, 0))?;
        Ok(found.flatten())
    }

    /// See [`crate::EventStore::dropped`].
    pub(super) fn dropped(&self) -> Result<Dropped, Error> {
        retention::read_dropped(self.connection)
    }

    /// See [`crate::EventStore::undropped`].
    pub(super) fn undropped(&self, after: u64, limit: usize) -> Result<Vec<Undropped>, Error> {
        retention::undropped(self.connection, after, limit).map_err(|e| of_read(&e, 0))
    }

    /// Events with versions in `after + 1 ..= last`, all of which exist unless the stream was
    /// archived; fewer, but at least one, when they are larger than `bytes_max`.
    fn stream_range(
        &self,
        flow: FlowId,
        stream: Stream,
        after: Version,
        last: Version,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let range = (stream.number, after.cast_signed(), last.cast_signed());
        let mut statement = self.statement(STREAM_EVENTS)?;
        let rows = statement.query(range).map_err(|e| of_read(&e, 0))?;
        let versions = after + 1..=last;
        let (events, missing) = checked(rows, versions, bytes_max)?;
        match missing {
            None => Ok(events),
            // The next read begins with it.
            Some(_) if !events.is_empty() => Ok(events),
            Some(version) if !self.is_archived(stream)? => {
                Err(self.missing_version(flow, stream, version))
            }
            Some(_) => self.read_versions(flow, &[stream.version], usize::MAX),
        }
    }

    /// See [`crate::EventStore::read_versions_within`].
    pub(super) fn read_versions(
        &self,
        flow: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let Some(stream) = self.stream(flow).map_err(|e| of_read(&e, 0))? else {
            return match versions.first() {
                None => Ok(Vec::new()),
                Some(version) => Err(missing_version(flow, *version, 0)),
            };
        };
        let mut events: Vec<Arc<Recorded>> = Vec::new();
        let mut bytes = 0;
        let mut statement = self.statement(STREAM_EVENTS)?;
        for version in versions {
            if *version == 0 || *version > stream.version {
                return Err(missing_version(flow, *version, stream.last_position));
            }
            let range = (
                stream.number,
                (version - 1).cast_signed(),
                version.cast_signed(),
            );
            let fail = |e: rusqlite::Error| of_read(&e, 0);
            let mut rows = statement.query(range).map_err(fail)?;
            let Some(sql) = rows.next().map_err(fail)? else {
                drop(rows);
                if self.is_archived(stream)? {
                    return Err(being_dropped(flow));
                }
                return Err(self.missing_version(flow, stream, *version));
            };
            let row = Row::read(sql)?;
            bytes += row.data.len();
            if bytes > bytes_max && !events.is_empty() {
                break;
            }
            events.push(Arc::new(row.decode()?));
        }
        Ok(events)
    }

    /// The events of `flow` with these ids, in order of version; `None` unless all are there.
    /// Cost: O(events written since).
    pub(super) fn find(
        &self,
        flow: FlowId,
        ids: &[EventId],
    ) -> Result<Option<Vec<Arc<Recorded>>>, Error> {
        let fail = |e: rusqlite::Error| of_read(&e, 0);
        let Some(stream) = self.stream(flow).map_err(fail)? else {
            return Ok(None);
        };
        let mut wanted: std::collections::HashSet<&[u8]> =
            ids.iter().map(|id| id.0.as_bytes().as_slice()).collect();
        let mut versions = Vec::with_capacity(ids.len());
        {
            let mut statement = self.statement(STREAM_IDS)?;
            let mut rows = statement.query([stream.number]).map_err(fail)?;
            while let Some(sql) = rows.next().map_err(fail)? {
                let id = sql.get_ref(1).map_err(fail)?.as_blob().unwrap_or_default();
                if wanted.remove(id) {
                    versions.push(sql.get::<_, i64>(0).map_err(fail)?.cast_unsigned());
                }
                if wanted.is_empty() {
                    break;
                }
            }
        }
        if !wanted.is_empty() {
            return Ok(None);
        }
        versions.reverse();
        self.read_versions(flow, &versions, usize::MAX).map(Some)
    }

    /// Value and expiry of a claim, expired or not.
    pub(super) fn claim(
        &self,
        key: &ClaimKey,
    ) -> rusqlite::Result<Option<(Arc<str>, Option<Timestamp>)>> {
        self.connection
            .prepare_cached(CLAIM)?
            .query_row(claim_columns(key), |row| {
                let value = Arc::from(row.get_ref(0)?.as_str()?);
                let expires_at = row.get::<_, Option<i64>>(1)?.map(Timestamp);
                Ok((value, expires_at))
            })
            .optional()
    }

    /// The value of a claim that is held at `now`.
    pub(super) fn held_claim(
        &self,
        key: &ClaimKey,
        now: Timestamp,
    ) -> rusqlite::Result<Option<Arc<str>>> {
        let found = self.claim(key)?;
        Ok(found
            .filter(|(_, expires_at)| expires_at.is_none_or(|at| at >= now))
            .map(|(value, _)| value))
    }

    /// See [`crate::EventStore::load_snapshot`]. One that is damaged is as good as absent.
    pub(super) fn load_snapshot(
        &self,
        flow: FlowId,
        format: u32,
    ) -> Result<Option<Snapshot>, Error> {
        let fail = |e: rusqlite::Error| of_read(&e, 0);
        let Some(stream) = self.stream(flow).map_err(fail)? else {
            return Ok(None);
        };
        let found = self
            .statement(SNAPSHOT)?
            .query_row((stream.number, format), |row| {
                let version: i64 = row.get(0)?;
                let checksum: i64 = row.get(1)?;
                let bytes: Vec<u8> = row.get(2)?;
                Ok((version.cast_unsigned(), checksum, bytes))
            })
            .optional()
            .map_err(fail)?;
        Ok(found.and_then(|(version, checksum, bytes)| {
            let believed = version <= stream.version
                && checksum == i64::from(snapshot_checksum(flow, format, version, &bytes));
            believed.then_some(Snapshot {
                version,
                format,
                bytes,
            })
        }))
    }
}

/// The events of these rows, up to the first that is damaged or has another than the expected version, and the version
/// that is missing there; fewer, but at least one, when they are larger than `bytes_max`. An error when already the
/// first is damaged.
fn checked(
    mut rows: rusqlite::Rows<'_>,
    versions: impl Iterator<Item = Version>,
    bytes_max: usize,
) -> Result<(Vec<Arc<Recorded>>, Option<Version>), Error> {
    let mut events = Vec::new();
    let mut bytes = 0;
    for version in versions {
        let sql = match rows.next() {
            Ok(Some(sql)) => sql,
            Ok(None) => return Ok((events, Some(version))),
            Err(_) if !events.is_empty() => break,
            Err(error) => return Err(of_read(&error, 0)),
        };
        let event = match Row::read(sql).and_then(|row| Ok((row.data.len(), row.decode()?))) {
            Ok((len, event)) => {
                bytes += len;
                event
            }
            // The next read begins with it.
            Err(_) if !events.is_empty() => break,
            Err(damage) => return Err(damage.into()),
        };
        if bytes > bytes_max && !events.is_empty() {
            break;
        }
        if event.version != version {
            return Ok((events, Some(version)));
        }
        events.push(Arc::new(event));
    }
    Ok((events, None))
}

fn missing_version(flow: FlowId, version: Version, position: Position) -> Error {
    Error::Corrupt {
        position,
        flow: Some(flow),
        reason: format!("stream `{flow}` has no event with version {version}"),
    }
}
