//! The times of a rule by a clock that is never changed, period by period, as the table of RFC 5545, section 3.3.10,
//! has them.
//!
//! Days are found by checking those of a period against all parts that name days. Where no part does, the days are
//! those of the start. Hours and minutes of a day are bits. Rules of hours and minutes go from day to day, so that a
//! time that is far away costs days and not minutes.

use super::parts::{Frequency, Parts, Weekday};
use crate::days::{self, DAY};

/// Days and times that are examined for one time: all days of 400 years, in which the calendar repeats. A rule that has
/// no time within them has none. Each step is some nanoseconds.
pub(super) const STEPS_MAX: u32 = 150_000;
/// Positions of `BYSETPOS` whose look-up takes as long as a step.
const POSITIONS_PER_STEP: u32 = 4;
/// The last year that can be written.
const YEAR_MAX: i64 = 9_999;

/// A rule with everything that its start adds to it. Lists are bits: of months and days of months from 1 on.
#[derive(Debug)]
pub(super) struct Rule {
    /// Seconds since 1970-01-01T00:00:00 by the clock of the rule.
    pub(super) start: i64,
    frequency: Frequency,
    interval: i64,
    hours: u32,
    minutes: u64,
    second: i64,
    months: u32,
    /// Any day of a month, if there are none from either end.
    month_days: u32,
    /// Those that are counted from the end of the month.
    month_days_back: u32,
    /// With their numbers; none: any day.
    weekdays: Vec<Weekday>,
    year_days: Vec<i32>,
    weeks: Vec<i32>,
    positions: Vec<i32>,
    week_start: u32,
    /// Whether weekdays are numbered within a month, not a year.
    is_numbered_by_month: bool,
    /// The seconds of the times of a day, in order, where they are the same for all days.
    times: Vec<i64>,
}

fn bits(numbers: &[i32]) -> u64 {
    let bits = numbers.iter().filter(|number| **number >= 0);
    bits.fold(0, |bits, number| bits | 1 << number)
}

fn bits_back(numbers: &[i32]) -> u32 {
    let back = numbers.iter().filter(|number| **number < 0);
    back.fold(0, |bits, number| bits | 1 << number.unsigned_abs())
}

fn narrow(bits: u64) -> u32 {
    u32::try_from(bits).expect("no number of the part is above 31")
}

impl Rule {
    pub(super) fn of(parts: Parts, start: i64) -> Self {
        let (day, second_of_day) = (start.div_euclid(DAY), start.rem_euclid(DAY));
        let (_, month, of_month) = days::civil(day);
        let (hour, minute) = (second_of_day / 3_600, second_of_day / 60 % 60);
        let frequency = parts.frequency;
        let mut rule = Self {
            start,
            frequency,
            interval: parts.interval,
            hours: match parts.hours.is_empty() {
                false => narrow(bits(&parts.hours)),
                true if frequency < Frequency::Daily => (1 << 24) - 1,
                true => 1 << hour,
            },
            minutes: match parts.minutes.is_empty() {
                false => bits(&parts.minutes),
                true if frequency < Frequency::Hourly => (1 << 60) - 1,
                true => 1 << minute,
            },
            second: parts.second.map_or(start.rem_euclid(60), i64::from),
            months: match parts.months.is_empty() {
                false => narrow(bits(&parts.months)),
                true => (1 << 13) - 2,
            },
            month_days: narrow(bits(&parts.month_days)),
            month_days_back: bits_back(&parts.month_days),
            weekdays: parts.weekdays,
            is_numbered_by_month: frequency == Frequency::Monthly || !parts.months.is_empty(),
            year_days: parts.year_days,
            weeks: parts.weeks,
            positions: parts.positions,
            week_start: parts.week_start,
            times: Vec::new(),
        };
        let has_days = !(rule.weekdays.is_empty() && rule.year_days.is_empty())
            || rule.month_days | rule.month_days_back != 0;
        if !has_days {
            let weekday = || Weekday {
                day: days::weekday(day),
                number: 0,
            };
            match frequency {
                Frequency::Yearly if !rule.weeks.is_empty() => rule.weekdays.push(weekday()),
                Frequency::Yearly => {
                    rule.month_days = 1 << of_month;
                    if parts.months.is_empty() {
                        rule.months = 1 << month;
                    }
                }
                Frequency::Monthly => rule.month_days = 1 << of_month,
                Frequency::Weekly => rule.weekdays.push(weekday()),
                Frequency::Daily | Frequency::Hourly | Frequency::Minutely => {}
            }
        }
        match frequency {
            // The set of an hour is its minutes, and that of a minute is one second: the same each time.
            Frequency::Hourly => rule.minutes = picked(rule.minutes, &rule.positions),
            Frequency::Minutely if !rule.positions.is_empty() => {
                let has_first = rule.positions.iter().any(|it| it.abs() == 1);
                rule.minutes = if has_first { rule.minutes } else { 0 };
            }
            Frequency::Minutely => {}
            Frequency::Daily | Frequency::Weekly | Frequency::Monthly | Frequency::Yearly => {
                rule.times = rule.times_of_day(|_| true).0;
            }
        }
        rule
    }

