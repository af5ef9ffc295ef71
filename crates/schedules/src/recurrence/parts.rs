//! The parts of a rule as they are written, and which of them go together: RFC 5545, section 3.3.10.

use crate::timing::Invalid;
use std::ops::RangeInclusive;

/// The section of RFC 5545 that says what a rule may be.
const SECTION: &str = "RFC 5545, section 3.3.10";
/// The days of a week as rules write them, from Sunday on.
const WEEKDAYS: [&str; 7] = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];
/// Digits of a number.
const DIGITS_MAX: usize = 9;

/// The length of the periods of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Frequency {
    Minutely,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

impl Frequency {
    const fn name(self) -> &'static str {
        match self {
            Self::Minutely => "MINUTELY",
            Self::Hourly => "HOURLY",
            Self::Daily => "DAILY",
            Self::Weekly => "WEEKLY",
            Self::Monthly => "MONTHLY",
            Self::Yearly => "YEARLY",
        }
    }
}

/// A weekday, 0 to 6 from Sunday on, and which one of its month or year it is; 0: each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weekday {
    pub(super) day: u32,
    pub(super) number: i32,
}

/// A rule as it is written. An empty list: the part is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) frequency: Frequency,
    pub(super) interval: i64,
    pub(super) count: Option<u32>,
    pub(super) until: Option<String>,
    pub(super) second: Option<i32>,
    pub(super) minutes: Vec<i32>,
    pub(super) hours: Vec<i32>,
    pub(super) weekdays: Vec<Weekday>,
    pub(super) month_days: Vec<i32>,
    pub(super) year_days: Vec<i32>,
    pub(super) weeks: Vec<i32>,
    pub(super) months: Vec<i32>,
    pub(super) positions: Vec<i32>,
    pub(super) week_start: u32,
}

/// Why a part is refused, and what would be accepted.
struct Refusal {
    reason: String,
    expected: String,
}

fn refuse<T>(reason: impl Into<String>, expected: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        reason: reason.into(),
        expected: expected.into(),
    })
}

impl Parts {
    /// Reads a rule without the name of its line, in capitals. `text`: all that was written.
    ///
    /// # Errors
    /// [`Invalid`], with the part.
    pub(super) fn parse(rule: &str, text: &str) -> Result<Self, Invalid> {
        read(rule).map_err(|refusal| {
            let reason = format!("{} ({SECTION})", refusal.reason);
            Invalid::of("rrule", reason, refusal.expected, text)
        })
    }
}

fn read(rule: &str) -> Result<Parts, Refusal> {
    let mut given: Vec<(&str, &str)> = Vec::new();
    for part in rule.split(';') {
        let Some((name, value)) = part.split_once('=') else {
            let reason = format!("`{part}` is not a part");
            return refuse(reason, "parts `NAME=VALUE`, divided by `;`");
        };
        if given.iter().any(|(other, _)| *other == name) {
            return refuse(format!("`{name}` is given twice"), format!("`{name}` once"));
        }
        if value.is_empty() {
            return refuse(
                format!("`{name}` is empty"),
                format!("a value of `{name}`, or no `{name}`"),
            );
        }
        given.push((name, value));
    }
    let value = |of: &str| {
        given
            .iter()
            .find(|(name, _)| *name == of)
            .map(|(_, value)| *value)
    };
    let Some(frequency) = value("FREQ") else {
        let found = given
            .iter()
            .map(|(name, _)| *name)
            .next()
            .unwrap_or_default();
        return refuse(
            format!("`{found}` without `FREQ`"),
            "`FREQ=` one of YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY and MINUTELY",
        );
    };
    let mut parts = Parts::every(read_frequency(frequency)?);
    for (name, value) in &given {
        parts.read_part(name, value)?;
    }
    parts.fit()?;
    Ok(parts)
}

fn read_frequency(text: &str) -> Result<Frequency, Refusal> {
    let all = [
        Frequency::Minutely,
        Frequency::Hourly,
        Frequency::Daily,
        Frequency::Weekly,
        Frequency::Monthly,
        Frequency::Yearly,
    ];
    let found = all.into_iter().find(|frequency| frequency.name() == text);
    match found {
        Some(frequency) => Ok(frequency),
        None if text == "SECONDLY" => refuse(
            "`FREQ=SECONDLY` is finer than a minute",
            "`FREQ=MINUTELY` or a longer period; `every_seconds` is for seconds",
        ),
        None => refuse(
            format!("`FREQ={text}` is not a period"),
            "YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY or MINUTELY",
        ),
    }
}

