//! Cron expressions against a reference that looks at each minute, and the cost of a search.

use super::fields::{EXPECTED, FIELDS};
use super::*;
use proptest::prelude::*;
use taskledger_zones::Zones;

fn parse(text: &str) -> Cron {
    Cron::parse(text).unwrap_or_else(|invalid| panic!("{invalid}"))
}

#[test]
fn what_a_message_says_would_be_accepted_is() {
    for (at, field) in FIELDS.iter().enumerate() {
        let examples: Vec<&str> = field.expected.split('`').skip(1).step_by(2).collect();
        assert!(examples.len() > 3, "{}", field.name);
        for example in examples {
            let mut fields = ["*"; FIELDS.len()];
            fields[at] = example;
            parse(&fields.join(" "));
        }
    }
    let examples: Vec<&str> = EXPECTED.split('`').skip(3).step_by(2).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        parse(example);
    }
}

#[test]
fn what_has_no_meaning_is_refused_with_its_field_and_element() {
    for (text, field, element) in [
        (", * * * *", "minute", ","),
        ("* , * * *", "hour", ","),
        ("* * , * *", "day of month", ","),
        ("* * * , *", "month", ","),
        ("* * * * ,", "day of week", ","),
        ("1,,2 * * * *", "minute", "1,,2"),
        (",1 * * * *", "minute", ",1"),
        ("1, * * * *", "minute", "1,"),
        ("*,5 * * * *", "minute", "*,5"),
        ("*/61 * * * *", "minute", "*/61"),
        ("*/0 * * * *", "minute", "*/0"),
        ("*/ * * * *", "minute", "*/"),
        ("/5 * * * *", "minute", "/5"),
        ("5/15 * * * *", "minute", "5/15"),
        ("*/5/2 * * * *", "minute", "*/5/2"),
        ("10-20/12 * * * *", "minute", "10-20/12"),
        ("20-10 * * * *", "minute", "20-10"),
        ("1-2-3 * * * *", "minute", "1-2-3"),
        ("- * * * *", "minute", "-"),
        ("-1 * * * *", "minute", "-1"),
        ("+1 * * * *", "minute", "+1"),
        ("60 * * * *", "minute", "60"),
        ("4294967297 * * * *", "minute", "4294967297"),
        ("\u{663} * * * *", "minute", "\u{663}"),
        ("? * * * *", "minute", "?"),
        ("L * * * *", "minute", "L"),
        ("* 24 * * *", "hour", "24"),
        ("* */25 * * *", "hour", "*/25"),
        ("* * 0 * *", "day of month", "0"),
        ("* * 32 * *", "day of month", "32"),
        ("* * */32 * *", "day of month", "*/32"),
        ("* * W * *", "day of month", "W"),
        ("* * 1-5W * *", "day of month", "1-5W"),
        ("* * 32W * *", "day of month", "32W"),
        ("* * * 0 *", "month", "0"),
        ("* * * 13 *", "month", "13"),
        ("* * * */13 *", "month", "*/13"),
        ("* * * JANU *", "month", "JANU"),
        ("* * * * 8", "day of week", "8"),
        ("* * * * */8", "day of week", "*/8"),
        ("* * * * L", "day of week", "L"),
        ("0 0 * * 5,L", "day of week", "5,L"),
        ("* * * * FRI#0", "day of week", "FRI#0"),
        ("* * * * FRI#6", "day of week", "FRI#6"),
        ("* * * * FRI#", "day of week", "FRI#"),
        ("* * * * #2", "day of week", "#2"),
        ("* * * * MON-FRI#2", "day of week", "MON-FRI#2"),
        ("* * * * FRI-MON", "day of week", "FRI-MON"),
    ] {
        let invalid = Cron::parse(text).expect_err(text);
        let begin = format!("the {field} `{element}` is not understood: ");
        assert!(invalid.reason.starts_with(&begin), "{text}: {invalid}");
        assert!(
            invalid.expected.starts_with(&format!("{field}: ")),
            "{invalid}"
        );
    }
    for text in [
        "",
        "* * * *",
        "* * * * * *",
        "* *\n* * *",
        "*\u{a0}* * * *",
        "@often",
        "@reboot",
        "@",
    ] {
        let invalid = Cron::parse(text).expect_err(text);
        assert!(!invalid.expected.is_empty(), "{text}");
    }
}

