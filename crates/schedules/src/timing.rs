//! The times of a schedule: a cron expression, a recurrence rule or a period, as written and as computed.
//!
//! Pure: the zones come with each call. Every search for a time has a bound.

use crate::cron::Cron;
use crate::recurrence::Recurrence;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_zones::{Zone, Zones};

/// Characters of a cron expression or a recurrence rule.
pub const EXPRESSION_CHARS_MAX: usize = 1_000;
/// Seconds of a period (`every_seconds`) at most: a leap year.
pub const EVERY_SECONDS_MAX: u64 = 366 * 24 * 3600;

/// What a time zone is, for messages.
const ZONE_EXPECTED: &str =
    "a name of the IANA time zone database, such as `Europe/Berlin` or `UTC`";

/// The times of a schedule, as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Timing {
    /// At the times of a cron expression.
    Cron {
        /// 5 fields, or an alias such as `@hourly`.
        cron: Arc<str>,
        /// IANA name of the zone whose clock it means.
        time_zone: Arc<str>,
    },
    /// At the times of an RFC 5545 recurrence rule.
    Rrule {
        /// `FREQ=..`, with `RRULE:` and a line `DTSTART` before it or without.
        rrule: Arc<str>,
        /// IANA name of the zone whose clock it means.
        time_zone: Arc<str>,
    },
    /// Each so many seconds.
    Every {
        /// From 1 to [`EVERY_SECONDS_MAX`].
        seconds: u64,
    },
}

/// Why a timing cannot be computed: what the caller can mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The member.
    pub field: &'static str,
    /// What is wrong.
    pub reason: String,
    /// What would be accepted.
    pub expected: String,
    /// What was found.
    pub actual: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            reason,
            expected,
            actual,
        } = self;
        write!(f, "`{field}` `{actual}`: {reason}, expected {expected}")
    }
}

impl Invalid {
    pub(crate) fn of(
        field: &'static str,
        reason: impl Into<String>,
        expected: impl Into<String>,
        actual: &str,
    ) -> Self {
        Self {
            field,
            reason: reason.into(),
            expected: expected.into(),
            actual: actual.to_owned(),
        }
    }
}

/// A timing that can be computed.
#[derive(Debug)]
pub struct Calendar(Times);

#[derive(Debug)]
enum Times {
    Cron(Box<Cron>, Zone),
    Rrule(Box<Recurrence>),
    Every { anchor: i64, period: i64 },
}

impl Calendar {
    /// Of a timing that counts from `anchor`: what a period counts from, and a rule without `DTSTART`. Cost: that of
    /// reading the text; for a rule with `COUNT`, some milliseconds at most.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn of(timing: &Timing, anchor: Timestamp, zones: &Zones) -> Result<Self, Invalid> {
        Ok(Self(match timing {
            Timing::Cron { cron, time_zone } => {
                Times::Cron(Box::new(Cron::parse(cron)?), zone(time_zone, zones)?)
            }
            Timing::Rrule { rrule, time_zone } => {
                let zone = zone(time_zone, zones)?;
                Times::Rrule(Box::new(Recurrence::of(rrule, zone, zones, anchor)?))
            }
            Timing::Every { seconds } => {
                if !(1..=EVERY_SECONDS_MAX).contains(seconds) {
                    let expected = format!("an integer from 1 to {EVERY_SECONDS_MAX}");
                    let actual = seconds.to_string();
                    return Err(Invalid::of(
                        "every_seconds",
                        "out of range",
                        expected,
                        &actual,
                    ));
                }
                Times::Every {
                    anchor: anchor.0,
                    period: i64::try_from(*seconds).unwrap_or(i64::MAX) * 1_000_000,
                }
            }
        }))
    }

    /// The first time after `after`; `None`: there is none. Cost: O(1) for a period; for the others that of a search,
    /// which is bounded: some 100 µs for a cron expression, some milliseconds for a rule.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Times::Every { anchor, period } => {
                let passed = after.0.checked_sub(*anchor)?.div_euclid(*period) + 1;
                let at = passed.max(0).checked_mul(*period)?.checked_add(*anchor)?;
                Some(Timestamp(at))
            }
            Times::Cron(cron, zone) => cron.next_after(after, zone),
            Times::Rrule(rule) => rule.after(after).next(),
        }
    }

    /// The times after `after`, in their order. Cost of each: that of [`Self::next_after`] at most; a rule finds them
    /// in one pass.
    pub fn after(&self, after: Timestamp) -> Box<dyn Iterator<Item = Timestamp> + '_> {
        match &self.0 {
            Times::Rrule(rule) => Box::new(rule.after(after)),
            Times::Cron(..) | Times::Every { .. } => {
                let first = self.next_after(after);
                Box::new(std::iter::successors(first, |last| self.next_after(*last)))
            }
        }
    }

    /// The next `count` times after `after`, those after `end` left out.
    #[must_use]
    pub fn upcoming(
        &self,
        after: Timestamp,
        end: Option<Timestamp>,
        count: usize,
    ) -> Vec<Timestamp> {
        self.after(after)
            .take_while(|next| end.is_none_or(|end| *next <= end))
            .take(count)
            .collect()
    }
}

/// A zone by its name, which is case-sensitive.
pub(crate) fn zone(name: &str, zones: &Zones) -> Result<Zone, Invalid> {
    let unknown = || Invalid::of("time_zone", "unknown time zone", ZONE_EXPECTED, name);
    zones.zone(name).ok_or_else(unknown)
}
