//! Recurrence rules against python-dateutil, against RFC 5545 where dateutil differs, and on clocks that change.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use proptest::prelude::*;
use taskledger_domain::Timestamp;
use taskledger_schedules::{Calendar, Invalid, Timing};
use taskledger_zones::{Zone, Zones};

/// Rules and their first times, which `oracle/rules.py` writes: start, rule, times, divided by tabs.
const ORACLE: &str = include_str!("oracle/rules.tsv");
/// How many times of each rule it has at most, and in how many microseconds after the start.
const TIMES: usize = 8;
const WITHIN: i64 = 100 * 365 * 86_400 * 1_000_000;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// `20260131T090000` as RFC 3339.
fn basic(text: &str) -> Timestamp {
    let part = |range: std::ops::Range<usize>| &text[range];
    let (date, time) = (
        [part(0..4), part(4..6), part(6..8)].join("-"),
        [part(9..11), part(11..13), part(13..15)].join(":"),
    );
    at(&format!("{date}T{time}Z"))
}

fn calendar(rule: &str, zone: &str) -> Result<Calendar, Invalid> {
    let timing = Timing::Rrule {
        rrule: rule.into(),
        time_zone: zone.into(),
    };
    Calendar::of(&timing, at("2026-01-01T00:00:00Z"), &Zones::bundled())
}

/// The first times of a rule, to the minute.
fn first(rule: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let calendar = calendar(rule, zone).unwrap_or_else(|invalid| panic!("{rule}: {invalid}"));
    let times = calendar.upcoming(at(after), None, count);
    times
        .iter()
        .map(|at| at.to_string()[..16].to_owned())
        .collect()
}

#[test]
fn rules_have_the_times_that_dateutil_computes() {
    let mut rules = 0;
    for line in ORACLE.lines() {
        let [start, rule, times] = *line.split('\t').collect::<Vec<_>>() else {
            panic!("{line}");
        };
        let expected: Vec<Timestamp> = times.split_whitespace().map(basic).collect();
        let calendar = calendar(&format!("DTSTART:{start}Z\nRRULE:{rule}"), "UTC");
        let calendar = calendar.unwrap_or_else(|invalid| panic!("{line}: {invalid}"));
        let begin = Timestamp(basic(start).0 - 1);
        let found = calendar.upcoming(begin, Some(Timestamp(begin.0 + WITHIN)), TIMES);
        assert_eq!(found, expected, "{start} {rule}");
        // From the middle, each is found as well.
        for pair in expected.windows(2) {
            assert_eq!(
                calendar.next_after(pair[0]),
                Some(pair[1]),
                "{start} {rule}"
            );
            let before = Timestamp(pair[1].0 - 1);
            assert_eq!(calendar.next_after(before), Some(pair[1]), "{start} {rule}");
        }
        rules += 1;
    }
    assert!(rules > 400, "{rules}");
}

#[test]
fn plain_and_numbered_weekdays_are_joined() {
    let after = "2026-02-28T00:00:00Z";
    for (rule, expected) in [
        // Mondays 2, 9, 16, 23, 30, and Wednesday 25.
        (
            "FREQ=MONTHLY;BYDAY=MO,-1WE",
            ["03-02", "03-09", "03-16", "03-23", "03-25", "03-30"],
        ),
        (
            "FREQ=MONTHLY;BYDAY=1MO,-1MO",
            ["03-02", "03-30", "04-06", "04-27", "05-04", "05-25"],
        ),
        (
            "FREQ=MONTHLY;BYDAY=-5TU",
            ["03-03", "06-02", "09-01", "12-01", "03-02", "06-01"],
        ),
        (
            "FREQ=YEARLY;BYMONTH=3;BYDAY=1SU,SA",
            ["03-01", "03-07", "03-14", "03-21", "03-28", "03-06"],
        ),
        (
            "FREQ=YEARLY;BYDAY=10SU,-1SU",
            ["03-08", "12-27", "03-07", "12-26", "03-05", "12-31"],
        ),
        // RFC 5545: the weekday of the start, 2020-01-01 was a Wednesday.
        (
            "FREQ=YEARLY;BYWEEKNO=20",
            ["05-13", "05-19", "05-17", "05-16", "05-15", "05-14"],
        ),
        // A set of a week is the whole week, though it began before the start.
        (
            "FREQ=WEEKLY;WKST=MO;BYDAY=MO,FR;BYSETPOS=-1",
            ["03-06", "03-13", "03-20", "03-27", "04-03", "04-10"],
        ),
    ] {
        let rule = format!("DTSTART:20200101T090000Z\nRRULE:{rule}");
        let found = first(&rule, "UTC", after, expected.len());
        let days: Vec<&str> = found.iter().map(|at| &at[5..10]).collect();
        assert_eq!(days, expected, "{rule}");
        assert!(found.iter().all(|at| at.ends_with("T09:00")), "{found:?}");
    }
}

