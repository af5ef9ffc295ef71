//! Points in time. The domain has no clock; every time arrives with a command or an event.

use chrono::{DateTime, Datelike, SecondsFormat, Timelike, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// Microseconds since 1970-01-01T00:00:00Z. Written as RFC 3339 with `Z` and six decimals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// 0000-01-01T00:00:00Z, the first time that RFC 3339 can write.
    const FIRST: Self = Self(-62_167_219_200_000_000);
    /// The last microsecond of 9999, the last time that RFC 3339 can write.
    const LAST: Self = Self(253_402_300_799_999_999);
    /// Later than every time that can be written.
    pub const FAR_FUTURE: Self = Self(i64::MAX);

    /// Reads RFC 3339, any offset. A leap second, 23:59:60 UTC on June 30th or December 31st, is the beginning of the
    /// next minute.
    ///
    /// # Errors
    /// [`InvalidTime`].
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        // The parser takes other signs than those of ASCII for the one of an offset.
        if !text.is_ascii() {
            return Err(InvalidTime::Form);
        }
        let time =
            DateTime::parse_from_rfc3339(text).map_err(|_| match is_of_another_year(text) {
                true => InvalidTime::Range,
                false => InvalidTime::Form,
            })?;
        if !is_second(&time.to_utc()) {
            return Err(InvalidTime::LeapSecond);
        }
        let parsed = Self(time.timestamp_micros());
        // An offset or a leap second may lead out of the years that can be written.
        match (Self::FIRST..=Self::LAST).contains(&parsed) {
            true => Ok(parsed),
            false => Err(InvalidTime::Range),
        }
    }

    /// This time plus `ms` milliseconds, ending at [`Self::FAR_FUTURE`].
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        let micros = if ms > (i64::MAX / 1000) as u64 {
            i64::MAX
        } else {
            ms as i64 * 1000
        };
        Self(self.0.saturating_add(micros))
    }

    /// Milliseconds from `earlier` to this time; 0 when it is not earlier.
    #[must_use]
    pub const fn ms_since(self, earlier: Self) -> u64 {
        let d = self.0.saturating_sub(earlier.0) / 1000;
        if d < 0 { 0 } else { d as u64 }
    }
}

/// Why a text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTime {
    /// It has another form.
    #[error("not an RFC 3339 time such as 2026-01-31T12:00:00Z")]
    Form,
    /// It is outside of the years 0000 to 9999 in UTC.
    #[error("outside of the years 0000 to 9999 in UTC")]
    Range,
    /// It is a second 60 where no leap second can be.
    #[error("second 60 exists only at 23:59:60 UTC on June 30th and December 31st")]
    LeapSecond,
}

impl InvalidTime {
    /// What is wrong with the value of a member.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Form => "Invalid timestamp format",
            Self::Range => "Year out of range",
            Self::LeapSecond => "Second out of range",
        }
    }

    /// What is accepted.
    #[must_use]
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Form => "an RFC 3339 date and time with offset",
            Self::Range => {
                "an RFC 3339 date and time with offset, in the years 0000 to 9999 in UTC"
            }
            Self::LeapSecond => {
                "an RFC 3339 date and time with offset, with second 60 only at 23:59:60 UTC on June 30th and \
                 December 31st"
            }
        }
    }
}

/// Whether `text` would be a time with a year of RFC 3339: its own is negative or has more than four digits.
fn is_of_another_year(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let (year, rest) = unsigned.split_at(digits);
    let is_negative = digits == 4 && text.starts_with('-');
    let is_long = digits > 4 && !year.starts_with('0');
    (is_negative || is_long) && DateTime::parse_from_rfc3339(&format!("2000{rest}")).is_ok()
}

