//! When schedules are due: daylight saving time, ends of months, rules and periods.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use taskledger_domain::Timestamp;
use taskledger_schedules::{Calendar, Invalid, Timing, flow_of, jitter_ms};
use taskledger_zones::Zones;
use uuid::Uuid;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn calendar(timing: &Timing, anchor: Timestamp) -> Result<Calendar, Invalid> {
    Calendar::of(timing, anchor, &Zones::bundled())
}

fn cron(cron: &str, time_zone: &str) -> Timing {
    Timing::Cron {
        cron: cron.into(),
        time_zone: time_zone.into(),
    }
}

fn rule(rrule: &str, time_zone: &str) -> Timing {
    Timing::Rrule {
        rrule: rrule.into(),
        time_zone: time_zone.into(),
    }
}

/// The next times after `after`, to the minute, of a timing that counts from there.
fn times(timing: &Timing, after: &str, count: usize) -> Vec<String> {
    from(timing, after, after, count)
}

fn from(timing: &Timing, anchor: &str, after: &str, count: usize) -> Vec<String> {
    let calendar = calendar(timing, at(anchor)).unwrap();
    let times = calendar.upcoming(at(after), None, count);
    times
        .iter()
        .map(|time| time.to_string()[..16].to_owned())
        .collect()
}

#[test]
fn a_daily_time_follows_the_clock_of_its_zone() {
    // Berlin is at +01:00 in winter, at +02:00 from 2026-03-29 on.
    let daily = cron("0 9 * * *", "Europe/Berlin");
    assert_eq!(
        times(&daily, "2026-03-27T12:00:00Z", 3),
        ["2026-03-28T08:00", "2026-03-29T07:00", "2026-03-30T07:00"]
    );
}

#[test]
fn a_cron_time_in_a_gap_of_the_clock_comes_right_after_it_and_a_doubled_one_once() {
    // 02:00 to 03:00 does not exist on 2026-03-29 and exists twice on 2026-10-25.
    let fixed = cron("30 2 * * *", "Europe/Berlin");
    assert_eq!(
        times(&fixed, "2026-03-28T12:00:00Z", 2),
        ["2026-03-29T01:00", "2026-03-30T00:30"]
    );
    assert_eq!(
        times(&fixed, "2026-10-24T12:00:00Z", 2),
        ["2026-10-25T00:30", "2026-10-26T01:30"]
    );
}

#[test]
fn a_cron_period_goes_on_through_gaps_and_doubled_hours_of_the_clock() {
    let hourly = cron("0 * * * *", "Europe/Berlin");
    assert_eq!(
        times(&hourly, "2026-03-28T23:30:00Z", 3),
        ["2026-03-29T00:00", "2026-03-29T01:00", "2026-03-29T02:00"]
    );
    assert_eq!(
        times(&hourly, "2026-10-24T23:30:00Z", 4),
        [
            "2026-10-25T00:00",
            "2026-10-25T01:00",
            "2026-10-25T02:00",
            "2026-10-25T03:00"
        ]
    );
}