#[test]
fn the_examples_of_rfc_5545_have_its_times() {
    // Section 3.8.5.3, in the zone and from the start that it has for all of them.
    for (rule, expected) in [
        (
            "FREQ=DAILY;COUNT=10",
            "09-02 09-03 09-04 09-05 09-06 09-07 09-08 09-09 09-10 09-11",
        ),
        (
            "FREQ=DAILY;INTERVAL=10;COUNT=5",
            "09-02 09-12 09-22 10-02 10-12",
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
            "09-02 09-04 09-16 09-18 09-30 10-02 10-14 10-16",
        ),
        (
            "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
            "09-07 09-28 11-02 11-30 01-04 01-25 03-01 03-29 05-03 05-31",
        ),
        (
            "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
            "09-22 10-20 11-17 12-22 01-19 02-16",
        ),
        (
            "FREQ=MONTHLY;BYMONTHDAY=-3",
            "09-28 10-29 11-28 12-29 01-29 02-26",
        ),
        (
            "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
            "09-30 10-01 10-31 11-01 11-30 12-01 12-31 01-01 01-31 02-01",
        ),
        (
            "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
            "01-01 04-10 07-19 01-01 04-09 07-18 01-01 04-10 07-19 01-01",
        ),
        ("FREQ=YEARLY;BYDAY=20MO", "05-18 05-17 05-15"),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "05-11 05-17 05-15"),
        (
            "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
            "02-13 03-13 11-13 08-13 10-13",
        ),
        (
            "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
            "11-05 11-07 11-02",
        ),
        (
            "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
            "09-04 10-07 11-06",
        ),
        (
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
            "09-29 10-30 11-27 12-30 01-29 02-26 03-30",
        ),
        (
            "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
            "09-15 09-30 10-15 10-30 11-15",
        ),
    ] {
        let start = match rule {
            "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200" => "19970101",
            "FREQ=YEARLY;BYDAY=20MO" => "19970519",
            "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO" => "19970512",
            "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8" => "19961105",
            "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3" => "19970904",
            "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU" => "19970907",
            _ => "19970902",
        };
        let expected: Vec<&str> = expected.split(' ').collect();
        let text = format!("DTSTART;TZID=America/New_York:{start}T090000\nRRULE:{rule}");
        let skip = match rule {
            // The first ones are those of the start's own year.
            "FREQ=YEARLY;BYDAY=20MO" | "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO" => 1,
            _ => 0,
        };
        let found = first(&text, "UTC", "1996-01-01T00:00:00Z", expected.len() + skip);
        let days: Vec<&str> = found.iter().skip(skip).map(|at| &at[5..10]).collect();
        assert_eq!(days, expected, "{rule}");
    }
}

