//! Reading of questions, and the check of answers.

mod defaults;
mod forms;
mod stored;
mod times;

use super::{AnswerFault, Expected, Fallback, Question};
use serde_json::{Map, Value, json};

fn parse(question: Value) -> Result<Question, Vec<String>> {
    let Value::Object(members) = question else {
        unreachable!("tests ask with objects");
    };
    Question::parse(&members).map_err(|faults| {
        let field = |fault: crate::Violation| {
            let path: Vec<String> = fault
                .path
                .iter()
                .map(|segment| format!("{segment:?}"))
                .collect();
            format!("{} {}", path.join("."), fault.reason)
        };
        faults.into_iter().map(field).collect()
    })
}

#[test]
fn the_shortest_question_asks_for_a_text_and_waits_for_ever() {
    let question = parse(json!({"question": "Which one?"})).unwrap();
    assert_eq!(question.expects, Expected::Text);
    assert_eq!(question.expires_after_ms, None);
    assert_eq!(question.fallback, Fallback::Fail);
    assert_eq!(question.expects.check(&json!("this")), Ok(()));
    for no_answer in [json!(""), json!("  "), json!(1), json!(null)] {
        let fault = AnswerFault::NotA("a text that is not empty");
        assert_eq!(
            question.expects.check(&no_answer),
            Err(fault),
            "{no_answer}"
        );
    }
}

#[test]
fn a_choice_takes_its_values_only_and_knows_their_labels() {
    let choices = json!([{"value": "a", "label": "The first"}, {"value": 2}]);
    let asked = json!({"question": "?", "response_type": "choice", "choices": choices});
    let question = parse(asked).unwrap();
    assert_eq!(question.expects.check(&json!("a")), Ok(()));
    assert_eq!(question.expects.check(&json!(2)), Ok(()));
    assert_eq!(question.expects.label_of(&json!("a")), Some("The first"));
    let Err(AnswerFault::NotAChoice { valid }) = question.expects.check(&json!("b")) else {
        panic!("`b` is no choice");
    };
    assert_eq!(valid, [json!("a"), json!(2)]);
}

#[test]
fn numbers_are_chosen_by_their_value_however_they_are_written() {
    let choices = json!([{"value": 1, "label": "One"}, {"value": 2.0}]);
    let asked = json!({"question": "?", "response_type": "choice", "choices": choices});
    let question = parse(asked).unwrap();
    for answer in [json!(1), json!(1.0), json!(2)] {
        assert_eq!(question.expects.check(&answer), Ok(()), "{answer}");
    }
    assert_eq!(question.expects.label_of(&json!(1.0)), Some("One"));
    assert!(question.expects.check(&json!(true)).is_err());
    let twice = json!([{"value": 1}, {"value": 1.0}]);
    let asked = json!({"question": "?", "response_type": "choice", "choices": twice});
    assert!(parse(asked).is_err());
}

#[test]
fn members_beside_a_question_are_named_among_those_that_are_known() {
    let members = json!({"question": "?", "other": 1});
    let Value::Object(members) = members else {
        unreachable!("it is an object");
    };
    let faults = Question::parse_beside(&members, &["on_reject"]).unwrap_err();
    assert!(faults[0].expected.ends_with(", on_reject"), "{faults:?}");
}

