//! Times as people read and write them: `3 min ago`, a clock's time, `--since 1h`, `yesterday 14:00`, `--start-at 10m`.

mod local;

pub(super) use local::local_zone;

use super::{CliError, clock};
use crate::span::span;
use clap::ValueEnum;
use jiff::Timestamp as Instant;
use jiff::tz::TimeZone;
use serde_json::Value;
use taskledger_domain::Timestamp;
use taskledger_terminal::Telling;
use taskledger_zones::UnknownZone;

/// What is understood where a time that has passed may stand.
const UNDERSTOOD: &str = "a span such as `90s`, `15m`, `1h` or `7d` before now, `today`, `yesterday 14:00`, `2026-01-31`, \
                          `2026-01-31 14:00`, or RFC 3339";
/// What is understood where a time to come may stand.
const EXPECTED: &str = "expected a span from now on such as `90s`, `10m`, `1h` or `7d`, `today 18:00`, `tomorrow 14:00`, \
                        `2026-01-31`, `2026-01-31 14:00`, or RFC 3339";
/// How far apart the clocks of a server and of this machine may be, in milliseconds.
const APART_MS_MAX: u64 = 5 * 60 * 1000;

/// How times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Times {
    /// How long ago.
    Age,
    /// By the clock of this machine.
    Local,
    /// By UTC, as the server writes them.
    Utc,
}

/// Now, and how other times are shown beside it.
#[derive(Debug, Clone)]
pub struct When {
    pub(super) now: Timestamp,
    pub(super) times: Times,
    /// The zone of the user, or why it is not known.
    pub(super) zone: Result<TimeZone, UnknownZone>,
}

impl When {
    /// The time in the member `name` of an object; empty when there is none.
    pub(super) fn member(&self, object: &Value, name: &str) -> String {
        time(object, name).map_or_else(String::new, |at| self.show(at))
    }

    /// A time, for people.
    pub(super) fn show(&self, at: Timestamp) -> String {
        match self.times {
            Times::Age if at > self.now => format!("in {}", span(at.ms_since(self.now))),
            Times::Age => format!("{} ago", span(self.now.ms_since(at))),
            Times::Utc => at.to_string(),
            // Where the zone is not known, UTC, with its `Z`.
            Times::Local => match (Instant::from_microsecond(at.0), &self.zone) {
                (Ok(instant), Ok(zone)) => {
                    let zoned = instant.to_zoned_datetime(zone.clone());
                    zoned.strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
                }
                (Ok(_), Err(_)) | (Err(_), _) => at.to_string(),
            },
        }
    }

    /// Reads what people write for a time: a span before now (`1h`), a day (`today`, `yesterday`, `2026-01-31`)
    /// with or without a time (`14:00`) by the clock of this machine, or RFC 3339.
    ///
    /// # Errors
    /// What would be understood.
    pub(super) fn parse(&self, text: &str) -> Result<Timestamp, String> {
        let text = text.trim();
        if let Ok(time) = Timestamp::parse(text) {
            return Ok(time);
        }
        if let Some(ms) = ms_of_span(text) {
            let micros = i64::try_from(ms.saturating_mul(1000)).unwrap_or(i64::MAX);
            return Ok(Timestamp(self.now.0.saturating_sub(micros)));
        }
        self.civil(text)?
            .ok_or_else(|| format!("`{text}` is not a time; expected {UNDERSTOOD}"))
    }

    /// Reads a time at or after which something is to have happened, as [`Self::parse`] does: one that has passed.
    /// The clock of a server may be ahead of this one by [`APART_MS_MAX`].
    ///
    /// # Errors
    /// What would be understood.
    pub(super) fn parse_past(&self, text: &str) -> Result<Timestamp, String> {
        let at = self.parse(text)?;
        match at > self.now.plus_ms(APART_MS_MAX) {
            true => Err(format!(
                "`{}` is still to come; expected a time that has passed: {UNDERSTOOD}",
                text.trim()
            )),
            false => Ok(at),
        }
    }

    /// Reads what people write for a time to come: a span from now on (`10m`, or `in 10m`), a day (`today`, `tomorrow`,
    /// `2026-01-31`) with or without a time (`14:00`) by the clock of this machine, or RFC 3339. A whole date may have
    /// passed by [`APART_MS_MAX`].
    ///
    /// # Errors
    /// What would be understood.
    pub(super) fn parse_future(&self, text: &str) -> Result<Timestamp, String> {
        let at = self.parse_beginning(text)?;
        match at.plus_ms(APART_MS_MAX) < self.now {
            true => Err(format!("`{}` has passed; {EXPECTED}", text.trim())),
            false => Ok(at),
        }
    }

