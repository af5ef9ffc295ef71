//! Reads the log row by row, for `events export`.
//!
//! Reads in pages, so that an export of any length holds neither memory nor a snapshot of the
//! database: what is exported can never change.

use super::queries::{ALL_EVENTS, HEAD};
use super::row::{self, Damage};
use super::{OpenError, Options, failure, open, retention};
use crate::Error;
use crate::retention::{Dropped, unchanged};
use crate::transfer::{
    ExportedEvent, ExportedKey, Line, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Source, merged,
};
use async_trait::async_trait;
use sqlx::{PgConnection, Row as _};
use std::ops::DerefMut;
use taskledger_domain::{Position, Timestamp};

/// By the primary key; kind 2 are requests. Bytes of UTF-8 sort as the texts do.
pub(super) const KEYS: &str = "SELECT key, value, expires_at FROM taskledger.claims
      WHERE kind = 2 AND expires_at >= $1 AND key > $2
      ORDER BY key
      LIMIT $3";

/// The events of a log in order, up to the head as it was when the export began, through a
/// connection of its own or somebody else's. Ends after the first error.
#[derive(Debug)]
pub struct Export<C = Box<PgConnection>> {
    connection: C,
    after: Position,
    head: Position,
    /// What was missing when the export began.
    dropped: Dropped,
    ended: bool,
    /// The last key that was given.
    key: Vec<u8>,
}

impl Export {
    /// Opens the log for reading; servers may be writing to it.
    ///
    /// # Errors
    /// [`OpenError`]: there is no log, or it cannot be read.
    pub async fn open(options: &Options, after: Position) -> Result<Self, OpenError> {
        let place = open::place(&options.connect);
        let connected = open::connect(options).await;
        let connection = connected.map_err(|error| OpenError::unreachable(&place, &error))?;
        Self::through(Box::new(connection), after)
            .await
            .map_err(|source| OpenError::of_reading(&place, source))
    }
}

impl<C: DerefMut<Target = PgConnection> + Send> Export<C> {
    /// As [`Export::open`], through `connection`.
    pub(super) async fn through(mut connection: C, after: Position) -> Result<Self, sqlx::Error> {
        // In this order: what is dropped after the first look is noticed at the end.
        let dropped = retention::dropped(&mut connection).await?;
        let head: i64 = sqlx::query_scalar(HEAD).fetch_one(&mut *connection).await?;
        Ok(Self {
            connection,
            after,
            dropped,
            head: head.cast_unsigned(),
            ended: false,
            key: Vec::new(),
        })
    }

    /// The next events. Those that precede a damaged row are given first; the damage is met again,
    /// as the first row of the next page.
    async fn page(&mut self) -> Result<Vec<Line>, Error> {
        loop {
            let page = self.span().await?;
            let fail = |e| failure::of_read(&e, 0);
            if let Some(last) = page.last() {
                let last = last.position;
                let connection = &mut self.connection;
                let remains = retention::remains(connection, self.after, last, usize::MAX).await;
                self.after = last;
                return Ok(merged(page, remains.map_err(fail)?));
            }
            if self.after >= self.head {
                let dropped = retention::dropped(&mut self.connection).await;
                unchanged(self.dropped, dropped.map_err(fail)?)?;
                return Ok(Vec::new());
            }
            // What follows was dropped.
            let next = retention::next_position(&mut self.connection, self.after).await;
            let next = next.map_err(fail)?;
            let to = next.map_or(self.head, |next| (next - 1).min(self.head));
            let connection = &mut self.connection;
            let remains = retention::remains(connection, self.after, to, PAGE_EVENTS_MAX).await;
            let remains = remains.map_err(fail)?;
            if let Some(last) = remains.last() {
                self.after = last.position;
                return Ok(merged(Vec::new(), remains));
            }
            if to > self.dropped.horizon {
                let dropped = retention::dropped(&mut self.connection).await;
                unchanged(self.dropped, dropped.map_err(fail)?)?;
                return Err(Error::Corrupt {
                    position: self.after + 1,
                    flow: None,
                    reason: "the row is missing".to_owned(),
                });
            }
            self.after = to;
        }
    }

    async fn span(&mut self) -> Result<Vec<ExportedEvent>, Error> {
        let last = self.after.saturating_add(PAGE_EVENTS_MAX as u64);
        let last = last.min(self.head);
        if last <= self.after {
            return Ok(Vec::new());
        }
        let after = self.after;
        let fail = |e| failure::of_read(&e, after);
        let rows = sqlx::query(ALL_EVENTS)
            .bind(self.after.cast_signed())
            .bind(last.cast_signed())
            .bind(i64::try_from(PAGE_BYTES_MAX).unwrap_or(i64::MAX))
            .fetch_all(&mut *self.connection)
            .await
            .map_err(fail)?;
        let mut page = Vec::with_capacity(rows.len());
        let found: Option<i64> = match rows.first() {
            Some(row) => row.try_get(1).map_err(fail)?,
            None => None,
        };
        let found = found.unwrap_or(0).cast_unsigned();
        // Asked behind the rows, so that what is missing of them is known by now.
        let dropped = retention::dropped(&mut self.connection).await;
        let horizon = dropped.map_err(fail)?.horizon;
        let mut expected = self.after + 1;
        let found_rows = if found == 0 { &[][..] } else { &rows[..] };
        for sql in found_rows {
            let read = row::read(sql, 2).and_then(|row| {
                if row.position != expected && row.position - 1 > horizon {
                    return Err(missing(expected));
                }
                row.exported()
            });
            match read {
                Ok(event) => {
                    expected = event.position + 1;
                    page.push(event);
                }
                Err(damage) if page.is_empty() => return Err(damage.into()),
                Err(_) => return Ok(page),
            }
        }
        let is_whole = page.len() as u64 == found;
        if page.is_empty() && is_whole && last > horizon {
            return Err(missing(expected).into());
        }
        Ok(page)
    }
}

fn missing(position: Position) -> Damage {
    Damage {
        position,
        flow: None,
        reason: "the row is missing".to_owned(),
    }
}

#[async_trait]
impl<C: DerefMut<Target = PgConnection> + Send> Source for Export<C> {
    fn head(&self) -> Position {
        self.head
    }

    async fn events(&mut self) -> Result<Vec<Line>, Error> {
        if self.ended {
            return Ok(Vec::new());
        }
        let page = self.page().await;
        self.ended = page.is_err();
        page
    }

    async fn keys(&mut self, now: Timestamp) -> Result<Vec<ExportedKey>, Error> {
        let failed = |e: sqlx::Error| failure::of_read(&e, self.head);
        let rows = sqlx::query(KEYS)
            .bind(now.0)
            .bind(&self.key)
            .bind(i64::try_from(PAGE_EVENTS_MAX).unwrap_or(i64::MAX))
            .fetch_all(&mut *self.connection)
            .await
            .map_err(failed)?;
        let text = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).map(str::to_owned);
            text.map_err(|e| Error::Unavailable(format!("a claim cannot be read: {e}")))
        };
        if let Some(last) = rows.last() {
            self.key = last.try_get(0).map_err(failed)?;
        }
        rows.iter()
            .map(|row| {
                Ok(ExportedKey {
                    request_key: text(row.try_get(0).map_err(failed)?)?,
                    value: text(row.try_get(1).map_err(failed)?)?,
                    expires_at: Timestamp(row.try_get(2).map_err(failed)?),
                })
            })
            .collect()
    }
}