#[test]
fn a_form_is_checked_by_a_schema_or_by_fields() {
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    for form in [
        json!({"question": "?", "response_type": "form", "schema": schema}),
        json!({"question": "?", "response_type": "form", "fields": {"n": "integer"}}),
    ] {
        let question = parse(form).unwrap();
        assert_eq!(question.expects.check(&json!({"n": 1})), Ok(()));
        for wrong in [json!({}), json!({"n": "1"})] {
            let fault = question.expects.check(&wrong);
            assert!(matches!(fault, Err(AnswerFault::Form(_))), "{wrong}");
        }
        assert_eq!(
            question.expects.check(&json!([])),
            Err(AnswerFault::NotA("an object"))
        );
    }
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

/// A form with these members.
fn form(members: &Value) -> Value {
    let mut asked = json!({"question": "?", "response_type": "form"});
    for (name, value) in members.as_object().expect("an object") {
        asked[name] = value.clone();
    }
    asked
}

#[test]
fn the_policy_after_the_last_reminder_counts() {
    let policy = json!({"interval_seconds": 5, "final_fallback_policy": "complete_with_fallback"});
    let asked = json!({"question": "?", "retry_policy": policy, "fallback_value": {"ok": false}});
    let result = json!({"ok": false}).as_object().cloned().unwrap();
    assert_eq!(parse(asked).unwrap().fallback, Fallback::Complete(result));
}

#[test]
fn every_fault_is_told_with_its_place() {
    let cases = [
        (json!({}), r#"Key("question") is required"#),
        (json!({"question": " "}), r#"Key("question") is not valid"#),
        (
            json!({"question": "?", "chioces": []}),
            r#"Key("chioces") is not known"#,
        ),
        (
            json!({"question": "?", "response_type": "poll"}),
            r#"Key("response_type") is not valid"#,
        ),
        (
            json!({"question": "?", "response_type": "choice"}),
            r#"Key("choices") is not valid"#,
        ),
        (
            json!({"question": "?", "choices": [{"value": 1}]}),
            r#"Key("choices") is not used"#,
        ),
        (
            json!({"question": "?", "response_type": "choice", "choices": [{"value": 1}, {"value": 1}]}),
            r#"Key("choices").Index(1).Key("value") is there twice"#,
        ),
        (
            json!({"question": "?", "response_type": "form"}),
            r#"Key("schema") is required"#,
        ),
        (
            json!({"question": "?", "timeout_seconds": 0}),
            r#"Key("timeout_seconds") is not valid"#,
        ),
        (
            json!({"question": "?", "fallback_value": 1}),
            r#"Key("fallback_value") is not used"#,
        ),
        (
            json!({"question": "?", "fallback_policy": "use_default_and_continue"}),
            r#"Key("fallback_value") is required"#,
        ),
        (
            json!({"question": "?", "fallback_policy": "use_default_and_continue", "fallback_value": 7}),
            r#"Key("fallback_value") is no answer"#,
        ),
        (
            json!({"question": "?", "fallback_policy": "complete_with_fallback", "fallback_value": 7}),
            r#"Key("fallback_value") is not valid"#,
        ),
        (
            json!({"question": "?", "fallback_policy": "hope"}),
            r#"Key("fallback_policy") is not valid"#,
        ),
        (
            json!({"question": "?", "context": 1}),
            r#"Key("context") has the wrong type"#,
        ),
        (
            json!({"question": "?", "retry_policy": {}}),
            r#"Key("retry_policy").Key("interval_seconds") is required"#,
        ),
        (
            json!({"question": "?", "timeout_seconds": 5, "retry_policy": {"max_attempts": 0}}),
            r#"Key("retry_policy").Key("max_attempts") is not valid"#,
        ),
        (
            json!({"question": "?", "timeout_seconds": 5, "retry_policy": {"intervall_seconds": 2}}),
            r#"Key("retry_policy").Key("intervall_seconds") is not known"#,
        ),
        (
            json!({"question": "?", "timeout_seconds": 0, "retry_policy": {}}),
            r#"Key("timeout_seconds") is not valid"#,
        ),
        (
            json!({"question": "?", "timeout_seconds": 9, "retry_policy": {"interval_seconds": "2"}}),
            r#"Key("retry_policy").Key("interval_seconds") is not valid"#,
        ),
        (
            json!({"question": "?", "timeout_seconds": 5, "fallback_policy": "hope",
                "retry_policy": {"final_fallback_policy": "fail"}}),
            r#"Key("fallback_policy") is not valid"#,
        ),
        (
            json!({"question": "?", "timeout_seconds": 5, "retry_policy": {"final_fallback_policy": 1}}),
            r#"Key("retry_policy").Key("final_fallback_policy") is not valid"#,
        ),
        (
            json!({"question": "?", "response_type": "choice", "choices": [{"value": 1, "label": 1}]}),
            r#"Key("choices").Index(0).Key("label") has the wrong type"#,
        ),
        (
            json!({"question": "?", "timeout_seconds": 5, "retry_policy": {"strategy": "soon"}}),
            r#"Key("retry_policy").Key("strategy") is not valid"#,
        ),
    ];
    for (asked, fault) in cases {
        assert_eq!(parse(asked.clone()), Err(vec![fault.to_owned()]), "{asked}");
    }
}

#[test]
fn a_schema_that_is_none_is_refused_below_its_member() {
    let asked = json!({"question": "?", "response_type": "form", "schema": {"type": "nonsense"}});
    let faults = parse(asked).unwrap_err();
    assert!(faults[0].starts_with(r#"Key("schema")"#), "{faults:?}");
}
