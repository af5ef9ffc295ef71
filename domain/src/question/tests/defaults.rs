//! Default answers, which count when nobody gives one.

use super::map;
use crate::Payload;
use crate::flow::{OnAnswer, OnExpiry};
use crate::question::{answer_of, prepare};
use serde_json::json;

#[test]
fn a_default_answer_counts_as_the_same_answer_of_a_person() {
    let asked = |value: bool| {
        map(
            &json!({"question": "?", "response_type": "confirm", "timeout_seconds": 5,
            "fallback_policy": "use_default_and_continue", "fallback_value": value}),
        )
    };
    let continues = |value: bool| OnExpiry::Continue {
        answer: answer_of(value.into()),
    };
    let completes = |value: bool| OnExpiry::Complete {
        result: Payload::from_map(&map(
            &json!({"approved": value, "responded_by": null, "value": value}),
        )),
    };
    for (on_answer, value, expected) in [
        (OnAnswer::Continue, true, continues(true)),
        (OnAnswer::Continue, false, continues(false)),
        (OnAnswer::Complete, true, completes(true)),
        (OnAnswer::Complete, false, completes(false)),
        (OnAnswer::CompleteOrDecline, true, completes(true)),
        (OnAnswer::CompleteOrDecline, false, continues(false)),
    ] {
        let (_, _, on_expiry) = prepare(&asked(value), on_answer, None).expect("a question");
        assert_eq!(on_expiry, expected, "{on_answer:?} {value}");
        let declines = (on_answer, value) == (OnAnswer::CompleteOrDecline, false);
        assert_eq!(on_answer.declines(&value.into()), declines);
    }
    let choice = map(
        &json!({"question": "?", "response_type": "choice", "timeout_seconds": 5,
        "choices": [{"value": "yes"}, {"value": false, "label": "No"}],
        "fallback_policy": "use_default_and_continue", "fallback_value": false}),
    );
    let (_, _, on_expiry) = prepare(&choice, OnAnswer::CompleteOrDecline, None).unwrap();
    assert_eq!(on_expiry, continues(false));
}

#[test]
fn a_default_answer_that_declines_need_not_keep_the_outputs() {
    let outputs = crate::contract::Outputs::parse(&map(&json!({"outputs": {"url": "string"}})));
    let outputs = outputs.expect("outputs").expect("one");
    let asked = |value: bool| {
        map(
            &json!({"question": "?", "response_type": "confirm", "timeout_seconds": 5,
            "fallback_policy": "use_default_and_continue", "fallback_value": value}),
        )
    };
    let prepared = |value| prepare(&asked(value), OnAnswer::CompleteOrDecline, Some(&outputs));
    assert!(prepared(false).is_ok());
    let faults = prepared(true).unwrap_err();
    assert_eq!(faults[0].field, "fallback_value");
}
