//! References: how they are read, stored, resolved and copied.

use super::form::is_reference;
use super::place::READINGS_MAX;
use super::*;
use crate::RunId;
use crate::flow::{Dependency, When};
use crate::task::spec::Schemas;
use crate::testing::id;
use serde_json::json;
use uuid::Uuid;

/// The attempt whose inputs are put together.
pub(super) const ATTEMPT: AttemptIds = AttemptIds {
    task: TaskId(Uuid::from_u128(1)),
    run: RunId(Uuid::from_u128(2)),
    attempt: 3,
};

fn payload(value: &Value) -> Payload {
    Payload::from_map(value.as_object().unwrap())
}

fn task(inputs: &Value, wiring: &Value) -> Specification {
    let raw = payload(&json!({"method": "work", "wiring": wiring}));
    let schemas = Schemas {
        raw,
        method: "work".to_owned(),
        remote: false,
    };
    Specification::assemble(payload(inputs), Some(schemas), None)
}

fn with_schemas(schemas: &Value) -> Specification {
    let mut specification = task(&json!({}), &json!({}));
    specification.schemas = Some(payload(schemas));
    specification
}

fn on(name: &str, required: bool) -> Dependency {
    let id = id(name);
    let when = When::required(required);
    Dependency { id, when }
}

/// The wiring of a task that depends on `names`, as it is stored.
fn stored(wiring: &Value, names: &[&str]) -> Specification {
    let task = task(&json!({}), wiring);
    let dependencies: Vec<_> = names.iter().map(|name| on(name, true)).collect();
    let find = |text: &str| names.contains(&text).then(|| id(text));
    resolve(&task, &dependencies, find).unwrap().unwrap_or(task)
}

/// The inputs with this result of every task.
fn inputs(wiring: &Value, result: &Value) -> Result<Value, InputFault> {
    let task = stored(wiring, &["a"]);
    let inputs = Wiring::of(&task).inputs(&task.inputs, ATTEMPT, |_| result.as_object());
    inputs.map(|inputs| Value::Object(inputs.to_map()))
}

#[test]
fn names_are_stored_as_ids_and_the_rest_as_it_is() {
    let names = ["a", "a.b", "a#c"];
    let cases = [
        ("a.key", "a", ".key"),
        ("a.b", "a", ".b"),
        ("a.b.key#/x/0", "a", ".b.key#/x/0"),
        ("a#", "a", "#"),
        ("a#/k~1/1", "a", "#/k~1/1"),
    ];
    for (written, name, place) in cases {
        let wiring = json!({"x": written, "y": {"from": written, "default": 1}});
        let schemas = stored(&wiring, &names).schemas.unwrap().to_map();
        let expected = format!("{}{place}", id(name));
        let wiring = json!({"x": expected, "y": {"from": expected, "default": 1}});
        assert_eq!(schemas["wiring"], wiring, "{written}");
    }
}

#[test]
fn a_name_with_dots_is_found_when_no_shorter_one_is_a_dependency() {
    let schemas = stored(&json!({"x": "a.b.key"}), &["a.b"]).schemas.unwrap();
    let expected = format!("{}.key", id("a.b"));
    assert_eq!(schemas.to_map()["wiring"], json!({"x": expected}));
}

#[test]
fn what_cannot_be_wired_is_named_by_its_key() {
    let wiring = json!({
        "stranger": "b.key",
        "twice": "a.key",
        "absent": "maybe.key",
        "spared": {"from": "maybe.key", "required": false},
        "filled": {"from": "maybe.key", "default": null},
    });
    let task = task(&json!({"twice": 1}), &wiring);
    let dependencies = [on("a", true), on("maybe", false)];
    let faults = resolve(&task, &dependencies, |text| Some(id(text))).unwrap_err();
    let mut faults: Vec<_> = faults
        .iter()
        .map(|it| match it {
            Unresolved::Wire(it) => (it.key.as_str(), it.text.as_str(), it.fault),
            Unresolved::Template(it) => panic!("{it:?}"),
        })
        .collect();
    faults.sort_by_key(|(key, ..)| *key);
    assert_eq!(
        faults,
        [
            ("absent", "maybe.key", WireFault::MayBeAbsent),
            ("stranger", "b.key", WireFault::NoDependency),
            ("twice", "a.key", WireFault::InInputs),
        ]
    );
}

#[test]
fn values_are_taken_from_results_with_their_types() {
    let wiring = json!({
        "all": "a#",
        "list": "a.list",
        "second": "a.list#/1",
        "deep": "a#/list/0/n",
        "null": "a.null",
        "odd": "a#/x~1y",
        "default": {"from": "a.none", "default": [1]},
    });
    let result = json!({"list": [{"n": 1.0}, "two"], "null": null, "x/y": true});
    let expected = json!({
        "all": result, "list": result["list"], "second": "two", "deep": 1.0, "null": null, "odd": true,
        "default": [1],
    });
    assert_eq!(inputs(&wiring, &result).unwrap(), expected);
}