#[test]
fn what_rfc_5545_forbids_is_refused_with_the_part() {
    for (rule, part) in [
        (
            "FREQ=WEEKLY;BYDAY=1MO",
            "`BYDAY=1MO` does not go with `FREQ=WEEKLY`",
        ),
        (
            "FREQ=WEEKLY;BYDAY=MO,2TU",
            "`BYDAY=2TU` does not go with `FREQ=WEEKLY`",
        ),
        (
            "FREQ=DAILY;BYDAY=-1MO",
            "`BYDAY=-1MO` does not go with `FREQ=DAILY`",
        ),
        ("FREQ=HOURLY;BYDAY=1MO", "`BYDAY=1MO` does not go with"),
        ("FREQ=MINUTELY;BYDAY=1MO", "`BYDAY=1MO` does not go with"),
        (
            "FREQ=YEARLY;BYWEEKNO=2;BYDAY=1MO",
            "`BYDAY=1MO` does not go with `BYWEEKNO`",
        ),
        (
            "FREQ=WEEKLY;BYMONTHDAY=1",
            "`BYMONTHDAY` does not go with `FREQ=WEEKLY`",
        ),
        (
            "FREQ=DAILY;BYYEARDAY=1",
            "`BYYEARDAY` does not go with `FREQ=DAILY`",
        ),
        (
            "FREQ=WEEKLY;BYYEARDAY=1",
            "`BYYEARDAY` does not go with `FREQ=WEEKLY`",
        ),
        (
            "FREQ=MONTHLY;BYYEARDAY=1",
            "`BYYEARDAY` does not go with `FREQ=MONTHLY`",
        ),
        (
            "FREQ=MONTHLY;BYWEEKNO=1",
            "`BYWEEKNO` does not go with `FREQ=MONTHLY`",
        ),
        (
            "FREQ=HOURLY;BYWEEKNO=1",
            "`BYWEEKNO` does not go with `FREQ=HOURLY`",
        ),
        ("FREQ=DAILY;BYSETPOS=1", "`BYSETPOS` alone"),
        (
            "FREQ=DAILY;COUNT=1;UNTIL=20270101T000000Z",
            "both `COUNT` and `UNTIL`",
        ),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "`BYMONTHDAY=0`"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "`BYMONTHDAY=32`"),
        ("FREQ=MONTHLY;BYMONTHDAY=-32", "`BYMONTHDAY=-32`"),
        ("FREQ=MONTHLY;BYDAY=0MO", "`0MO`"),
        ("FREQ=MONTHLY;BYDAY=6MO", "`BYDAY=6MO`"),
        ("FREQ=MONTHLY;BYDAY=-6MO", "`BYDAY=-6MO`"),
        ("FREQ=YEARLY;BYMONTH=1;BYDAY=6MO", "`BYDAY=6MO`"),
        ("FREQ=YEARLY;BYDAY=54MO", "`54MO`"),
        ("FREQ=YEARLY;BYDAY=-54MO", "`-54MO`"),
        ("FREQ=WEEKLY;BYDAY=XX", "`XX`"),
        ("FREQ=WEEKLY;BYDAY=M", "`M`"),
        ("FREQ=WEEKLY;BYDAY=\u{e9}", "`\u{e9}`"),
        ("FREQ=WEEKLY;BYDAY=MO,,TU", "`BYDAY=MO,,TU`"),
        ("FREQ=YEARLY;BYMONTH=0", "`BYMONTH=0`"),
        ("FREQ=YEARLY;BYMONTH=13", "`BYMONTH=13`"),
        ("FREQ=YEARLY;BYMONTH=-1", "`BYMONTH=-1`"),
        ("FREQ=YEARLY;BYMONTH=,1", "`BYMONTH=,1`"),
        ("FREQ=YEARLY;BYWEEKNO=54", "`BYWEEKNO=54`"),
        ("FREQ=YEARLY;BYWEEKNO=0", "`BYWEEKNO=0`"),
        ("FREQ=YEARLY;BYYEARDAY=367", "`BYYEARDAY=367`"),
        ("FREQ=YEARLY;BYYEARDAY=0", "`BYYEARDAY=0`"),
        ("FREQ=DAILY;BYHOUR=24", "`BYHOUR=24`"),
        ("FREQ=DAILY;BYHOUR=-1", "`BYHOUR=-1`"),
        ("FREQ=DAILY;BYHOUR=+1", "`BYHOUR=+1`"),
        ("FREQ=DAILY;BYHOUR= 1", "`BYHOUR= 1`"),
        ("FREQ=DAILY;BYMINUTE=60", "`BYMINUTE=60`"),
        ("FREQ=DAILY;BYSECOND=61", "`BYSECOND=61`"),
        ("FREQ=DAILY;BYSECOND=0,30", "finer than a minute"),
        ("FREQ=SECONDLY", "finer than a minute"),
        ("FREQ=DAILY;BYHOUR=1;BYSETPOS=0", "`BYSETPOS=0`"),
        ("FREQ=DAILY;BYHOUR=1;BYSETPOS=367", "`BYSETPOS=367`"),
        ("FREQ=DAILY;BYHOUR=", "`BYHOUR` is empty"),
        ("FREQ=DAILY;BYDAY=", "`BYDAY` is empty"),
        ("FREQ=", "`FREQ` is empty"),
        ("FREQ=DAILY;INTERVAL=0", "`INTERVAL=0`"),
        ("FREQ=DAILY;INTERVAL=-1", "`INTERVAL=-1`"),
        ("FREQ=DAILY;INTERVAL=99999999999", "`INTERVAL=99999999999`"),
        ("FREQ=DAILY;COUNT=0", "`COUNT=0`"),
        ("FREQ=DAILY;COUNT=10001", "`COUNT=10001`"),
        ("FREQ=DAILY;WKST=MONDAY", "`WKST=MONDAY`"),
        ("FREQ=DAILY;BYEASTER=0", "`BYEASTER` is not a part"),
        ("FREQ=DAILY;FREQ=WEEKLY", "`FREQ` is given twice"),
        ("FREQ=DAILY;BYHOUR=1;BYHOUR=2", "`BYHOUR` is given twice"),
        ("FREQ=DAILY;", "`` is not a part"),
        ("FREQ=DAILY;;BYHOUR=1", "`` is not a part"),
        ("FREQ=DAILY;UNTIL=20260230T000000Z", "`UNTIL`"),
        ("FREQ=DAILY;UNTIL=20260101T250000Z", "`UNTIL`"),
        ("FREQ=DAILY;UNTIL=20260101T000060Z", "`UNTIL`"),
        ("FREQ=DAILY;UNTIL=2026-01-01", "`UNTIL`"),
        ("FREQ=DAILY\nRRULE:FREQ=WEEKLY", "more than one rule"),
        (
            "DTSTART:20260101T000000\nDTSTART:20260102T000000\nRRULE:FREQ=DAILY",
            "more than one",
        ),
        ("DTSTART:20260101\nRRULE:FREQ=DAILY", "not a date and time"),
        (
            "DTSTART:20260101T000000ZZ\nRRULE:FREQ=DAILY",
            "not a date and time",
        ),
        (
            "DTSTART:00000101T000000\nRRULE:FREQ=DAILY",
            "not a date and time",
        ),
        (
            "DTSTART;TZID=Europe/Berlin:20260101T000000Z\nRRULE:FREQ=DAILY",
            "both `TZID` and `Z`",
        ),
        (
            "DTSTART;TZID=Europe/Berln:20260101T000000\nRRULE:FREQ=DAILY",
            "unknown time zone",
        ),
        ("DTSTART:20260101T000000", "no `FREQ`"),
        (
            "DTSTART:00010101T000000\nRRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=10000",
            "`COUNT=10000`",
        ),
    ] {
        let invalid = calendar(rule, "UTC").expect_err(rule);
        assert!(invalid.reason.contains(part), "{rule}: {invalid}");
        assert!(!invalid.expected.is_empty(), "{rule}");
    }
}

