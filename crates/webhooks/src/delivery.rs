//! Deliveries, and the port through which the worker takes them and reports their outcomes.
//!
//! A worker leases whole endpoints: while it holds one, nobody else sends there, so order and the
//! breaker are decided in one place. Every answer of the worker shows its lease's token; after somebody
//! else has taken the endpoint, such answers change nothing.

use super::endpoint::{DisabledReason, EndpointId, Ordering};
use async_trait::async_trait;
use bytes::Bytes;
use serde::Serialize;
use std::sync::Arc;
use taskledger_domain::{FlowId, TaskId, Timestamp};
pub use taskledger_sealing::Secret;
use uuid::Uuid;

/// One message to one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryId(pub i64);

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It will be tried, perhaps again. The only state that does not last.
    Waiting,
    /// The receiver has answered with a status of 2xx.
    Delivered,
    /// Given up after the last attempt of its schedule, or because its endpoint takes nothing more.
    Dead,
    /// Its endpoint was deleted before it was sent.
    Cancelled,
    /// A newer message about the same took its place before it was sent.
    Superseded,
}

impl DeliveryState {
    /// All variants.
    pub const ALL: [Self; 5] = [
        Self::Waiting,
        Self::Delivered,
        Self::Dead,
        Self::Cancelled,
        Self::Superseded,
    ];

    /// The name in calls and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// The right to send to an endpoint, until its time is over or somebody else has taken it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The endpoint that may be sent to.
    pub endpoint: EndpointId,
    /// Rises each time the endpoint is taken.
    pub token: i64,
}

/// A leased endpoint, with what sending needs.
#[derive(Debug, Clone)]
pub struct Leased {
    /// The right.
    pub lease: Lease,
    /// Where to send.
    pub url: Arc<str>,
    /// The owner: it gets messages about this user's flows only. `None`: about all flows.
    pub owner: Option<Arc<str>>,
    /// Headers of its own, in the clear.
    pub headers: Vec<(Arc<str>, Secret)>,
    /// Keys to sign with, the newest first; more than one during a rotation.
    pub keys: Vec<Key>,
    /// Which messages wait for earlier ones.
    pub ordering: Ordering,
    /// Seconds before each attempt; `None`: the server's schedule.
    pub schedule: Option<Arc<[u32]>>,
    /// The media type of what it gets; `None`: JSON.
    pub content_type: Option<Arc<str>>,
    /// What is known of how it fares.
    pub health: Health,
}

/// A key that signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// In its written form: `whsec_...` (HMAC-SHA256) or `whsk_...` (ed25519).
    pub secret: Secret,
    /// Not used from then on; `None`: the present key.
    pub expires_at: Option<Timestamp>,
}

/// The health of an endpoint; stored with it, so that restarts and other servers know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Health {
    /// Failed attempts since the last one that arrived.
    pub failures: u32,
    /// When the first of them was.
    pub failing_since: Option<Timestamp>,
    /// Attempts and failures of the present window of the breaker, and when it began.
    pub window: Window,
    /// Nothing is sent before this time: the breaker is open.
    pub open_until: Option<Timestamp>,
    /// How often it has opened without an arrival between.
    pub openings: u32,
}

/// Attempts of a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// When it began.
    pub since: Option<Timestamp>,
    /// Attempts in it.
    pub attempts: u32,
    /// Those that failed.
    pub failures: u32,
}

/// The cause of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The schedule.
    Scheduled,
    /// An order by hand: neither uses nor resets the schedule.
    Manual,
    /// A schedule that was begun anew by hand.
    Recovered,
    /// A test: it is tried once, whatever comes of it.
    Test,
}

impl Cause {
    const ALL: [Self; 4] = [Self::Scheduled, Self::Manual, Self::Recovered, Self::Test];

    /// The name in the log of deliveries.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Manual => "manual",
            Self::Recovered => "recovered",
            Self::Test => "test",
        }
    }

    /// The number in the store.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Scheduled => 0,
            Self::Manual => 1,
            Self::Recovered => 2,
            Self::Test => 3,
        }
    }

    /// The cause with this number.
    #[must_use]
    pub fn of_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.number() == number)
    }

    /// Whether it was asked for by itself, beside any schedule.
    #[must_use]
    pub const fn by_hand(self) -> bool {
        match self {
            Self::Manual | Self::Test => true,
            Self::Scheduled | Self::Recovered => false,
        }
    }
}