    /// The same, where a whole date may have passed: periods count from it.
    ///
    /// # Errors
    /// What would be understood.
    pub(super) fn parse_beginning(&self, text: &str) -> Result<Timestamp, String> {
        let text = text.trim();
        if let Ok(time) = Timestamp::parse(text) {
            return Ok(time);
        }
        let span = text.strip_prefix("in ").map_or(text, str::trim);
        if let Some(ms) = ms_of_span(span) {
            let micros = i64::try_from(ms.saturating_mul(1000)).ok();
            let at = micros.and_then(|micros| self.now.0.checked_add(micros));
            // Such as cannot be written as RFC 3339 are too far away.
            let at = at.filter(|at| Instant::from_microsecond(*at).is_ok());
            return at
                .map(Timestamp)
                .ok_or_else(|| format!("`{text}` is too far away; {EXPECTED}"));
        }
        let is_past = text.starts_with("yesterday");
        let at = self.civil(text)?.filter(|_| !is_past);
        let at = at.ok_or_else(|| format!("`{text}` is not a time to come; {EXPECTED}"))?;
        let is_dated = text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('-');
        match at > self.now || is_dated {
            true => Ok(at),
            false => Err(format!("`{text}` has passed; {EXPECTED}")),
        }
    }

    /// Puts times as servers read them into the members of parameters with these names; `since` must have passed.
    ///
    /// # Errors
    /// [`CliError::Usage`]: what would be understood.
    pub fn resolve_in(&self, params: &mut Value, names: &[&str]) -> Result<(), CliError> {
        for name in names {
            let given = params.get(name).and_then(Value::as_str);
            let read = |text| match *name {
                "since" => self.parse_past(text),
                _ => self.parse(text),
            };
            let Some(parsed) = given.map(read) else {
                continue;
            };
            let time = parsed.map_err(|why| CliError::Usage(format!("--{name}: {why}")))?;
            params[*name] = time.to_string().into();
        }
        Ok(())
    }
}

impl Telling for When {
    fn time(&self, time: &str) -> String {
        Timestamp::parse(time).map_or_else(|_| time.to_owned(), |at| self.show(at))
    }

    /// Ages make no sentences, and grow old in streams: there the clock of this machine says when.
    fn sentence(&self, text: &str) -> String {
        let times = match self.times {
            Times::Age => Times::Local,
            times @ (Times::Local | Times::Utc) => times,
        };
        if times == Times::Utc {
            return text.to_owned();
        }
        let shown = Self {
            times,
            ..self.clone()
        };
        let belongs = |c: char| c.is_ascii_alphanumeric() || "-:.+".contains(c);
        let (mut told, mut rest) = (String::new(), text);
        while let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, word) = rest.split_at(begin);
            let end = word.find(|c| !belongs(c)).unwrap_or(word.len());
            let whole = word[..end].trim_end_matches(['.', ':', '-']);
            // A digit within a word begins no time.
            let is_inside = before.ends_with(belongs);
            told.push_str(before);
            match Timestamp::parse(whole) {
                Ok(at) if !is_inside => told.push_str(&shown.show(at)),
                Ok(_) | Err(_) => told.push_str(whole),
            }
            rest = &word[whole.len()..];
        }
        told.push_str(rest);
        told
    }
}

/// A time to come, as options take it: see [`When::parse_future`]. It is given on as RFC 3339, as it was written if it
/// is.
///
/// # Errors
/// What would be understood.
pub(super) fn future(text: &str) -> Result<String, String> {
    given_on(text, When::parse_future)
}

/// The same for a time from which periods count: see [`When::parse_beginning`].
///
/// # Errors
/// What would be understood.
pub(super) fn beginning(text: &str) -> Result<String, String> {
    given_on(text, When::parse_beginning)
}

fn given_on(
    text: &str,
    read: impl Fn(&When, &str) -> Result<Timestamp, String>,
) -> Result<String, String> {
    let when = When {
        now: clock().now(),
        times: Times::Utc,
        zone: local_zone(),
    };
    let at = read(&when, text)?;
    match Timestamp::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Ok(at.to_string()),
    }
}

