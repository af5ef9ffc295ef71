//! The log, row by row, for `events export`.
//!
//! Owns: the public form of an exported event. Reads in pages, so that an export of any length
//! holds neither memory nor the server's WAL.

use super::failure::of_read;
use super::open::{self, OpenError};
use super::row::{Row, columns};
use crate::store::Error;
use rusqlite::Connection;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::path::Path;
use taskledger_domain::{EventId, FlowId, Position, Timestamp, Version};

/// Rows in one page.
const PAGE_ROWS_MAX: u64 = 1_000;
/// Payload bytes after which a page ends.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// By the primary key.
const PAGE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM events AS e
      LEFT JOIN streams AS s ON s.number = e.stream
      WHERE e.position > ?1 AND e.position <= ?2
      ORDER BY e.position"
);

/// One line of an export. Times are RFC 3339, ids are text, `data` is the event as it was written.
#[derive(Debug, Clone, Serialize)]
pub struct ExportedEvent {
    /// Place in the log.
    pub position: Position,
    /// The flow.
    pub flow_id: FlowId,
    /// Place in the flow's stream.
    pub version: Version,
    /// Identity of the event.
    pub event_id: EventId,
    /// When the command was decided.
    pub time: Timestamp,
    /// When the log took it.
    pub recorded_at: Timestamp,
    /// Name of the fact.
    pub kind: String,
    /// Version of the form of `data`.
    pub schema_version: u16,
    /// The principal.
    pub actor: String,
    /// The request.
    pub correlation: String,
    /// The event that led here.
    pub causation: Option<EventId>,
    /// W3C `traceparent`.
    pub trace: Option<String>,
    /// JSON object.
    pub data: Box<RawValue>,
}

/// The events of a log in order, up to the head as it was when the export began.
/// Ends after the first error.
#[derive(Debug)]
pub struct Export {
    connection: Connection,
    page: VecDeque<ExportedEvent>,
    after: Position,
    head: Position,
    ended: bool,
}

impl Export {
    /// Opens the log `path` (the file) for reading; a server may be running on it.
    ///
    /// # Errors
    /// [`OpenError`]: there is no log, or it cannot be read.
    pub fn open(path: &Path, after: Position) -> Result<Self, OpenError> {
        let connection = open::reader(path)?;
        let head = head(&connection).map_err(|source| OpenError::Unusable {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            connection,
            page: VecDeque::new(),
            after,
            head,
            ended: false,
        })
    }

    /// Position of the last event that will be given.
    #[must_use]
    pub const fn head(&self) -> Position {
        self.head
    }

    fn read_page(&mut self) -> Result<(), Error> {
        let last = self.after.saturating_add(PAGE_ROWS_MAX).min(self.head);
        if last <= self.after {
            return Ok(());
        }
        let fail = |e: rusqlite::Error| of_read(&e, self.after);
        let mut statement = self.connection.prepare(PAGE).map_err(fail)?;
        let range = (self.after.cast_signed(), last.cast_signed());
        let mut rows = statement.query(range).map_err(fail)?;
        let mut bytes = 0;
        let mut expected = self.after;
        while bytes < PAGE_BYTES_MAX && expected < last {
            expected += 1;
            let sql = rows.next().map_err(fail)?;
            let row = sql.map(Row::read).transpose()?;
            let row = row
                .filter(|row| row.position == expected)
                .ok_or_else(|| Error::Corrupt {
                    position: expected,
                    reason: "the row is missing".to_owned(),
                })?;
            bytes += row.data.len();
            self.page.push_back(exported(&row)?);
        }
        Ok(())
    }
}

impl Iterator for Export {
    type Item = Result<ExportedEvent, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty() && !self.ended {
            // Rows that precede a damaged one are in the page, and are given first; the damage is
            // met again, as the first row of the next page.
            let read = self.read_page();
            if let (Err(error), true) = (read, self.page.is_empty()) {
                self.ended = true;
                return Some(Err(error));
            }
        }
        let event = self.page.pop_front()?;
        self.after = event.position;
        Some(Ok(event))
    }
}

fn exported(row: &Row<'_>) -> Result<ExportedEvent, Error> {
    let data = serde_json::from_str(row.data).map_err(|e| Error::Corrupt {
        position: row.position,
        reason: format!("column `data` is not JSON: {e}"),
    })?;
    Ok(ExportedEvent {
        position: row.position,
        flow_id: row.flow,
        version: row.version,
        event_id: row.id,
        time: row.time,
        recorded_at: row.recorded_at,
        kind: row.kind.to_owned(),
        schema_version: row.schema_version,
        actor: row.actor.to_owned(),
        correlation: row.correlation.to_owned(),
        causation: row.causation,
        trace: row.trace.map(str::to_owned),
        data,
    })
}

/// Position of the last event in the file.
pub(super) fn head(connection: &Connection) -> rusqlite::Result<Position> {
    connection
        .query_row("SELECT coalesce(max(position), 0) FROM events", [], |row| {
            row.get::<_, i64>(0)
        })
        .map(i64::cast_unsigned)
}
