//! Section "Inputs and schemas": the small part of JSON Schema that the scripts use.

use super::ids::join;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Paths at which `inputs` break the schema of the task or of its executor: `type: object`,
/// `required`, and `type` of properties. A missing member is a fault of the object.
pub(crate) fn faults(inputs: &Value, schemas: &Value, path: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let inputs = inputs.as_object().cloned().unwrap_or_default();
    let path = join(path, "inputs");
    breaks(&inputs, &schemas["input_schema"], &path, &mut found);
    let executor = schemas["method"]
        .as_str()
        .and_then(crate::differential::gate::executor);
    let fraction = |n: &Value| n.as_f64().is_none_or(|n| n.fract() != 0.0);
    if executor.is_some_and(|k| k.wants_integer) && inputs.get("n").is_some_and(fraction) {
        found.insert(join(&path, "n"));
    }
    found
}

fn breaks(inputs: &Map<String, Value>, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if !inputs.contains_key(name) {
            found.insert(join(path, name));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let Some(value) = inputs.get(name) else {
            continue;
        };
        let fits = match property["type"].as_str() {
            Some("string") => value.is_string(),
            Some("integer") => value.as_f64().is_some_and(|n| n.fract() == 0.0),
            _ => true,
        };
        if !fits {
            found.insert(join(path, name));
        }
    }
}
