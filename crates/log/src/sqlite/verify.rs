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
use crate::verify::{
    FAULTS_LISTED_MAX, PAGE_ROWS_MAX, PAGE_STREAMS_MAX, Report, StreamEntry, StreamRow, Walk,
    name_missing_versions,
};
use rusqlite::{Connection, Statement};
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