impl Parts {
    const fn every(frequency: Frequency) -> Self {
        Self {
            frequency,
            interval: 1,
            count: None,
            until: None,
            second: None,
            minutes: Vec::new(),
            hours: Vec::new(),
            weekdays: Vec::new(),
            month_days: Vec::new(),
            year_days: Vec::new(),
            weeks: Vec::new(),
            months: Vec::new(),
            positions: Vec::new(),
            week_start: 1,
        }
    }

    fn read_part(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        match name {
            "FREQ" => {}
            "INTERVAL" => self.interval = i64::from(positive(name, value)?),
            "COUNT" => {
                let count = positive(name, value)?;
                let max = super::COUNT_MAX;
                if count > max {
                    return refuse(
                        format!("`COUNT={count}` is more than {max}"),
                        format!("`COUNT` from 1 to {max}"),
                    );
                }
                self.count = Some(count);
            }
            "UNTIL" => self.until = Some(value.to_owned()),
            "BYSECOND" => {
                let seconds = numbers(name, value, Range::unsigned(0..=60))?;
                let [second] = *seconds else {
                    return refuse(
                        "more than one `BYSECOND` is finer than a minute",
                        "one second; `every_seconds` is for more",
                    );
                };
                // A clock without leap seconds: section 3.3.12.
                self.second = Some(second.min(59));
            }
            "BYMINUTE" => self.minutes = numbers(name, value, Range::unsigned(0..=59))?,
            "BYHOUR" => self.hours = numbers(name, value, Range::unsigned(0..=23))?,
            "BYDAY" => self.weekdays = weekdays(value)?,
            "BYMONTHDAY" => self.month_days = numbers(name, value, Range::signed(31))?,
            "BYYEARDAY" => self.year_days = numbers(name, value, Range::signed(366))?,
            "BYWEEKNO" => self.weeks = numbers(name, value, Range::signed(53))?,
            "BYMONTH" => self.months = numbers(name, value, Range::unsigned(1..=12))?,
            "BYSETPOS" => {
                self.positions = numbers(name, value, Range::signed(366))?;
                self.positions.sort_unstable();
                self.positions.dedup();
            }
            "WKST" => match weekday(value) {
                Some(day) => self.week_start = day,
                None => {
                    let reason = format!("`WKST={value}` is not a weekday");
                    return refuse(reason, "one of SU, MO, TU, WE, TH, FR and SA");
                }
            },
            _ => {
                return refuse(
                    format!("`{name}` is not a part of a rule"),
                    "FREQ, INTERVAL, COUNT, UNTIL, BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY, BYDAY, BYHOUR, BYMINUTE, BYSECOND, BYSETPOS or WKST",
                );
            }
        }
        Ok(())
    }

    /// Whether the parts go together.
    fn fit(&self) -> Result<(), Refusal> {
        use Frequency::{Daily, Monthly, Weekly, Yearly};
        let frequency = self.frequency;
        let not_with = |part: &str, expected: &str| {
            let reason = format!("`{part}` does not go with `FREQ={}`", frequency.name());
            refuse(reason, expected)
        };
        if self.count.is_some() && self.until.is_some() {
            return refuse("both `COUNT` and `UNTIL`", "one of them");
        }
        if !self.weeks.is_empty() && frequency != Yearly {
            return not_with("BYWEEKNO", "`BYWEEKNO` with `FREQ=YEARLY`");
        }
        if !self.year_days.is_empty() && matches!(frequency, Daily | Weekly | Monthly) {
            return not_with("BYYEARDAY", "`BYYEARDAY` with YEARLY, HOURLY or MINUTELY");
        }
        if !self.month_days.is_empty() && frequency == Weekly {
            return not_with("BYMONTHDAY", "`BYMONTHDAY` with any period but WEEKLY");
        }
        if let Some(numbered) = self.weekdays.iter().find(|it| it.number != 0) {
            let text = numbered.text();
            if !matches!(frequency, Monthly | Yearly) {
                let part = format!("BYDAY={text}");
                return not_with(
                    &part,
                    "weekdays with a number with MONTHLY or YEARLY, others without",
                );
            }
            if !self.weeks.is_empty() {
                let reason = format!("`BYDAY={text}` does not go with `BYWEEKNO`");
                return refuse(reason, "weekdays without a number");
            }
        }
        let is_by_month = frequency == Monthly || !self.months.is_empty();
        let sixth = |it: &&Weekday| it.number.unsigned_abs() > 5;
        if let Some(sixth) = self.weekdays.iter().find(sixth).filter(|_| is_by_month) {
            let reason = format!(
                "`BYDAY={}`: no month has so many of a weekday",
                sixth.text()
            );
            return refuse(reason, "numbers from 1 to 5, or from -5 to -1");
        }
        let has_other = self.second.is_some()
            || !(self.minutes.is_empty() && self.hours.is_empty() && self.weekdays.is_empty())
            || !(self.month_days.is_empty() && self.year_days.is_empty())
            || !(self.weeks.is_empty() && self.months.is_empty());
        if !self.positions.is_empty() && !has_other {
            return refuse("`BYSETPOS` alone", "`BYSETPOS` with another `BY` part");
        }
        Ok(())
    }
}