/// A message that is due.
#[derive(Debug, Clone)]
pub struct Due {
    /// Identifies the delivery in reports of its attempts.
    pub id: DeliveryId,
    /// `webhook-id`: the same for each attempt.
    pub message_id: Arc<str>,
    /// The task that it is about.
    pub task: Option<TaskId>,
    /// The flow of that task.
    pub flow: Option<FlowId>,
    /// The exact bytes.
    pub body: Bytes,
    /// Attempts of the schedule so far.
    pub attempts: u32,
    /// Why it is sent now.
    pub cause: Cause,
    /// W3C `traceparent` of what led here.
    pub traceparent: Option<Arc<str>>,
}

/// One attempt, for the log of deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub duration_ms: u32,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// Class of what went wrong (`dns`, `timeout`, `status`, ...); `None`: it arrived.
    pub error: Option<&'static str>,
    /// More about it, for the owner.
    pub detail: Option<Arc<str>>,
    /// Where it went.
    pub remote: Option<Arc<str>>,
    /// The beginning of the answer's body.
    pub response: Option<Arc<str>>,
    /// What it was made for.
    pub cause: Cause,
}

/// The next state of a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It has arrived.
    Delivered,
    /// It is tried again.
    RetryAt(Timestamp),
    /// The schedule is over, or it was a test.
    Dead,
    /// As before: the attempt was made by hand and failed, or the endpoint refuses everything now.
    Unchanged,
}

/// A worker's report of an attempt. Recorded in one transaction.
#[derive(Debug, Clone)]
pub struct AttemptReport {
    /// The delivery that was attempted.
    pub delivery: DeliveryId,
    /// When it was made and how it ended.
    pub attempt: Attempt,
    /// What follows.
    pub next: Next,
    /// How the endpoint fares from now on.
    pub health: Health,
    /// The endpoint is disabled.
    pub disable: Option<DisabledReason>,
    /// What other endpoints are told of this one.
    pub say: Option<super::endpoint::EventName>,
}

/// Whether the worker still held the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Recorded.
    Yes,
    /// Somebody else has the endpoint now; nothing was changed.
    Fenced,
    /// The endpoint, or the delivery, is there no more; nothing was changed.
    Gone,
}

/// The store of deliveries does not answer; ask again.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store of webhooks is not available: {0}")]
pub struct Unavailable(pub String);

/// The port to the store that a worker needs.
#[async_trait]
pub trait Deliveries: Send + Sync + std::fmt::Debug {
    /// Takes up to `limit` endpoints that have something due at `now`, are enabled, whose breaker lets
    /// something through, and that nobody holds. Those that have waited longest come first.
    /// Cost: O(limit), however many deliveries wait.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn lease(
        &self,
        worker: Uuid,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Leased>, Unavailable>;

    /// Keeps leases until a later time; tells for each whether it is still held.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<bool>, Unavailable>;

    /// What is due at `now`, in order, as far as nothing that it must wait for is on its way: of each
    /// task (of the endpoint, for [`Ordering::Endpoint`]) the first message that has not ended. At
    /// most `limit`, without those in `under_way`.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn due(
        &self,
        lease: &Lease,
        now: Timestamp,
        under_way: &[DeliveryId],
        limit: usize,
    ) -> Result<Vec<Due>, Unavailable>;

    /// Records an attempt.
    ///
    /// # Errors
    /// [`Unavailable`]: not recorded; the message will be sent again.
    async fn record(&self, lease: &Lease, told: AttemptReport) -> Result<Recorded, Unavailable>;

    /// Gives an endpoint back. When it has to be looked at next follows from what is stored.
    ///
    /// # Errors
    /// [`Unavailable`]: the lease ends by itself.
    async fn release(&self, lease: &Lease) -> Result<(), Unavailable>;

    /// When something will be due next; `None`: nothing waits.
    ///
    /// # Errors
    /// [`Unavailable`].
    async fn next_due(&self) -> Result<Option<Timestamp>, Unavailable>;

    /// Returns when something may have become due that was not before: a new message, an endpoint that
    /// was enabled. A hint; asking from time to time is what can be relied on.
    async fn changed(&self);
}
