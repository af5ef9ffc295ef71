//! The delivery worker: it sends what is due, and records the outcome in the store.
//!
//! Leases endpoints and gives each a `turn`; a turn ends when nothing is due any more. Attempts share
//! the `room`: so many in all, for a host, for an endpoint. Nothing is in memory alone: who is killed
//! leaves leases that end by themselves, and messages that are sent again under the same id.
//! May not touch: SQL, what is sent. Stored times are read from a `steady` clock, pauses are tokio's.

mod counters;
mod holding;
mod keeping;
mod looking;
mod room;
mod steady;
#[cfg(test)]
mod tests;
mod turn;
mod verdict;

use super::attempt::Sender;
use super::delivery::{Deliveries, Unavailable};
use super::owners::Owners;
use super::schedule::DEFAULT_SECONDS;
use counters::Counters;
pub use counters::{CLASSES, Counts};
use holding::Holdings;
use room::Room;
use std::sync::Arc;
use std::time::Duration;
use steady::Steady;
use taskledger_clock::SharedClock;
use taskledger_meters::Reading;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// How long an endpoint is leased: longer than any attempt and an outage of the store that a restart of
/// it takes.
const LEASE: Duration = Duration::from_secs(60);
/// How often leases are renewed.
const RENEW_EVERY: Duration = Duration::from_secs(20);
/// A lease is not relied on for its last seconds: a call to the store may take that long.
const LEASE_MARGIN: Duration = Duration::from_secs(10);
/// How long one call to the store may take; then it counts as not available.
const STORE_WAIT: Duration = Duration::from_secs(5);
/// Pause before a store that is not available is asked again.
const STORE_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// The range of limits for one attempt.
const TIMEOUT_MIN: Duration = Duration::from_secs(1);
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// Limits and times of the worker.
#[derive(Debug, Clone)]
pub struct Options {
    /// Of one attempt, body included; 1 to 30 s.
    pub timeout: Duration,
    /// Seconds before each attempt, for endpoints without a schedule of their own.
    pub schedule: Arc<[u32]>,
    /// Attempts at once. Each is a connection and a body in memory.
    pub attempts_max: usize,
    /// Attempts at once to one host, whoever its endpoints belong to.
    pub per_host_max: usize,
    /// Attempts at once to one endpoint.
    pub per_endpoint_max: usize,
    /// How long attempts under way may take to end when the worker stops.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(15),
            schedule: Arc::from(DEFAULT_SECONDS),
            attempts_max: 256,
            per_host_max: 8,
            per_endpoint_max: 4, // half of a host: one endpoint that answers slowly leaves room there
            grace: Duration::from_secs(15),
        }
    }
}

/// The parts that the worker works with.
#[derive(Debug, Clone)]
pub struct Parts {
    /// What is due.
    pub deliveries: Arc<dyn Deliveries>,
    /// Tells who owns a flow.
    pub owners: Arc<dyn Owners>,
    /// The way out.
    pub sender: Arc<dyn Sender>,
    /// Times and the worker's name.
    pub clock: SharedClock,
}

#[derive(Debug)]
struct Shared {
    me: Uuid,
    parts: Parts,
    options: Options,
    time: Steady,
    room: Room,
    holdings: Holdings,
    counters: Counters,
    /// A turn has ended.
    ended: Notify,
    /// Something may have become due, also for endpoints that have their turn.
    hints: watch::Sender<()>,
}

/// The worker, which has not begun.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
}

/// Shows how a worker fares.
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    /// What has been done since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.counters.counts()
    }

    /// Attempts that were recorded since the start, in the order of [`CLASSES`].
    #[must_use]
    pub fn by_class(&self) -> [u64; CLASSES.len()] {
        self.shared.counters.by_class()
    }

    /// How long they took.
    #[must_use]
    pub fn times(&self) -> Reading {
        self.shared.counters.times.read()
    }

    /// How long the delivery has been due that has waited longest, among those that may be sent now.
    ///
    /// # Errors
    /// [`Unavailable`]: the store does not answer.
    pub async fn lag(&self) -> Result<Duration, Unavailable> {
        let due = self.shared.parts.deliveries.next_due().await?;
        let now = self.shared.time.now();
        Ok(Duration::from_millis(
            due.map_or(0, |due| now.ms_since(due)),
        ))
    }
}

impl Service {
    /// A worker; nothing is sent before [`Self::run`].
    #[must_use]
    pub fn new(parts: Parts, options: Options) -> (Self, Handle) {
        let shared = Arc::new(Shared {
            me: parts.clock.uuid(),
            time: Steady::new(parts.clock.clone()),
            room: Room::new(options.attempts_max, options.per_host_max),
            holdings: Holdings::default(),
            counters: Counters::default(),
            ended: Notify::new(),
            hints: watch::Sender::new(()),
            options: Options {
                timeout: options.timeout.clamp(TIMEOUT_MIN, TIMEOUT_MAX),
                ..options
            },
            parts,
        });
        let handle = Handle {
            shared: shared.clone(),
        };
        (Self { shared }, handle)
    }

    /// Sends until `stop`. Then nothing is begun any more; what is under way may end within the grace,
    /// and the leases are given back.
    pub async fn run(self, stop: CancellationToken) {
        let turns = TaskTracker::new();
        let cut = CancellationToken::new();
        // However this future ends, nothing that it began goes on.
        let _cut = cut.clone().drop_guard();
        let work = async {
            looking::look(&self.shared, &turns, &stop, &cut).await;
            turns.close();
            let grace = self.shared.options.grace;
            if tokio::time::timeout(grace, turns.wait()).await.is_err() {
                tracing::warn!(
                    endpoints = turns.len(),
                    "webhooks that were being sent are cut off; they will be sent again"
                );
                cut.cancel();
                turns.wait().await;
            }
        };
        tokio::select! {
            () = work => {}
            () = keeping::keep(&self.shared) => {}
        }
    }
}

impl Shared {
    /// Something of the store, or the reason why it did not come.
    async fn ask<T>(
        &self,
        what: impl Future<Output = Result<T, super::delivery::Unavailable>>,
    ) -> Result<T, super::delivery::Unavailable> {
        let late = |_| super::delivery::Unavailable("no answer in time".to_owned());
        tokio::time::timeout(STORE_WAIT, what).await.map_err(late)?
    }
}