/// Whether a second 60, if the time is one, can be a leap second.
pub(crate) fn is_second<T: Timelike + Datelike>(utc: &T) -> bool {
    let is_leap = utc.nanosecond() >= 1_000_000_000;
    let is_last = matches!((utc.month(), utc.day()), (6, 30) | (12, 31));
    !is_leap || is_last && (utc.hour(), utc.minute()) == (23, 59)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::<Utc>::from_timestamp_micros(self.0) {
            Some(t) => f.write_str(&t.to_rfc3339_opts(SecondsFormat::Micros, true)),
            None => write!(f, "{}us", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// RFC 3339 for people (JSON), the bare number for binary formats (snapshots).
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() {
            s.collect_str(self)
        } else {
            s.serialize_i64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        if d.is_human_readable() {
            let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
            // What was computed and stored may be later than a caller can write.
            let computed = || {
                let time = text.parse::<DateTime<Utc>>().ok();
                let number = || text.strip_suffix("us")?.parse().ok();
                time.map(|time| time.timestamp_micros()).or_else(number)
            };
            let parsed = Self::parse(&text);
            parsed.or_else(|error| {
                let later = computed().map(Self);
                later.ok_or_else(|| de::Error::custom(error))
            })
        } else {
            i64::deserialize(d).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidTime, Timestamp};

    #[test]
    fn a_leap_second_is_read_where_one_can_be() {
        for (text, same) in [
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
            ("2015-06-30T23:59:60.5Z", "2015-07-01T00:00:00.5Z"),
            ("2016-12-31T18:59:60-05:00", "2017-01-01T00:00:00Z"),
            ("2017-01-01T05:29:60+05:30", "2017-01-01T00:00:00Z"),
        ] {
            assert_eq!(Timestamp::parse(text), Timestamp::parse(same), "{text}");
        }
        for text in [
            "2026-01-31T12:00:60Z",
            "2026-01-31T23:59:60Z",
            "2026-12-31T12:59:60Z",
            "2026-12-31T23:58:60Z",
            "2016-12-31T23:59:60-05:00",
            "2016-03-31T23:59:60Z",
        ] {
            assert_eq!(
                Timestamp::parse(text),
                Err(InvalidTime::LeapSecond),
                "{text}"
            );
        }
    }

    #[test]
    fn times_beyond_the_years_that_can_be_written_are_refused_and_can_be_read_from_the_log() {
        for text in [
            "9999-12-31T23:59:60Z",
            "9999-12-31T23:59:59-00:01",
            "0000-01-01T00:00:00+00:01",
            "10000-01-01T00:00:00Z",
            "+123456-02-29T12:00:00.5+01:00",
            "-0001-12-31T23:59:59Z",
        ] {
            assert_eq!(Timestamp::parse(text), Err(InvalidTime::Range), "{text}");
        }
        for text in ["9999-12-31T23:59:59.999999Z", "0000-01-01T00:00:00Z"] {
            assert!(Timestamp::parse(text).is_ok(), "{text}");
        }
        let last = Timestamp::parse("9999-12-31T23:59:59Z").unwrap();
        for computed in [last.plus_ms(5_000), Timestamp::FAR_FUTURE] {
            let written = serde_json::to_string(&computed).unwrap();
            let read: Timestamp = serde_json::from_str(&written).unwrap();
            assert_eq!(read, computed, "{written}");
        }
    }

    #[test]
    fn what_is_not_rfc_3339_is_refused() {
        for text in [
            "",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "2026-01-31T12:00:61Z",
            "2026-01-31T24:00:00Z",
            "2026-02-29T12:00:00Z",
            "2026-01-31T12:00:00\u{2212}05:00",
            "2026-01-31T12:00:00\u{ff0b}05:00",
            "\u{2212}2026-01-31T12:00:00Z",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:00+01:60",
            "2026-01-31T12:00:00+0100",
            "+2026-01-31T12:00:00Z",
            "02026-01-31T12:00:00Z",
            "10000-13-01T00:00:00Z",
            "10000",
        ] {
            assert_eq!(Timestamp::parse(text), Err(InvalidTime::Form), "{text}");
        }
    }
}
