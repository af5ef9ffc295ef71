//! The check of a whole output, and its messages.

use super::{map, outputs, types};
use crate::contract::{Mismatch, OutputFault};
use crate::limits;
use serde_json::{Value, json};

fn fault(schemas: &Value, output: &Value) -> OutputFault {
    outputs(schemas).check(&map(output)).unwrap_err()
}

#[test]
fn presence_comes_before_types_and_all_faults_are_told() {
    let schemas = json!({"types": types(), "outputs": {
        "expenses": "number", "revenue": "number", "findings": "array<Finding>", "note": "any",
        "maybe": {"type": "string", "required": false},
    }});
    let output = json!({
        "revenue": true, "findings": [{"source": 1, "confidence": 1}], "maybe": null, "extra": 1,
    });
    let fault = fault(&schemas, &output);
    assert_eq!(fault.name(), "MissingOutputError");
    assert_eq!(fault.missing, ["expenses", "note"]);
    let mismatch = |key: &str, pointer: &str, expected: &str, actual: &str| Mismatch {
        key: key.to_owned(),
        pointer: pointer.to_owned(),
        expected: expected.to_owned(),
        actual: actual.to_owned(),
    };
    let mismatches = [
        mismatch("findings", "/findings/0/source", "string", "integer"),
        mismatch("maybe", "/maybe", "string", "null"),
        mismatch("revenue", "/revenue", "number", "boolean"),
    ];
    assert_eq!(fault.mismatches, mismatches);
    assert_eq!(
        fault.message(),
        "Task completion rejected: declared output keys 'expenses', 'note' were not present in agent return \
         value; output key 'findings' does not conform at '/findings/0/source': declared string, found integer; \
         output key 'maybe' was declared as string but is null; output key 'revenue' was declared as number but is \
         boolean"
    );
}

#[test]
fn a_missing_key_is_told_as_the_text_has_it() {
    let schemas = json!({"outputs": {"expenses": "number", "revenue": "number"}});
    let missing = fault(&schemas, &json!({"revenue": 1}));
    assert_eq!(
        missing.message(),
        "Task completion rejected: declared output key 'expenses' was not present in agent return value"
    );
    let wrong = fault(&schemas, &json!({"revenue": 1, "expenses": "1"}));
    assert_eq!(wrong.name(), "OutputTypeMismatchError");
    assert_eq!(
        wrong.message(),
        "Task completion rejected: output key 'expenses' was declared as number but is string"
    );
}

#[test]
fn a_complete_output_is_accepted_with_other_keys() {
    let outputs = outputs(&json!({"outputs": {"a": "integer", "b?": "string"}}));
    for output in [json!({"a": 1}), json!({"a": 1.0, "b": "", "c": null})] {
        assert_eq!(outputs.check(&map(&output)), Ok(()));
    }
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"],
    });
    assert_eq!(outputs.json_schema(), schema);
}

#[test]
fn words_and_lists_stay_short_for_long_keys() {
    let key = |i: usize| format!("{i:03}{}", "𝄞".repeat(limits::KEY_CHARS_MAX - 3));
    for count in [1, 2, 5, limits::OUTPUTS_MAX] {
        let keys: serde_json::Map<_, _> = (0..count).map(|i| (key(i), json!("string"))).collect();
        let wrong: serde_json::Map<_, _> = (0..count).map(|i| (key(i), json!(1))).collect();
        let half: serde_json::Map<_, _> = wrong.clone().into_iter().skip(count / 2).collect();
        let schemas = json!({"outputs": keys});
        for output in [json!({}), json!(wrong), json!(half)] {
            let fault = fault(&schemas, &output);
            let message = fault.message();
            assert!(
                message.len() <= OutputFault::MESSAGE_BYTES_MAX,
                "{}",
                message.len()
            );
            assert!(fault.missing.len() <= limits::VIOLATIONS_MAX);
            assert!(fault.mismatches.len() <= limits::VIOLATIONS_MAX);
        }
    }
}

