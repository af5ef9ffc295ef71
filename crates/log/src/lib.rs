//! The log: an append-only store of events, one stream per flow.
//!
//! Owns: the port [`EventStore`] and its backends. May not touch: rules, read models, transports.
//! Appends come from the mailboxes (`application::mailbox`); readers are `subscription`,
//! `application` (loading a flow) and the command line.
//! Invariants: an append is all or nothing; positions rise strictly in commit order and a reader
//! that has seen position p never later sees a new event at or below p; what is answered
//! `Appended` is on disk.

pub mod chain;
mod check;
pub mod damage;
mod error;
pub mod faulty;
pub mod lock;
pub mod memory;
pub mod postgres;
pub mod retention;
mod ring;
mod row;
pub mod sqlite;
pub mod transfer;
pub mod verify;
pub mod witness;

pub use error::Error;

use async_trait::async_trait;
use chain::Mark;
use damage::{DamageRegister, Damaged};
use retention::{Dropped, Undropped};
use std::fmt;
use std::sync::Arc;
use taskledger_domain::codec::Encoded;
use taskledger_domain::flow::Event;
use taskledger_domain::{
    EventId, FlowId, Metadata, Position, Recorded, TaskId, Timestamp, Version,
};
use tokio::sync::watch;

/// Payload bytes that a reader takes at a time, unless a single event has more: far above most
/// events, so that there are few round trips, and little beside an answer.
pub const PIECE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Events that a reader takes at a time: what is decoded without a pause.
pub const PIECE_EVENTS_MAX: usize = 1000;

/// An event on its way into the log.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// Its identity, given before it is written.
    pub id: EventId,
    /// When its command was decided.
    pub time: Timestamp,
    /// The actor, and the ids of the request that caused it.
    pub metadata: Metadata,
    /// The event to append.
    pub event: Arc<Event>,
    /// The fact in its stored form; encoded by the sender, so that the one committer need not.
    pub encoded: Encoded,
}

impl NewEvent {
    /// Encodes `event`. Cost: O(size).
    #[must_use]
    pub fn new(id: EventId, time: Timestamp, metadata: Metadata, event: Event) -> Self {
        let encoded = taskledger_domain::codec::encode(&event);
        Self {
            id,
            time,
            metadata,
            event: Arc::new(event),
            encoded,
        }
    }
}

/// The subject of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClaimKey {
    /// A task id, with the id of its flow as value. Never expires: task ids are unique for ever.
    Task(TaskId),
    /// A principal, method and idempotency key, joined; the value holds fingerprint and answer.
    Request(Arc<str>),
}

/// An insert-if-absent row that is written with the events of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewClaim {
    /// What is claimed.
    pub key: ClaimKey,
    /// What a later claimant is told.
    pub value: Arc<str>,
    /// After this time the claim counts as absent. `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// Proof that the writer still owns what it writes for: the append is refused once a higher token
/// has been raised under the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// What is owned.
    pub name: Arc<str>,
    /// The owner's token, as [`EventStore::raise_fence`] gave it.
    pub token: u64,
}

/// Events for one stream, with everything that must hold for them to be written.
#[derive(Debug, Clone)]
pub struct Append {
    /// The flow whose stream the events go to.
    pub stream: FlowId,
    /// Version of its last event; 0 = the stream must not exist.
    pub expected: Version,
    /// At least one. They get the versions `expected + 1 ..`.
    pub events: Vec<NewEvent>,
    /// All of them must be free.
    pub claims: Vec<NewClaim>,
    /// The writer's ownership, if it needs one.
    pub fence: Option<Fence>,
}

/// The outcome of an append. Exactly one of these is true for ever.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// On disk, in this form.
    Appended(Vec<Arc<Recorded>>),
    /// The stream has another version; nothing was written.
    Conflict {
        /// The stream's version.
        actual: Version,
    },
    /// A claim is taken; nothing was written. Reported only when the version matched.
    Exists {
        /// The first claim that is taken.
        key: ClaimKey,
        /// What its holder wrote.
        value: Arc<str>,
    },
    /// Somebody raised the fence; nothing was written, and nothing ever will be with this token.
    Fenced,
    /// The store cannot say. [`EventStore::resolve`] can.
    Unknown,
}

/// Final word on an append whose outcome was unknown.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// It was written, in this form.
    Appended(Vec<Arc<Recorded>>),
    /// It was not written and never will be.
    Absent,
}

/// A page of the log.
#[derive(Debug, Clone)]
pub struct Page {
    /// In order of position.
    pub events: Vec<Arc<Recorded>>,
    /// Events among these that cannot be read, and are stepped over; in order of position.
    pub damaged: Vec<Damaged>,
    /// Position to continue after.
    pub next: Position,
    /// Whether the log had nothing more when it was read.
    pub at_end: bool,
}

/// A stored state of a flow: a baseline for loading, never the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Version of the last event that it contains.
    pub version: Version,
    /// Number of the format of `bytes`; another number is as good as absent.
    pub format: u32,
    /// The encoded state of the flow.
    pub bytes: Vec<u8>,
}

