//! Bytes as a type: the first line is an expression or a declaration in JSON, the rest may be the named types that
//! it uses, as a JSON object.
//!
//! What is no type has a bounded list of faults. What is one is displayed as a text that means the same, fits itself,
//! and accepts the same values as the JSON Schema that it is exported as.

use serde_json::{Value, json};
use taskledger_domain::contract::{Compatible, FormFault, Mismatch, Type, Types, compatible};
use taskledger_domain::limits;
use taskledger_domain::task::inputs;

/// Bytes of what one fault says besides what was found.
const EXPECTED_BYTES_MAX: usize = 8 * 1024;
/// Steps within which a type is compared with its JSON Schema: hostile ones may take more than either may.
const STEPS_MAX: u64 = 100_000;

/// Reads `bytes` as a type.
///
/// # Panics
/// When a claim does not hold.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let named = serde_json::from_str::<Value>(rest).unwrap_or_else(|_| usual());
    let types = match Types::parse(Some(&named)) {
        Ok(types) => types,
        Err(faults) => return bounded(&faults),
    };
    let declared = match serde_json::from_str::<Value>(first) {
        Ok(object @ Value::Object(_)) => object,
        Ok(_) | Err(_) => Value::from(first),
    };
    match types.type_of(&declared) {
        Ok(of) => sound(&of, &types),
        Err(faults) => bounded(&faults),
    }
}

/// Named types for expressions that stand alone.
fn usual() -> Value {
    json!({
        "A": {"b": "B?", "n?": "integer"},
        "B": {"a": "array<A>", "k": "K"},
        "J": "string|number|boolean|null|array<J>|map<J>",
        "K": {"enum": ["lo", 1, null, {"n": 1}]},
        "S": {"schema": {"items": {"$ref": "#"}, "maxLength": 3}},
    })
}

fn bounded(faults: &[FormFault]) {
    assert!((1..=limits::VIOLATIONS_MAX).contains(&faults.len()));
    for fault in faults {
        assert!(!fault.reason.is_empty());
        assert!(fault.expected.len() <= EXPECTED_BYTES_MAX, "{fault:?}");
    }
}

fn sound(of: &Type, types: &Types) {
    let text = of.to_string();
    let shown = match serde_json::from_str::<Value>(&text) {
        Ok(object @ Value::Object(_)) => object,
        Ok(_) | Err(_) => Value::from(text.as_str()),
    };
    // What is displayed may be longer than an expression may be.
    if let Ok(again) = types.type_of(&shown) {
        assert_eq!(again, *of, "{text}");
    } else {
        assert!(text.len() > limits::TYPE_CHARS_MAX / 2, "{text}");
    }
    // A comparison may also run out of steps.
    assert_ne!(compatible(of, of), Compatible::Never, "{text}");
    let schema = of.json_schema();
    let compiled = inputs::compile(&schema).ok();
    for value in values() {
        let mut left = STEPS_MAX;
        let accepted = of.accepts_within(&value, &mut left);
        let told = of.mismatches(&value);
        if left < STEPS_MAX / 2 {
            continue;
        }
        assert_eq!(told.is_empty(), accepted, "{text} {value}");
        assert!(told.len() <= limits::VIOLATIONS_MAX);
        for mismatch in told {
            assert!(mismatch.pointer.len() <= Mismatch::POINTER_BYTES_MAX);
        }
        if let Some(schema) = &compiled {
            let mut left = STEPS_MAX;
            if let Ok(checked) = schema.check_within(&value, &mut left) {
                assert_eq!(checked.is_ok(), accepted, "{text} {value} {schema:?}");
            }
        }
    }
}

fn values() -> Vec<Value> {
    let tree = json!({"b": {"a": [{"b": null, "n": 1}], "k": "lo"}});
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1.0),
        json!(1.5),
        json!(""),
        json!("lo"),
        json!([]),
        json!([1, "lo", null]),
        json!([[{}]]),
        json!({}),
        json!({"n": 1}),
        json!({"a": [], "k": 1}),
        tree,
    ]
}
