//! Reads the log row by row, for `events export`.
//!
//! Reads in pages, so that an export of any length holds neither memory nor the server's WAL.

use super::failure::of_read;
use super::open::{self, OpenError};
use super::retention;
use super::row::{Row, columns};
use crate::Error;
use crate::retention::{Dropped, unchanged};
use crate::transfer::{
    ExportedEvent, ExportedKey, Line, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Source, merged,
};
use async_trait::async_trait;
use rusqlite::Connection;
use std::path::Path;
use taskledger_domain::{Position, Timestamp};

/// By the primary key.
const PAGE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM events AS e
      LEFT JOIN streams AS s ON s.number = e.stream
      WHERE e.position > ?1 AND e.position <= ?2
      ORDER BY e.position"
);
/// By the primary key; kind 2 are requests.
const KEYS: &str = "SELECT CAST(key AS TEXT), value, expires_at FROM claims
    WHERE kind = 2 AND expires_at >= ?1 AND key > ?2 ORDER BY key LIMIT ?3";

/// The events of a log in order, up to the head as it was when the export began.
/// Ends after the first error.
#[derive(Debug)]
pub struct Export {
    connection: Connection,
    after: Position,
    head: Position,
    /// What was missing when the export began.
    dropped: Dropped,
    ended: bool,
    /// The last key that was given.
    key: String,
}

impl Export {
    /// Opens the log `path` (the file) for reading; a server may be running on it.
    ///
    /// # Errors
    /// [`OpenError`]: there is no log, or it cannot be read.
    pub fn open(path: &Path, after: Position) -> Result<Self, OpenError> {
        let connection = open::reader(path)?;
        let unusable = |source| OpenError::Unusable {
            path: path.to_owned(),
            source,
        };
        // In this order: what is dropped after the first look is noticed at the end.
        let dropped = retention::dropped(&connection).map_err(unusable)?;
        let head = head(&connection).map_err(unusable)?;
        Ok(Self {
            connection,
            after,
            head,
            dropped,
            ended: false,
            key: String::new(),
        })
    }

    /// The next events. Those that precede a damaged row are given first; the damage is met again,
    /// as the first row of the next page.
    fn page(&mut self) -> Result<Vec<Line>, Error> {
        let fail = |e: rusqlite::Error| of_read(&e, 0);
        loop {
            let mut page = Vec::new();
            let read = self.read_page(&mut page);
            if let Some(last) = page.last() {
                let last = last.position;
                let remains = retention::remains(&self.connection, self.after, last, usize::MAX);
                self.after = last;
                return Ok(merged(page, remains.map_err(fail)?));
            }
            read?;
            if self.after >= self.head {
                let dropped = retention::dropped(&self.connection).map_err(fail)?;
                unchanged(self.dropped, dropped)?;
                return Ok(Vec::new());
            }
            // What follows was dropped.
            let next = retention::next_position(&self.connection, self.after).map_err(fail)?;
            let to = next.map_or(self.head, |next| (next - 1).min(self.head));
            let remains = retention::remains(&self.connection, self.after, to, PAGE_EVENTS_MAX)
                .map_err(fail)?;
            if let Some(last) = remains.last() {
                self.after = last.position;
                return Ok(merged(Vec::new(), remains));
            }
            if to > self.dropped.horizon {
                let dropped = retention::dropped(&self.connection).map_err(fail)?;
                unchanged(self.dropped, dropped)?;
                return Err(Error::Corrupt {
                    position: self.after + 1,
                    flow: None,
                    reason: "the row is missing".to_owned(),
                });
            }
            self.after = to;
        }
    }

    fn read_page(&self, page: &mut Vec<ExportedEvent>) -> Result<(), Error> {
        let last = self.after.saturating_add(PAGE_EVENTS_MAX as u64);
        let last = last.min(self.head);
        if last <= self.after {
            return Ok(());
        }
        let fail = |e: rusqlite::Error| of_read(&e, self.after);
        let mut statement = self.connection.prepare(PAGE).map_err(fail)?;
        let range = (self.after.cast_signed(), last.cast_signed());
        let mut rows = statement.query(range).map_err(fail)?;
        let mut bytes = 0;
        let mut expected = self.after + 1;
        while bytes < PAGE_BYTES_MAX && expected <= last {
            let sql = rows.next().map_err(fail)?;
            let row = sql.map(Row::read).transpose()?;
            let found = row.as_ref().map_or(last + 1, |row| row.position);
            if found > expected && found - 1 > retention::read_dropped(&self.connection)?.horizon {
                return Err(Error::Corrupt {
                    position: expected,
                    flow: None,
                    reason: "the row is missing".to_owned(),
                });
            }
            expected = found + 1;
            if let Some(row) = row {
                bytes += row.data.len();
                page.push(row.exported()?);
            }
        }
        Ok(())
    }

    fn read_keys(&self, now: Timestamp) -> rusqlite::Result<Vec<ExportedKey>> {
        let mut statement = self.connection.prepare(KEYS)?;
        let limit = i64::try_from(PAGE_EVENTS_MAX).unwrap_or(i64::MAX);
        let keys = statement.query_map((now.0, self.key.as_bytes(), limit), |row| {
            Ok(ExportedKey {
                request_key: row.get(0)?,
                value: row.get(1)?,
                expires_at: Timestamp(row.get(2)?),
            })
        })?;
        keys.collect()
    }
}

#[async_trait]
impl Source for Export {
    fn head(&self) -> Position {
        self.head
    }

    async fn events(&mut self) -> Result<Vec<Line>, Error> {
        if self.ended {
            return Ok(Vec::new());
        }
        let page = self.page();
        self.ended = page.is_err();
        page
    }

    async fn keys(&mut self, now: Timestamp) -> Result<Vec<ExportedKey>, Error> {
        let keys = self.read_keys(now).map_err(|e| of_read(&e, self.head))?;
        if let Some(last) = keys.last() {
            self.key.clone_from(&last.request_key);
        }
        Ok(keys)
    }
}

/// Position of the last event in the file.
pub(super) fn head(connection: &Connection) -> rusqlite::Result<Position> {
    connection
        .query_row("SELECT coalesce(max(position), 0) FROM events", [], |row| {
            row.get::<_, i64>(0)
        })
        .map(i64::cast_unsigned)
}
