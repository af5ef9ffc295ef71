//! docs/guides/contracts.md: what a result must have, as far as the scripts declare it.

use super::{Refusal, Value};

/// A key of the result lacks; has another type.
const MISSING: i64 = -31024;
const OTHER_TYPE: i64 = -31025;

/// Whether a result keeps `schemas.outputs`: required keys first, then types.
pub(super) fn check(schemas: &Value, result: &Value) -> Result<(), Refusal> {
    let outputs = schemas["outputs"].as_object();
    let refused = |code| Err(Refusal { code, paths: None });
    let mut fits = true;
    for (key, declared) in outputs.into_iter().flatten() {
        let is_required = declared["required"] != false;
        let kind = declared.as_str().or(declared["type"].as_str());
        match result.get(key) {
            None if is_required => return refused(MISSING),
            None => {}
            Some(value) => fits &= accepts(kind.unwrap_or_default(), value),
        }
    }
    if fits { Ok(()) } else { refused(OTHER_TYPE) }
}

fn accepts(kind: &str, value: &Value) -> bool {
    if let Some(kind) = kind.strip_suffix('?') {
        return value.is_null() || accepts(kind, value);
    }
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "any" => true,
        _ => unreachable!("scripts declare no `{kind}`"),
    }
}

#[test]
fn missing_keys_are_told_before_other_types() {
    let code = |outputs: &str, result: &str| {
        let outputs: Value = serde_json::from_str(outputs).expect("JSON");
        let result: Value = serde_json::from_str(result).expect("JSON");
        let schemas = serde_json::json!({"outputs": outputs});
        check(&schemas, &result).err().map(|refusal| refusal.code)
    };
    let outputs = r#"{"a": "integer", "b": {"type": "string?", "required": false}}"#;
    assert_eq!(code(outputs, r#"{"a": 1.0, "more": 1}"#), None);
    assert_eq!(code(outputs, r#"{"a": 1, "b": null}"#), None);
    assert_eq!(code(outputs, r#"{"b": 1}"#), Some(MISSING));
    assert_eq!(code(outputs, r#"{"a": true}"#), Some(OTHER_TYPE));
    assert_eq!(code(outputs, r#"{"a": 1, "b": 1}"#), Some(OTHER_TYPE));
}
