//! Reads `Retry-After` (RFC 9110 10.2.3): the pause that an HTTP server asks for, in seconds or up to a date.

use crate::{Machine, ThisMachine};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use taskledger_domain::Timestamp;

/// The pause that a value of `Retry-After` asks for at `now`. `None`: it is neither seconds nor a date to come.
#[must_use]
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than a number holds are as long as a pause can be.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let now = UNIX_EPOCH + Duration::from_micros(u64::try_from(now.0).ok()?);
    let at: SystemTime = httpdate::parse_http_date(value).ok()?;
    at.duration_since(now).ok().filter(|d| !d.is_zero())
}

/// The same, now by the clock of this machine.
#[must_use]
pub fn retry_after_now(value: &str) -> Option<Duration> {
    retry_after(value, Timestamp(ThisMachine::default().read().wall_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_767_225_600_000_000); // 2026-01-01T00:00:00Z

    #[test]
    fn retry_after_is_seconds_or_a_date_to_come() {
        let seconds = |s| Some(Duration::from_secs(s));
        for (value, expected) in [
            ("7", seconds(7)),
            (" 120 ", seconds(120)),
            ("1000000000", seconds(1_000_000_000)),
            ("99999999999999999999999", seconds(u64::MAX)),
            ("Thu, 01 Jan 2026 00:01:00 GMT", seconds(60)),
            ("Thursday, 01-Jan-26 00:01:00 GMT", seconds(60)),
            ("Wed, 31 Dec 2025 23:59:00 GMT", None),
            ("Thu, 01 Jan 2026 00:00:00 GMT", None),
            ("-5", None),
            ("+5", None),
            ("1e9", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after(value, NOW), expected, "{value}");
        }
    }
}
