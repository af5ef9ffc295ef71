//! Turns a good call into one that is probably refused.

use super::Generator;
use crate::differential::oracle::{Oracle, parameter_names};
use crate::differential::script::Call;
use serde_json::{Value, json};

/// Written like a UUID, but of version 1.
const VERSION_1: &str = "0f8fad5b-d9cb-169f-a165-70867728950e";

impl Generator {
    /// Replaces, removes or adds something somewhere in the parameters.
    pub(super) fn spoil(&mut self, params: &mut Value, world: &Oracle) {
        let mut places = Vec::new();
        collect(params, "", &mut places);
        let place = self.random.pick(&places).clone();
        let junk = self.junk(world);
        let kind = self.random.below(10);
        let Some(target) = params.pointer_mut(&place) else {
            return;
        };
        match (kind, target) {
            (0..=1, Value::Object(map)) => _ = map.insert("bogus".into(), junk),
            (2..=3, Value::Object(map)) if !map.is_empty() => {
                let key = map.keys().nth(self.random.below(map.len())).cloned();
                // Workers that have asked for a method make it known for a while, which the oracle does not follow.
                let is_far = map.get("method") == Some(&json!("far"));
                let key = key.filter(|key| !(is_far && key == "type"));
                key.and_then(|key| map.remove(&key));
            }
            (2..=3, Value::Array(items)) => items.push(junk),
            (4, Value::Array(items)) if !items.is_empty() => items.push(items[0].clone()),
            // The parameters themselves stay an object: others are no request.
            (_, target) if !place.is_empty() => *target = junk,
            (_, target) => target["bogus"] = junk,
        }
    }

    fn junk(&mut self, world: &Oracle) -> Value {
        match self.random.below(16) {
            0 => Value::Null,
            1 => json!(7),
            2 => json!(-1),
            3 => json!(1.5),
            4 => json!(""),
            5 => json!("x".repeat(256)),
            6 => json!([]),
            7 => json!({}),
            8 => json!(true),
            9 => json!(VERSION_1),
            10 => json!("@nobody"),
            11 => json!("pending"),
            12 => json!("r"),
            _ => self.task(world),
        }
    }

    /// The same parameters by position, as far as the protocol orders them.
    pub(super) fn by_position(&mut self, call: &mut Call) {
        let Some(map) = call.params.as_object() else {
            return;
        };
        let names = parameter_names(&call.method);
        let last = names.iter().rposition(|n| map.contains_key(*n));
        if map.keys().any(|k| !names.contains(&k.as_str())) || last.is_none() {
            return;
        }
        let list: Vec<Value> = names
            .iter()
            .take(last.map_or(0, |l| l + 1))
            .map(|n| map.get(*n).cloned().unwrap_or(Value::Null))
            .collect();
        // Where null is not the same as nothing, a hole cannot be written.
        let hole = call.method == "tasks.create"
            && names
                .iter()
                .zip(&list)
                .any(|(n, v)| v.is_null() && matches!(*n, "inputs" | "dependencies"));
        if !hole {
            call.params = Value::Array(list);
        }
    }
}

/// Pointers to all values, except inside schemas for inputs, wiring and declarations, which the oracle cannot
/// judge.
fn collect(value: &Value, at: &str, places: &mut Vec<String>) {
    let unjudged = ["/input_schema", "/wiring", "/outputs"];
    if unjudged.iter().any(|name| at.ends_with(name)) {
        return;
    }
    places.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                collect(inner, &format!("{at}/{key}"), places);
            }
        }
        Value::Array(items) => {
            for (i, inner) in items.iter().enumerate() {
                collect(inner, &format!("{at}/{i}"), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
