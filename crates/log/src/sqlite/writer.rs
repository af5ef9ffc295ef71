//! Judges appends and writes them, inside one transaction.
//!
//! Owns: the INSERT and UPDATE statements, the numbering of events, the versions of busy streams.
//! Judging only reads; writing starts when nothing can refuse any more, so a refused append leaves
//! no trace and its neighbours in the transaction are untouched.
//! Fed by the committer, one at a time; knows no threads and no waiting.

use super::beside::{self, Beside};
use super::queries::Queries;
use super::retention;
use super::row::{self, Row};
use crate::chain::Hash;
use crate::ring::Fresh;
use crate::{Append, Error, NewEvent, Outcome, Snapshot};
use rusqlite::{Connection, Statement, params};
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::{FlowId, Position, Recorded, Timestamp, Version};

/// Streams whose number and version are remembered: more than are hot at once, about 5 MB.
const STREAMS_KNOWN_MAX: usize = 65_536;
/// The newest event's position, time and hash, and the highest stream number.
const NEWEST: &str = "SELECT coalesce(max(position), 0), coalesce((SELECT recorded_at FROM events \
                      ORDER BY position DESC LIMIT 1), 0), coalesce((SELECT max(number) FROM \
                      streams), 0), (SELECT hash FROM events ORDER BY position DESC LIMIT 1) \
                      FROM events";
const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
pub(super) const INSERT_STREAM: &str =
    "INSERT INTO streams (number, flow, version, last_position) VALUES (?1, ?2, ?3, ?4)";
/// By the primary key.
const UPDATE_STREAM: &str = "UPDATE streams SET version = ?2, last_position = ?3 WHERE number = ?1";
/// Bound by [`Row::insert`].
pub(super) const INSERT_EVENT: &str = "INSERT INTO events (position, stream, version, id, time, recorded_at, \
                            kind, schema_version, actor, correlation, causation, trace, checksum, \
                            data, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, \
                            ?13, ?14, ?15)";

#[derive(Debug, Clone, Copy)]
struct Known {
    number: i64,
    version: Version,
}

/// The end of the log.
#[derive(Debug, Clone, Copy)]
struct End {
    position: Position,
    recorded_at: Timestamp,
    stream_number: i64,
    hash: Option<Hash>,
}

impl End {
    /// Writes the next event.
    fn write(
        &mut self,
        insert: &mut Statement<'_>,
        (flow, stream): (FlowId, i64),
        version: Version,
        new: NewEvent,
    ) -> rusqlite::Result<Arc<Recorded>> {
        self.position += 1;
        let (position, recorded_at) = (self.position, self.recorded_at);
        let new_row = Row::new(flow, version, &new);
        let previous = self.hash.unwrap_or(Hash::BEFORE_FIRST);
        let hash = previous.link(position, recorded_at, new_row.content());
        self.hash = Some(hash);
        let row = Row {
            position,
            recorded_at,
            hash: Some(hash),
            ..new_row
        };
        row.insert(insert, stream)?;
        Ok(Arc::new(Recorded {
            position,
            flow,
            version,
            id: new.id,
            time: new.time,
            recorded_at,
            metadata: new.metadata,
            event: new.event,
        }))
    }
}

/// The write side of one connection.
#[derive(Debug)]
pub(super) struct Writer {
    connection: Connection,
    beside: Beside,
    streams: HashMap<FlowId, Known>,
    end: End,
    /// A transaction was undone: `end` must be found again.
    end_is_stale: bool,
    fresh: Vec<Fresh>,
}

impl Writer {
    /// Prepares what every transaction needs and finds the end of the log.
    pub(super) fn prepare(connection: Connection) -> rusqlite::Result<Self> {
        Queries::prepare(&connection)?;
        for sql in [BEGIN, COMMIT, INSERT_STREAM, UPDATE_STREAM, INSERT_EVENT] {
            connection.prepare_cached(sql)?;
        }
        Ok(Self {
            end: find_end(&connection)?,
            connection,
            beside: Beside::default(),
            streams: HashMap::new(),
            end_is_stale: false,
            fresh: Vec::new(),
        })
    }

    /// The connection, for what is no transaction.
    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Position of the last event, those of the open transaction included.
    pub(super) const fn head(&self) -> Position {
        self.end.position
    }

    /// Opens a transaction whose events are recorded at `now`, or at the time of the newest event
    /// when the clock is behind it.
    pub(super) fn begin(&mut self, now: Timestamp) -> rusqlite::Result<()> {
        self.connection.prepare_cached(BEGIN)?.execute([])?;
        if self.end_is_stale {
            self.end = find_end(&self.connection)?;
            self.end_is_stale = false;
        }
        self.end.recorded_at = self.end.recorded_at.max(now);
        Ok(())
    }

    /// Makes the transaction durable and gives its events.
    pub(super) fn commit(&mut self) -> rusqlite::Result<Vec<Fresh>> {
        self.connection.prepare_cached(COMMIT)?.execute([])?;
        self.beside.committed();
        Ok(std::mem::take(&mut self.fresh))
    }

    /// Up to where events may be missing because they were dropped; all of it when that cannot be read.
    pub(super) fn horizon(&self) -> Position {
        let dropped = Queries::on(&self.connection).dropped();
        dropped.map_or(self.end.position, |dropped| dropped.horizon)
    }

