//! Checks the whole log, for `events verify`.
//!
//! Owns: what must hold of a log. Walks it in short reads, so a server may be running on it, and
//! names every row that breaks a rule instead of stopping at the first.

use super::export::head;
use super::open::{self, OpenError};
use super::retention;
use super::row::{Row, columns};
use crate::chain::Mark;
use crate::retention::Dropped;
use crate::row::snapshot_checksum;
use crate::verify::snapshots::{FORMAT, Replay};
use crate::verify::{
    DroppedFlow, FAULTS_LISTED_MAX, PAGE_ROWS_MAX, PAGE_STREAMS_MAX, Report, StreamEntry,
    StreamRow, Walk, count_dropped, name_missing_versions,
};
use rusqlite::{Connection, OptionalExtension as _, Statement};
use std::path::Path;
use taskledger_domain::{FlowId, Position};
use uuid::Uuid;

/// By the primary key.
const EVENTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM events AS e
      LEFT JOIN streams AS s ON s.number = e.stream
      WHERE e.position > ?1 AND e.position <= ?2
      ORDER BY e.position"
);
/// By the primary key of `streams`, then `events_by_stream`, which holds all that is asked for.
const STREAMS: &str = "SELECT s.number, s.flow, s.version, s.last_position,
        (SELECT count(*) FROM events AS e WHERE e.stream = s.number),
        (SELECT coalesce(min(e.version), 0) FROM events AS e WHERE e.stream = s.number),
        (SELECT coalesce(max(e.version), 0) FROM events AS e WHERE e.stream = s.number),
        (SELECT coalesce(max(e.position), 0) FROM events AS e WHERE e.stream = s.number)
    FROM streams AS s
    WHERE s.number > ?1
    ORDER BY s.number
    LIMIT ?2";
/// By `events_by_stream`; the walk finds where a version is missing or out of order.
const STREAM_VERSIONS: &str = "SELECT version, position, kind = 'FlowArchived' FROM events WHERE stream = ?1 ORDER BY version";

/// By `dropped_by_flow`, then the keys of `streams` and `events`.
const DROPPED_FLOWS: &str =
    "SELECT d.flow, count(*), max(d.version), max(d.position), s.version, s.last_position,
        e.kind IS 'FlowArchived',
        (SELECT count(*) FROM events AS f WHERE f.stream = s.number)
    FROM dropped_events AS d
    LEFT JOIN streams AS s ON s.flow = d.flow
    LEFT JOIN events AS e ON e.position = s.last_position AND e.stream = s.number
    GROUP BY d.flow
    ORDER BY d.flow";
/// One statement sees one state.
const DROPPED_COUNTS: &str = "SELECT events, (SELECT count(*) FROM dropped_events) FROM dropped";

/// By the primary keys.
const SNAPSHOTS: &str = "SELECT n.stream, s.flow, n.version, n.checksum, n.bytes
    FROM snapshots AS n
    JOIN streams AS s ON s.number = n.stream
    WHERE n.stream > ?1 AND n.format = ?2
    ORDER BY n.stream
    LIMIT 1";
/// By `events_by_stream`.
const STREAM_EVENTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM events AS e
      LEFT JOIN streams AS s ON s.number = e.stream
      WHERE e.stream = ?1 AND e.version > ?2 AND e.version <= ?3
      ORDER BY e.version
      LIMIT ?4"
);

/// Checks the log `path` (the file): dense positions, but for what was dropped, checksums, the
/// hash chain, which must go through `kept` if that is given, events that this program can read, times
/// that do not run backwards, dense versions in each stream, the table of streams, and SQLite's own
/// structures. `progress` is told the position reached and the head, now and then.
/// Cost: O(log), in constant memory.
///
/// # Errors
/// [`OpenError`]: there is no log, or none of it can be read. Damage is not an error but a
/// `Fault` of the report.
pub fn verify(
    path: &Path,
    kept: Option<Mark>,
    mut progress: impl FnMut(Position, Position),
) -> Result<Report, OpenError> {
    let unusable = |source| OpenError::Unusable {
        path: path.to_owned(),
        source,
    };
    let connection = open::reader(path)?;
    let mut report = Report {
        head: head(&connection).map_err(unusable)?,
        ..Report::default()
    };
    let mut events = connection.prepare(EVENTS).map_err(unusable)?;
    let mut walk = Walk::with(kept);
    let mut dropped = Dropped::default();
    while walk.after < report.head {
        let after = walk.after;
        page(&mut walk, &mut events, &mut report);
        dropped = retention::dropped(&connection).map_err(unusable)?;
        let remains = retention::remains(&connection, after, walk.after, usize::MAX);
        walk.page_ends(dropped, remains.map_err(unusable)?, &mut report);
        progress(walk.after.min(report.head), report.head);
    }
    walk.ends(dropped, &mut report);
    if let Err(error) = streams(&connection, &mut report) {
        report.add(None, None, format!("the streams cannot be read: {error}"));
    }
    if let Err(error) = dropped_flows(&connection, &mut report) {
        let reason = format!("the dropped events cannot be read: {error}");
        report.add(None, None, reason);
    }
    if let Err(error) = snapshots(&connection, &mut report) {
        let reason = format!("the snapshots cannot be read: {error}");
        report.add(None, None, reason);
    }
    if let Err(error) = structures(&connection, &mut report) {
        report.add(None, None, format!("the file cannot be read: {error}"));
    }
    Ok(report)
}