#[test]
fn aliases_steps_names_and_the_last_day_of_a_month_are_taken() {
    for (text, expected) in [
        ("@hourly", "2026-01-15T11:00"),
        ("@daily", "2026-01-16T00:00"),
        ("@weekly", "2026-01-18T00:00"),
        ("@monthly", "2026-02-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("*/20 8-17 * * MON-FRI", "2026-01-15T10:40"),
        ("0 0 L * *", "2026-01-31T00:00"),
        ("0 12 29 2 *", "2028-02-29T12:00"),
    ] {
        let next = times(&cron(text, "UTC"), "2026-01-15T10:30:00Z", 1);
        assert_eq!(next, [expected], "{text}");
    }
}

#[test]
fn a_rule_on_the_31st_skips_short_months_and_one_on_the_last_day_does_not() {
    let on_31st = rule("DTSTART:20260131T120000\nRRULE:FREQ=MONTHLY", "UTC");
    assert_eq!(
        times(&on_31st, "2026-01-30T00:00:00Z", 3),
        ["2026-01-31T12:00", "2026-03-31T12:00", "2026-05-31T12:00"]
    );
    let last = rule(
        "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=12;BYMINUTE=0;BYSECOND=0",
        "UTC",
    );
    assert_eq!(
        times(&last, "2026-01-15T00:00:00Z", 3),
        ["2026-01-31T12:00", "2026-02-28T12:00", "2026-03-31T12:00"]
    );
}

#[test]
fn a_rule_keeps_its_period_however_late_it_is_asked() {
    let text =
        "DTSTART;TZID=Europe/Berlin:20200106T090000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH";
    let biweekly = rule(text, "UTC");
    // Weeks 0, 2, .. of 2020-01-06: January 5th of 2026 is in week 313.
    assert_eq!(
        times(&biweekly, "2026-01-05T00:00:00Z", 4),
        [
            "2026-01-12T08:00",
            "2026-01-15T08:00",
            "2026-01-26T08:00",
            "2026-01-29T08:00"
        ]
    );
    let minutes = rule(
        "DTSTART:19990101T000007\nRRULE:FREQ=MINUTELY;INTERVAL=45",
        "UTC",
    );
    let calendar = calendar(&minutes, at("2026-01-01T00:00:00Z")).unwrap();
    let next = calendar.next_after(at("2026-06-01T00:00:00Z")).unwrap();
    let passed = next.0 - at("1999-01-01T00:00:07Z").0;
    assert_eq!(passed % (45 * 60 * 1_000_000), 0);
    assert!(next.ms_since(at("2026-06-01T00:00:00Z")) <= 45 * 60 * 1000);
}

#[test]
fn every_time_of_a_rule_is_found_from_any_time_before_it() {
    let rules = [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=MONTHLY;INTERVAL=3;BYDAY=2TU",
        "FREQ=WEEKLY;INTERVAL=3;BYDAY=SU,MO;WKST=SU",
        "FREQ=DAILY;INTERVAL=5",
        "FREQ=HOURLY;INTERVAL=7",
        "FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO",
    ];
    for text in rules {
        let text = format!("DTSTART:20160229T103000\nRRULE:{text}");
        let calendar = calendar(&rule(&text, "America/New_York"), at("2016-01-01T00:00:00Z"));
        let calendar = calendar.unwrap();
        let all = calendar.upcoming(at("2016-01-01T00:00:00Z"), None, 40);
        for pair in all.windows(2) {
            let middle = Timestamp(pair[0].0 + (pair[1].0 - pair[0].0) / 2);
            for after in [pair[0], middle, Timestamp(pair[1].0 - 1)] {
                assert_eq!(
                    calendar.next_after(after),
                    Some(pair[1]),
                    "{text} after {after}"
                );
            }
        }
    }
}

#[test]
fn a_rule_reads_a_gap_by_the_offset_before_it_and_a_doubled_time_once() {
    let daily = rule("DTSTART:20260301T023000\nRRULE:FREQ=DAILY", "Europe/Berlin");
    assert_eq!(
        times(&daily, "2026-03-28T12:00:00Z", 2),
        ["2026-03-29T01:30", "2026-03-30T00:30"]
    );
    assert_eq!(
        times(&daily, "2026-10-24T12:00:00Z", 2),
        ["2026-10-25T00:30", "2026-10-26T01:30"]
    );
}

#[test]
fn a_rule_ends_with_its_count_or_until() {
    let three = rule("DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;COUNT=3", "UTC");
    assert_eq!(
        from(&three, "2026-01-01T00:00:00Z", "2026-01-02T10:00:00Z", 5),
        ["2026-01-03T09:00"]
    );
    let until = rule(
        "DTSTART:20260101T090000\nRRULE:FREQ=DAILY;UNTIL=20260102T080000Z",
        "Europe/Berlin",
    );
    assert_eq!(
        times(&until, "2026-01-01T00:00:00Z", 5),
        ["2026-01-01T08:00", "2026-01-02T08:00"]
    );
    let day = rule(
        "DTSTART:20260101T090000\nRRULE:FREQ=DAILY;UNTIL=20260102",
        "UTC",
    );
    assert_eq!(times(&day, "2026-01-01T00:00:00Z", 5).len(), 2);
}

#[test]
fn a_period_counts_from_its_anchor() {
    let every = Timing::Every { seconds: 90 };
    let calendar = calendar(&every, at("2026-01-01T00:00:00Z")).unwrap();
    for (after, next) in [
        ("2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"),
        ("2026-01-01T00:01:29Z", "2026-01-01T00:01:30Z"),
        ("2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"),
    ] {
        assert_eq!(calendar.next_after(at(after)), Some(at(next)), "{after}");
    }
}

#[test]
fn what_cannot_be_understood_is_named_with_what_would_be() {
    for (timing, field, reason) in [
        (cron("0 2 * *", "UTC"), "cron", "4 fields"),
        (cron("0 0 2 * * *", "UTC"), "cron", "6 fields"),
        (cron("61 * * * *", "UTC"), "cron", "the minute `61`"),
        (cron("0 9-25 * * *", "UTC"), "cron", "the hour `9-25`"),
        (cron("0 0 32 * *", "UTC"), "cron", "the day of month `32`"),
        (cron("0 0 * JANU *", "UTC"), "cron", "the month `JANU`"),
        (
            cron("0 0 * * MON-FRU", "UTC"),
            "cron",
            "the day of week `MON-FRU`",
        ),
        (cron("@often", "UTC"), "cron", ""),
        (
            cron("0 2 * * *", "Europe/Berln"),
            "time_zone",
            "unknown time zone",
        ),
        (rule("INTERVAL=2", "UTC"), "rrule", "INTERVAL"),
        (rule("FREQ=OFTEN", "UTC"), "rrule", "OFTEN"),
        (rule("FREQ=SECONDLY", "UTC"), "rrule", "finer than a minute"),
        (rule("FREQ=DAILY;COUNT=10001", "UTC"), "rrule", "COUNT"),
        (rule("FREQ=DAILY;UNTIL=tomorrow", "UTC"), "rrule", "UNTIL"),
        (
            rule("DTSTART;VALUE=DATE:20260101\nFREQ=DAILY", "UTC"),
            "rrule",
            "TZID",
        ),
        (
            rule("FREQ=DAILY\nEXDATE:20260101T000000Z", "UTC"),
            "rrule",
            "EXDATE",
        ),
        (
            Timing::Every { seconds: 0 },
            "every_seconds",
            "out of range",
        ),
    ] {
        let invalid = calendar(&timing, at("2026-01-01T00:00:00Z")).unwrap_err();
        assert_eq!(invalid.field, field, "{timing:?}: {invalid:?}");
        assert!(invalid.reason.contains(reason), "{timing:?}: {invalid:?}");
        assert!(!invalid.expected.is_empty(), "{timing:?}");
    }
}

#[test]
fn a_time_that_never_comes_is_none_soon() {
    let now = at("2026-01-01T00:00:00Z");
    for timing in [
        cron("0 0 30 2 *", "UTC"),
        rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "UTC"),
        rule("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30", "UTC"),
    ] {
        let calendar = calendar(&timing, now).unwrap();
        assert_eq!(calendar.next_after(now), None, "{timing:?}");
    }
}