/// The append-only log.
#[async_trait]
pub trait EventStore: Send + Sync + fmt::Debug + 'static {
    /// Writes one append, together with whatever other appends have arrived meanwhile (group
    /// commit by arrival). Returns when its outcome is durable. A refused append does not fail its
    /// neighbours. The order of judging is fence, version, claims.
    ///
    /// # Errors
    /// [`Error`]: nothing was written. (When that is not certain the answer is `Ok(Unknown)`.)
    async fn append(&self, append: Append) -> Result<Outcome, Error>;

    /// Settles an append that was answered [`Outcome::Unknown`]. Final: after `Absent` the append
    /// can no longer take effect.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: still not known, ask again.
    async fn resolve(&self, stream: FlowId, ids: &[EventId]) -> Result<Resolution, Error>;

    /// Up to `limit` events of a stream with versions above `after`, in order; fewer, but at least
    /// one, when their payloads are larger than `bytes_max`, so that only an empty answer says that
    /// nothing follows. Empty for a stream that does not exist. Of an archived stream only the last
    /// event is certain to be there: what was dropped before it is passed over. Ends before a damaged event.
    /// Cost: O(events returned).
    ///
    /// # Errors
    /// [`Error::Corrupt`]: the first of the events is damaged. [`Error::Unavailable`].
    async fn read_stream(
        &self,
        stream: FlowId,
        after: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error>;

    /// The same backwards: the nearest events with versions below `before`, the newest first. Ends
    /// before what was dropped.
    ///
    /// # Errors
    /// As [`Self::read_stream`].
    async fn read_stream_back(
        &self,
        stream: FlowId,
        before: Version,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error>;

    /// The events of a stream with exactly these versions, in the order asked for.
    /// Cost: O(versions), one round trip.
    ///
    /// # Errors
    /// [`Error::Corrupt`] also when one of them does not exist; [`Error::Unavailable`].
    async fn read_versions(
        &self,
        stream: FlowId,
        versions: &[Version],
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        self.read_versions_within(stream, versions, usize::MAX)
            .await
    }

    /// The first of the events with these versions, as many as have payloads of up to `bytes_max`
    /// together, but at least one.
    ///
    /// # Errors
    /// As [`Self::read_versions`], for the events returned.
    async fn read_versions_within(
        &self,
        stream: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error>;

    /// Up to `limit` events of the whole log with positions above `after`, in order. Freshly
    /// committed ones are shared from memory. Positions of dropped events are passed over, and so are damaged events,
    /// which the page names. A page without events says that nothing follows, unless it names
    /// [`damage::PAGE_DAMAGED_MAX`] damaged ones.
    ///
    /// # Errors
    /// [`Error::Unavailable`]. [`Error::Corrupt`]: the database gives no rows at all.
    async fn read_all(&self, after: Position, limit: usize) -> Result<Page, Error>;

    /// Position of the last event; 0 for an empty log.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn head(&self) -> Result<Position, Error>;

    /// The last event's position and hash: with it `events verify` can tell later whether anything up
    /// to here was changed. `None` while no event has a hash.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn chain_head(&self) -> Result<Option<Mark>, Error> {
        Ok(None)
    }

    /// Version and last position of a stream; `None` when it does not exist.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn stream_head(&self, stream: FlowId) -> Result<Option<(Version, Position)>, Error>;

    /// The damaged events that reads of this process have met.
    fn damage(&self) -> &DamageRegister;

    /// The head as this process knows it: a wake-up, moved after each commit.
    fn watch(&self) -> watch::Receiver<Position>;

    /// Transactions that this process has made durable since it opened the log: beside the number
    /// of events it tells what a sync is shared by.
    fn commits(&self) -> u64 {
        0
    }

    /// Values of claims that are held at `now`, in the order asked for.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn claims(
        &self,
        keys: &[ClaimKey],
        now: Timestamp,
    ) -> Result<Vec<Option<Arc<str>>>, Error>;

    /// Raises the fence `name` and returns its new token (the first is 1). From then on every
    /// append with an older token of that name is `Fenced`.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::NotWritable`].
    async fn raise_fence(&self, name: &str) -> Result<u64, Error>;

    /// The newest snapshot of a stream in `format`, if there is one.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn load_snapshot(&self, stream: FlowId, format: u32) -> Result<Option<Snapshot>, Error>;

    /// Stores a snapshot, replacing an older one of the same stream.
    ///
    /// # Errors
    /// [`Error`]; never harmful.
    async fn save_snapshot(&self, stream: FlowId, snapshot: Snapshot) -> Result<(), Error>;

    /// What is missing of the log because its flows were archived.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn dropped(&self) -> Result<Dropped, Error> {
        Ok(Dropped::default())
    }

    /// Up to `limit` archived streams of which events are still there, in order of their numbers,
    /// behind the one with number `after`. Cost: O(archived streams).
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn undropped(&self, after: u64, limit: usize) -> Result<Vec<Undropped>, Error> {
        let _ = (after, limit);
        Ok(Vec::new())
    }

    /// Deletes up to `limit` events of an archived stream for ever, the newest of those before its
    /// last one, with the claims on the ids of tasks that they created, and its snapshot. Answers
    /// how many are left to delete. Durable when it is answered; repeating it does no harm.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless the stream ends with `FlowArchived`.
    async fn drop_archived(&self, stream: FlowId, limit: usize) -> Result<u64, Error> {
        let _ = limit;
        Err(retention::not_archived(stream))
    }
}
