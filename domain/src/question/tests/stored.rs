//! Questions that were asked before.

use super::{form, map};
use crate::Payload;
use crate::question::{Expected, Question};
use serde_json::{Value, json};

/// What new questions may not say, but stored ones do: they are answered as they were.
#[test]
fn a_stored_question_can_be_answered_whatever_is_refused_of_new_ones() {
    let long = "x".repeat(5000);
    let many: Vec<Value> = (0..200).map(|n| json!({"value": n, "label": n})).collect();
    let cases = [
        (
            json!({"question": long, "kind": "other"}),
            json!("yes"),
            json!(""),
        ),
        (
            json!({"question": "?", "response_type": "choice", "choices": many}),
            json!(199),
            json!(200),
        ),
        (
            json!({"question": "?", "response_type": "confirm", "retry_policy": {"max_attempts": 3,
                "escalation_ladder": [{"attempt": 7, "who": "boss"}]}, "fallback_policy": "hope"}),
            json!(true),
            json!("true"),
        ),
        (
            form(&json!({"schema": "integer"})),
            json!({"schema": 1}),
            json!({"schema": "1"}),
        ),
        (
            form(&json!({"fields": {"enum": [{"n": 1}, "n"]}})),
            json!({"n": 1}),
            json!({"n": 2}),
        ),
    ];
    for (asked, answer, other) in cases {
        let asked = map(&asked);
        assert!(Question::parse(&asked).is_err(), "{asked:?}");
        let stored = Expected::of(&Payload::from_map(&asked)).expect("it was asked");
        assert_eq!(stored.check(&answer), Ok(()), "{asked:?}");
        assert!(stored.check(&other).is_err(), "{asked:?}");
    }
    // Nobody could answer these, and a wrong answer is refused still.
    for schema in [json!(false), json!({"type": "string"})] {
        let asked = map(&form(&json!({"schema": schema})));
        let stored = Expected::of(&Payload::from_map(&asked)).expect("it was asked");
        assert!(stored.check(&json!({})).is_err());
    }
    let unknown = map(&json!({"question": "?", "response_type": "poll"}));
    assert_eq!(Expected::of(&Payload::from_map(&unknown)), None);
}

#[test]
fn a_question_is_read_alike_when_it_is_asked_and_when_it_is_answered() {
    for asked in [
        json!({"question": "?"}),
        json!({"question": "?", "response_type": "confirm", "timeout_seconds": 5}),
        json!({"question": "?", "response_type": "choice", "choices": [{"value": "a", "label": "A"}, {"value": 2}]}),
        form(&json!({"fields": {"n": "integer", "schema?": {"type": "string"}}})),
        form(&json!({"fields": {"schema": {"a": "string"}}})),
        form(&json!({"schema": {"type": "object", "required": ["n"]}})),
    ] {
        let asked = map(&asked);
        let read = Question::parse(&asked).expect("a question").expects;
        assert_eq!(
            Expected::of(&Payload::from_map(&asked)),
            Some(read),
            "{asked:?}"
        );
    }
}
