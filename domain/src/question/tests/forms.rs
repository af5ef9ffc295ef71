//! Forms of questions.

use super::{form, parse};
use serde_json::json;

#[test]
fn fields_are_those_of_a_form_whatever_they_are_called() {
    for (fields, answer, other) in [
        (
            json!({"schema": {"type": "string"}}),
            json!({"schema": "x"}),
            json!({"n": 1}),
        ),
        (
            json!({"schema": {"a": "integer"}}),
            json!({"schema": {"a": 1}}),
            json!({"a": 1}),
        ),
        (
            json!({"enum": "integer"}),
            json!({"enum": 1}),
            json!({"enum": "1"}),
        ),
        (json!({}), json!({"n": 1}), json!("n")),
    ] {
        let question = parse(form(&json!({"fields": fields}))).expect("a form");
        assert_eq!(question.expects.check(&answer), Ok(()), "{fields}");
        assert!(question.expects.check(&other).is_err(), "{fields}");
    }
    let schema = parse(form(&json!({"schema": true}))).expect("a form of any object");
    assert_eq!(schema.expects.check(&json!({})), Ok(()));
}

#[test]
fn a_form_that_nobody_can_answer_is_refused() {
    let cases = [
        (json!({"schema": "string"}), r#"Key("schema") is not valid"#),
        (json!({"schema": false}), r#"Key("schema") is not valid"#),
        (json!({"schema": null}), r#"Key("schema") is not valid"#),
        (json!({"schema": [{}]}), r#"Key("schema") is not valid"#),
        (
            json!({"schema": {"type": "string"}}),
            r#"Key("schema") accepts no answer"#,
        ),
        (
            json!({"schema": {"type": ["string", "null"]}}),
            r#"Key("schema") accepts no answer"#,
        ),
        (
            json!({"schema": {"enum": ["a", 1]}}),
            r#"Key("schema") accepts no answer"#,
        ),
        (
            json!({"schema": {"const": 1}}),
            r#"Key("schema") accepts no answer"#,
        ),
        (
            json!({"fields": {"a": {"schema": false}}}),
            r#"Key("fields") accepts no answer"#,
        ),
        (
            json!({"fields": {"a": {"b": {"schema": false}}}}),
            r#"Key("fields") accepts no answer"#,
        ),
        (
            json!({"fields": {"enum": ["a"]}}),
            r#"Key("fields").Key("enum") Invalid type"#,
        ),
        (json!({"fields": "string"}), r#"Key("fields") is not valid"#),
        (
            json!({"fields": {}, "schema": {}}),
            r#"Key("schema") is not valid"#,
        ),
    ];
    for (members, fault) in cases {
        assert_eq!(
            parse(form(&members)),
            Err(vec![fault.to_owned()]),
            "{members}"
        );
    }
    for members in [
        json!({"schema": {"type": ["object", "null"]}}),
        json!({"schema": {"enum": ["a", {}]}}),
        json!({"schema": {"$ref": "#/definitions/o", "type": "string", "definitions": {"o": {}}}}),
        json!({"fields": {"a?": {"schema": false}}}),
    ] {
        let question = parse(form(&members)).expect("a form");
        assert_eq!(question.expects.check(&json!({})), Ok(()), "{members}");
    }
}
