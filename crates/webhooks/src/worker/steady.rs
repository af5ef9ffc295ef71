//! A clock for stored times that goes on at half the speed at least, whatever clock the server has.
//!
//! The clock of a running server does so by itself (`crates/clock/src/steady.rs`). This one keeps it so for any other:
//! were retries measured by a clock that stands, they would stand still as well. When the clock leaps ahead it leaps
//! too, and each message that waits is tried once too early at most.

use std::sync::Mutex;
use std::time::Duration;
use taskledger_clock::SharedClock;
use taskledger_domain::Timestamp;
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Steady {
    clock: SharedClock,
    latest: Mutex<(Timestamp, Instant)>,
}

impl Steady {
    pub(super) fn new(clock: SharedClock) -> Self {
        let latest = Mutex::new((clock.now(), Instant::now()));
        Self { clock, latest }
    }

    pub(super) fn now(&self) -> Timestamp {
        let mut latest = self
            .latest
            .lock()
            .expect("no code panics while it reads the time");
        let (time, read) = *latest;
        let instant = Instant::now();
        let half = i64::try_from((instant - read).as_micros() / 2).unwrap_or(i64::MAX);
        let now = self.clock.now().max(Timestamp(time.0.saturating_add(half)));
        *latest = (now, instant);
        now
    }

    /// How long it is until `at`, rounded up.
    pub(super) fn until(&self, at: Timestamp) -> Duration {
        match at.ms_since(self.now()) {
            0 => Duration::ZERO,
            ms => Duration::from_millis(ms + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use taskledger_clock::ManualClock;
    use tokio::time::advance;

    const START: Timestamp = Timestamp(1_000_000_000);

    #[tokio::test(start_paused = true)]
    async fn it_follows_a_clock_that_goes_or_leaps() {
        let clock = Arc::new(ManualClock::at(START));
        let steady = Steady::new(clock.clone());
        clock.advance_ms(10);
        advance(Duration::from_millis(10)).await;
        assert_eq!(steady.now(), START.plus_ms(10));
        clock.advance_ms(3_600_000);
        assert_eq!(steady.now(), START.plus_ms(3_600_010));
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_at_half_speed_while_its_clock_stands() {
        let clock = Arc::new(ManualClock::at(START));
        let steady = Steady::new(clock.clone());
        for _ in 0..10 {
            advance(Duration::from_secs(1)).await;
            steady.now();
        }
        assert_eq!(steady.now(), START.plus_ms(5_000));
        // The clock goes again, from where it stood: they meet.
        for _ in 0..10 {
            advance(Duration::from_secs(1)).await;
            clock.advance_ms(1_000);
            steady.now();
        }
        assert_eq!(steady.now(), START.plus_ms(10_000));
        advance(Duration::from_secs(1)).await;
        clock.advance_ms(1_000);
        assert_eq!(steady.now(), START.plus_ms(11_000));
    }
}
