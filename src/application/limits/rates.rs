//! Rate limits: a token bucket for each caller, in units of calls per second.

use crate::application::api::Cost;
use crate::application::error::Error;
use crate::clock::SharedClock;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use taskledger_auth::{Caller, Kind};

/// Units a second for each authenticated caller unless the operator says otherwise: 400 changes, or 2,000 reads.
pub const PER_SECOND_DEFAULT: u32 = 2_000;
/// Units at once: the largest call, with 20,000 tasks, is one of them.
pub const BURST_DEFAULT: u32 = 20_000;

/// Callers whose buckets are kept apart. Only buckets that are not full are kept.
const CALLERS_MAX: usize = 65_536;
/// Buckets that callers share while there are more than [`CALLERS_MAX`].
const SHARED_BUCKETS: u64 = 1_024;
/// Calls after which full buckets are dropped; so many more callers may be kept meanwhile.
const COLLECT_AFTER_CALLS: u32 = 4_096;

/// The rates at which callers may call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateOptions {
    /// Units a second; 0 for no limit. Absent: [`PER_SECOND_DEFAULT`] for authenticated callers, no limit for others.
    pub per_second: Option<u32>,
    /// Units at once. Absent: [`BURST_DEFAULT`], and never less than a second's.
    pub burst: Option<NonZeroU32>,
}

/// The owner of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// One caller of one tenant.
    Of(Arc<str>, Arc<str>),
    /// Many callers that share a bucket.
    Shared(u64),
}

/// The buckets.
pub(super) struct Rates {
    limiter: Option<RateLimiter<Key, HashMapStateStore<Key>, Port, NoOpMiddleware<Duration>>>,
    burst: NonZeroU32,
    clock: Port,
    /// Whether callers are limited who are not authenticated.
    everybody: bool,
    calls: AtomicU32,
    crowded: AtomicBool,
    hasher: RandomState,
}

impl fmt::Debug for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rates").finish_non_exhaustive()
    }
}

impl Rates {
    pub(super) fn new(options: RateOptions, clock: SharedClock) -> Self {
        let per_second = options.per_second.unwrap_or(PER_SECOND_DEFAULT);
        let burst = options
            .burst
            .map_or(BURST_DEFAULT.max(per_second), u32::from);
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        let clock = Port(clock);
        let limiter = NonZeroU32::new(per_second).map(|per_second| {
            let quota = Quota::per_second(per_second).allow_burst(burst);
            RateLimiter::new(quota, HashMapStateStore::default(), clock.clone())
        });
        Self {
            limiter,
            burst,
            clock,
            everybody: options.per_second.is_some(),
            calls: AtomicU32::new(0),
            crowded: AtomicBool::new(false),
            hasher: RandomState::new(),
        }
    }

    /// Takes what a call costs from the bucket of its caller, a full bucket at most.
    pub(super) fn take(&self, caller: &Caller, cost: Cost, tasks: usize) -> Result<(), Error> {
        self.spend(caller, self.units(cost, tasks))
    }

    /// Takes what so many tasks cost beside the call, a full bucket at most.
    pub(super) fn take_further(&self, caller: &Caller, tasks: usize) -> Result<(), Error> {
        let units = u32::try_from(tasks).unwrap_or(u32::MAX);
        self.spend(
            caller,
            NonZeroU32::new(units).map(|units| units.min(self.burst)),
        )
    }

    fn spend(&self, caller: &Caller, units: Option<NonZeroU32>) -> Result<(), Error> {
        let exempt = match caller.kind() {
            Kind::Anonymous => !self.everybody,
            Kind::User | Kind::Service => false,
        };
        let (Some(limiter), Some(units), false) = (&self.limiter, units, exempt) else {
            return Ok(());
        };
        self.collect();
        let taken = limiter.check_key_n(&self.key(caller), units);
        match taken.expect("no call costs more than a full bucket holds") {
            Ok(()) => Ok(()),
            Err(until) => {
                let wait = until.wait_time_from(self.clock.now());
                let ms = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
                Err(Error::RateLimited {
                    retry_after_ms: ms.max(1),
                })
            }
        }
    }

    fn units(&self, cost: Cost, tasks: usize) -> Option<NonZeroU32> {
        let units = NonZeroU32::new(cost.units())?;
        let further = u32::try_from(tasks.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(units.saturating_add(further).min(self.burst))
    }

    fn key(&self, caller: &Caller) -> Key {
        if self.crowded.load(Ordering::Relaxed) {
            let hash = self.hasher.hash_one((caller.tenant(), caller.actor()));
            return Key::Shared(hash % SHARED_BUCKETS);
        }
        Key::Of(caller.tenant().clone(), caller.actor().clone())
    }

    /// Drops full buckets, now and then: they are as good as none.
    fn collect(&self) {
        if let Some(limiter) = &self.limiter
            && self
                .calls
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(COLLECT_AFTER_CALLS)
        {
            limiter.retain_recent();
            let crowded = limiter.len() >= CALLERS_MAX;
            self.crowded.store(crowded, Ordering::Relaxed);
        }
    }

    #[cfg(test)]
    fn callers(&self) -> usize {
        self.limiter.as_ref().map_or(0, RateLimiter::len)
    }
}

/// The clock port as the limiter wants it.
#[derive(Debug, Clone)]
struct Port(SharedClock);

impl Clock for Port {
    /// Since 1970.
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.now().0).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
