//! The whole log, checked, for `events verify`.
//!
//! Owns: what must hold of a log. Walks it in short reads, so a server may be running on it, and
//! names every row that breaks a rule instead of stopping at the first.

use super::export::head;
use super::open::{self, OpenError};
use super::row::{Row, columns};
use rusqlite::{Connection, Statement};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use taskledger_domain::{FlowId, Position};
use uuid::Uuid;

/// Faults that are listed; the rest is counted. A person reads them.
pub const FAULTS_LISTED_MAX: usize = 100;
/// Rows between two reports of progress, and in one read.
const PAGE_ROWS_MAX: u64 = 1_000;
/// Streams in one read.
const PAGE_STREAMS_MAX: i64 = 500;

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
const STREAM_VERSIONS: &str =
    "SELECT version, position FROM events WHERE stream = ?1 ORDER BY version";

/// Something in the log that cannot be believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The row, when the fault is about one.
    pub position: Option<Position>,
    /// The stream, when it is known.
    pub stream: Option<FlowId>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(f, "position {position}, ")?;
        }
        if let Some(stream) = self.stream {
            write!(f, "flow `{stream}`, ")?;
        }
        f.write_str(&self.reason)
    }
}

/// What [`verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Position of the last event when the walk began.
    pub head: Position,
    /// Events that were read and believed.
    pub events: u64,
    /// Streams that were looked at.
    pub streams: u64,
    /// The first [`FAULTS_LISTED_MAX`] faults.
    pub faults: Vec<Fault>,
    /// Faults beyond those.
    pub more_faults: u64,
}

impl Report {
    /// Whether every rule holds.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty() && self.more_faults == 0
    }

    fn add(&mut self, position: Option<Position>, stream: Option<FlowId>, reason: String) {
        if self.faults.len() < FAULTS_LISTED_MAX {
            self.faults.push(Fault {
                position,
                stream,
                reason,
            });
        } else {
            self.more_faults += 1;
        }
    }
}

/// Checks the log `path` (the file): dense positions, checksums, events that this program can
/// read, times that do not run backwards, dense versions in each stream, the table of streams, and
/// SQLite's own structures. `progress` is told the position reached and the head, now and then.
/// Cost: O(log), in constant memory.
///
/// # Errors
/// [`OpenError`]: there is no log, or none of it can be read. Damage is not an error but a
/// [`Fault`].
pub fn verify(
    path: &Path,
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
    let mut walk = Walk::default();
    while walk.after < report.head {
        walk.page(&mut events, &mut report);
        progress(walk.after.min(report.head), report.head);
    }
    if let Err(error) = streams(&connection, &mut report) {
        report.add(None, None, format!("the streams cannot be read: {error}"));
    }
    if let Err(error) = structures(&connection, &mut report) {
        report.add(None, None, format!("the file cannot be read: {error}"));
    }
    Ok(report)
}

/// How far the walk along the positions is.
#[derive(Debug, Default)]
struct Walk {
    after: Position,
    recorded_at: i64,
}

impl Walk {
    /// Always moves on, by a page or past a row that SQLite cannot read.
    fn page(&mut self, events: &mut Statement<'_>, report: &mut Report) {
        let last = self.after.saturating_add(PAGE_ROWS_MAX).min(report.head);
        if let Err(error) = self.rows(events, last, report) {
            self.after += 1;
            let reason = format!("SQLite cannot read the row: {error}");
            report.add(Some(self.after), None, reason);
        } else {
            self.skip_to(last + 1, report);
        }
    }

    fn rows(
        &mut self,
        events: &mut Statement<'_>,
        last: Position,
        report: &mut Report,
    ) -> rusqlite::Result<()> {
        let mut rows = events.query((self.after.cast_signed(), last.cast_signed()))?;
        while let Some(sql) = rows.next()? {
            let read = Row::read(sql).and_then(|row| {
                row.decode()?;
                Ok((row.position, row.flow, row.recorded_at.0))
            });
            let position = match &read {
                Ok((position, ..)) => *position,
                Err(damage) => damage.position,
            };
            self.skip_to(position, report);
            self.after = position;
            match read {
                Ok((position, flow, recorded_at)) => {
                    report.events += 1;
                    if recorded_at < self.recorded_at {
                        let reason = "it was recorded before its predecessor".to_owned();
                        report.add(Some(position), Some(flow), reason);
                    }
                    self.recorded_at = recorded_at;
                }
                Err(damage) => report.add(Some(damage.position), damage.flow, damage.reason),
            }
        }
        Ok(())
    }

    /// The next row is `position`: whatever lies between is missing.
    fn skip_to(&mut self, position: Position, report: &mut Report) {
        let first = self.after + 1;
        if position > first {
            let reason = if position == first + 1 {
                "the row is missing".to_owned()
            } else {
                format!("the rows up to position {} are missing", position - 1)
            };
            report.add(Some(first), None, reason);
            self.after = position - 1;
        }
    }
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
                let (version, last): (i64, i64) = (row.get(2)?, row.get(3)?);
                let (count, min, max): (i64, i64, i64) = (row.get(4)?, row.get(5)?, row.get(6)?);
                let max_position: i64 = row.get(7)?;
                after = number;
                seen += 1;
                if flow.is_none() {
                    let reason = format!("stream number {number} has no flow id");
                    report.add(None, None, reason);
                }
                if version != max || last != max_position {
                    let reason = format!(
                        "the table of streams says version {version} at position {last}, the \
                         events end with version {max} at position {max_position}"
                    );
                    report.add(Some(max_position.cast_unsigned()), flow, reason);
                }
                if min != 1 || count != max {
                    suspects.push((number, flow));
                }
            }
        }
        report.streams += seen;
        for (number, flow) in suspects {
            name_missing_versions(&mut versions, number, flow, report)?;
        }
        if seen == 0 {
            return Ok(());
        }
    }
}

fn name_missing_versions(
    versions: &mut Statement<'_>,
    number: i64,
    flow: Option<FlowId>,
    report: &mut Report,
) -> rusqlite::Result<()> {
    let mut rows = versions.query([number])?;
    let mut expected = 1i64;
    while let Some(row) = rows.next()? {
        let (version, position): (i64, i64) = (row.get(0)?, row.get(1)?);
        if version != expected {
            let reason = format!("version {version} follows version {}", expected - 1);
            report.add(Some(position.cast_unsigned()), flow, reason);
        }
        expected = version.saturating_add(1);
    }
    if expected == 1 {
        report.add(None, flow, "the stream has no events".to_owned());
    }
    Ok(())
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
