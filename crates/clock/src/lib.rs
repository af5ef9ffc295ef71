//! The only place that reads the time or makes something random, so that tests can replace both.

mod retry_after;
mod steady;

pub use retry_after::{retry_after, retry_after_now};
pub use steady::{Machine, Reading, SteadyClock, ThisMachine};

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use taskledger_domain::Timestamp;
use uuid::Uuid;

/// The time, fresh ids and fresh keys.
pub trait Clock: std::fmt::Debug + Send + Sync + 'static {
    /// Now; never earlier than an earlier answer of the same clock.
    fn now(&self) -> Timestamp;
    /// The time as the machine has it, jumps and all: for what other machines compare with theirs, such as the
    /// claims of their tokens and the times of signed requests. Never for leases, order or durations: it runs
    /// backwards when somebody sets it back, and may differ from [`Self::now`] by hours.
    fn wall(&self) -> Timestamp {
        self.now()
    }
    /// The time by which schedules go: [`Self::now`], unless the machine's clock was set back by hours. Then it is the
    /// machine's, so that a clock that was a day ahead for a while does not stop schedules for a day. It may run
    /// backwards, so a stored one can be in the future.
    fn civil(&self) -> Timestamp {
        self.now()
    }
    /// A fresh random UUID v4.
    fn uuid(&self) -> Uuid;
    /// Random bytes that are fit for keys.
    ///
    /// # Panics
    /// When the machine has no randomness to give: nothing secret can be made then.
    fn bytes32(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        rustls::crypto::ring::default_provider()
            .secure_random
            .fill(&mut bytes)
            .expect("the machine has a source of randomness");
        bytes
    }
}

/// A clock that many parts of a program share.
pub type SharedClock = Arc<dyn Clock>;

/// The clock of the machine that the program runs on, without its jumps.
pub type SystemClock = SteadyClock<ThisMachine>;

#[expect(clippy::disallowed_methods, reason = "this is the id port")]
fn fresh_uuid() -> Uuid {
    Uuid::new_v4()
}

/// A clock that stands still until it is moved. For tests.
#[derive(Debug)]
pub struct ManualClock {
    micros: AtomicI64,
    /// By how much the machine's clock is behind, as schedules see it.
    back: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `start`.
    #[must_use]
    pub const fn at(start: Timestamp) -> Self {
        Self {
            micros: AtomicI64::new(start.0),
            back: AtomicI64::new(0),
        }
    }

    /// Moves the clock `ms` milliseconds on.
    pub fn advance_ms(&self, ms: u64) {
        self.micros
            .fetch_add(i64::try_from(ms).unwrap_or(0) * 1000, Ordering::Relaxed);
    }
}

impl ManualClock {
    /// Sets the machine's clock `ms` milliseconds back: [`Clock::civil`] follows, [`Clock::now`] never runs back.
    pub fn set_back_ms(&self, ms: u64) {
        self.back
            .fetch_add(i64::try_from(ms).unwrap_or(0) * 1000, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.micros.load(Ordering::Relaxed))
    }

    fn civil(&self) -> Timestamp {
        Timestamp(self.now().0 - self.back.load(Ordering::Relaxed))
    }

    fn uuid(&self) -> Uuid {
        fresh_uuid()
    }
}