#[test]
fn a_time_that_the_clock_leaves_out_does_not_overtake_another_one() {
    // 02:00 to 02:30 does not exist on 2027-10-03 there.
    let rule = "FREQ=DAILY;BYHOUR=2;BYMINUTE=20,35;BYSECOND=0";
    assert_eq!(
        first(rule, "Australia/Lord_Howe", "2027-10-01T20:00:00Z", 4),
        // 02:35 and 02:50 at +11:00, then 02:20 and 02:35.
        [
            "2027-10-02T15:35",
            "2027-10-02T15:50",
            "2027-10-03T15:20",
            "2027-10-03T15:35"
        ]
    );
}

#[test]
fn a_search_that_finds_nothing_ends() {
    for rule in [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=31;BYMONTH=4",
        "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30",
        "DTSTART:20260101T000000Z\nRRULE:FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1",
        "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY;INTERVAL=24;BYHOUR=5",
        "DTSTART:20260105T000000Z\nRRULE:FREQ=DAILY;INTERVAL=7;BYDAY=TU",
        "FREQ=MINUTELY;BYHOUR=1;BYSETPOS=2",
        "FREQ=HOURLY;BYMINUTE=1,2;BYSETPOS=3",
        "FREQ=YEARLY;BYWEEKNO=1;BYMONTH=6;BYDAY=MO",
        "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;UNTIL=20251231T000000Z",
    ] {
        let calendar = calendar(rule, "Africa/Casablanca").unwrap();
        assert_eq!(
            calendar.next_after(at("2026-01-01T12:00:00Z")),
            None,
            "{rule}"
        );
    }
    // The end of the times that can be written.
    let yearly = calendar("FREQ=YEARLY", "UTC").unwrap();
    assert_eq!(yearly.next_after(at("9999-06-01T00:00:00Z")), None);
    assert_eq!(yearly.next_after(Timestamp(i64::MAX)), None);
}

