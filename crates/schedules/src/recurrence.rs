//! RFC 5545 recurrence rules.
//!
//! The crate computes on the clock of the zone as if that clock never changed; the times are then read on the real
//! clock as RFC 5545 has it (section 3.3.5): one that does not exist by the offset before the gap, one that exists
//! twice the first time. So a rule can be computed from any of its periods, and years of it cost nothing.

use crate::timing::{EXPRESSION_CHARS_MAX, Invalid, zone};
use chrono::{
    DateTime, Datelike, Duration, LocalResult, Months, NaiveDate, NaiveDateTime, Offset, TimeZone,
    Timelike, Utc,
};
use chrono_tz::Tz;
use rrule::{Frequency, RRule, RRuleSet, Unvalidated, Validated};
use taskledger_domain::Timestamp;

/// Times that `COUNT` of a recurrence rule may ask for: they are counted from the first one each time.
pub const COUNT_MAX: u32 = 10_000;
/// Occurrences that one look computes: more than two years have of [`TIMES_A_DAY_MAX`].
const STEPS_MAX: usize = 50_000;
/// Times of one day that a rule of days or longer periods may have.
const TIMES_A_DAY_MAX: usize = 48;
/// Periods that are tried when the day of the first one is missing in others: February 29th comes every 8 years at
/// the latest.
const BACK_MAX: i64 = 100;

const EXPECTED: &str = "an RFC 5545 rule, such as `FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18;BYMINUTE=0;BYSECOND=0`, with a line `DTSTART:20260101T090000` before it or without";
const UNTIL_EXPECTED: &str = "`UNTIL=20261231T235959Z`, or without `Z` by the clock of `time_zone`";
const START_EXPECTED: &str = "`DTSTART:20260101T090000Z`, `DTSTART:20260101T090000` or `DTSTART;TZID=Europe/Berlin:20260101T090000`";

/// What is wrong, without what the crate puts around it.
fn own_words(error: &rrule::RRuleError) -> String {
    let text = error.to_string();
    let what = text.split_once(" error: ").map_or(&*text, |(_, what)| what);
    what.trim_end_matches('.').to_owned()
}

/// A rule that can be computed.
#[derive(Debug)]
pub(crate) struct Recurrence {
    rule: RRule<Validated>,
    zone: Tz,
    /// The first period, by the clock of the zone.
    start: NaiveDateTime,
    until: Option<DateTime<Utc>>,
}

