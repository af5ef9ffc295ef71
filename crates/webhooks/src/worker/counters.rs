//! Counters of a worker since its start.

use crate::attempt::Outcome;
use crate::breaker;
use crate::delivery::{AttemptReport, Cause, Next};
use crate::endpoint::EndpointId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use taskledger_domain::Timestamp;
use taskledger_meters::{Buckets, Counter, Histogram};

/// Breakers that are remembered, only to be counted.
const OPEN_MAX: usize = 20_000;

/// Counts of a worker's attempts and their outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Attempts that were recorded.
    pub attempts: u64,
    /// Those that arrived.
    pub delivered: u64,
    /// Those that did not.
    pub failed: u64,
    /// Messages that were given up.
    pub dead: u64,
    /// Endpoints whose breaker this worker has opened and not seen close since.
    pub open_breakers: usize,
}

/// What attempts are counted by: `delivered`, the classes of errors, and `other` for the rest.
pub const CLASSES: [&str; 11] = [
    "delivered",
    "status",
    "redirect",
    "timeout",
    "dns",
    "connect",
    "tls",
    "blocked_address",
    "protocol",
    "reset",
    "other",
];

#[derive(Debug)]
pub(super) struct Counters {
    delivered: AtomicU64,
    failed: AtomicU64,
    dead: AtomicU64,
    open: Mutex<HashMap<EndpointId, Timestamp>>,
    /// Attempts, in the order of [`CLASSES`].
    classes: [Counter; CLASSES.len()],
    /// How long they took.
    pub(super) times: Histogram,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            delivered: AtomicU64::default(),
            failed: AtomicU64::default(),
            dead: AtomicU64::default(),
            open: Mutex::default(),
            classes: std::array::from_fn(|_| Counter::default()),
            times: Histogram::new(&Buckets::DELIVERIES),
        }
    }
}

/// The place of an attempt in [`CLASSES`].
fn class(error: Option<&str>) -> usize {
    let name = error.unwrap_or(CLASSES[0]);
    let found = CLASSES.iter().position(|class| *class == name);
    found.unwrap_or(CLASSES.len() - 1)
}

impl Counters {
    fn open(&self) -> MutexGuard<'_, HashMap<EndpointId, Timestamp>> {
        self.open
            .lock()
            .expect("no code panics while it holds the open breakers")
    }

    /// Counts what was recorded at `now`.
    pub(super) fn count(
        &self,
        endpoint: EndpointId,
        told: &AttemptReport,
        outcome: Outcome,
        now: Timestamp,
    ) {
        self.classes[class(told.attempt.error)].increment();
        let took = Duration::from_millis(told.attempt.duration_ms.into());
        self.times.observe_time(took);
        match outcome {
            Outcome::Arrived => &self.delivered,
            Outcome::Failed { .. } | Outcome::Gone => &self.failed,
        }
        .fetch_add(1, Relaxed);
        if told.next == Next::Dead && told.attempt.cause != Cause::Test {
            self.dead.fetch_add(1, Relaxed);
        }
        let mut open = self.open();
        match told.health.open_until {
            Some(until) if told.disable.is_none() => {
                if open.len() >= OPEN_MAX {
                    // Nothing was sent to them for an hour: deleted, or another server's now.
                    open.retain(|_, until| now < until.plus_ms(breaker::PAUSE_MS_MAX));
                }
                if open.len() < OPEN_MAX {
                    open.insert(endpoint, until);
                }
            }
            Some(_) | None => _ = open.remove(&endpoint),
        }
    }

    /// Counts a message that was given up without an attempt.
    pub(super) fn count_given_up(&self) {
        self.dead.fetch_add(1, Relaxed);
    }

    /// Attempts by class, in the order of [`CLASSES`].
    pub(super) fn by_class(&self) -> [u64; CLASSES.len()] {
        std::array::from_fn(|class| self.classes[class].get())
    }

    pub(super) fn counts(&self) -> Counts {
        let delivered = self.delivered.load(Relaxed);
        let failed = self.failed.load(Relaxed);
        Counts {
            attempts: delivered + failed,
            delivered,
            failed,
            dead: self.dead.load(Relaxed),
            open_breakers: self.open().len(),
        }
    }
}
