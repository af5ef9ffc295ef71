//! The text of a cron expression.
//!
//! Each field is a list of elements, divided by commas: `*`, a value, a range `a-b`, and `*/n` or `a-b/n`; of the days
//! also `L`, `15W`, `FRI#2`, `FRI#L` and `FRIL`. What has no meaning is refused.

use super::Cron;
use crate::timing::{EXPRESSION_CHARS_MAX, Invalid};

/// What a cron expression is, for messages.
pub(super) const EXPECTED: &str = "5 fields `minute hour day-of-month month day-of-week`, such as `0 2 * * *` or `*/15 8-17 * * MON-FRI`, or one of @hourly, @daily, @weekly, @monthly, @yearly";
/// The names of whole expressions, for messages.
const NAMES: &str = "@hourly, @daily, @weekly, @monthly or @yearly";
/// What the names stand for.
const ALIASES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];
const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// One of the fields, and what it may be.
pub(super) struct Field {
    pub(super) name: &'static str,
    min: u32,
    max: u32,
    /// How many different values there are.
    count: u32,
    /// The names of the values from `min` on.
    names: &'static [&'static str],
    pub(super) expected: &'static str,
}

pub(super) const FIELDS: [Field; 5] = [
    Field {
        name: "minute",
        min: 0,
        max: 59,
        count: 60,
        names: &[],
        expected: "`*`, or minutes from 0 to 59: `30`, `0,30`, `10-20`, `*/15`",
    },
    Field {
        name: "hour",
        min: 0,
        max: 23,
        count: 24,
        names: &[],
        expected: "`*`, or hours from 0 to 23: `9`, `9,17`, `8-17`, `*/2`",
    },
    Field {
        name: "day of month",
        min: 1,
        max: 31,
        count: 31,
        names: &[],
        expected: "`*`, or days from 1 to 31: `1`, `1,15`, `1-7`, `*/2`, `L` for the last one, `15W` for the weekday nearest to the 15th",
    },
    Field {
        name: "month",
        min: 1,
        max: 12,
        count: 12,
        names: &MONTHS,
        expected: "`*`, or months from 1 to 12 or JAN to DEC: `1`, `JAN,JUL`, `4-9`, `*/3`",
    },
    Field {
        name: "day of week",
        min: 0,
        max: 7,
        count: 7,
        names: &WEEKDAYS,
        expected: "`*`, or days from 0 to 7 (0 and 7 are Sunday) or SUN to SAT: `1`, `MON-FRI`, `FRI#2` for the second Friday, `FRI#L` or `FRIL` for the last one",
    },
];

/// The days of a month that the third field names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DayOfMonth {
    /// The field is `*`.
    pub(super) is_any: bool,
    days: u32,
    /// Those whose nearest weekday is meant.
    nearest: u32,
    is_last: bool,
}

impl DayOfMonth {
    /// Whether a day of a month with so many days is named.
    pub(super) fn has(&self, day: u32, len: u32, weekday: u32) -> bool {
        if self.days & (1 << day) != 0 || self.is_last && day == len {
            return true;
        }
        let is_near = |of: u32| of <= len && self.nearest & (1 << of) != 0;
        match weekday {
            0 | 6 => false,
            _ if is_near(day) => true,
            // For the Sunday before it, or for the 1st, a Saturday that has no Friday in its month.
            1 => is_near(day - 1) || day == 3 && is_near(1),
            // For the Saturday after it, or for the last day, a Sunday that has no Monday in its month.
            5 => is_near(day + 1) || day + 2 == len && is_near(len),
            _ => false,
        }
    }
}

/// The days of a week that the fifth field names, 0 to 6.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DayOfWeek {
    /// The field is `*`.
    pub(super) is_any: bool,
    days: u32,
    /// Those of which the first to fifth one of a month is meant.
    numbered: [u32; 5],
    /// Those of which the last one of a month is meant.
    last: u32,
}

impl DayOfWeek {
    pub(super) fn has(&self, weekday: u32, day: u32, len: u32) -> bool {
        let bit = 1 << weekday;
        let number = usize::try_from((day - 1) / 7).unwrap_or(0);
        self.days & bit != 0
            || self
                .numbered
                .get(number)
                .is_some_and(|days| days & bit != 0)
            || self.last & bit != 0 && day + 7 > len
    }
}

/// Why an element is refused.
type Reason = String;

pub(super) fn parse(text: &str) -> Result<Cron, Invalid> {
    if text.chars().count() > EXPRESSION_CHARS_MAX {
        let expected = format!("at most {EXPRESSION_CHARS_MAX} characters");
        return Err(Invalid::of("cron", "too long", expected, text));
    }
    let expression = text.trim_matches([' ', '\t']);
    let expression = if expression.starts_with('@') {
        let alias = expression.to_ascii_lowercase();
        let found = ALIASES.iter().find(|(name, _)| *name == alias);
        let unknown = || Invalid::of("cron", "not a name that is known", NAMES, text);
        found.ok_or_else(unknown)?.1
    } else {
        expression
    };
    let parts = expression.split([' ', '\t']).filter(|it| !it.is_empty());
    let parts: Vec<&str> = parts.collect();
    let Ok([minute, hour, day, month, weekday]) = <[&str; 5]>::try_from(&*parts) else {
        let reason = format!("{} fields instead of 5", parts.len());
        return Err(Invalid::of("cron", reason, EXPECTED, text));
    };
    let [of_minute, of_hour, of_day, of_month, of_weekday] = &FIELDS;
    let read = |field: &Field, part: &str, read: Result<u64, Reason>| {
        read.map_err(|reason| field.invalid(part, &reason, text))
    };
    let minutes = read(of_minute, minute, of_minute.values(minute))?;
    let hours = read(of_hour, hour, of_hour.values(hour))?;
    let months = read(of_month, month, of_month.values(month))?;
    let day_of_month = days_of_month(of_day, day);
    let day_of_week = days_of_week(of_weekday, weekday);
    Ok(Cron {
        minutes,
        hours: narrow(hours),
        months: narrow(months),
        day_of_month: day_of_month.map_err(|reason| of_day.invalid(day, &reason, text))?,
        day_of_week: day_of_week.map_err(|reason| of_weekday.invalid(weekday, &reason, text))?,
        is_periodic: [minute, hour].iter().any(|it| it.contains(['*', '/'])),
    })
}

