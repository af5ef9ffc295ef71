//! When a failed attempt is followed by another one within the same run.

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
}

impl RetryPolicy {
    /// Milliseconds before the second attempt when the caller gives only a count.
    pub const INITIAL_DELAY_MS_DEFAULT: u64 = 1000;
    /// Factor between delays when the caller gives none.
    pub const MULTIPLIER_DEFAULT: f64 = 2.0;
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
        }
    }

    /// Whether a task can have been given this one.
    pub(crate) fn is_sound(&self) -> bool {
        self.multiplier.is_finite() && self.multiplier >= 1.0
    }

    /// Milliseconds to wait after attempt number `attempt` (from 1, within the run) has failed;
    /// `None` when it was the last one.
    #[must_use]
    pub fn delay_ms_after(&self, attempt: u32) -> Option<u64> {
        if attempt >= self.max_attempts {
            return None;
        }
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let delay = self.initial_delay_ms as f64 * self.multiplier.powi(exponent);
        Some(if delay >= self.max_delay_ms as f64 {
            self.max_delay_ms
        } else {
            delay as u64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::RetryPolicy;

    #[test]
    fn delays_grow_up_to_their_bound_and_end_with_the_budget() {
        let policy = RetryPolicy {
            max_attempts: 5,
            initial_delay_ms: 100,
            multiplier: 3.0,
            max_delay_ms: 1000,
        };
        let delays: Vec<_> = (1..=5).map(|n| policy.delay_ms_after(n)).collect();
        assert_eq!(delays, [Some(100), Some(300), Some(900), Some(1000), None]);
    }
}
