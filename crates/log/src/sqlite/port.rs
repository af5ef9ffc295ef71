//! Implements the port: checks each call, and chooses the thread that serves it.
//!
//! Writes and `resolve` go to the committer, reads to the ring or to the readers; what nothing waits beside is done at
//! once (`alone`).

use super::committer::{Request, Write};
use super::{SqliteStore, closed, failure};
use crate::chain::Mark;
use crate::check::{self, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Size};
use crate::damage::DamageRegister;
use crate::retention::{Dropped, Undropped};
use crate::{Append, ClaimKey, Error, EventStore, Outcome, Page, Resolution, Snapshot};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use taskledger_domain::{EventId, FlowId, Position, Recorded, Timestamp, Version};
use tokio::sync::{oneshot, watch};

#[async_trait]
impl EventStore for SqliteStore {
    async fn append(&self, append: Append) -> Result<Outcome, Error> {
        let size = check::append(&append)?;
        let append = match self.alone(append, size) {
            Ok(outcome) => {
                // Nothing was waited for: others get their turn.
                tokio::task::consume_budget().await;
                return outcome;
            }
            Err(append) => append,
        };
        let (reply, answer) = oneshot::channel();
        self.write(Write::Append(append, reply), size).await?;
        // The committer has ended in the middle of it.
        answer.await.unwrap_or(Ok(Outcome::Unknown))
    }

    async fn resolve(&self, stream: FlowId, ids: &[EventId]) -> Result<Resolution, Error> {
        check::resolved(ids)?;
        let (reply, answer) = oneshot::channel();
        let request = Request::Resolve {
            stream,
            ids: ids.to_vec(),
            reply,
        };
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
        let readers = self.readers()?;
        if let Some(events) = self.ring.read_stream(stream, after, limit, bytes_max) {
            return Ok(events);
        }
        let read = readers.run(move |q| q.read_stream(stream, after, limit, bytes_max));
        self.registered(read.await)
    }

    async fn read_stream_back(
        &self,
        stream: FlowId,
        before: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let readers = self.readers()?;
        if let Some(events) = self.ring.read_stream_back(stream, before, limit, bytes_max) {
            return Ok(events);
        }
        let read = readers.run(move |q| q.read_stream_back(stream, before, limit, bytes_max));
        self.registered(read.await)
    }

    async fn read_versions_within(
        &self,
        stream: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let readers = self.readers()?;
        if let Some(events) = self.ring.read_versions(stream, versions, bytes_max) {
            return Ok(events);
        }
        let versions = versions.to_vec();
        let read = readers.run(move |q| q.read_versions(stream, &versions, bytes_max));
        self.registered(read.await)
    }

    async fn read_all(&self, after: Position, limit: usize) -> Result<Page, Error> {
        let readers = self.readers()?;
        let head = *self.head.borrow();
        let limit = limit.min(PAGE_EVENTS_MAX);
        let last = after.saturating_add(limit as u64).min(head);
        if last <= after {
            return Ok(Page {
                events: Vec::new(),
                damaged: Vec::new(),
                next: after,
                at_end: after >= head,
            });
        }
        let count = usize::try_from(last - after).unwrap_or(PAGE_EVENTS_MAX);
        if let Some(events) = self.ring.read(after, count, PAGE_BYTES_MAX) {
            // Nothing: what was the head has been dropped since, and the new one is on its way here.
            let next = events.last().map_or(head, |e| e.position);
            return Ok(Page {
                events,
                damaged: Vec::new(),
                next,
                at_end: next >= head,
            });
        }
        let span = readers
            .run(move |q| q.read_all(after, limit, head, PAGE_BYTES_MAX))
            .await?;
        for damaged in &span.damaged {
            self.damage.add(damaged);
        }
        Ok(Page {
            at_end: span.next >= head,
            events: span.events,
            damaged: span.damaged,
            next: span.next,
        })
    }

    fn damage(&self) -> &DamageRegister {
        &self.damage
    }

    async fn head(&self) -> Result<Position, Error> {
        self.readers()?;
        Ok(*self.head.borrow())
    }

    async fn chain_head(&self) -> Result<Option<Mark>, Error> {
        self.readers()?.run(|q| q.chain_head()).await
    }

    async fn stream_head(&self, stream: FlowId) -> Result<Option<(Version, Position)>, Error> {
        let readers = self.readers()?;
        if let Some(last) = self.ring.last_of(stream) {
            return Ok(Some((last.version, last.position)));
        }
        readers.run(move |q| q.stream_head(stream)).await
    }

    fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn watch(&self) -> watch::Receiver<Position> {
        self.head.clone()
    }

    async fn claims(
        &self,
        keys: &[ClaimKey],
        now: Timestamp,
    ) -> Result<Vec<Option<Arc<str>>>, Error> {
        let readers = self.readers()?;
        if let Some(found) = self.claims_alone(keys, now) {
            return found;
        }
        let keys = keys.to_vec();
        readers
            .run(move |q| {
                keys.iter()
                    .map(|key| q.held_claim(key, now).map_err(|e| failure::of_read(&e, 0)))
                    .collect()
            })
            .await
    }

    async fn raise_fence(&self, name: &str) -> Result<u64, Error> {
        check::key(name.as_bytes(), "the name of a fence")?;
        let (reply, answer) = oneshot::channel();
        self.write(Write::RaiseFence(name.to_owned(), reply), Size::default())
            .await?;
        answer.await.map_err(|_| closed())?
    }

    async fn load_snapshot(&self, stream: FlowId, format: u32) -> Result<Option<Snapshot>, Error> {
        self.readers()?
            .run(move |q| q.load_snapshot(stream, format))
            .await
    }

    async fn save_snapshot(&self, stream: FlowId, snapshot: Snapshot) -> Result<(), Error> {
        let size = check::snapshot(&snapshot)?;
        let (reply, answer) = oneshot::channel();
        self.write(Write::SaveSnapshot(stream, snapshot, reply), size)
            .await?;
        answer.await.map_err(|_| closed())?
    }

    async fn dropped(&self) -> Result<Dropped, Error> {
        let readers = self.readers()?;
        let ticket = match self.dropped.get() {
            Ok(known) => return Ok(known),
            Err(ticket) => ticket,
        };
        let read = readers.run(|q| q.dropped()).await?;
        self.dropped.keep(read, ticket);
        Ok(read)
    }

    async fn undropped(&self, after: u64, limit: usize) -> Result<Vec<Undropped>, Error> {
        self.readers()?
            .run(move |q| q.undropped(after, limit))
            .await
    }

    async fn drop_archived(&self, stream: FlowId, limit: usize) -> Result<u64, Error> {
        let (reply, answer) = oneshot::channel();
        self.dropped.begin();
        self.write(Write::Drop(stream, limit, reply), Size::default())
            .await?;
        // Without an answer it may be done or not.
        let answered = answer.await.map_err(|_| closed())?;
        self.dropped.end();
        answered
    }
}

impl SqliteStore {
    /// Registers the damage that a read has met.
    fn registered<T>(&self, read: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &read {
            self.damage.add_error(error);
        }
        read
    }
}