    /// Undoes the transaction, unless SQLite has done so already.
    pub(super) fn roll_back(&mut self) -> rusqlite::Result<()> {
        self.streams.clear();
        self.fresh.clear();
        self.end_is_stale = true;
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        Ok(())
    }

    /// Deletes some expired claims when it is time to; part of the open transaction.
    pub(super) fn sweep_when_due(&mut self) -> rusqlite::Result<()> {
        self.beside
            .sweep_when_due(&self.connection, self.end.recorded_at)
    }

    /// See [`crate::EventStore::raise_fence`]; part of the open transaction.
    pub(super) fn raise_fence(&mut self, name: &str) -> rusqlite::Result<u64> {
        beside::raise_fence(&self.connection, name)
    }

    /// Judges one append and, unless it is refused, writes it into the open transaction.
    /// Cost: O(events + claims).
    pub(super) fn append(&mut self, append: Append) -> rusqlite::Result<Outcome> {
        if let Some(fence) = &append.fence
            && beside::is_fenced(&self.connection, fence)?
        {
            return Ok(Outcome::Fenced);
        }
        let known = self.known(append.stream)?;
        let actual = known.map_or(0, |k| k.version);
        if actual != append.expected {
            return Ok(Outcome::Conflict { actual });
        }
        let queries = Queries::on(&self.connection);
        for claim in &append.claims {
            let held = queries.held_claim(&claim.key, self.end.recorded_at)?;
            if let Some(value) = held {
                return Ok(Outcome::Exists {
                    key: claim.key.clone(),
                    value,
                });
            }
        }
        self.write(known, append).map(Outcome::Appended)
    }

    fn known(&mut self, flow: FlowId) -> rusqlite::Result<Option<Known>> {
        if let Some(known) = self.streams.get(&flow) {
            return Ok(Some(*known));
        }
        let stream = Queries::on(&self.connection).stream(flow)?;
        Ok(stream.map(|s| Known {
            number: s.number,
            version: s.version,
        }))
    }

    fn write(
        &mut self,
        known: Option<Known>,
        append: Append,
    ) -> rusqlite::Result<Vec<Arc<Recorded>>> {
        let count = append.events.len() as u64;
        let version = append.expected + count;
        let last_position = self.end.position + count;
        let number = match known {
            Some(Known { number, .. }) => {
                let mut update = self.connection.prepare_cached(UPDATE_STREAM)?;
                update.execute(params![
                    number,
                    version.cast_signed(),
                    last_position.cast_signed()
                ])?;
                number
            }
            None => {
                self.end.stream_number += 1;
                let mut insert = self.connection.prepare_cached(INSERT_STREAM)?;
                insert.execute(params![
                    self.end.stream_number,
                    append.stream.0.as_bytes(),
                    version.cast_signed(),
                    last_position.cast_signed()
                ])?;
                self.end.stream_number
            }
        };
        if self.streams.len() >= STREAMS_KNOWN_MAX {
            self.streams.clear();
        }
        self.streams
            .insert(append.stream, Known { number, version });
        for claim in &append.claims {
            self.beside.put_claim(&self.connection, claim)?;
        }
        let mut insert = self.connection.prepare_cached(INSERT_EVENT)?;
        let mut recorded = Vec::with_capacity(append.events.len());
        for (event, version) in append.events.into_iter().zip(append.expected + 1..) {
            let data_len = event.encoded.data.len();
            let event = self
                .end
                .write(&mut insert, (append.stream, number), version, event)?;
            self.fresh.push(Fresh {
                event: event.clone(),
                data_len,
            });
            recorded.push(event);
        }
        Ok(recorded)
    }

    /// See [`crate::EventStore::save_snapshot`]; part of the open transaction.
    pub(super) fn save_snapshot(
        &mut self,
        flow: FlowId,
        snapshot: &Snapshot,
    ) -> rusqlite::Result<Result<(), Error>> {
        let Some(known) = self.known(flow)?.filter(|k| k.version >= snapshot.version) else {
            return Ok(Err(Error::Invalid(format!(
                "flow `{flow}` has no version {} to take a snapshot of",
                snapshot.version
            ))));
        };
        beside::put_snapshot(&self.connection, flow, known.number, snapshot)?;
        Ok(Ok(()))
    }

    /// See [`crate::EventStore::drop_archived`]; part of the open transaction.
    pub(super) fn drop_archived(
        &mut self,
        flow: FlowId,
        limit: usize,
    ) -> rusqlite::Result<Result<u64, Error>> {
        let stream = Queries::on(&self.connection).stream(flow)?;
        retention::drop_archived(&self.connection, flow, stream, limit)
    }

    /// The committed events with these ids; outside of a transaction.
    pub(super) fn find(
        &self,
        flow: FlowId,
        ids: &[taskledger_domain::EventId],
    ) -> Result<Option<Vec<Arc<Recorded>>>, Error> {
        Queries::on(&self.connection).find(flow, ids)
    }
}

fn find_end(connection: &Connection) -> rusqlite::Result<End> {
    connection.query_row(NEWEST, [], |row| {
        Ok(End {
            position: row.get::<_, i64>(0)?.cast_unsigned(),
            recorded_at: Timestamp(row.get(1)?),
            stream_number: row.get(2)?,
            hash: row::hash_or_null(row.get_ref(3)?)?,
        })
    })
}