/// The bits of values below 32.
fn narrow(bits: u64) -> u32 {
    u32::try_from(bits).expect("the field has no value above 31")
}

impl Field {
    fn invalid(&self, part: &str, reason: &str, text: &str) -> Invalid {
        let name = self.name;
        let reason = format!("the {name} `{part}` is not understood: {reason}");
        Invalid::of("cron", reason, format!("{name}: {}", self.expected), text)
    }

    /// The bits of all values of a field without other elements.
    fn values(&self, text: &str) -> Result<u64, Reason> {
        let mut bits = 0;
        for element in elements(text)? {
            bits |= self.element(element)?;
        }
        Ok(bits)
    }

    /// The bits of one element.
    fn element(&self, element: &str) -> Result<u64, Reason> {
        let (range, step) = match element.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (element, None),
        };
        let (from, to, count) = match range.split_once('-') {
            Some((from, to)) => {
                let (from, to) = (self.value(from, element)?, self.end(to, element)?);
                if from > to {
                    return Err(format!("the range `{range}` ends before it begins"));
                }
                (from, to, to - from + 1)
            }
            None if range == "*" => (self.min, self.min + self.count - 1, self.count),
            None if step.is_some() => {
                return Err(format!(
                    "the step of `{element}` follows neither `*` nor a range"
                ));
            }
            None => {
                let value = self.value(range, element)?;
                (value, value, 1)
            }
        };
        let step = match step {
            Some(step) => number(step)
                .filter(|step| (1..=count).contains(step))
                .ok_or_else(|| format!("the step of `{element}` is not from 1 to {count}"))?,
            None => 1,
        };
        let mut bits = 0;
        let mut value = from;
        while value <= to {
            bits |= 1 << self.canonical(value);
            value += step;
        }
        Ok(bits)
    }

    /// Sunday has two numbers.
    const fn canonical(&self, value: u32) -> u32 {
        if value >= self.min + self.count {
            value - self.count
        } else {
            value
        }
    }

    /// A value by its number or name.
    fn value(&self, text: &str, element: &str) -> Result<u32, Reason> {
        let of_name = || {
            let at = self
                .names
                .iter()
                .position(|it| it.eq_ignore_ascii_case(text))?;
            Some(self.min + u32::try_from(at).ok()?)
        };
        let value = number(text).or_else(of_name);
        value
            .filter(|value| (self.min..=self.max).contains(value))
            .ok_or_else(|| format!("`{element}` is none of its elements"))
    }

    /// The last value of a range, where Sunday by its name is the end of the week.
    fn end(&self, text: &str, element: &str) -> Result<u32, Reason> {
        let end = self.value(text, element)?;
        let is_sunday = self.max == 7 && text.eq_ignore_ascii_case(WEEKDAYS[0]);
        Ok(if is_sunday { self.max } else { end })
    }
}

/// The elements of a list. Each must be there, and `*` is alone, as nothing can be added to it.
fn elements(text: &str) -> Result<impl Iterator<Item = &str>, Reason> {
    if text.split(',').any(str::is_empty) {
        return Err("an element of the list is empty".to_owned());
    }
    if text != "*" && text.split(',').any(|element| element == "*") {
        return Err("`*` in a list contains its other elements".to_owned());
    }
    Ok(text.split(','))
}

/// A number in digits.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn days_of_month(field: &Field, text: &str) -> Result<DayOfMonth, Reason> {
    let mut days = DayOfMonth {
        is_any: text == "*",
        ..DayOfMonth::default()
    };
    for element in elements(text)? {
        if element.eq_ignore_ascii_case("L") {
            days.is_last = true;
        } else if let Some(day) = element.strip_suffix(['W', 'w']) {
            days.nearest |= 1 << field.value(day, element)?;
        } else {
            days.days |= narrow(field.element(element)?);
        }
    }
    Ok(days)
}

fn days_of_week(field: &Field, text: &str) -> Result<DayOfWeek, Reason> {
    let mut days = DayOfWeek {
        is_any: text == "*",
        ..DayOfWeek::default()
    };
    for element in elements(text)? {
        let bit = |day: &str| Ok::<_, Reason>(1 << field.canonical(field.value(day, element)?));
        if let Some((day, which)) = element.split_once('#') {
            if which.eq_ignore_ascii_case("L") {
                days.last |= bit(day)?;
                continue;
            }
            let which = number(which).and_then(|which| usize::try_from(which).ok());
            let numbered = which.and_then(|which| days.numbered.get_mut(which.checked_sub(1)?));
            let numbered = numbered.ok_or_else(|| {
                format!("the number of `{element}` is neither from 1 to 5 nor `L`")
            })?;
            *numbered |= bit(day)?;
        } else if let Some(day) = element.strip_suffix(['L', 'l']) {
            days.last |= bit(day)?;
        } else {
            days.days |= narrow(field.element(element)?);
        }
    }
    Ok(days)
}
