//! Times by the clock of the user: in which zone, and as people write them.

use super::When;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as Instant};
use taskledger_domain::Timestamp;
use taskledger_zones::{UnknownZone, Zones};

/// The zone of the user: the variable `TZ`, else that of the system.
pub(crate) fn local_zone() -> Result<TimeZone, UnknownZone> {
    let variable = std::env::var_os("TZ");
    let zone = taskledger_zones::local(&Zones::newest(), variable.as_deref());
    zone.map(|zone| zone.time_zone().clone())
}

impl When {
    /// A day and time by the clock of the user; `None`: the text is another thing.
    ///
    /// # Errors
    /// The zone of the user is not known.
    pub(super) fn civil(&self, text: &str) -> Result<Option<Timestamp>, String> {
        let Some(civil) = civil(text) else {
            return Ok(None);
        };
        let zone = self.zone.as_ref().map_err(|unknown| {
            format!("`{text}` is a local time, but {unknown}; or write the time as RFC 3339")
        })?;
        Ok(self.at(civil, zone))
    }

    fn at(&self, (day, time): (Day, Time), zone: &TimeZone) -> Option<Timestamp> {
        let now = Instant::from_microsecond(self.now.0).ok()?;
        let today = now.to_zoned_datetime(zone.clone()).date();
        let day = match day {
            Day::Today => today,
            Day::Yesterday => today.checked_sub(Span::new().days(1)).ok()?,
            Day::Tomorrow => today.checked_add(Span::new().days(1)).ok()?,
            Day::Date(date) => date,
        };
        let zoned = DateTime::from_parts(day, time)
            .to_zoned_datetime(zone.clone())
            .ok()?;
        Some(Timestamp(zoned.timestamp().as_microsecond()))
    }
}

/// A day as people write it.
enum Day {
    Today,
    Yesterday,
    Tomorrow,
    Date(Date),
}

/// A day, or a time, or both; midnight without a time.
fn civil(text: &str) -> Option<(Day, Time)> {
    let (day, time) = match text.split_once([' ', 'T']) {
        Some((day, time)) => (day, Some(time.trim())),
        None if text.contains(':') => ("today", Some(text)),
        None => (text, None),
    };
    let day = match day {
        "today" => Day::Today,
        "yesterday" => Day::Yesterday,
        "tomorrow" => Day::Tomorrow,
        // No sign before the year.
        date if date.starts_with(|c: char| c.is_ascii_digit()) => Day::Date(date.parse().ok()?),
        _ => return None,
    };
    let time = match time {
        // The parser takes second 60 for 59.
        Some(time)
            if time
                .split(':')
                .nth(2)
                .is_some_and(|it| it.starts_with("60")) =>
        {
            return None;
        }
        Some(time) => time.parse().ok()?,
        None => Time::midnight(),
    };
    Some((day, time))
}

#[cfg(test)]
mod tests {
    use super::super::Times;
    use super::super::tests::{NOW, at_noon};
    use super::*;

    #[test]
    fn a_local_time_in_a_zone_that_is_not_known_is_refused() {
        let when = When {
            zone: Err(UnknownZone::Variable("Europe/Berln".to_owned())),
            ..at_noon(Times::Local)
        };
        for text in ["2026-02-15 14:00", "2026-02-15", "18:00", "tomorrow"] {
            for refused in [when.parse(text), when.parse_future(text)] {
                let refused = refused.unwrap_err();
                assert!(
                    refused.contains("`TZ=Europe/Berln` is not known"),
                    "{refused}"
                );
            }
        }
        // These name a moment without the zone.
        for text in ["10m", "2026-02-15T14:00:00Z"] {
            assert!(when.parse_future(text).is_ok(), "{text}");
        }
        let wrong = when.parse("soon").unwrap_err();
        assert!(wrong.contains("is not a time"), "{wrong}");
        let at = Timestamp::parse(NOW).unwrap();
        assert_eq!(when.show(at), "2026-01-31T12:00:00.000000Z");
    }
}
