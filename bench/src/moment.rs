//! Moments that two processes of one machine agree on.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970, by the clock that the servers on this machine have too.
#[allow(
    clippy::disallowed_methods,
    reason = "delays between two processes of one machine"
)]
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}

/// When an event was made: `"timestamp":"2026-11-21T16:42:13.756073Z"` or `"timestamp_us":N`.
pub(crate) fn time_us(data: &[u8]) -> Option<i64> {
    let data = std::str::from_utf8(data).ok()?;
    if let Some((_, rest)) = data.split_once("\"timestamp_us\":") {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        return rest[..end].parse().ok();
    }
    let (_, rest) = data.split_once("\"timestamp\":\"")?;
    let (date, time) = rest.split_once('"')?.0.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut whole = whole.split(':').map(|part| part.parse::<i64>().ok());
    let seconds = whole.next()?? * 3600 + whole.next()?? * 60 + whole.next()??;
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    Some((days(year, month, day) * 86_400 + seconds) * 1_000_000 + micros)
}

/// Days from 1970-01-01 in the Gregorian calendar (Hinnant's `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::time_us;

    #[test]
    fn the_time_of_an_event_is_read_in_both_forms() {
        let data = br#"{"a":1,"timestamp":"2026-11-21T16:42:13.756073Z","b":2}"#;
        assert_eq!(time_us(data), Some(1_795_279_333_756_073));
        let data = br#"{"timestamp":"1970-01-02T00:00:01.5Z"}"#;
        assert_eq!(time_us(data), Some(86_401_500_000));
        assert_eq!(time_us(br#"{"timestamp_us":42,"pad":"x"}"#), Some(42));
        assert_eq!(time_us(b"{}"), None);
    }
}
