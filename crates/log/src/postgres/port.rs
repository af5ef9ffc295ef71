//! Implements the port: checks each call, and chooses the connection that serves it.
//!
//! Appends and `resolve` go to the committer, reads to the ring or to the pool.

use super::committer::{Request, Resolve};
use super::queries::{self, Range, Span, Stopped};
use super::{PostgresStore, closed, failure, retention};
use crate::chain::Mark;
use crate::check::{self, PAGE_BYTES_MAX, PAGE_EVENTS_MAX};
use crate::damage::{DamageRegister, Damaged, PAGE_DAMAGED_MAX};
use crate::retention::{Dropped, Undropped, being_dropped};
use crate::row::{claim_columns, snapshot_checksum};
use crate::{Append, ClaimKey, Error, EventStore, Outcome, Page, Resolution, Snapshot};
use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use std::sync::Arc;
use taskledger_domain::{EventId, FlowId, Position, Recorded, Timestamp, Version};
use tokio::sync::{oneshot, watch};

#[async_trait]
impl EventStore for PostgresStore {
    async fn append(&self, append: Append) -> Result<Outcome, Error> {
        let size = check::append(&append)?;
        if append.events.iter().any(|e| e.encoded.data.contains('\0')) {
            return Err(Error::Invalid(
                "the stored form of an event is JSON, in which the character NUL is escaped"
                    .to_owned(),
            ));
        }
        let answer = self.enqueue(append, size).await?;
        // The committer has ended in the middle of it.
        answer.await.unwrap_or(Ok(Outcome::Unknown))
    }