#[test]
fn what_follows_from_a_schedule_and_a_time_is_always_the_same() {
    let id = Uuid::from_u128(0x0123_4567_89ab_cdef);
    assert_eq!(flow_of(id, "1"), flow_of(id, "1"));
    assert_ne!(flow_of(id, "1"), flow_of(id, "2"));
    assert_eq!(flow_of(id, "1").get_version_num(), 4);
    let offsets: Vec<u64> = (0..200)
        .map(|n| jitter_ms(id, Timestamp(n), 1000))
        .collect();
    assert!(offsets.iter().all(|ms| *ms <= 1000));
    assert!(offsets.iter().any(|ms| *ms < 200) && offsets.iter().any(|ms| *ms > 800));
    assert_eq!(jitter_ms(id, Timestamp(7), 0), 0);
}

#[test]
fn one_pass_finds_the_times_that_are_found_one_by_one() {
    let timings = [
        rule("FREQ=MINUTELY;INTERVAL=30", "Europe/Berlin"),
        rule(
            "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30;BYSECOND=0",
            "Europe/Berlin",
        ),
        rule("FREQ=HOURLY;COUNT=90", "Europe/Berlin"),
        rule("FREQ=HOURLY;UNTIL=20260330T000000Z", "Europe/Berlin"),
        cron("*/30 * * * *", "Europe/Berlin"),
        Timing::Every { seconds: 1_700 },
    ];
    // Through the gap of the clock.
    let anchor = at("2026-03-27T12:00:00Z");
    for timing in timings {
        let calendar = calendar(&timing, anchor).unwrap();
        let one_by_one = std::iter::successors(calendar.next_after(anchor), |last| {
            calendar.next_after(*last)
        });
        let one_by_one: Vec<_> = one_by_one.take(120).collect();
        let pass: Vec<_> = calendar.after(anchor).take(120).collect();
        assert!(pass.len() > 10, "{timing:?}");
        assert_eq!(pass, one_by_one, "{timing:?}");
    }
}