/// A moment of the past, as options take it: a position of the log, or a time as [`When::parse_past`] reads it, given
/// on as RFC 3339 and as it was written if it is.
///
/// # Errors
/// What would be understood.
pub(super) fn moment(text: &str) -> Result<Value, String> {
    if let Ok(position) = text.parse::<u64>() {
        return Ok(position.into());
    }
    let when = When {
        now: clock().now(),
        times: Times::Utc,
        zone: local_zone(),
    };
    let at = when.parse_past(text);
    let at = at.map_err(|why| format!("{why}, or a position of the log"))?;
    Ok(match Timestamp::parse(text) {
        Ok(_) => text.into(),
        Err(_) => at.to_string().into(),
    })
}

/// Whole seconds, as a number or as a span.
///
/// # Errors
/// What would be understood.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let of_span = || ms_of_span(text).map(|ms| ms / 1_000);
    text.parse().ok().or_else(of_span).ok_or_else(|| {
        "expected a number of seconds, or a span such as `90s`, `15m`, `1h` or `7d`".to_owned()
    })
}

/// `90s`, `15m`, `1h`, `7d` in milliseconds.
fn ms_of_span(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(split);
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(seconds * 1000)
}

/// The time in the member `name` of an object.
pub(super) fn time(object: &Value, name: &str) -> Option<Timestamp> {
    Timestamp::parse(object.get(name)?.as_str()?).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const NOW: &str = "2026-01-31T12:00:00Z";

    pub(crate) fn at_noon(times: Times) -> When {
        When {
            now: Timestamp::parse(NOW).unwrap(),
            times,
            zone: Ok(TimeZone::fixed(jiff::tz::offset(1))),
        }
    }

    #[test]
    fn times_are_ages_or_what_clocks_show() {
        let at = Timestamp::parse("2026-01-31T11:58:56Z").unwrap();
        assert_eq!(at_noon(Times::Age).show(at), "1 min 4 s ago");
        assert_eq!(at_noon(Times::Age).show(at.plus_ms(66_000)), "in 2.0 s");
        assert_eq!(at_noon(Times::Local).show(at), "2026-01-31 12:58:56 +01");
        assert_eq!(at_noon(Times::Utc).show(at), at.to_string());
    }

    #[test]
    fn times_within_sentences_are_told_by_the_clock() {
        let text = "waits until 2026-01-31T11:58:56Z: attempt 2 of 3, see 0f8fad5b-d9cb or `2026-01-31T11:58:56Z`.";
        assert_eq!(
            at_noon(Times::Age).sentence(text),
            "waits until 2026-01-31 12:58:56 +01: attempt 2 of 3, see 0f8fad5b-d9cb or `2026-01-31 12:58:56 +01`."
        );
        assert_eq!(at_noon(Times::Utc).sentence(text), text);
        assert_eq!(
            at_noon(Times::Age).time("2026-01-31T11:59:00Z"),
            "1 min 0 s ago"
        );
        assert_eq!(at_noon(Times::Age).time("never"), "never");
    }

    #[test]
    fn spans_are_told_in_the_units_that_people_would_use() {
        let shown = [7, 1_999, 12_345, 61_000, 3_600_000, 90_000_000].map(span);
        assert_eq!(
            shown,
            ["7 ms", "1.9 s", "12 s", "1 min 1 s", "1 h 0 min", "1 d 1 h"]
        );
    }

    #[test]
    fn a_moment_is_a_position_or_a_time_that_has_passed() {
        assert_eq!(moment("17"), Ok(17.into()));
        let whole = "2026-01-31T12:00:00Z";
        assert_eq!(moment(whole), Ok(whole.into()), "as it was written");
        for text in ["yesterday", "1h", "2020-01-01", "2020-01-01 14:00"] {
            let at = moment(text).unwrap();
            assert!(
                Timestamp::parse(at.as_str().unwrap()).is_ok(),
                "{text}: {at}"
            );
        }
        let wrong = moment("soon").unwrap_err();
        assert!(
            wrong.ends_with("or RFC 3339, or a position of the log"),
            "{wrong}"
        );
    }

    #[test]
    fn what_people_write_is_understood() {
        for (text, expected) in [
            ("1h", "2026-01-31T11:00:00Z"),
            ("90s", "2026-01-31T11:58:30Z"),
            ("7d", "2026-01-24T12:00:00Z"),
            ("today", "2026-01-30T23:00:00Z"),
            ("yesterday 14:00", "2026-01-30T13:00:00Z"),
            ("08:30", "2026-01-31T07:30:00Z"),
            ("2026-01-15", "2026-01-14T23:00:00Z"),
            ("2026-01-15 14:00:05", "2026-01-15T13:00:05Z"),
            ("2026-01-15T14:00:05Z", "2026-01-15T14:00:05Z"),
        ] {
            let read = at_noon(Times::Utc).parse(text);
            assert_eq!(read, Ok(Timestamp::parse(expected).unwrap()), "{text}");
        }
        for bad in [
            "",
            "soon",
            "1y",
            "-1h",
            "2026-13-01",
            "2026-01-15 14:00:60",
            "\u{2212}2026-01-15",
            "25:00",
            "99999999999999999999d",
        ] {
            let said = at_noon(Times::Utc).parse(bad).unwrap_err();
            assert!(said.contains("expected a span"), "{said}");
        }
    }

    #[test]
    fn what_happened_since_a_time_to_come_is_not_asked() {
        let when = at_noon(Times::Utc);
        for (text, expected) in [
            ("today", "2026-01-30T23:00:00Z"),
            (NOW, NOW),
            ("2026-01-31T12:05:00Z", "2026-01-31T12:05:00Z"),
        ] {
            let read = when.parse_past(text);
            assert_eq!(read, Ok(Timestamp::parse(expected).unwrap()), "{text}");
        }
        for bad in ["tomorrow", "14:00", "2026-01-31T12:05:01Z", "2027-01-01"] {
            let said = when.parse_past(bad).unwrap_err();
            let begin =
                format!("`{bad}` is still to come; expected a time that has passed: a span");
            assert!(said.starts_with(&begin), "{said}");
        }
        let mut params = serde_json::json!({"since": "tomorrow", "until": "tomorrow"});
        let said = when
            .resolve_in(&mut params, &["since", "until"])
            .unwrap_err();
        assert!(said.to_string().starts_with("--since: `tomorrow` is still"));
        when.resolve_in(&mut params, &["until"]).unwrap();
        assert_eq!(params["until"], "2026-01-31T23:00:00.000000Z");
    }

    #[test]
    fn times_to_come_count_from_now_on() {
        for (text, expected) in [
            ("10m", "2026-01-31T12:10:00Z"),
            ("in 90s", "2026-01-31T12:01:30Z"),
            ("7d", "2026-02-07T12:00:00Z"),
            ("0s", NOW),
            ("tomorrow", "2026-01-31T23:00:00Z"),
            ("tomorrow 14:00", "2026-02-01T13:00:00Z"),
            ("18:00", "2026-01-31T17:00:00Z"),
            ("today 18:00", "2026-01-31T17:00:00Z"),
            ("2026-02-15 14:00", "2026-02-15T13:00:00Z"),
            ("2026-02-15T14:00:05+01:00", "2026-02-15T13:00:05Z"),
            // Clocks differ.
            ("2026-01-31T11:55:00Z", "2026-01-31T11:55:00Z"),
        ] {
            let read = at_noon(Times::Utc).parse_future(text);
            assert_eq!(read, Ok(Timestamp::parse(expected).unwrap()), "{text}");
        }
        // Periods count from times that have passed too.
        for (text, expected) in [
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            ("2026-01-01", "2025-12-31T23:00:00Z"),
        ] {
            let read = at_noon(Times::Utc).parse_beginning(text);
            assert_eq!(read, Ok(Timestamp::parse(expected).unwrap()), "{text}");
        }
        for (bad, why) in [
            ("today", "has passed"),
            ("08:30", "has passed"),
            ("2020-01-01", "has passed"),
            ("2026-01-31T11:54:59Z", "has passed"),
            ("yesterday", "is not a time to come"),
            ("yesterday 14:00", "is not a time to come"),
            ("soon", "is not a time to come"),
            ("-10m", "is not a time to come"),
            ("", "is not a time to come"),
            ("9999999d", "is too far away"),
        ] {
            let said = at_noon(Times::Utc).parse_future(bad).unwrap_err();
            assert!(
                said.contains(why) && said.contains("expected a span from now on"),
                "{said}"
            );
        }
    }
}