    /// The seconds of the times of a day whose minute, counted from midnight, is fit; and how many were examined.
    fn times_of_day(&self, is_fit: impl Fn(i64) -> bool) -> (Vec<i64>, u32) {
        let (mut times, mut steps) = (Vec::new(), 0);
        for hour in (0..24).filter(|hour| self.hours & (1 << hour) != 0) {
            for minute in (0..60).filter(|minute| self.minutes & (1 << minute) != 0) {
                steps += 1;
                let minute = hour * 60 + minute;
                if is_fit(minute) {
                    times.push(minute * 60 + self.second);
                }
            }
        }
        (times, steps)
    }

    /// The times of a day of a rule of hours or minutes, whose interval counts from the start.
    fn aligned_times(&self, day: i64) -> (Vec<i64>, u32) {
        let unit = match self.frequency {
            Frequency::Hourly => 60,
            Frequency::Minutely
            | Frequency::Daily
            | Frequency::Weekly
            | Frequency::Monthly
            | Frequency::Yearly => 1,
        };
        let first = self.start.div_euclid(60 * unit);
        let of_day = day * 1_440;
        if self.interval == 1 {
            return self.times_of_day(|_| true);
        }
        // Most days have none of a long interval.
        let (begin, per_day) = (of_day / unit, 1_440 / unit);
        if (first - begin).rem_euclid(self.interval) >= per_day {
            return (Vec::new(), 1);
        }
        self.times_of_day(|minute| {
            ((of_day + minute).div_euclid(unit) - first).rem_euclid(self.interval) == 0
        })
    }

    /// Whether all parts that name days name this one, of a month that is named.
    fn has_day(&self, day: &Day) -> bool {
        let is_month_day = self.month_days | self.month_days_back == 0
            || self.month_days & (1 << day.of_month) != 0
            || self.month_days_back & (1 << (day.month_len - day.of_month + 1)) != 0;
        is_month_day
            && (self.weekdays.is_empty() || self.has_weekday(day))
            && (self.year_days.is_empty() || {
                let (of_year, len) = (day.of_year(), days::year_len(day.year));
                has(&self.year_days, of_year, len)
            })
            && (self.weeks.is_empty() || {
                let (week, len) = self.week(day);
                has(&self.weeks, week, len)
            })
    }

    fn has_weekday(&self, day: &Day) -> bool {
        let weekday = days::weekday(day.number);
        self.weekdays.iter().any(|it| {
            it.day == weekday
                && (it.number == 0 || {
                    let (at, len) = match self.is_numbered_by_month {
                        true => (day.of_month, day.month_len),
                        false => (day.of_year(), days::year_len(day.year)),
                    };
                    let (number, back) = ((at - 1) / 7 + 1, (len - at) / 7 + 1);
                    let given = it.number.unsigned_abs();
                    given == if it.number > 0 { number } else { back }
                })
        })
    }

    /// The number of the week of a day, and how many weeks its year has. The first week of a year is the first with
    /// four of its days.
    fn week(&self, day: &Day) -> (u32, u32) {
        let week = self.week_of(day.number);
        // The year that the fourth day of the week is in.
        let (year, _, _) = days::civil(week + 3);
        let first = |year| self.week_of(days::number(year, 1, 4));
        let number = |weeks: i64| u32::try_from(weeks / 7).unwrap_or(0);
        let begin = first(year);
        (number(week - begin) + 1, number(first(year + 1) - begin))
    }