impl Recurrence {
    pub(crate) fn of(text: &str, mut tz: Tz, anchor: Timestamp) -> Result<Self, Invalid> {
        let fault = |reason: String| Invalid::of("rrule", reason, EXPECTED, text);
        if text.chars().count() > EXPRESSION_CHARS_MAX {
            let expected = format!("at most {EXPRESSION_CHARS_MAX} characters");
            return Err(Invalid::of("rrule", "too long", expected, text));
        }
        let mut start = None;
        let mut rule = None;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let upper = line.to_ascii_uppercase();
            if upper.starts_with("DTSTART") {
                start = Some(started(line, &mut tz)?);
            } else if let Some(parts) = upper.strip_prefix("RRULE:") {
                rule = Some(parts.to_owned());
            } else if upper.starts_with("FREQ=") || upper.contains(";FREQ=") {
                rule = Some(upper);
            } else {
                let what = line.split([':', ';']).next().unwrap_or_default();
                return Err(fault(format!("`{what}` is not taken")));
            }
        }
        let rule = rule.ok_or_else(|| fault("no `FREQ`".to_owned()))?;
        let (until, rule) = without_until(&rule, tz)?;
        let parsed: RRule<Unvalidated> = rule
            .parse()
            .map_err(|error: rrule::RRuleError| fault(own_words(&error)))?;
        if matches!(parsed.get_freq(), Frequency::Secondly) || parsed.get_by_second().len() > 1 {
            return Err(fault(
                "finer than a minute; `every_seconds` is for that".to_owned(),
            ));
        }
        let by_day = match parsed.get_freq() {
            Frequency::Yearly | Frequency::Monthly | Frequency::Weekly | Frequency::Daily => {
                parsed.get_by_hour().len().max(1) * parsed.get_by_minute().len().max(1)
            }
            Frequency::Hourly | Frequency::Minutely | Frequency::Secondly => 1,
        };
        if by_day > TIMES_A_DAY_MAX {
            let reason = format!(
                "more than {TIMES_A_DAY_MAX} times a day; `FREQ=HOURLY` and `FREQ=MINUTELY` are for that"
            );
            return Err(fault(reason));
        }
        if parsed.get_count().is_some_and(|count| count > COUNT_MAX) {
            return Err(fault(format!("`COUNT` is more than {COUNT_MAX}")));
        }
        let start = match start {
            Some(start) => start,
            None => {
                let anchor = DateTime::<Utc>::from_timestamp_micros(anchor.0);
                let anchor = anchor.ok_or_else(|| fault("no time to start from".to_owned()))?;
                let local = anchor.with_timezone(&tz).naive_local();
                local.with_nanosecond(0).unwrap_or(local)
            }
        };
        let rule = parsed.validate(floating(start));
        let rule = rule.map_err(|error| fault(own_words(&error)))?;
        Ok(Self {
            rule,
            zone: tz,
            start,
            until,
        })
    }

    /// The times after `after`, in one pass; at most [`STEPS_MAX`] occurrences are computed.
    pub(crate) fn after(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let begun = DateTime::<Utc>::from_timestamp_micros(after.0);
        begun.into_iter().flat_map(|after| self.times(after))
    }

    fn times(&self, after: DateTime<Utc>) -> impl Iterator<Item = Timestamp> + '_ {
        // Two days before, so that no gap or fold of the clock hides a time.
        let near = after.with_timezone(&self.zone).naive_local() - Duration::days(2);
        let start = match self.rule.get_count() {
            Some(_) => self.start,
            None => self.period_before(near),
        };
        // The crate gives up a rule that has no time in 100,000 days.
        let set = RRuleSet::new(floating(start))
            .rrule(self.rule.clone())
            .limit();
        let mut last = after;
        set.into_iter()
            .take(STEPS_MAX)
            .filter_map(move |floating| {
                let at = self.real(floating.naive_utc()).filter(|at| *at > last)?;
                last = at;
                Some(at)
            })
            .take_while(|at| self.until.is_none_or(|until| *at <= until))
            .map(|at| Timestamp(at.timestamp_micros()))
    }

    /// The start of a period of the rule that is not after `near`, unless the first one is.
    fn period_before(&self, near: NaiveDateTime) -> NaiveDateTime {
        let interval = i64::from(self.rule.get_interval()).max(1);
        let passed = near - self.start;
        if passed <= Duration::zero() {
            return self.start;
        }
        let months = i64::from(near.year() - self.start.year()) * 12 + i64::from(near.month())
            - i64::from(self.start.month());
        let (unit, periods) = match self.rule.get_freq() {
            Frequency::Yearly => (Unit::Months(12), months / 12),
            Frequency::Monthly => (Unit::Months(1), months),
            Frequency::Weekly => (Unit::Time(Duration::weeks(1)), passed.num_weeks()),
            Frequency::Daily => (Unit::Time(Duration::days(1)), passed.num_days()),
            Frequency::Hourly => (Unit::Time(Duration::hours(1)), passed.num_hours()),
            Frequency::Minutely | Frequency::Secondly => {
                (Unit::Time(Duration::minutes(1)), passed.num_minutes())
            }
        };
        // One period less: weeks and years begin before the day that they are counted from.
        let newest = (periods - 1) / interval;
        (0..BACK_MAX)
            .map(|back| newest - back)
            .take_while(|k| *k > 0)
            .find_map(|k| unit.later(self.start, k * interval))
            .unwrap_or(self.start)
    }

    /// A time by the clock of the zone, on the real clock.
    fn real(&self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        match self.zone.from_local_datetime(&local) {
            LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.to_utc()),
            LocalResult::None => {
                // The offset before the gap: no gap is longer than a day.
                let before = self.zone.from_local_datetime(&(local - Duration::days(1)));
                let offset = before.earliest()?.offset().fix();
                let at = local - Duration::seconds(i64::from(offset.local_minus_utc()));
                Some(at.and_utc())
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Months(u32),
    Time(Duration),
}

impl Unit {
    /// The time so many units later; `None`: the month has no such day.
    fn later(self, start: NaiveDateTime, units: i64) -> Option<NaiveDateTime> {
        match self {
            Self::Time(unit) => start.checked_add_signed(unit * i32::try_from(units).ok()?),
            Self::Months(unit) => {
                let months = Months::new(u32::try_from(units).ok()?.checked_mul(unit)?);
                let later = start.checked_add_months(months)?;
                (later.day() == start.day()).then_some(later)
            }
        }
    }
}

/// The clock of a zone as if it never changed.
fn floating(local: NaiveDateTime) -> DateTime<rrule::Tz> {
    rrule::Tz::UTC.from_utc_datetime(&local)
}

/// A line `DTSTART`, whose zone becomes that of the rule; by the clock of that zone.
fn started(line: &str, zone_of_rule: &mut Tz) -> Result<NaiveDateTime, Invalid> {
    let fault = |reason: &str| Invalid::of("rrule", reason, START_EXPECTED, line);
    let (head, value) = line.rsplit_once(':').ok_or_else(|| fault("no `:`"))?;
    if let Some((_, tzid)) = head.split_once(';') {
        let name = tzid.strip_prefix("TZID=").or(tzid.strip_prefix("tzid="));
        *zone_of_rule = zone(name.ok_or_else(|| fault("a parameter other than `TZID`"))?)?;
    }
    let local = |text: &str| NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%S");
    let value = value.trim().to_ascii_uppercase();
    match value.strip_suffix('Z') {
        Some(utc) => {
            let at = local(utc).map_err(|_| fault("not a date and time"))?;
            Ok(at.and_utc().with_timezone(&*zone_of_rule).naive_local())
        }
        None => local(&value).map_err(|_| fault("not a date and time")),
    }
}

/// A rule without its `UNTIL`, which is read here: the crate would want it in the zone of the start.
fn without_until(rule: &str, tz: Tz) -> Result<(Option<DateTime<Utc>>, String), Invalid> {
    let fault = || {
        Invalid::of(
            "rrule",
            "`UNTIL` is not a date and time",
            UNTIL_EXPECTED,
            rule,
        )
    };
    let (mut until, mut rest) = (None, Vec::new());
    for part in rule.split(';').filter(|part| !part.is_empty()) {
        let Some(text) = part.strip_prefix("UNTIL=") else {
            rest.push(part);
            continue;
        };
        let local = |text: &str| NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%S");
        let at = match (text.strip_suffix('Z'), text.len()) {
            (Some(utc), _) => local(utc).map_err(|_| fault())?.and_utc(),
            // The whole day.
            (None, 8) => {
                let day = NaiveDate::parse_from_str(text, "%Y%m%d").map_err(|_| fault())?;
                let end = day.and_hms_opt(23, 59, 59).ok_or_else(fault)?;
                tz.from_local_datetime(&end)
                    .latest()
                    .ok_or_else(fault)?
                    .to_utc()
            }
            (None, _) => {
                let end = local(text).map_err(|_| fault())?;
                tz.from_local_datetime(&end)
                    .latest()
                    .ok_or_else(fault)?
                    .to_utc()
            }
        };
        until = Some(at);
    }
    Ok((until, rest.join(";")))
}