/// Always moves on, by a page or past a row that SQLite cannot read.
fn page(walk: &mut Walk, events: &mut Statement<'_>, report: &mut Report) {
    let last = walk.after.saturating_add(PAGE_ROWS_MAX).min(report.head);
    if let Err(error) = rows(walk, events, last, report) {
        walk.unreadable(format!("SQLite cannot read the row: {error}"), report);
    } else {
        walk.skip_to(last + 1);
    }
}

fn rows(
    walk: &mut Walk,
    events: &mut Statement<'_>,
    last: Position,
    report: &mut Report,
) -> rusqlite::Result<()> {
    let mut rows = events.query((walk.after.cast_signed(), last.cast_signed()))?;
    while let Some(sql) = rows.next()? {
        walk.row(Row::read(sql), report);
    }
    Ok(())
}

fn streams(connection: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let mut page = connection.prepare(STREAMS)?;
    let mut versions = connection.prepare(STREAM_VERSIONS)?;
    let mut after = 0i64;
    loop {
        let mut suspects = Vec::new();
        let mut seen = 0;
        {
            // One statement sees one state of the log, whatever a server writes meanwhile.
            let mut rows = page.query((after, PAGE_STREAMS_MAX))?;
            while let Some(row) = rows.next()? {
                let number: i64 = row.get(0)?;
                let flow = row.get_ref(1)?.as_blob().ok();
                let flow = flow.and_then(|b| Uuid::from_slice(b).ok()).map(FlowId);
                let stream = StreamRow {
                    flow,
                    version: row.get(2)?,
                    last_position: row.get(3)?,
                    events: (row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?),
                };
                after = number;
                seen += 1;
                if flow.is_none() {
                    let reason = format!("stream number {number} has no flow id");
                    report.add(None, None, reason);
                }
                if stream.check(report) {
                    suspects.push((number, flow));
                }
            }
        }
        for (number, flow) in suspects {
            let rows = versions.query_map([number], |row| {
                Ok(StreamEntry {
                    version: row.get::<_, i64>(0)?.cast_unsigned(),
                    position: row.get::<_, i64>(1)?.cast_unsigned(),
                    is_end: row.get(2)?,
                })
            })?;
            let found: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
            name_missing_versions(found.into_iter(), flow, report);
        }
        if seen == 0 {
            return Ok(());
        }
    }
}

/// Whether each event that was dropped belongs to a flow that was archived.
fn dropped_flows(connection: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let (events, left) =
        connection.query_row(DROPPED_COUNTS, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    count_dropped(events, left, report);
    let mut statement = connection.prepare(DROPPED_FLOWS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let flow = row.get_ref(0)?.as_blob().ok();
        let stream = (row.get::<_, Option<i64>>(4)?, row.get::<_, Option<i64>>(5)?);
        let flow = DroppedFlow {
            flow: flow.and_then(|b| Uuid::from_slice(b).ok()).map(FlowId),
            dropped: (row.get(1)?, row.get(2)?, row.get(3)?),
            stream: stream.0.zip(stream.1),
            is_archived: row.get(6)?,
            events: row.get(7)?,
        };
        flow.check(report);
    }
    Ok(())
}

/// Whether each snapshot is the state that the events of its flow make. Those with a wrong checksum are never loaded.
fn snapshots(connection: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let mut snapshots = connection.prepare(SNAPSHOTS)?;
    let mut events = connection.prepare(STREAM_EVENTS)?;
    let mut after = 0i64;
    loop {
        let found = snapshots.query_row((after, FORMAT), |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Vec<u8>>(1)?,
                row.get::<_, i64>(2)?.cast_unsigned(),
                row.get::<_, i64>(3)?,
                row.get::<_, Vec<u8>>(4)?,
            ))
        });
        let Some((stream, flow, version, checksum, bytes)) = found.optional()? else {
            return Ok(());
        };
        after = stream;
        let flow = FlowId(Uuid::from_slice(&flow).unwrap_or_default());
        if checksum != i64::from(snapshot_checksum(flow, FORMAT, version, &bytes)) {
            continue;
        }
        let mut replay = Replay::new(flow, version, bytes);
        while let Some((from, to)) = replay.wants() {
            let page = (
                stream,
                from.cast_signed(),
                to.cast_signed(),
                PAGE_ROWS_MAX.cast_signed(),
            );
            let mut rows = events.query(page)?;
            let mut is_empty = true;
            while let Some(sql) = rows.next()? {
                is_empty = false;
                replay.row(Row::read(sql));
            }
            if is_empty {
                replay.stop();
            }
        }
        replay.finish(report);
    }
}

/// SQLite's own check: pages, and indexes against tables.
fn structures(connection: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let mut check = connection.prepare(&format!("PRAGMA integrity_check({FAULTS_LISTED_MAX})"))?;
    let mut rows = check.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if text != "ok" {
            report.add(None, None, format!("SQLite: {text}"));
        }
    }
    Ok(())
}
