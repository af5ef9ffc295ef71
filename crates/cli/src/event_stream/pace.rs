//! The pauses before a new connection.

use std::time::Duration;
use taskledger_clock::SharedClock;

/// Before the first attempt, while the server has not asked for another pause.
const PAUSE_FIRST: Duration = Duration::from_secs(2);
/// Before any attempt: a server that is back after a night is noticed soon.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The longest pause that a server can ask for.
const PAUSE_ASKED_MAX: Duration = Duration::from_secs(60);

/// Grows with each attempt in vain; no two clients keep step, so a server that comes back is not met by
/// all of them at once.
#[derive(Debug)]
pub(super) struct Pace {
    clock: SharedClock,
    asked: Option<Duration>,
    /// Attempts since the last one that brought something.
    in_vain: u32,
}

impl Pace {
    pub(super) fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            asked: None,
            in_vain: 0,
        }
    }

    /// Something has come, perhaps with a wish of the server.
    pub(super) fn arrived(&mut self, asked: Option<Duration>) {
        self.in_vain = 0;
        self.asked = asked.or(self.asked);
    }

    /// The pause before the next attempt; at least `wait`, if the server has said so.
    pub(super) fn pause(&mut self, wait: Option<Duration>) -> Duration {
        // Random bits of a fresh id: from half of the pause to all of it.
        let jitter = self.clock.uuid().as_fields().0;
        let pause = pause(self.asked, self.in_vain, jitter);
        self.in_vain = self.in_vain.saturating_add(1);
        pause.max(wait.unwrap_or_default().min(PAUSE_ASKED_MAX))
    }
}

fn pause(asked: Option<Duration>, in_vain: u32, jitter: u32) -> Duration {
    let first = asked.unwrap_or(PAUSE_FIRST).min(PAUSE_ASKED_MAX);
    let longest = PAUSE_MAX.max(first);
    let whole = first
        .saturating_mul(2_u32.saturating_pow(in_vain))
        .min(longest);
    whole / 2 + (whole / 2).mul_f64(f64::from(jitter) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ_between_clients() {
        let secs = |asked: Option<u64>, in_vain, jitter| {
            pause(asked.map(Duration::from_secs), in_vain, jitter).as_secs_f64()
        };
        let whole: Vec<f64> = (0..7).map(|n| secs(None, n, u32::MAX)).collect();
        assert_eq!(whole, [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        assert_eq!(secs(None, 1, 0), 2.0, "half at least");
        assert_eq!(secs(Some(1), 0, u32::MAX), 1.0);
        assert_eq!(secs(Some(40), 3, u32::MAX), 40.0, "the server knows best");
        assert_eq!(secs(Some(86_400), 0, u32::MAX), 60.0, "within limits");
        assert_eq!(secs(Some(0), u32::MAX, 0), 0.0);
        assert_eq!(secs(None, u32::MAX, u32::MAX), 30.0);
    }
}
