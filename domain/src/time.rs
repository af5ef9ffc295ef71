//! Points in time. The domain has no clock; every time arrives with a command or an event.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// Microseconds since 1970-01-01T00:00:00Z. Written as RFC 3339 with `Z` and six decimals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Later than every time that can be written.
    pub const FAR_FUTURE: Self = Self(i64::MAX);

    /// Reads RFC 3339, any offset.
    ///
    /// # Errors
    /// The parser's reason.
    pub fn parse(text: &str) -> Result<Self, chrono::ParseError> {
        DateTime::parse_from_rfc3339(text).map(|t| Self(t.timestamp_micros()))
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
            Self::parse(&text).map_err(de::Error::custom)
        } else {
            i64::deserialize(d).map(Self)
        }
    }
}
