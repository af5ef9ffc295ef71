//! RFC 5545 recurrence rules.
//!
//! A rule is computed on the clock of its zone as if that clock were never changed (`occurrences`); the times are then
//! read on the real clock as RFC 5545 has it (section 3.3.5): one that does not exist by the offset before the gap, one
//! that exists twice the first time. A search begins in the period of the rule that contains the time from which it
//! searches, so a rule that began decades ago costs as much as a new one.

mod occurrences;
mod parts;

use crate::days::{self, DAY};
use crate::timing::{EXPRESSION_CHARS_MAX, Invalid, zone};
use occurrences::{Occurrences, Rule};
use parts::Parts;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use taskledger_domain::Timestamp;
use taskledger_zones::{Zone, Zones};

/// Times that `COUNT` of a recurrence rule may ask for: all of them are computed when the rule is read.
pub const COUNT_MAX: u32 = 10_000;
/// Days and times that are examined from the first time of a rule to the last one that `COUNT` allows: some
/// milliseconds of work.
const COUNT_STEPS_MAX: u32 = 500_000;
/// Seconds after a change of the clock in which a time that the clock left out can come: no gap is longer than a day.
const GAP_MAX: i64 = 2 * DAY;

const EXPECTED: &str = "an RFC 5545 rule, such as `FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18;BYMINUTE=0;BYSECOND=0`, with a line `DTSTART:20260101T090000` before it or without";
const UNTIL_EXPECTED: &str =
    "`UNTIL=20261231T235959Z`, `UNTIL=20261231`, or without `Z` by the clock of `time_zone`";
const START_EXPECTED: &str = "`DTSTART:20260101T090000Z`, `DTSTART:20260101T090000` or `DTSTART;TZID=Europe/Berlin:20260101T090000`";

/// A rule that can be computed.
#[derive(Debug)]
pub(crate) struct Recurrence {
    rule: Rule,
    zone: Zone,
    /// No time after this one, in seconds since 1970.
    until: Option<i64>,
    /// No time after this one by the clock of the zone: the last one that `COUNT` allows.
    last: Option<i64>,
}

impl Recurrence {
    /// A rule that begins at `anchor` if it has no `DTSTART`. Cost: O(characters); with `COUNT`, up to
    /// [`COUNT_STEPS_MAX`] steps.
    ///
    /// # Errors
    /// [`Invalid`], with the part of the rule.
    pub(crate) fn of(
        text: &str,
        mut zone: Zone,
        zones: &Zones,
        anchor: Timestamp,
    ) -> Result<Self, Invalid> {
        let fault = |reason: &str| Invalid::of("rrule", reason, EXPECTED, text);
        if text.chars().count() > EXPRESSION_CHARS_MAX {
            let expected = format!("at most {EXPRESSION_CHARS_MAX} characters");
            return Err(Invalid::of("rrule", "too long", expected, text));
        }
        let (mut start, mut parts) = (None, None);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let upper = line.to_ascii_uppercase();
            let is_again = if upper.starts_with("DTSTART") {
                start.replace(read_start(line, &mut zone, zones)?).is_some()
            } else if let Some(rule) = upper.strip_prefix("RRULE:") {
                parts.replace(Parts::parse(rule, text)?).is_some()
            } else if is_part(&upper) {
                parts.replace(Parts::parse(&upper, text)?).is_some()
            } else {
                let what = line.split([':', ';', '=']).next().unwrap_or_default();
                return Err(fault(&format!("`{what}` is not taken")));
            };
            if is_again {
                return Err(fault("more than one rule, or more than one `DTSTART`"));
            }
        }
        let parts = parts.ok_or_else(|| fault("no `FREQ`"))?;
        let start = match start {
            Some(start) => start,
            None => {
                let at = anchor.0.div_euclid(1_000_000);
                let offset = zone.offset(at);
                at + offset.ok_or_else(|| fault("no time to start from"))?
            }
        };
        let until = match &parts.until {
            Some(until) => Some(read_until(until, &zone)?),
            None => None,
        };
        let count = parts.count;
        let mut recurrence = Self {
            rule: Rule::of(parts, start),
            zone,
            until,
            last: None,
        };
        if let Some(count) = count {
            recurrence.last = Some(recurrence.last_of(count).ok_or_else(|| {
                let reason = format!("`COUNT={count}` counts from `DTSTART` over more than {COUNT_STEPS_MAX} days and times");
                Invalid::of("rrule", reason, "a smaller `COUNT`, `UNTIL`, or a later `DTSTART`", text)
            })?);
        }
        Ok(recurrence)
    }

    /// The last of `count` times by the clock of the zone; `None`: it takes too many steps to find.
    fn last_of(&self, count: u32) -> Option<i64> {
        let mut occurrences = Occurrences::from(&self.rule, self.rule.start);
        let (mut last, mut steps) = (i64::MIN, 0);
        for _ in 0..count {
            let found = occurrences.next();
            steps += occurrences.steps() + 1;
            if steps > COUNT_STEPS_MAX {
                return None;
            }
            match found {
                Some(found) => last = found,
                None => break,
            }
        }
        Some(last)
    }

    /// The times after `after`, in order. Cost of each: that of finding it, at most [`occurrences::STEPS_MAX`] steps.
    pub(crate) fn after(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let after = after.0.div_euclid(1_000_000);
        let times = self.zone.segment(after).map(|segment| {
            let is_near = segment.start.is_some_and(|start| after - start < GAP_MAX);
            let near = after + segment.offset - if is_near { GAP_MAX } else { 0 };
            Times {
                recurrence: self,
                occurrences: Occurrences::from(&self.rule, near),
                found: BinaryHeap::new(),
                settled: i64::MIN,
                latest: after,
            }
        });
        times
            .into_iter()
            .flatten()
            .map(|at| Timestamp(at.saturating_mul(1_000_000)))
    }
}

