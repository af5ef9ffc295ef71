//! The end of waits, and the receivers of reminders.

use super::parse;
use crate::question::{Escalation, Question};
use serde_json::{Value, json};

/// End of the wait and interval in milliseconds, and the number of reminders.
fn times(asked: &Value) -> (Option<u64>, Option<u64>, u32) {
    let mut question = asked.clone();
    question["question"] = json!("?");
    let read = parse(question).unwrap_or_else(|faults| panic!("{asked}: {faults:?}"));
    (read.expires_after_ms, read.remind_every_ms, read.reminders)
}

#[test]
fn the_wait_ends_with_its_time_and_reminders_stand_within() {
    let cases = [
        (json!({"timeout_seconds": 10}), (Some(10_000), None, 0)),
        (
            json!({"timeout_seconds": 10, "retry_policy": {}}),
            (Some(10_000), None, 0),
        ),
        (
            json!({"timeout_seconds": 3600, "retry_policy": {"max_attempts": 3}}),
            (Some(3_600_000), Some(1_200_000), 2),
        ),
        (
            json!({"timeout_seconds": 1, "retry_policy": {"max_attempts": 100}}),
            (Some(1000), Some(10), 99),
        ),
        (
            json!({"retry_policy": {"interval_seconds": 60, "max_attempts": 3}}),
            (Some(180_000), Some(60_000), 2),
        ),
        (
            json!({"retry_policy": {"interval_seconds": 60}}),
            (Some(60_000), None, 0),
        ),
        (
            json!({"timeout_seconds": 100, "retry_policy": {"interval_seconds": 30, "max_attempts": 3}}),
            (Some(100_000), Some(30_000), 2),
        ),
        (
            json!({"timeout_seconds": 100, "retry_policy": {"interval_seconds": 30, "max_attempts": 9}}),
            (Some(100_000), Some(30_000), 3),
        ),
        (
            json!({"timeout_seconds": 90, "retry_policy": {"interval_seconds": 30, "max_attempts": 9}}),
            (Some(90_000), Some(30_000), 2),
        ),
        (
            json!({"timeout_seconds": 90, "retry_policy": {"interval_seconds": 30}}),
            (Some(90_000), Some(30_000), 2),
        ),
        (
            json!({"timeout_seconds": 10, "retry_policy": {"interval_seconds": 30, "max_attempts": 9}}),
            (Some(10_000), None, 0),
        ),
        (
            json!({"timeout_seconds": 1000, "retry_policy": {"interval_seconds": 1}}),
            (Some(1_000_000), Some(1000), 99),
        ),
    ];
    for (asked, expected) in cases {
        assert_eq!(times(&asked), expected, "{asked}");
    }
}

/// With three reminders, and these steps.
fn with_ladder(ladder: &Value) -> Result<Question, Vec<String>> {
    let policy = json!({"max_attempts": 4, "escalation_ladder": ladder});
    parse(json!({"question": "?", "timeout_seconds": 60, "retry_policy": policy}))
}

#[test]
fn every_step_of_the_ladder_belongs_to_a_reminder() {
    let ladder =
        json!([{"attempt": 3, "notify_to": "boss"}, {"attempt": 1, "channel_hint": "mail"}]);
    let step = |attempt, channel_hint: Option<&str>, notify_to: Option<&str>| Escalation {
        attempt,
        channel_hint: channel_hint.map(str::to_owned),
        notify_to: notify_to.map(str::to_owned),
    };
    let steps = [step(3, None, Some("boss")), step(1, Some("mail"), None)];
    assert_eq!(with_ladder(&ladder).unwrap().ladder, steps);

    let at = r#"Key("retry_policy").Key("escalation_ladder")"#;
    let cases = [
        (json!("boss"), " is not valid"),
        (json!([{}]), r#".Index(0).Key("attempt") is required"#),
        (json!(["boss"]), ".Index(0) has the wrong type"),
        (
            json!([{"attempt": 0}]),
            r#".Index(0).Key("attempt") is not reached"#,
        ),
        (
            json!([{"attempt": 1}, {"attempt": 4}]),
            r#".Index(1).Key("attempt") is not reached"#,
        ),
        (
            json!([{"attempt": 1}, {"attempt": 1}]),
            r#".Index(1).Key("attempt") is there twice"#,
        ),
        (
            json!([{"attempt": 1, "notify": "boss"}]),
            r#".Index(0).Key("notify") is not known"#,
        ),
        (
            json!([{"attempt": 1, "notify_to": 7}]),
            r#".Index(0).Key("notify_to") is not valid"#,
        ),
        (
            json!([{"attempt": 1, "channel_hint": "x".repeat(256)}]),
            r#".Index(0).Key("channel_hint") is not valid"#,
        ),
    ];
    for (ladder, fault) in cases {
        let fault = format!("{at}{fault}");
        assert_eq!(with_ladder(&ladder), Err(vec![fault]), "{ladder}");
    }
}

#[test]
fn a_step_that_is_not_reached_is_refused_with_those_that_are() {
    let expected = |timeout: u64, attempts: u64| {
        let policy = json!({"max_attempts": attempts, "interval_seconds": 10,
            "escalation_ladder": [{"attempt": 3}]});
        let asked = json!({"question": "?", "timeout_seconds": timeout, "retry_policy": policy});
        let faults = Question::parse(asked.as_object().unwrap()).unwrap_err();
        assert_eq!(faults.len(), 1);
        faults[0].expected.clone()
    };
    assert_eq!(expected(60, 3), "the number of a reminder, from 1 to 2");
    assert_eq!(expected(15, 9), "the number of a reminder, from 1 to 1");
    let none = "no step, as there is no reminder before the wait ends";
    assert_eq!(
        (expected(60, 1).as_str(), expected(10, 9).as_str()),
        (none, none)
    );
}