    /// The first day of the week of a day.
    fn week_of(&self, day: i64) -> i64 {
        let passed = (days::weekday(day) + 7 - self.week_start) % 7;
        day - i64::from(passed)
    }

    /// The number of the period that contains a local time, from 0, that of the start, on.
    fn period_of(&self, local: i64) -> i64 {
        let (start, day) = (self.start.div_euclid(DAY), local.div_euclid(DAY));
        let month = |day| {
            let (year, month, _) = days::civil(day);
            year * 12 + i64::from(month)
        };
        let passed = match self.frequency {
            Frequency::Minutely | Frequency::Hourly => return (day - start).max(0),
            Frequency::Daily => day - start,
            Frequency::Weekly => (self.week_of(day) - self.week_of(start)) / 7,
            Frequency::Monthly => month(day) - month(start),
            Frequency::Yearly => days::civil(day).0 - days::civil(start).0,
        };
        passed.div_euclid(self.interval).max(0)
    }

    /// The days of a period, in order; how many were examined; `None`: it comes after all times that can be written.
    fn days_of(&self, period: i64, found: &mut Vec<i64>) -> Option<u32> {
        let start = self.start.div_euclid(DAY);
        let (year, month, _) = days::civil(start);
        let units = match self.frequency {
            Frequency::Minutely | Frequency::Hourly => period,
            Frequency::Daily | Frequency::Weekly | Frequency::Monthly | Frequency::Yearly => {
                period.checked_mul(self.interval)?
            }
        };
        let mut steps = 1;
        match self.frequency {
            Frequency::Minutely | Frequency::Hourly | Frequency::Daily => {
                self.examine(Day::of(start + units)?, found);
            }
            Frequency::Weekly => {
                let week = self.week_of(start).checked_add(units.checked_mul(7)?)?;
                for day in week..week + 7 {
                    steps += 1;
                    self.examine(Day::of(day)?, found);
                }
            }
            Frequency::Monthly => {
                let months = year * 12 + i64::from(month) - 1 + units;
                let month = u32::try_from(months.rem_euclid(12) + 1).ok()?;
                steps += self.examine_month(months.div_euclid(12), month, found)?;
            }
            Frequency::Yearly => {
                for month in 1..=12 {
                    steps += 1 + self.examine_month(year + units, month, found)?;
                }
            }
        }
        Some(steps)
    }

    fn examine_month(&self, year: i64, month: u32, found: &mut Vec<i64>) -> Option<u32> {
        if year > YEAR_MAX {
            return None;
        }
        if self.months & (1 << month) == 0 {
            return Some(0);
        }
        let (first, month_len) = (days::number(year, month, 1), days::month_len(year, month));
        for of_month in 1..=month_len {
            let day = Day {
                number: first + i64::from(of_month) - 1,
                year,
                month,
                of_month,
                month_len,
            };
            self.examine(day, found);
        }
        Some(month_len)
    }

    fn examine(&self, day: Day, found: &mut Vec<i64>) {
        if self.months & (1 << day.month) != 0 && self.has_day(&day) {
            found.push(day.number);
        }
    }
}

/// Whether a number is in a list, counted from either end of so many.
fn has(numbers: &[i32], number: u32, len: u32) -> bool {
    let is = |given: &i32| {
        let from_begin = *given > 0 && given.unsigned_abs() == number;
        from_begin || *given < 0 && given.unsigned_abs() == len - number + 1
    };
    numbers.iter().any(is)
}

/// The bits at these positions among those that are set; all of them without positions.
fn picked(bits: u64, positions: &[i32]) -> u64 {
    if positions.is_empty() {
        return bits;
    }
    let set: Vec<u32> = (0..60).filter(|bit| bits & (1 << bit) != 0).collect();
    let at = positions
        .iter()
        .filter_map(|it| set.get(index(*it, set.len())?));
    at.fold(0, |bits, bit| bits | 1 << bit)
}

/// The index of a position, counted from either end, of so many.
fn index(position: i32, len: usize) -> Option<usize> {
    let at = usize::try_from(position.unsigned_abs()).ok()?;
    match position > 0 {
        true => at.checked_sub(1).filter(|at| *at < len),
        false => len.checked_sub(at),
    }
}

