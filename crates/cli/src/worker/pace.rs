//! The pauses before a call is repeated.

use std::time::Duration;
use taskledger_clock::SharedClock;

/// Before the first repetition. Short: a server that restarts is back within a second.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
/// Before any repetition: leases must be renewed soon after the server is back.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The longest pause that a server can ask for.
const PAUSE_ASKED_MAX: Duration = Duration::from_secs(60);

/// Grows with each call in vain; no two calls keep step.
#[derive(Debug)]
pub(crate) struct Pace {
    clock: SharedClock,
    in_vain: u32,
}

impl Pace {
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self { clock, in_vain: 0 }
    }

    /// A call went well.
    pub(super) fn arrived(&mut self) {
        self.in_vain = 0;
    }

    /// The pause before the next call; at least `asked`, if the server has said so.
    pub(crate) fn pause(&mut self, asked: Option<Duration>) -> Duration {
        // Random bits of a fresh id: from half of the pause to all of it.
        let jitter = self.clock.uuid().as_fields().0;
        let pause = pause(self.in_vain, jitter);
        self.in_vain = self.in_vain.saturating_add(1);
        pause.max(asked.unwrap_or_default().min(PAUSE_ASKED_MAX))
    }
}

fn pause(in_vain: u32, jitter: u32) -> Duration {
    let whole = PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(in_vain));
    let half = whole.min(PAUSE_MAX) / 2;
    half + half.mul_f64(f64::from(jitter) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::pause;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        let ms = |in_vain, jitter| pause(in_vain, jitter).as_millis();
        let whole: Vec<u128> = (0..7).map(|n| ms(n, u32::MAX)).collect();
        assert_eq!(whole, [250, 500, 1000, 2000, 4000, 5000, 5000]);
        assert_eq!(ms(2, 0), 500, "half at least");
        assert_eq!(ms(u32::MAX, u32::MAX), 5000);
    }
}