    async fn resolve(&self, stream: FlowId, ids: &[EventId]) -> Result<Resolution, Error> {
        check::resolved(ids)?;
        let (reply, answer) = oneshot::channel();
        let request = Request::Resolve(Resolve {
            stream,
            ids: ids.to_vec(),
            reply,
        });
        self.queue()?.send(request).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    async fn read_stream(
        &self,
        stream: FlowId,
        after: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let limit = limit as u64;
        let last = after.saturating_add(limit);
        let (from, to) = (number(after), number(last));
        let rows = self.reads.rows(|| {
            sqlx::query(queries::STREAM_EVENTS)
                .bind(stream.0)
                .bind(from)
                .bind(to)
                .bind(number(bytes_max as u64))
        });
        let rows = rows.await.map_err(|e| failure::of_read(&e, 0))?;
        let range = Range::After { after, limit };
        let read = match queries::stream_range(&rows, stream, range) {
            Err(_) if self.is_archived(stream).await? => {
                let prefix = queries::prefix(&rows, range);
                if !matches!(&prefix, Ok(prefix) if prefix.is_empty()) {
                    return match prefix {
                        Ok(prefix) => Ok(prefix),
                        Err(stopped) => Err(self.reads.error_of(stopped).await),
                    };
                }
                // All of the span was dropped; what is there behind it is the end.
                let end = self.stream_head(stream).await?;
                return self
                    .read_versions(stream, &[end.map_or(0, |(v, _)| v)])
                    .await;
            }
            read => read,
        };
        self.registered(read).await
    }

    async fn read_stream_back(
        &self,
        stream: FlowId,
        before: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let limit = limit as u64;
        let rows = self.reads.rows(|| {
            sqlx::query(queries::STREAM_EVENTS_BACK)
                .bind(stream.0)
                .bind(number(before))
                .bind(number(limit))
                .bind(number(bytes_max as u64))
        });
        let rows = rows.await.map_err(|e| failure::of_read(&e, 0))?;
        let range = Range::Before { before, limit };
        let read = match queries::stream_range(&rows, stream, range) {
            Err(_) if self.is_archived(stream).await? => queries::prefix(&rows, range),
            read => read,
        };
        self.registered(read).await
    }

    async fn read_versions_within(
        &self,
        stream: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        if versions.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: Vec<i64> = versions.iter().map(|v| number(*v)).collect();
        let rows = self.reads.rows(|| {
            sqlx::query(queries::STREAM_VERSIONS)
                .bind(stream.0)
                .bind(&numbers)
                .bind(number(bytes_max as u64))
        });
        let rows = rows.await.map_err(|e| failure::of_read(&e, 0))?;
        let is_bounded = bytes_max < usize::MAX;
        let read = queries::versions(&rows, stream, versions, is_bounded);
        if read.is_err() && self.is_archived(stream).await? {
            return Err(being_dropped(stream));
        }
        self.registered(read).await
    }

    /// A page that memory can serve ends at the head as this process knows it, and `at_end` speaks
    /// of that one. Any other page comes from the database, and speaks of the head there. So whoever
    /// must have all that other servers wrote asks [`Self::head`] and reads up to it, or reads until
    /// a page is empty.
    async fn read_all(&self, after: Position, limit: usize) -> Result<Page, Error> {
        self.queue()?;
        let limit = limit.min(PAGE_EVENTS_MAX);
        let known = self.head.known();
        let fresh = self.ring.read(after, limit, PAGE_BYTES_MAX);
        if let Some(events) = fresh.filter(|events| !events.is_empty()) {
            let next = events.last().map_or(after, |e| e.position);
            return Ok(Page {
                events,
                damaged: Vec::new(),
                next,
                at_end: next >= known,
            });
        }
        let mut page = Page {
            events: Vec::new(),
            damaged: Vec::new(),
            next: after,
            at_end: false,
        };
        // Rows of one statement: halved while the database can give none of so many.
        let mut limit = limit as u64;
        loop {
            let from = page.next;
            let failed = |e| failure::of_read(&e, from);
            let rows = self.reads.rows(|| {
                sqlx::query(queries::ALL_EVENTS)
                    .bind(number(from))
                    .bind(number(from.saturating_add(limit)))
                    .bind(number(PAGE_BYTES_MAX as u64))
            });
            let span = match rows.await.map_err(failed) {
                Ok(rows) => self.span(&rows, from, limit).await.map_err(failed)?,
                Err(Error::Corrupt { .. }) if limit > 1 => {
                    limit = limit.div_ceil(2);
                    continue;
                }
                Err(Error::Corrupt { reason, .. }) => Span {
                    damaged: vec![Damaged {
                        position: from + 1,
                        flow: None,
                        reason: Arc::from(reason),
                    }],
                    next: from + 1,
                    head: self.head().await?,
                    ..Span::default()
                },
                Err(error) => return Err(error),
            };
            self.head.note(span.head);
            page.next = span.next;
            page.events = span.events;
            page.damaged.extend(span.damaged);
            let is_full = page.damaged.len() >= PAGE_DAMAGED_MAX;
            if page.events.is_empty() && page.next < span.head && !is_full {
                self.pass_dropped(&mut page, span.head).await?;
                continue;
            }
            page.at_end = page.next >= span.head;
            for damaged in &page.damaged {
                self.damage.add(damaged);
            }
            return Ok(page);
        }
    }

    fn damage(&self) -> &DamageRegister {
        &self.damage
    }

    /// Asks the database, since other servers write as well.
    async fn head(&self) -> Result<Position, Error> {
        self.queue()?;
        let head = self.reads.head().await;
        let head = head.map_err(|e| failure::of_read(&e, 0))?;
        self.head.note(head);
        Ok(head)
    }

    async fn chain_head(&self) -> Result<Option<Mark>, Error> {
        let read = self.reads.chain_head().await;
        read.map_err(|e| failure::of_read(&e, 0))
    }

    async fn stream_head(&self, stream: FlowId) -> Result<Option<(Version, Position)>, Error> {
        let read = async {
            let ask = || sqlx::query(queries::STREAM).bind(stream.0);
            let rows = self.reads.rows(ask).await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let (version, position): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            Ok(Some((version.cast_unsigned(), position.cast_unsigned())))
        };
        read.await.map_err(|e| failure::of_read(&e, 0))
    }

    fn watch(&self) -> watch::Receiver<Position> {
        self.head.watch()
    }

    fn commits(&self) -> u64 {
        self.commits()
    }

    async fn claims(
        &self,
        keys: &[ClaimKey],
        now: Timestamp,
    ) -> Result<Vec<Option<Arc<str>>>, Error> {
        let (kinds, names): (Vec<i16>, Vec<&[u8]>) = keys.iter().map(claim_columns).unzip();
        let read = async {
            let rows = self.reads.rows(|| {
                sqlx::query(queries::CLAIMS)
                    .bind(&kinds)
                    .bind(&names)
                    .bind(now.0)
            });
            let mut values = vec![None; keys.len()];
            for row in rows.await? {
                let (n, value): (i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
                let index = usize::try_from(n - 1).unwrap_or(usize::MAX);
                if let (Some(place), Ok(text)) = (values.get_mut(index), std::str::from_utf8(value))
                {
                    *place = Some(Arc::from(text));
                }
            }
            Ok(values)
        };
        read.await.map_err(|e| failure::of_read(&e, 0))
    }

    async fn raise_fence(&self, name: &str) -> Result<u64, Error> {
        check::key(name.as_bytes(), "the name of a fence")?;
        self.queue()?;
        let read = async {
            // Repeated after a break it may raise twice, which fences nobody who should not be.
            let ask = || sqlx::query(queries::RAISE_FENCE).bind(name.as_bytes());
            let rows = self.reads.rows(ask).await?;
            let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
            row.try_get::<i64, _>(0)
        };
        let token = read.await.map_err(|e| failure::of_read(&e, 0))?;
        Ok(token.cast_unsigned())
    }

    async fn load_snapshot(&self, stream: FlowId, format: u32) -> Result<Option<Snapshot>, Error> {
        let read = async {
            let rows = self.reads.rows(|| {
                sqlx::query(queries::SNAPSHOT)
                    .bind(stream.0)
                    .bind(i64::from(format))
            });
            let rows = rows.await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let stream_version: i64 = row.try_get(0)?;
            let version = row.try_get::<i64, _>(1)?;
            let (checksum, bytes): (i64, Vec<u8>) = (row.try_get(2)?, row.try_get(3)?);
            let actual = snapshot_checksum(stream, format, version.cast_unsigned(), &bytes);
            // One that is damaged is as good as absent.
            let believed = version <= stream_version && checksum == i64::from(actual);
            Ok(believed.then_some(Snapshot {
                version: version.cast_unsigned(),
                format,
                bytes,
            }))
        };
        read.await.map_err(|e| failure::of_read(&e, 0))
    }

    async fn save_snapshot(&self, stream: FlowId, snapshot: Snapshot) -> Result<(), Error> {
        let size = check::snapshot(&snapshot)?;
        let Snapshot {
            version,
            format,
            bytes,
        } = snapshot;
        // The largest of them are as large as an append; they share the limit.
        let _share = self.share(size).await?;
        let checksum = snapshot_checksum(stream, format, version, &bytes);
        let read = async {
            let rows = self.reads.rows(|| {
                sqlx::query(queries::PUT_SNAPSHOT)
                    .bind(stream.0)
                    .bind(i64::from(format))
                    .bind(number(version))
                    .bind(i64::from(checksum))
                    .bind(&bytes)
            });
            let rows = rows.await?;
            let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
            row.try_get::<i64, _>(0)
        };
        let found = read.await.map_err(|e| failure::of_read(&e, 0))?;
        if found == 0 {
            return Err(Error::Invalid(format!(
                "flow `{stream}` has no version {version} to take a snapshot of"
            )));
        }
        Ok(())
    }

    async fn dropped(&self) -> Result<Dropped, Error> {
        let dropped = self.reads.dropped().await;
        dropped.map_err(|e| failure::of_read(&e, 0))
    }

    async fn undropped(&self, after: u64, limit: usize) -> Result<Vec<Undropped>, Error> {
        let found = self.reads.undropped(after, limit).await;
        found.map_err(|e| failure::of_read(&e, 0))
    }

    async fn drop_archived(&self, stream: FlowId, limit: usize) -> Result<u64, Error> {
        self.queue()?;
        let left = retention::drop_archived(self, stream, limit).await?;
        self.ring.forget(self.dropped().await?.horizon);
        Ok(left)
    }
}

impl PostgresStore {
    /// The part of the log in these rows.
    async fn span(&self, rows: &[PgRow], after: Position, limit: u64) -> Result<Span, sqlx::Error> {
        let span = queries::all(rows, after, limit, 0)?;
        if !span.has_gap {
            return Ok(span);
        }
        // Perhaps it was dropped. Read after the rows, so that it is known by now.
        let dropped = self.reads.dropped().await?;
        queries::all(rows, after, limit, dropped.horizon)
    }

    /// Moves a page without events to where the next row is.
    async fn pass_dropped(&self, page: &mut Page, head: Position) -> Result<(), Error> {
        let failed = |e| failure::of_read(&e, page.next);
        let next = self.reads.next_position(page.next).await.map_err(failed)?;
        let to = next.map_or(head, |next| next - 1);
        if to > page.next {
            let dropped = self.reads.dropped().await.map_err(failed)?;
            if to > dropped.horizon {
                page.damaged.push(Damaged::missing(page.next + 1));
            }
            page.next = to;
        }
        Ok(())
    }

    /// What a read of a stream gives. Registers the damage that it has met.
    async fn registered<T>(&self, read: Result<T, Stopped>) -> Result<T, Error> {
        match read {
            Ok(read) => Ok(read),
            Err(stopped) => {
                let error = self.reads.error_of(stopped).await;
                self.damage.add_error(&error);
                Err(error)
            }
        }
    }

    async fn is_archived(&self, stream: FlowId) -> Result<bool, Error> {
        let found = self.reads.is_archived(stream).await;
        found.map_err(|e| failure::of_read(&e, 0))
    }
}

/// A count as Postgres has it: there are no larger ones in it.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
