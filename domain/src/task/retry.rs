//! The retry policy: when a failed attempt is followed by another one within the same run.

use crate::TaskId;
use serde::{Deserialize, Serialize};

/// Attempts and the delays between them. Deterministic: a replay gives the same times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; at least 1.
    pub max_attempts: u32,
    /// Milliseconds before the second attempt.
    pub initial_delay_ms: u64,
    /// Factor from one delay to the next; at least 1.
    pub multiplier: f64,
    /// Milliseconds that no delay exceeds.
    pub max_delay_ms: u64,
    /// The part of each delay that varies, 0 to 1. A delay is never longer for it.
    #[serde(default)]
    pub jitter: f64,
    /// Milliseconds after the start of the first attempt of a run within which the last must begin; absent for
    /// no bound.
    #[serde(default)]
    pub max_elapsed_ms: Option<u64>,
}

impl RetryPolicy {
    /// Milliseconds before the second attempt when the caller gives only a count.
    pub const INITIAL_DELAY_MS_DEFAULT: u64 = 1000;
    /// Factor between delays when the caller gives none.
    pub const MULTIPLIER_DEFAULT: f64 = 2.0;
    /// The part of a delay that varies when the caller gives none.
    pub const JITTER_DEFAULT: f64 = 0.0;
    /// Milliseconds that no delay exceeds when the caller gives no bound.
    pub const MAX_DELAY_MS_DEFAULT: u64 = 60_000;

    /// The policy behind `params.retry_count`: so many extra attempts with the default delays.
    #[must_use]
    pub const fn extra_attempts(retry_count: u32) -> Self {
        Self {
            max_attempts: retry_count + 1,
            initial_delay_ms: Self::INITIAL_DELAY_MS_DEFAULT,
            multiplier: Self::MULTIPLIER_DEFAULT,
            max_delay_ms: Self::MAX_DELAY_MS_DEFAULT,
            jitter: Self::JITTER_DEFAULT,
            max_elapsed_ms: None,
        }
    }

    /// Whether a task can have been given this one.
    pub(crate) fn is_sound(&self) -> bool {
        self.multiplier.is_finite() && self.multiplier >= 1.0 && (0.0..=1.0).contains(&self.jitter)
    }

    /// Milliseconds to wait after attempt number `attempt` (from 1, within the run) has failed;
    /// `None` when it was the last one. `draw`, from 0 to 1, says how much of the part that varies is taken away.
    #[must_use]
    pub fn delay_ms_after(&self, attempt: u32, draw: f64) -> Option<u64> {
        if attempt >= self.max_attempts {
            return None;
        }
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let delay = self.initial_delay_ms as f64 * self.multiplier.powi(exponent);
        let delay = if delay >= self.max_delay_ms as f64 {
            self.max_delay_ms
        } else {
            delay as u64
        };
        Some(delay - (delay as f64 * self.jitter * draw) as u64)
    }
}

/// A number from 0 to 1 that differs from task to task and from attempt to attempt, and is the same whenever and
/// wherever it is asked for. Ids are random, so it is spread evenly.
#[must_use]
pub(crate) fn draw(task: TaskId, attempt: u32) -> f64 {
    // The last step of SplitMix64, so that neighbouring attempts have nothing in common.
    let (high, low) = task.0.as_u64_pair();
    let mut bits =
        high ^ low.rotate_left(32) ^ u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    // 53 bits are a whole number in an `f64`.
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::{RetryPolicy, draw};
    use crate::testing::id;

    #[test]
    fn jitter_shortens_delays_by_at_most_its_part_and_differs_between_tasks_and_attempts() {
        let policy = RetryPolicy {
            jitter: 0.5,
            ..RetryPolicy::extra_attempts(3)
        };
        let drawn: Vec<f64> = (0..200)
            .flat_map(|n| (1..=3).map(move |attempt| draw(id(&format!("t{n}")), attempt)))
            .collect();
        let delays: std::collections::BTreeSet<u64> = drawn
            .iter()
            .map(|draw| policy.delay_ms_after(1, *draw).expect("attempts are left"))
            .collect();
        assert!(
            delays.iter().all(|ms| (500..=1000).contains(ms)),
            "{delays:?}"
        );
        assert!(delays.len() > 300, "{}", delays.len());
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert_eq!(draw(id("t1"), 2), draw(id("t1"), 2));
    }

    #[test]
    fn delays_grow_up_to_their_bound_and_end_with_the_budget() {
        let policy = RetryPolicy {
            max_attempts: 5,
            initial_delay_ms: 100,
            multiplier: 3.0,
            max_delay_ms: 1000,
            jitter: 0.0,
            max_elapsed_ms: None,
        };
        let delays: Vec<_> = (1..=5).map(|n| policy.delay_ms_after(n, 1.0)).collect();
        assert_eq!(delays, [Some(100), Some(300), Some(900), Some(1000), None]);
    }
}