struct Day {
    number: i64,
    year: i64,
    month: u32,
    of_month: u32,
    month_len: u32,
}

impl Day {
    fn of(number: i64) -> Option<Self> {
        let (year, month, of_month) = days::civil(number);
        (year <= YEAR_MAX).then(|| Self {
            number,
            year,
            month,
            of_month,
            month_len: days::month_len(year, month),
        })
    }

    fn of_year(&self) -> u32 {
        let passed = self.number - days::number(self.year, 1, 1);
        u32::try_from(passed).unwrap_or(0) + 1
    }
}

/// The times of a rule from a local time on, in order.
pub(super) struct Occurrences<'a> {
    rule: &'a Rule,
    /// The next period to be loaded.
    period: i64,
    /// The days of the period, and the one that is next.
    days: Vec<i64>,
    day: usize,
    /// The times of those days, if they are other ones than those of the rule.
    times: Vec<i64>,
    time: usize,
    /// The times of the period that its positions pick, the last one first.
    picked: Vec<i64>,
    /// Nothing before this one.
    from: i64,
    /// What finding the last one took.
    steps: u32,
}

impl<'a> Occurrences<'a> {
    pub(super) fn from(rule: &'a Rule, from: i64) -> Self {
        let from = from.max(rule.start);
        Self {
            rule,
            period: rule.period_of(from),
            days: Vec::new(),
            day: 0,
            times: Vec::new(),
            time: 0,
            picked: Vec::new(),
            from,
            steps: 0,
        }
    }

    /// Days and times that were examined for the last one.
    pub(super) const fn steps(&self) -> u32 {
        self.steps
    }

    /// Loads the next period; `None`: there is none.
    fn load(&mut self) -> Option<()> {
        let rule = self.rule;
        self.days.clear();
        self.time = 0;
        self.steps += rule.days_of(self.period, &mut self.days)?;
        self.period += 1;
        match rule.frequency {
            Frequency::Minutely | Frequency::Hourly => {
                self.day = 0;
                if let Some(day) = self.days.first() {
                    let (times, steps) = rule.aligned_times(*day);
                    self.times = times;
                    self.steps += steps;
                }
            }
            Frequency::Daily | Frequency::Weekly | Frequency::Monthly | Frequency::Yearly
                if rule.positions.is_empty() =>
            {
                let is_past = |day: &i64| (day + 1) * DAY <= self.from;
                self.day = self.days.partition_point(is_past);
            }
            Frequency::Daily | Frequency::Weekly | Frequency::Monthly | Frequency::Yearly => {
                self.pick();
                self.days.clear();
                self.day = 0;
            }
        }
        Some(())
    }

    fn pick(&mut self) {
        self.picked.clear();
        if self.days.is_empty() {
            return;
        }
        let positions = u32::try_from(self.rule.positions.len()).unwrap_or(u32::MAX);
        self.steps += positions.div_ceil(POSITIONS_PER_STEP);
        let times = &self.rule.times;
        let len = self.days.len() * times.len();
        let at = |position: &i32| {
            let index = index(*position, len)?;
            let day = self.days.get(index / times.len())?;
            Some(day * DAY + times.get(index % times.len())?)
        };
        self.picked = self.rule.positions.iter().filter_map(at).collect();
        self.picked.sort_unstable_by(|a, b| b.cmp(a));
        self.picked.dedup();
    }

    /// The next time of the period that is loaded.
    fn in_period(&mut self) -> Option<i64> {
        if let Some(picked) = self.picked.pop() {
            return Some(picked);
        }
        let times = match self.rule.frequency {
            Frequency::Minutely | Frequency::Hourly => &self.times,
            Frequency::Daily | Frequency::Weekly | Frequency::Monthly | Frequency::Yearly => {
                &self.rule.times
            }
        };
        let day = self.days.get(self.day)?;
        let time = times.get(self.time)?;
        self.time += 1;
        if self.time == times.len() {
            self.time = 0;
            self.day += 1;
        }
        Some(day * DAY + time)
    }
}

impl Iterator for Occurrences<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.steps = 0;
        while self.steps <= STEPS_MAX {
            match self.in_period() {
                Some(found) if found >= self.from => return Some(found),
                Some(_) => {}
                None => self.load()?,
            }
        }
        None
    }
}
