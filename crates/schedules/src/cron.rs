//! Cron expressions: five fields as POSIX has them, with steps, names, `L`, `W` and `#`.
//!
//! The next time is searched in the spans between two changes of the zone's clock, within each of which local time is a
//! sum. Daylight saving time is that of Vixie cron: an expression that names its hours and minutes has each of its
//! times once, one in a gap of the clock at the end of the gap; one with `*` or a step follows what the clock shows.

mod fields;

use crate::days::{self, DAY};
use crate::timing::Invalid;
use fields::{DayOfMonth, DayOfWeek};
use taskledger_domain::Timestamp;
use taskledger_zones::Zone;

/// Days ahead in which a time is searched: 50 years. What a cron expression can name comes at least every 40 years, as
/// the fifth Friday of a February does from 2080 to 2120; what has not come by then never comes.
const DAYS_AHEAD_MAX: i64 = 50 * 366;
/// Days and spans of the clock that one search examines at most, each of them some nanoseconds: so it may run where it
/// is called.
#[cfg(test)]
const STEPS_MAX: u32 = 20_000;

/// An expression that can be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cron {
    /// A bit for each.
    minutes: u64,
    hours: u32,
    months: u32,
    day_of_month: DayOfMonth,
    day_of_week: DayOfWeek,
    /// Whether the hour or the minute has `*` or a step.
    is_periodic: bool,
}

impl Cron {
    /// Cost: O(characters).
    ///
    /// # Errors
    /// [`Invalid`], with the field and the element.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        fields::parse(text)
    }

    /// The first time after `after`; `None`: there is none within [`DAYS_AHEAD_MAX`]. Cost: O(1), some 100 µs where
    /// there is none.
    pub(crate) fn next_after(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let (found, _) = self.search(after.0.div_euclid(1_000_000) + 1, zone);
        Some(Timestamp(found?.checked_mul(1_000_000)?))
    }

    /// The first time from `from` on, in seconds, and how many steps it took.
    fn search(&self, mut from: i64, zone: &Zone) -> (Option<i64>, u32) {
        let mut steps = 0;
        let end = from.saturating_add(DAYS_AHEAD_MAX * DAY).min(Zone::END);
        while from < end {
            steps += 1;
            let Some(segment) = zone.segment(from) else {
                break;
            };
            let mut local = from + segment.offset;
            if let Some(start) = segment.start.filter(|_| !self.is_periodic) {
                // What the clock showed last before it was changed.
                let shown = start + segment.offset_before;
                if from == start && self.has_time(shown, start + segment.offset, &mut steps) {
                    return (Some(start), steps);
                }
                local = local.max(shown);
            }
            let until = segment.end.unwrap_or(end).min(end);
            if let Some(found) = self.next_local(local, until + segment.offset, &mut steps) {
                return (Some(found - segment.offset), steps);
            }
            from = until;
        }
        (None, steps)
    }

    fn has_time(&self, from: i64, until: i64, steps: &mut u32) -> bool {
        from < until && self.next_local(from, until, steps).is_some()
    }

    /// The first local time from `from` on and before `until`.
    fn next_local(&self, from: i64, until: i64, steps: &mut u32) -> Option<i64> {
        let minute = from.div_euclid(60) + i64::from(from.rem_euclid(60) > 0);
        let (mut day, mut from_minute) = (minute.div_euclid(1_440), minute.rem_euclid(1_440));
        let (mut year, mut month, mut of_month) = days::civil(day);
        while day * DAY < until {
            *steps += 1;
            let len = days::month_len(year, month);
            let has_month = self.months & (1 << month) != 0;
            if has_month
                && self.has_day(day, of_month, len)
                && let Some(minute) = self.next_minute(from_minute)
            {
                let found = day * DAY + minute * 60;
                return (found < until).then_some(found);
            }
            from_minute = 0;
            let left = len - of_month;
            if has_month && left > 0 {
                day += 1;
                of_month += 1;
            } else {
                day += i64::from(left) + 1;
                of_month = 1;
                (year, month) = if month == 12 {
                    (year + 1, 1)
                } else {
                    (year, month + 1)
                };
            }
        }
        None
    }

    /// Whether the day fields have a day. Both count if both name days: one of them is enough.
    fn has_day(&self, day: i64, of_month: u32, len: u32) -> bool {
        let weekday = days::weekday(day);
        let by_month = || self.day_of_month.has(of_month, len, weekday);
        let by_week = || self.day_of_week.has(weekday, of_month, len);
        match (self.day_of_month.is_any, self.day_of_week.is_any) {
            (true, true) => true,
            (false, true) => by_month(),
            (true, false) => by_week(),
            (false, false) => by_month() || by_week(),
        }
    }

    /// The first minute of a day from one on, both counted from midnight.
    fn next_minute(&self, from: i64) -> Option<i64> {
        let (hour, minute) = (from / 60, from % 60);
        let later = self.minutes & (u64::MAX << minute);
        if self.hours & (1 << hour) != 0 && later != 0 {
            return Some(hour * 60 + i64::from(later.trailing_zeros()));
        }
        let hours = self.hours.checked_shr(u32::try_from(hour + 1).ok()?)?;
        let next = i64::from(hours.trailing_zeros()) + hour + 1;
        (hours != 0).then(|| next * 60 + i64::from(self.minutes.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests;