#[test]
fn named_types_are_exported_once() {
    let schemas =
        json!({"types": types(), "outputs": {"a": "Tree", "b": "array<Tree>?", "c": "Level"}});
    let schema = outputs(&schemas).json_schema();
    let definitions = json!({
        "Tree": {
            "type": "object",
            "properties": {
                "value": {},
                "children": {"type": "array", "items": {"$ref": "#/definitions/Tree"}},
            },
            "required": ["children", "value"],
        },
        "Level": {"enum": ["low", "high", 1, null, {"n": 1}]},
    });
    assert_eq!(schema["definitions"], definitions);
    assert_eq!(
        schema["properties"]["a"],
        json!({"$ref": "#/definitions/Tree"})
    );
    let optional = json!({"anyOf": [
        {"type": "array", "items": {"$ref": "#/definitions/Tree"}},
        {"type": "null"},
    ]});
    assert_eq!(schema["properties"]["b"], optional);
}

#[test]
fn an_output_is_required_unless_it_says_otherwise() {
    let schemas = json!({"outputs": {
        "plain": "any", "around": {"type": "any"}, "said": {"type": "any", "required": true},
        "optional": {"type": "any", "required": false}, "marked?": "any",
    }});
    let fault = fault(&schemas, &json!({}));
    assert_eq!(fault.missing, ["around", "plain", "said"]);
    assert_eq!(fault.mismatches, []);
    // Null is a value: what is there is not missing.
    let nulls = json!({"plain": null, "around": null, "said": null});
    assert_eq!(outputs(&schemas).check(&map(&nulls)), Ok(()));
}

#[test]
fn a_mismatch_in_depth_names_its_place_and_what_is_declared_there() {
    let schemas = json!({
        "types": {"Node": {"v": "integer", "level?": "Level"}, "Level": {"enum": ["low", "high"]}},
        "outputs": {"n": "Node"},
    });
    let message = |output: &Value| fault(&schemas, output).message();
    assert_eq!(
        message(&json!({"n": {"v": true}})),
        "Task completion rejected: output key 'n' does not conform at '/n/v': declared integer, found boolean"
    );
    assert_eq!(
        message(&json!({"n": {"v": 1, "level": "mid"}})),
        "Task completion rejected: output key 'n' does not conform at '/n/level': declared Level (one of \"low\", \
         \"high\"), found \"mid\""
    );
    assert_eq!(
        message(&json!({"n": 1})),
        "Task completion rejected: output key 'n' was declared as Node but is integer"
    );
}

#[test]
fn what_a_json_schema_demands_reads_as_a_type() {
    for (schema, value, told) in [
        (
            json!({"minimum": 3}),
            json!(1),
            "a number of at least 3 but is 1",
        ),
        (
            json!({"maxLength": 1}),
            json!("ab"),
            "a text of at most 1 characters but is \"ab\"",
        ),
        (
            json!({"enum": ["a", "b"]}),
            json!("c"),
            "one of \"a\", \"b\" but is \"c\"",
        ),
        (
            json!({"type": ["string", "null"]}),
            json!(1),
            "but is integer",
        ),
        (
            json!({"format": "date"}),
            json!("x"),
            "a text of the format `date` but is \"x\"",
        ),
    ] {
        let schemas = json!({"outputs": {"sch": {"schema": schema}}});
        let message = fault(&schemas, &json!({"sch": value})).message();
        assert!(
            message.contains("output key 'sch' was declared as "),
            "{message}"
        );
        assert!(message.ends_with(told), "{message}");
    }
    let many: Vec<Value> = vec![json!("x"); 2 * limits::VIOLATIONS_MAX];
    let schemas = json!({"outputs": {"sch": {"schema": {"items": {"type": "integer"}}}}});
    let last = fault(&schemas, &json!({"sch": many}))
        .mismatches
        .pop()
        .unwrap();
    assert!(
        !last.expected.contains("listed")
            || last.expected.starts_with("what its JSON Schema accepts ("),
        "{last:?}"
    );
}