#[test]
fn every_value_that_is_missing_is_named_and_optional_ones_are_left_out() {
    let wiring = json!({
        "x": "a.none", "y": "a.list#/7", "z": {"from": "a.none", "required": false}, "ok": "a.list",
    });
    let missing = format!("{0}.none, {0}.list#/7", id("a"));
    let error = inputs(&wiring, &json!({"list": []})).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("UnresolvableInputError: no value for {missing}")
    );
    let all = json!({"none": 1, "list": [0, 0, 0, 0, 0, 0, 0, 7]});
    assert_eq!(inputs(&wiring, &all).unwrap()["z"], 1);
}

#[test]
fn inputs_that_grow_too_large_are_refused() {
    let large = "x".repeat(limits::PAYLOAD_BYTES_MAX / 2);
    let error = inputs(&json!({"x": "a.v", "y": "a.v"}), &json!({"v": large})).unwrap_err();
    assert!(matches!(error, InputFault::Unfit(_)), "{error}");
}

#[test]
fn a_large_value_that_many_inputs_name_is_not_copied_for_each() {
    let many: Map<_, _> = (0..limits::WIRED_INPUTS_MAX)
        .map(|i| (i.to_string(), json!("a#")))
        .collect();
    let result = json!({"v": vec![0; limits::PAYLOAD_BYTES_MAX / 4]});
    let error = inputs(&Value::Object(many), &result).unwrap_err();
    assert!(error.to_string().contains("Too large"), "{error}");
}

#[test]
fn a_reference_that_is_not_of_the_stored_form_has_no_value() {
    let task = task(
        &json!({}),
        &json!({"x": "a.v", "y": {"from": "a.v", "default": 1}}),
    );
    let result = json!({"v": 7});
    let error = Wiring::of(&task).inputs(&task.inputs, ATTEMPT, |_| result.as_object());
    let expected = InputFault::Unresolvable(vec!["a.v".to_owned()]);
    assert_eq!(error.unwrap_err(), expected);
    assert!(is_wired(&task));
}

#[test]
fn a_reference_with_endless_dots_is_read_in_a_few_ways() {
    let text = format!("a{}", ".".repeat(1000));
    assert_eq!(readings(&text).count(), READINGS_MAX);
}

#[test]
fn what_is_accepted_is_accepted_again_as_it_is_stored() {
    let longest = limits::REFERENCE_CHARS_MAX - ID_CHARS - 1;
    assert!(is_reference(&format!("a.{}", "k".repeat(longest))));
    assert!(is_reference(&format!(
        "{}.{}",
        id("a"),
        "k".repeat(longest)
    )));
    assert!(!is_reference(&format!("a.{}", "k".repeat(longest + 1))));
}

#[test]
fn an_attempt_has_its_inputs_and_no_wiring() {
    let task = stored(&json!({"x": "a.v"}), &["a"]).with_inputs(payload(&json!({"x": 1})));
    assert!(Wiring::of(&task).is_empty());
    assert_eq!(
        task.schemas.unwrap().to_map(),
        *json!({"method": "work"}).as_object().unwrap()
    );
}

#[test]
fn a_copy_names_what_was_copied_with_it() {
    let task = stored(
        &json!({"x": "a.v", "y": {"from": "b.v", "default": 1}}),
        &["a", "b"],
    );
    let new_id = |old: TaskId| (old == id("a")).then(|| id("copy"));
    let copied = copied(task, new_id).schemas.unwrap().to_map();
    let expected = json!({
        "x": format!("{}.v", id("copy")),
        "y": {"from": format!("{}.v", id("b")), "default": 1},
    });
    assert_eq!(copied["wiring"], expected);
}

#[test]
fn the_form_is_checked_member_by_member() {
    let faults = |wiring: Value| -> Vec<(String, &'static str)> {
        let schemas = json!({"wiring": wiring});
        let faults = form_faults(schemas.as_object().unwrap(), &mut {
            limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX
        });
        faults
            .into_iter()
            .map(|fault| (fault.path.join("/"), fault.reason))
            .collect()
    };
    let fault = |path: &str, reason| vec![(path.to_owned(), reason)];
    assert_eq!(faults(json!({})), []);
    assert_eq!(
        faults(json!({"x": "a.b", "y": {"from": "a#", "required": false}})),
        []
    );
    assert_eq!(faults(json!([])), fault("", "Wrong type"));
    for text in ["", "a", ".b", "a.", "a.b#c", "a.b#/~2", "#/x"] {
        assert_eq!(
            faults(json!({"x": text})),
            fault("x", "Invalid reference"),
            "{text}"
        );
    }
    assert_eq!(faults(json!({"x": 1})), fault("x", "Invalid reference"));
    assert_eq!(
        faults(json!({"x": {}})),
        fault("x/from", "Required field is missing")
    );
    assert_eq!(
        faults(json!({"x": {"from": 1}})),
        fault("x/from", "Invalid reference")
    );
    assert_eq!(
        faults(json!({"x": {"from": "a.b", "required": 1}})),
        fault("x/required", "Wrong type")
    );
    assert_eq!(
        faults(json!({"x": {"from": "a.b", "form": 1}})),
        fault("x/form", "Unknown field")
    );
    let many: Map<_, _> = (0..=limits::WIRED_INPUTS_MAX)
        .map(|i| (i.to_string(), json!("a.b")))
        .collect();
    assert_eq!(faults(Value::Object(many)), fault("", "Too many inputs"));
}

