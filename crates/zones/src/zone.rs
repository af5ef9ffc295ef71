//! The clock of a zone, in whole seconds. A local time is the number of seconds from 1970-01-01T00:00:00 to what the
//! clock shows, as if that clock had never been changed.

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// A time by the clock of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    /// Seconds since 1970-01-01T00:00:00Z. The first time that the clock shows it; for one in a gap, by the offset
    /// before the gap.
    pub at: i64,
    /// The second time that the clock shows it, if it does so twice.
    pub again: Option<i64>,
    /// Whether the clock leaves it out.
    pub is_in_gap: bool,
}

/// A span of time in which the offset of a zone does not change, from `start` to `end`, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Absent: it has no beginning.
    pub start: Option<i64>,
    /// Not part of it; absent: it has no end.
    pub end: Option<i64>,
    /// Seconds by which the clock is ahead of UTC.
    pub offset: i64,
    /// The same before `start`.
    pub offset_before: i64,
}

/// The clock of one zone, with all its changes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    /// Seconds since 1970 from which on times are not computed, shortly before the end of the year 9999.
    pub const END: i64 = 253_402_207_201;

    pub(crate) const fn of(zone: TimeZone) -> Self {
        Self(zone)
    }

    /// The zone of the library.
    #[must_use]
    pub const fn time_zone(&self) -> &TimeZone {
        &self.0
    }

    /// Seconds by which the clock is ahead of UTC; `None`: the years 1 to 9999 do not contain the time.
    #[must_use]
    pub fn offset(&self, at: i64) -> Option<i64> {
        let at = Timestamp::from_second(at).ok()?;
        Some(self.0.to_offset(at).seconds().into())
    }

    /// When the clock shows a local time; `None`: the years 1 to 9999 do not contain it.
    #[must_use]
    pub fn instant(&self, local: i64) -> Option<Instant> {
        let shown = TimeZone::UTC.to_datetime(Timestamp::from_second(local).ok()?);
        let at = |offset: Offset| local - i64::from(offset.seconds());
        let instant = |offset| Instant {
            at: at(offset),
            again: None,
            is_in_gap: false,
        };
        Some(match self.0.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => instant(offset),
            AmbiguousOffset::Fold { before, after } => Instant {
                again: Some(at(after)),
                ..instant(before)
            },
            AmbiguousOffset::Gap { before, .. } => Instant {
                is_in_gap: true,
                ..instant(before)
            },
        })
    }

    /// The span around a time in which the clock is not changed; `None`: the years 1 to 9999 do not contain the time.
    #[must_use]
    pub fn segment(&self, at: i64) -> Option<Segment> {
        let offset = self.offset(at)?;
        let after = Timestamp::from_second(at.checked_add(1)?).ok()?;
        let start = self.0.preceding(after).next();
        let start = start.map(|change| change.timestamp().as_second());
        let end = self.0.following(Timestamp::from_second(at).ok()?).next();
        Some(Segment {
            start,
            end: end.map(|change| change.timestamp().as_second()),
            offset,
            offset_before: start
                .and_then(|start| self.offset(start - 1))
                .unwrap_or(offset),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Zones;

    /// 2026-03-29T01:00:00Z, when Berlin goes from +01:00 to +02:00.
    const GAP: i64 = 1_774_746_000;
    /// 2026-10-25T01:00:00Z, when it goes back.
    const FOLD: i64 = 1_792_890_000;

    #[test]
    fn a_segment_lasts_from_one_change_of_the_clock_to_the_next() {
        let berlin = Zones::bundled().zone("Europe/Berlin").expect("a zone");
        for at in [GAP, GAP + 1, FOLD - 1] {
            let summer = berlin.segment(at).expect("a time");
            assert_eq!(
                (
                    summer.start,
                    summer.end,
                    summer.offset,
                    summer.offset_before
                ),
                (Some(GAP), Some(FOLD), 7_200, 3_600)
            );
        }
        assert_eq!(berlin.segment(GAP - 1).expect("a time").end, Some(GAP));
        let utc = Zones::bundled().zone("UTC").expect("a zone");
        let utc = utc.segment(GAP).expect("a time");
        assert_eq!((utc.start, utc.end, utc.offset), (None, None, 0));
    }

    #[test]
    fn a_time_in_a_gap_is_read_by_the_offset_before_it_and_a_doubled_one_once() {
        let berlin = Zones::bundled().zone("Europe/Berlin").expect("a zone");
        let in_gap = berlin.instant(GAP + 3_600 + 1_800).expect("a time");
        assert_eq!((in_gap.at, in_gap.is_in_gap), (GAP + 1_800, true));
        let doubled = berlin.instant(FOLD + 3_600 + 1_800).expect("a time");
        assert_eq!(
            (doubled.at, doubled.again),
            (FOLD - 1_800, Some(FOLD + 1_800))
        );
        assert_eq!(berlin.instant(i64::MAX), None);
        assert_eq!(jiff::Timestamp::MAX.as_second() + 1, super::Zone::END);
    }
}
