//! The times of a schedule: a cron expression, a recurrence rule or a period, as written and as computed.
//!
//! Pure. Times come from the crates `croner` and `rrule` and the bundled IANA database of `chrono-tz`.

use crate::recurrence::Recurrence;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use taskledger_domain::Timestamp;

/// Characters of a cron expression or a recurrence rule.
pub const EXPRESSION_CHARS_MAX: usize = 1_000;
/// Seconds of a period (`every_seconds`) at most: a leap year.
pub const EVERY_SECONDS_MAX: u64 = 366 * 24 * 3600;

/// What a cron expression is, for messages.
const CRON_EXPECTED: &str = "5 fields `minute hour day-of-month month day-of-week`, such as `0 2 * * *` or `*/15 8-17 * * MON-FRI`, or one of @hourly, @daily, @weekly, @monthly, @yearly";
/// What stands for a whole expression, for messages.
const CRON_NAMES: &str = "@hourly, @daily, @weekly, @monthly or @yearly";
/// The fields of a cron expression, and what each may be.
const CRON_FIELDS: [(&str, &str); 5] = [
    (
        "minute",
        "`*`, or minutes from 0 to 59: `30`, `0,30`, `10-20`, `*/15`",
    ),
    (
        "hour",
        "`*`, or hours from 0 to 23: `9`, `9,17`, `8-17`, `*/2`",
    ),
    (
        "day of month",
        "`*`, or days from 1 to 31: `1`, `1,15`, `1-7`, `*/2`, `L` for the last one, `15W` for the weekday nearest to the 15th",
    ),
    (
        "month",
        "`*`, or months from 1 to 12 or JAN to DEC: `1`, `JAN,JUL`, `4-9`, `*/3`",
    ),
    (
        "day of week",
        "`*`, or days from 0 to 7 (0 and 7 are Sunday) or SUN to SAT: `1`, `MON-FRI`, `FRI#2` for the second Friday, `FRI#L` for the last one",
    ),
];
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
    Cron(Box<Cron>, Tz),
    Rrule(Box<Recurrence>),
    Every { anchor: i64, period: i64 },
}

impl Calendar {
    /// Of a timing that counts from `anchor`: what a period counts from, and a rule without `DTSTART`. Cost: that of
    /// reading the text.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn of(timing: &Timing, anchor: Timestamp) -> Result<Self, Invalid> {
        Ok(Self(match timing {
            Timing::Cron { cron, time_zone } => {
                Times::Cron(Box::new(parsed_cron(cron)?), zone(time_zone)?)
            }
            Timing::Rrule { rrule, time_zone } => {
                Times::Rrule(Box::new(Recurrence::of(rrule, zone(time_zone)?, anchor)?))
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
    /// which the crates bound.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Times::Every { anchor, period } => {
                let passed = after.0.checked_sub(*anchor)?.div_euclid(*period) + 1;
                let at = passed.max(0).checked_mul(*period)?.checked_add(*anchor)?;
                Some(Timestamp(at))
            }
            Times::Cron(cron, zone) => {
                let after = DateTime::<Utc>::from_timestamp_micros(after.0)?;
                let next = cron.find_next_occurrence(&after.with_timezone(zone), false);
                Some(Timestamp(next.ok()?.timestamp_micros()))
            }
            Times::Rrule(rule) => rule.after(after).next(),
        }
    }

    /// The times after `after`, in their order. Cost of `n` of them: O(n), in one pass. A rule may end early, after
    /// tens of thousands of its occurrences: what follows then is found from the last one.
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

fn parsed_cron(text: &str) -> Result<Cron, Invalid> {
    if text.chars().count() > EXPRESSION_CHARS_MAX {
        let expected = format!("at most {EXPRESSION_CHARS_MAX} characters");
        return Err(Invalid::of("cron", "too long", expected, text));
    }
    let alias = text.trim().starts_with('@');
    let fields = text.split_whitespace().count();
    if !alias && fields != 5 {
        let reason = format!("{fields} fields instead of 5");
        return Err(Invalid::of("cron", reason, CRON_EXPECTED, text));
    }
    parser().parse(text).map_err(|error| {
        if let Some((name, field, expected)) = unfit_field(text).filter(|_| !alias) {
            let reason = format!("the {name} `{field}` is not understood");
            return Invalid::of("cron", reason, format!("{name}: {expected}"), text);
        }
        if alias {
            return Invalid::of("cron", "not a name that is known", CRON_NAMES, text);
        }
        let reason = error.to_string();
        Invalid::of("cron", reason.trim_end_matches('.'), CRON_EXPECTED, text)
    })
}

fn parser() -> CronParser {
    CronParser::builder()
        .seconds(Seconds::Optional)
        .year(Year::Optional)
        .build()
}

/// The first field that is not understood by itself: its name, what it is, and what it may be.
fn unfit_field(text: &str) -> Option<(&'static str, &str, &'static str)> {
    let fields = text.split_whitespace().zip(CRON_FIELDS).enumerate();
    fields
        .filter(|(at, (field, _))| {
            let mut alone = ["*"; CRON_FIELDS.len()];
            alone[*at] = field;
            parser().parse(&alone.join(" ")).is_err()
        })
        .map(|(_, (field, (name, expected)))| (name, field, expected))
        .next()
}

/// A zone by its name, which is case-sensitive.
pub(crate) fn zone(name: &str) -> Result<Tz, Invalid> {
    name.parse()
        .map_err(|_| Invalid::of("time_zone", "unknown time zone", ZONE_EXPECTED, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_says_would_be_accepted_is() {
        for (at, (name, expected)) in CRON_FIELDS.iter().enumerate() {
            let examples: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
            assert!(examples.len() > 3, "{name}");
            for example in examples {
                let mut fields = ["*"; CRON_FIELDS.len()];
                fields[at] = example;
                let parsed = parsed_cron(&fields.join(" "));
                assert!(parsed.is_ok(), "{name} {example}: {parsed:?}");
            }
        }
        let examples: Vec<&str> = CRON_EXPECTED.split('`').skip(3).step_by(2).collect();
        assert_eq!(examples.len(), 2);
        for example in examples {
            parsed_cron(example).unwrap();
        }
    }
}