/// All times of a rule of days between two local times, one by one.
fn by_day(zone: &Zone, days: std::ops::Range<i64>, hours: &[u8], minutes: &[u8]) -> Vec<i64> {
    let mut times: Vec<i64> = days
        .flat_map(|day| {
            hours
                .iter()
                .map(move |hour| day * 86_400 + i64::from(*hour) * 3_600)
        })
        .flat_map(|hour| {
            minutes
                .iter()
                .map(move |minute| hour + i64::from(*minute) * 60)
        })
        .map(|local| zone.instant(local).unwrap().at)
        .collect();
    times.sort_unstable();
    times.dedup();
    times
}

proptest! {
    #[test]
    fn times_over_a_change_of_the_clock_are_all_there_and_in_order(
        hours in proptest::sample::subsequence((0..5).collect::<Vec<u8>>(), 1..5),
        minutes in proptest::sample::subsequence((0..12).map(|n| n * 5).collect::<Vec<u8>>(), 1..8),
        // The days before clocks are changed, by an hour, by half an hour and by a whole day.
        (name, day) in prop_oneof![
            Just(("Europe/Berlin", 20_540)),
            Just(("Europe/Berlin", 20_750)),
            Just(("Australia/Lord_Howe", 21_092)),
            Just(("Australia/Lord_Howe", 20_910)),
            Just(("Pacific/Apia", 15_337)),
        ],
        skip in 0_i64..86_400,
    ) {
        let zone = Zones::bundled().zone(name).unwrap();
        let list = |numbers: &[u8]| {
            numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        let (h, m) = (list(&hours), list(&minutes));
        let rule = format!("DTSTART:20000101T000000\nRRULE:FREQ=DAILY;BYHOUR={h};BYMINUTE={m};BYSECOND=0");
        let calendar = calendar(&rule, name).unwrap();
        let after = day * 86_400 + skip;
        let (end, all) = (after + 3 * 86_400, by_day(&zone, day - 3..day + 8, &hours, &minutes));
        let expected: Vec<i64> = all.into_iter().filter(|at| *at > after && *at <= end).collect();
        let found = calendar.upcoming(Timestamp(after * 1_000_000), Some(Timestamp(end * 1_000_000)), usize::MAX);
        let found: Vec<i64> = found.iter().map(|at| at.0 / 1_000_000).collect();
        prop_assert_eq!(&found, &expected, "{}", rule);
        for pair in expected.windows(2) {
            let next = calendar.next_after(Timestamp(pair[0] * 1_000_000));
            prop_assert_eq!(next, Some(Timestamp(pair[1] * 1_000_000)));
        }
    }
}