/// The times of a rule on the real clock. One that the clock leaves out comes later, perhaps after others that follow
/// it in the rule, so times are held until no earlier one can come.
struct Times<'a> {
    recurrence: &'a Recurrence,
    occurrences: Occurrences<'a>,
    /// The earliest first.
    found: BinaryHeap<Reverse<i64>>,
    /// What comes is not before this.
    settled: i64,
    /// The last one that was given.
    latest: i64,
}

impl Iterator for Times<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let Recurrence {
            zone, until, last, ..
        } = self.recurrence;
        loop {
            while let Some(Reverse(at)) = self.found.peek().copied() {
                if at > self.settled {
                    break;
                }
                self.found.pop();
                if until.is_some_and(|until| at > until) {
                    return None;
                }
                // Two times of the rule can be one moment.
                if at > self.latest {
                    self.latest = at;
                    return Some(at);
                }
            }
            let local = self.occurrences.next();
            let local = local.filter(|local| last.is_none_or(|last| *local <= last));
            match local.and_then(|local| zone.instant(local)) {
                Some(instant) => {
                    self.found.push(Reverse(instant.at));
                    if !instant.is_in_gap {
                        self.settled = instant.at;
                    }
                }
                None if self.found.is_empty() => return None,
                None => self.settled = i64::MAX,
            }
        }
    }
}

/// A line `DTSTART`, whose zone becomes that of the rule; by the clock of that zone.
fn read_start(line: &str, zone_of_rule: &mut Zone, zones: &Zones) -> Result<i64, Invalid> {
    let fault = |reason: &str| Invalid::of("rrule", reason, START_EXPECTED, line);
    let (head, value) = line.rsplit_once(':').ok_or_else(|| fault("no `:`"))?;
    let value = value.trim().to_ascii_uppercase();
    let mut parameters = head.split(';');
    if !parameters
        .next()
        .is_some_and(|name| name.eq_ignore_ascii_case("DTSTART"))
    {
        return Err(fault("not a line `DTSTART`"));
    }
    for parameter in parameters {
        let (name, given) = parameter.split_once('=').unwrap_or((parameter, ""));
        if name.eq_ignore_ascii_case("TZID") {
            if value.ends_with('Z') {
                return Err(fault("both `TZID` and `Z`"));
            }
            *zone_of_rule = zone(given, zones).map_err(|unknown| Invalid {
                field: "rrule",
                ..unknown
            })?;
        } else if !(name.eq_ignore_ascii_case("VALUE") && given.eq_ignore_ascii_case("DATE-TIME")) {
            return Err(fault("a parameter other than `TZID`"));
        }
    }
    let (utc, is_utc) = (value.trim_end_matches('Z'), value.ends_with('Z'));
    let at = date_time(utc).filter(|_| utc.len() + usize::from(is_utc) == value.len());
    let at = at.ok_or_else(|| fault("not a date and time"))?;
    match is_utc {
        true => {
            let offset = zone_of_rule.offset(at);
            Ok(at + offset.ok_or_else(|| fault("not a date and time"))?)
        }
        false => Ok(at),
    }
}

/// The last moment that `UNTIL` allows, in seconds since 1970.
fn read_until(text: &str, zone: &Zone) -> Result<i64, Invalid> {
    let fault = || {
        let reason = "`UNTIL` is not a date and time";
        Invalid::of("rrule", reason, UNTIL_EXPECTED, text)
    };
    let local = match (text.strip_suffix('Z'), text.len()) {
        (Some(utc), _) => return date_time(utc).ok_or_else(fault),
        // The whole day.
        (None, 8) => date(text).map(|day| day * DAY + DAY - 1),
        (None, _) => date_time(text),
    };
    let local = local.ok_or_else(fault)?;
    // Zones end a day before the year 9999 does, which often means "for ever".
    Ok(match zone.instant(local) {
        Some(instant) => instant.again.unwrap_or(instant.at),
        None => local,
    })
}

/// Whether a line begins with a part of a rule, such as `FREQ=`.
fn is_part(line: &str) -> bool {
    let name = line.split('=').next().unwrap_or_default();
    line.contains('=') && !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphabetic())
}

/// `20260131T090000` in seconds since 1970-01-01T00:00:00 by the same clock.
fn date_time(text: &str) -> Option<i64> {
    let (day, time) = text.split_once('T')?;
    let [hour, minute, second] = digits(time, [2, 2, 2])?;
    // A leap second is read as the one before it (RFC 5545 3.3.12).
    let is_time = hour < 24 && minute < 60 && second < 60 || (hour, minute, second) == (23, 59, 60);
    let at = i64::from(hour * 3_600 + minute * 60 + second.min(59));
    date(day).filter(|_| is_time).map(|day| day * DAY + at)
}

/// `20260131` as the number of a day.
fn date(text: &str) -> Option<i64> {
    let [year, month, day] = digits(text, [4, 2, 2])?;
    let year = i64::from(year);
    let is_day =
        year > 0 && (1..=12).contains(&month) && (1..=days::month_len(year, month)).contains(&day);
    is_day.then(|| days::number(year, month, day))
}

/// Numbers of so many digits each, one after the other.
fn digits(text: &str, lens: [usize; 3]) -> Option<[u32; 3]> {
    if text.len() != lens.iter().sum::<usize>() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut rest = text;
    let mut numbers = [0; 3];
    for (number, len) in numbers.iter_mut().zip(lens) {
        let (digits, after) = rest.split_at(len);
        *number = digits.parse().ok()?;
        rest = after;
    }
    Some(numbers)
}