impl Weekday {
    fn text(self) -> String {
        let name = WEEKDAYS.get(self.day as usize).unwrap_or(&"");
        match self.number {
            0 => (*name).to_owned(),
            number => format!("{number}{name}"),
        }
    }
}

/// The numbers that a part takes.
struct Range {
    numbers: RangeInclusive<i32>,
    /// Whether they may be counted from the end.
    is_signed: bool,
}

impl Range {
    const fn unsigned(numbers: RangeInclusive<i32>) -> Self {
        Self {
            numbers,
            is_signed: false,
        }
    }

    const fn signed(max: i32) -> Self {
        Self {
            numbers: 1..=max,
            is_signed: true,
        }
    }

    fn has(&self, number: i32) -> bool {
        self.numbers.contains(&number) || self.is_signed && self.numbers.contains(&-number)
    }

    fn text(&self) -> String {
        let (min, max) = (self.numbers.start(), self.numbers.end());
        match self.is_signed {
            true => format!("from {min} to {max}, or from -{max} to -{min}"),
            false => format!("from {min} to {max}"),
        }
    }
}

fn numbers(name: &str, value: &str, range: Range) -> Result<Vec<i32>, Refusal> {
    value
        .split(',')
        .map(|element| {
            let found = integer(element, range.is_signed).filter(|it| range.has(*it));
            found.map_or_else(
                || {
                    let reason = format!("`{name}={value}`: `{element}` is out of range");
                    refuse(reason, format!("`{name}` {}", range.text()))
                },
                Ok,
            )
        })
        .collect()
}

/// A number in digits, with a sign if it may have one.
fn integer(text: &str, is_signed: bool) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).filter(|_| is_signed);
    let digits = digits.unwrap_or(text);
    let is_number = (1..=DIGITS_MAX).contains(&digits.len());
    let is_number = is_number && digits.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn positive(name: &str, value: &str) -> Result<u32, Refusal> {
    let number = integer(value, false).and_then(|number| u32::try_from(number).ok());
    match number.filter(|number| *number > 0) {
        Some(number) => Ok(number),
        None => {
            let reason = format!("`{name}={value}` is not a positive number");
            refuse(
                reason,
                format!("`{name}` from 1 on, with at most {DIGITS_MAX} digits"),
            )
        }
    }
}

fn weekday(text: &str) -> Option<u32> {
    let at = WEEKDAYS.iter().position(|name| *name == text)?;
    u32::try_from(at).ok()
}

fn weekdays(value: &str) -> Result<Vec<Weekday>, Refusal> {
    let read = |element: &str| {
        let (number, name) = element.split_at_checked(element.len().checked_sub(2)?)?;
        let day = weekday(name)?;
        let number = match number {
            "" => 0,
            number => integer(number, true).filter(|it| (1..=53).contains(&it.abs()))?,
        };
        Some(Weekday { day, number })
    };
    value
        .split(',')
        .map(|element| {
            read(element).map_or_else(
                || {
                    refuse(
                        format!("`BYDAY={value}`: `{element}` is not a weekday"),
                        "SU, MO, TU, WE, TH, FR or SA, with MONTHLY and YEARLY also after a number, such as `-1FR`",
                    )
                },
                Ok,
            )
        })
        .collect()
}
