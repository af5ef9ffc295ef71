//! The log, row by row, for `events export`.
//!
//! Reads in pages, so that an export of any length holds neither memory nor a snapshot of the
//! database: what is exported can never change.

use super::queries::{ALL_EVENTS, HEAD};
use super::row::{self, Damage};
use super::{OpenError, Options, failure, open};
use crate::store::Error;
use crate::store::transfer::{ExportedEvent, ExportedKey, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Source};
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
        let connection = connected.map_err(|error| OpenError::Unreachable {
            place: place.clone(),
            reason: error.to_string(),
        })?;
        Self::through(Box::new(connection), after)
            .await
            .map_err(|source| OpenError::Unusable { place, source })
    }
}

impl<C: DerefMut<Target = PgConnection> + Send> Export<C> {
    /// As [`Export::open`], through `connection`.
    pub(super) async fn through(mut connection: C, after: Position) -> Result<Self, sqlx::Error> {
        let head: i64 = sqlx::query_scalar(HEAD).fetch_one(&mut *connection).await?;
        Ok(Self {
            connection,
            after,
            head: head.cast_unsigned(),
            ended: false,
            key: Vec::new(),
        })
    }

    /// The next events. Those that precede a damaged row are given first; the damage is met again,
    /// as the first row of the next page.
    async fn page(&mut self) -> Result<Vec<ExportedEvent>, Error> {
        let last = self.after.saturating_add(PAGE_EVENTS_MAX as u64);
        let last = last.min(self.head);
        if last <= self.after {
            return Ok(Vec::new());
        }
        let rows = sqlx::query(ALL_EVENTS)
            .bind(self.after.cast_signed())
            .bind(last.cast_signed())
            .bind(i64::try_from(PAGE_BYTES_MAX).unwrap_or(i64::MAX))
            .fetch_all(&mut *self.connection)
            .await
            .map_err(|e| failure::of_read(&e, self.after))?;
        let mut page = Vec::with_capacity(rows.len());
        let found: Option<i64> = match rows.first() {
            Some(row) => row
                .try_get(1)
                .map_err(|e| failure::of_read(&e, self.after))?,
            None => None,
        };
        if found.is_none() {
            return Err(missing(self.after + 1).into());
        }
        for (expected, sql) in (self.after + 1..).zip(&rows) {
            let read = row::read(sql, 2).and_then(|row| match row.position {
                position if position == expected => row.exported(),
                _ => Err(missing(expected)),
            });
            match read {
                Ok(event) => page.push(event),
                Err(damage) if page.is_empty() => return Err(damage.into()),
                Err(_) => break,
            }
        }
        match page.last() {
            Some(last) => self.after = last.position,
            None => return Err(missing(self.after + 1).into()),
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

    async fn events(&mut self) -> Result<Vec<ExportedEvent>, Error> {
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
