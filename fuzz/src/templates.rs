//! Bytes as inputs with templates and wired inputs: a JSON object `{inputs, wiring?, types?, result?}`, or a text that
//! is one input.
//!
//! What is refused is refused with a bounded list of faults. What is accepted is accepted again as it is stored, and
//! the inputs of an attempt are what the results say, within their limits, or nothing.

use serde_json::{Map, Value, json};
use taskledger_domain::RunId;
use taskledger_domain::flow::Specification;
use taskledger_domain::limits;
use taskledger_domain::task::call::{self, NewTask};
use taskledger_domain::task::wiring::{AttemptIds, Wiring, copied};
use taskledger_domain::testing::id;

/// Bytes of a refusal besides what it repeats of the input.
const REFUSAL_BYTES_MAX: usize = limits::VIOLATIONS_MAX * 4096;

/// Reads `bytes` as inputs.
///
/// # Panics
/// When a claim does not hold.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let given = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) if map.contains_key("inputs") => map,
        Ok(_) | Err(_) => Map::from_iter([("inputs".to_owned(), json!({"x": text}))]),
    };
    let result = given.get("result").and_then(Value::as_object).cloned();
    let result = result.unwrap_or_else(|| {
        let usual = json!({"n": 7, "text": "{{a.n}}", "list": [{"k": null}], "self": "{{t.x}}"});
        usual.as_object().cloned().unwrap_or_default()
    });
    let Some(task) = accepted(&call_of(&given), bytes) else {
        return;
    };
    stored(&given, &task, bytes);
    filled(&task.specification, &result);
}

/// A root, two tasks that the third depends on, one of them optionally, and the third.
fn call_of(given: &Map<String, Value>) -> Value {
    let mut schemas = json!({"method": "work", "templates": true});
    for member in ["wiring", "types"] {
        if let Some(value) = given.get(member) {
            schemas[member] = value.clone();
        }
    }
    let plain = |name: &str| json!({"id": name, "name": name, "parent_id": "root", "schemas": {"method": "work"}});
    json!({"tasks": [
        {"id": "root", "name": "root"}, plain("a"), plain("maybe"),
        {"id": "t", "name": "t", "parent_id": "root", "inputs": given.get("inputs"), "schemas": schemas,
         "dependencies": [{"id": "a"}, {"id": "maybe", "required": false}]},
    ]})
}

/// The last task of the call, with references by id.
fn accepted(call: &Value, bytes: &[u8]) -> Option<NewTask> {
    let list = match call::parse_create(call.as_object()?) {
        Ok(list) => list,
        Err(faults) => {
            assert!((1..=limits::VIOLATIONS_MAX).contains(&faults.len()));
            return None;
        }
    };
    let mut minted = 0;
    let mint = |_| {
        minted += 1;
        id(&format!("minted {minted}"))
    };
    match list.resolve(mint) {
        Ok(resolved) => resolved.tasks.into_iter().last(),
        Err(unresolved) => {
            let told = json!(unresolved.refusals).to_string().len();
            assert!(told <= REFUSAL_BYTES_MAX + 8 * bytes.len(), "{told} bytes");
            None
        }
    }
}

/// What `tasks.get` shows can be written: the stored form names tasks by id, and means the same.
fn stored(given: &Map<String, Value>, task: &NewTask, bytes: &[u8]) {
    let specification = &task.specification;
    let schemas = specification.schemas.as_ref().map(|it| it.to_map());
    let mut again = given.clone();
    again.insert("inputs".to_owned(), specification.inputs.to_map().into());
    for (member, value) in schemas.unwrap_or_default() {
        again.insert(member, value);
    }
    let mut call = call_of(&again);
    // The ids that the first call minted.
    for (index, task) in ["root", "a", "maybe", "t"].into_iter().enumerate() {
        let minted = id(&format!("minted {}", index + 1)).to_string();
        call["tasks"][index]["id"] = Value::from(minted.as_str());
        for other in 1..4 {
            if call["tasks"][other]["parent_id"] == task {
                call["tasks"][other]["parent_id"] = Value::from(minted.as_str());
            }
        }
        for dependency in 0..2 {
            if call["tasks"][3]["dependencies"][dependency]["id"] == task {
                call["tasks"][3]["dependencies"][dependency]["id"] = Value::from(minted.as_str());
            }
        }
    }
    let again = accepted(&call, bytes).expect("what was accepted is accepted again");
    assert_eq!(again.specification, *specification);
}

fn attempt() -> AttemptIds {
    AttemptIds {
        task: id("t"),
        run: RunId(id("r").0),
        attempt: 2,
    }
}

fn filled(specification: &Specification, result: &Map<String, Value>) {
    let wiring = Wiring::of(specification);
    let literal = &specification.inputs;
    let fill = || wiring.inputs(literal, attempt(), |_| Some(result));
    let inputs = fill();
    assert_eq!(inputs, fill(), "the same results say the same");
    assert!(wiring.sources().count() <= 2);
    if let Ok(inputs) = &inputs {
        assert!(inputs.as_str().len() <= limits::PAYLOAD_BYTES_MAX);
        let inputs = inputs.to_map();
        let of_results = wiring.from_results(literal, &inputs);
        assert!(of_results.keys().all(|key| inputs.contains_key(key)));
        for used in wiring.uses(literal) {
            assert!(used.input.starts_with('/'), "{used:?}");
        }
    }
    // Without results there is nothing but what is literal or has a default.
    let alone = wiring.inputs(literal, attempt(), |_| None);
    if wiring.is_empty() {
        assert_eq!(alone.as_ref(), Ok(literal));
    }
    let same = copied(specification.clone(), Some);
    assert_eq!(same, *specification, "a copy with the same ids is the same");
}