#[test]
fn a_value_must_be_of_the_type_that_is_declared_for_it() {
    let wiring = |declared: Value| {
        let wire = json!({"from": format!("{}.n", id("a")), "type": declared});
        let schemas = json!({
            "method": "m", "wiring": {"x": wire},
            "types": {"Size": {"width": "integer"}},
        });
        assert!(
            form_faults(schemas.as_object().unwrap(), &mut {
                limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX
            })
            .is_empty(),
            "{schemas}"
        );
        Wiring::of(&with_schemas(&schemas))
    };
    let inputs = |declared: Value, value: Value| {
        let result = json!({"n": value});
        let result = result.as_object().unwrap();
        wiring(declared).inputs(&Payload::empty(), ATTEMPT, |_| Some(result))
    };
    assert!(inputs(json!("integer"), json!(3)).is_ok());
    assert!(inputs(json!("array<Size>"), json!([{"width": 1}])).is_ok());
    let unlike = inputs(json!("array<Size>"), json!([{"width": "1"}])).unwrap_err();
    let text = unlike.to_string();
    assert_eq!(
        text,
        "inputs do not conform: `x/0/width`: string, expected integer"
    );
}

#[test]
fn a_default_of_another_type_is_a_fault_of_its_input() {
    let faults_of = |default: Value| {
        let schemas =
            json!({"wiring": {"x": {"from": "a.n", "type": "integer", "default": default}}});
        let faults = form_faults(schemas.as_object().expect("an object"), &mut {
            limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX
        });
        faults
            .into_iter()
            .map(|fault| fault.path.join("."))
            .collect::<Vec<_>>()
    };
    assert!(faults_of(json!(1)).is_empty());
    for default in [json!("1"), json!(true), json!(null), json!(1.5)] {
        assert_eq!(faults_of(default), ["x.default"]);
    }
}

#[test]
fn a_type_that_is_none_is_a_fault_of_its_input() {
    let schemas = json!({"wiring": {"x": {"from": "a.n", "type": "strin"}}});
    let faults = form_faults(schemas.as_object().unwrap(), &mut {
        limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX
    });
    let [fault] = faults.as_slice() else {
        panic!("{faults:?}");
    };
    assert_eq!(fault.path, ["x", "type"]);
}

#[test]
fn what_a_document_names_besides_phases_is_stored_and_has_no_value() {
    let schemas =
        json!({"method": "m", "wiring": {"x": "$trigger.quarter", "y": "$initial_state.a"}});
    let specification = with_schemas(&schemas);
    let stored = resolve(&specification, &[], |_| None).unwrap().unwrap();
    assert_eq!(
        stored.schemas.unwrap().to_map()["wiring"],
        schemas["wiring"]
    );
    let wiring = Wiring::of(&specification);
    let missing = wiring
        .inputs(&Payload::empty(), ATTEMPT, |_| None)
        .unwrap_err();
    let all = vec!["$trigger.quarter".to_owned(), "$initial_state.a".to_owned()];
    assert_eq!(missing, InputFault::Unresolvable(all));
}

#[test]
fn checks_of_the_values_of_one_attempt_share_their_steps() {
    // 999 small objects in the list of allowed values, before each of which an item is compared.
    let allowed: Vec<_> = (0..999).map(|i| json!({"n": i})).collect();
    let wire = json!({"from": format!("{}.n", id("a")), "type": "array<E>"});
    let wiring: Map<_, _> = (0..limits::WIRED_INPUTS_MAX)
        .map(|i| (format!("x{i:03}"), wire.clone()))
        .collect();
    let schemas = json!({"method": "m", "wiring": wiring, "types": {"E": {"enum": allowed}}});
    let wiring = Wiring::of(&with_schemas(&schemas));
    let result = json!({"n": vec![json!({"n": 998}); 50]});
    let error = wiring.inputs(&Payload::empty(), ATTEMPT, |_| result.as_object());
    let InputFault::Unlike(told) = error.unwrap_err() else {
        panic!("values that are not checked are not taken");
    };
    assert!((1..limits::WIRED_INPUTS_MAX).contains(&told.len()));
    let last = told.last().unwrap();
    assert_eq!(last, "`x255`: too costly to check, expected array<E>");
}