#[test]
fn a_search_takes_few_steps_even_where_there_is_no_time() {
    let zones = Zones::bundled();
    // The last Sunday of March has no such hour there, and Morocco changes its clock four times a year.
    for (text, zone, is_never) in [
        ("0 0 30 2 *", "UTC", true),
        ("0 0 31 2,4,6,9,11 *", "Africa/Casablanca", true),
        ("* * 31W 2 *", "Europe/Berlin", true),
        ("*/10 2 * 3 SUN#L", "Europe/Berlin", true),
        ("0 0 * 2 FRI#5", "Europe/Berlin", false),
        ("0 0 29 2 *", "Africa/Casablanca", false),
        ("59 23 31 12 *", "America/New_York", false),
        ("* * * * *", "America/New_York", false),
    ] {
        let zone = zones.zone(zone).expect("a zone");
        // From 2026, from 2080-03-01, and shortly before the end of the times that can be written.
        for from in [1_767_225_600, 3_476_476_800, 253_402_200_000] {
            let (found, steps) = parse(text).search(from, &zone);
            assert!(steps <= STEPS_MAX, "{text}: {steps} steps");
            assert!(!is_never || found.is_none(), "{text}: {found:?}");
            assert!(
                is_never || found.is_some() || from > 3_476_476_800,
                "{text} from {from}"
            );
        }
    }
}

/// An element of a field as text, and the values that it means.
type Element = (String, Vec<u32>);

fn field(min: u32, max: u32) -> impl Strategy<Value = Element> {
    let value = (min..=max).prop_map(|it| (it.to_string(), vec![it]));
    let range = (min..=max, min..=max).prop_map(|(a, b)| {
        let (a, b) = (a.min(b), a.max(b));
        (format!("{a}-{b}"), (a..=b).collect())
    });
    let step = (1..=max - min + 1).prop_map(move |step| {
        let values = (min..=max).filter(|it| (it - min).is_multiple_of(step));
        (format!("*/{step}"), values.collect())
    });
    let element = prop_oneof![2 => value, 1 => range, 1 => step];
    let list = proptest::collection::vec(element, 1..3).prop_map(|elements| {
        let texts: Vec<&str> = elements.iter().map(|(text, _)| &**text).collect();
        let values = elements
            .iter()
            .flat_map(|(_, values)| values.iter().copied());
        (texts.join(","), values.collect::<Vec<u32>>())
    });
    let any = Just(("*".to_owned(), (min..=max).collect()));
    prop_oneof![1 => any, 3 => list]
}

/// What an expression means at each minute, without the search that is tested.
#[derive(Debug)]
struct Reference {
    fields: [Element; 5],
}

impl Reference {
    fn text(&self) -> String {
        let texts: Vec<&str> = self.fields.iter().map(|(text, _)| &**text).collect();
        texts.join(" ")
    }

    /// Whether a clock that shows this local time shows one of the times.
    fn shows(&self, local: i64) -> bool {
        let shown = jiff::tz::TimeZone::UTC
            .to_datetime(jiff::Timestamp::from_second(local).expect("a time"));
        let has = |at: usize, value: i8| {
            let value = u32::try_from(value).expect("none is negative");
            self.fields[at].1.contains(&value)
        };
        let weekday = shown.weekday().to_sunday_zero_offset();
        let (month_day, week_day) = (
            has(2, shown.day()),
            has(4, weekday) || weekday == 0 && has(4, 7),
        );
        let is_day = match (&*self.fields[2].0, &*self.fields[4].0) {
            ("*", _) => week_day,
            (_, "*") => month_day,
            _ => month_day || week_day,
        };
        shown.second() == 0
            && has(0, shown.minute())
            && has(1, shown.hour())
            && has(3, shown.month())
            && is_day
    }

