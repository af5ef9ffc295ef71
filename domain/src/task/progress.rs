//! The progress of a task.

use serde::{Deserialize, Serialize};

/// A fraction from 0 to 1 in millionths, so that sums and means are exact.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(from = "f64", into = "f64")]
pub struct Progress(u32);

impl Progress {
    /// Not started.
    pub const ZERO: Self = Self(0);
    /// All of it is done: one million millionths.
    pub const DONE: Self = Self(1_000_000);

    /// Whether nothing is done yet.
    #[must_use]
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// From millionths; more than a million is [`Self::DONE`].
    #[must_use]
    pub const fn from_millionths(n: u32) -> Self {
        Self(if n > 1_000_000 { 1_000_000 } else { n })
    }

    /// 0 to 1,000,000.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// 0.0 to 1.0, as the protocol writes it.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl From<f64> for Progress {
    /// Values outside 0 to 1 are moved to the nearer end; not-a-number is 0.
    fn from(fraction: f64) -> Self {
        Self((fraction.clamp(0.0, 1.0) * 1e6).round() as u32)
    }
}

impl From<Progress> for f64 {
    fn from(p: Progress) -> Self {
        p.fraction()
    }
}