    /// All times from `from` on and before `until`, found minute by minute. The clock is changed at full minutes.
    fn times(&self, zone: &Zone, from: i64, until: i64) -> Vec<i64> {
        let is_periodic = self.fields[..2]
            .iter()
            .any(|(text, _)| text.contains(['*', '/']));
        let offset = |at: i64| zone.offset(at).expect("a time");
        let minutes = (from.div_euclid(60)..until.div_euclid(60)).map(|minute| minute * 60);
        let is_time = |at: &i64| {
            let (now, before) = (offset(*at), offset(*at - 60));
            let is_shown = self.shows(at + now);
            if is_periodic {
                return is_shown;
            }
            // No clock is changed by more than three hours within four, in what is tested.
            let is_again = (1..240).any(|ago| {
                let earlier = at - ago * 60;
                earlier + offset(earlier) == at + now
            });
            let left_out = (at + before..at + now)
                .step_by(60)
                .any(|local| self.shows(local));
            is_shown && !is_again || now > before && left_out
        };
        minutes.filter(is_time).collect()
    }
}

fn reference() -> impl Strategy<Value = Reference> {
    let fields = (
        field(0, 59),
        field(0, 23),
        field(1, 31),
        field(1, 12),
        field(0, 6),
    );
    fields.prop_map(|(a, b, c, d, e)| Reference {
        fields: [a, b, c, d, e],
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_search_finds_what_looking_at_each_minute_finds(
        reference in reference(),
        (zone, change) in prop_oneof![
            // The days before clocks are changed: by an hour, by half an hour, at midnight.
            Just(("Europe/Berlin", 1_774_699_200_i64)),
            Just(("Europe/Berlin", 1_792_843_200)),
            Just(("Australia/Lord_Howe", 1_806_710_400)),
            Just(("Australia/Lord_Howe", 1_822_435_200)),
            Just(("America/Havana", 1_772_841_600)),
            Just(("America/Havana", 1_793_404_800)),
            Just(("UTC", 1_774_699_200)),
        ],
        skip in 0_i64..86_400,
    ) {
        let zone = Zones::bundled().zone(zone).expect("a zone");
        let cron = Cron::parse(&reference.text()).expect("it is well-formed");
        let (from, until) = (change + skip, change + 3 * 86_400);
        let expected = reference.times(&zone, from + 1, until);
        let mut found = Vec::new();
        let mut after = Timestamp(from * 1_000_000);
        while let Some(next) = cron.next_after(after, &zone).filter(|next| next.0 < until * 1_000_000) {
            prop_assert!(next > after);
            found.push(next.0 / 1_000_000);
            after = next;
        }
        // A reference that starts within a minute looks at the one before.
        let expected: Vec<i64> = expected.into_iter().filter(|at| *at > from).collect();
        prop_assert_eq!(found, expected, "{}", reference.text());
    }
}

#[test]
fn the_nearest_weekday_stays_in_its_month() {
    let utc = Zones::bundled().zone("UTC").expect("a zone");
    // 2026-08-01 and 15 are Saturdays, 2026-05-31 is a Sunday, 2026-11-15 a Sunday, 2026-07-15 a Wednesday.
    for (text, after, expected) in [
        ("0 0 1W 8 *", "2026-01-01T00:00:00Z", "2026-08-03"),
        ("0 0 15W 8 *", "2026-01-01T00:00:00Z", "2026-08-14"),
        ("0 0 31W 5 *", "2026-01-01T00:00:00Z", "2026-05-29"),
        ("0 0 15W 11 *", "2026-01-01T00:00:00Z", "2026-11-16"),
        ("0 0 15W 7 *", "2026-01-01T00:00:00Z", "2026-07-15"),
        ("0 0 31W * *", "2026-06-01T00:00:00Z", "2026-07-31"),
        ("0 0 L * *", "2028-02-01T00:00:00Z", "2028-02-29"),
        ("0 0 * * FRI#L", "2026-07-20T00:00:00Z", "2026-07-31"),
        ("0 0 * * 5L", "2026-07-20T00:00:00Z", "2026-07-31"),
        ("0 0 * * fri#2", "2026-07-01T00:00:00Z", "2026-07-10"),
        ("0 0 * * FRI-SUN", "2026-07-04T00:00:00Z", "2026-07-05"),
        ("0 0 * * 7", "2026-07-04T00:00:00Z", "2026-07-05"),
        ("0 0 13 * FRI", "2026-07-04T00:00:00Z", "2026-07-10"),
        ("0 0 */2 * MON", "2026-07-04T00:00:00Z", "2026-07-05"),
    ] {
        let after = Timestamp::parse(after).expect("a time");
        let next = parse(text).next_after(after, &utc).expect("a time");
        assert_eq!(next.to_string()[..10], *expected, "{text}");
    }
}
