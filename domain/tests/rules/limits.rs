//! Each bound: its last value is accepted, the next one refused with field, limit and value.
//! spec: semantics / Trees and flows, Limits

use crate::support::{create, faults, fields, path, refusal, resolved_tasks};
use serde_json::{Value, json};
use taskledger_domain::flow::{Fault, Refusal};
use taskledger_domain::limits;
use taskledger_domain::task::call::parse_tasks;
use taskledger_domain::testing::{given, group, id, task};

#[test]
fn the_limits_are_those_of_the_semantics() {
    assert_eq!(limits::TREE_DEPTH_MAX, 60);
    assert_eq!(limits::REQUEST_BODY_BYTES_MAX, 16 << 20);
    assert_eq!(limits::BATCH_CALLS_MAX, 100);
    assert_eq!(limits::TASKS_PER_CALL_MAX, 20_000);
    assert_eq!(limits::DEPENDENCIES_PER_TASK_MAX, 20_000);
    assert_eq!(limits::TASKS_PER_FLOW_MAX, 100_000);
    assert_eq!(limits::PAYLOAD_BYTES_MAX, 1 << 20);
    assert_eq!(limits::NAME_CHARS_MAX, 255);
    assert_eq!(
        (limits::LIST_LIMIT_DEFAULT, limits::LIST_LIMIT_MAX),
        (100, 1000)
    );
    assert_eq!(limits::EXECUTOR_WAIT_MS_DEFAULT, 300_000);
    assert_eq!(limits::INTERRUPTIONS_PER_RUN_MAX, 3);
}

fn flat(n: usize) -> Value {
    let mut tasks = vec![json!({"id": "r", "name": "r"})];
    tasks.extend((1..n).map(|_| json!({"name": "t", "parent_id": "r"})));
    Value::Array(tasks)
}

#[test]
fn a_call_has_at_most_20_000_tasks_however_it_is_written() {
    assert_eq!(resolved_tasks(flat(20_000)).unwrap().tasks.len(), 20_000);
    let children: Vec<_> = (0..20_000).map(|_| json!({"name": "t"})).collect();
    for tasks in [flat(20_001), json!([{"name": "r", "children": children}])] {
        let found = parse_tasks(&tasks).unwrap_err();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].reason, "Too many tasks");
        assert_eq!(found[0].expected, "at most 20000 tasks in a call");
        assert_eq!(found[0].actual, json!(20_001));
    }
}

#[test]
fn a_task_has_at_most_20_000_dependencies() {
    let with = |n: usize| {
        let list: Vec<_> = (0..n).map(|i| json!({"id": format!("t{i}")})).collect();
        json!({"name": "a", "dependencies": list})
    };
    assert_eq!(faults(with(20_000)), []);
    let found = faults(with(20_001));
    assert_eq!(fields(&found), ["dependencies"]);
    assert_eq!(found[0].expected, "at most 20000 dependencies");
    assert_eq!(found[0].actual, json!(20_001));
}

#[test]
fn inputs_schemas_and_params_are_at_most_1_mib_of_json_each() {
    // `{"k":"..."}` has 8 bytes around the text, `{"method":"m","workflow":"..."}` has 28.
    for (field, around) in [("inputs", 8), ("params", 8), ("schemas", 28)] {
        let with = |bytes: usize| {
            let text = "x".repeat(bytes - around);
            let object = match field {
                "schemas" => json!({"method": "m", "workflow": text}),
                _ => json!({"k": text}),
            };
            json!({"name": "a", field: object})
        };
        assert_eq!(faults(with(1 << 20)), [], "{field}");
        let found = faults(with((1 << 20) + 1));
        assert_eq!(found.iter().map(path).collect::<Vec<_>>(), [field]);
        assert_eq!(found[0].expected, "at most 1048576 bytes");
        assert_eq!(found[0].actual, json!((1 << 20) + 1));
    }
}

#[test]
fn inputs_schemas_and_params_are_nested_at_most_100_levels_each() {
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"x": inner}));
    for field in ["inputs", "params"] {
        let limit = limits::PAYLOAD_DEPTH_MAX;
        assert!(parse_tasks(&json!([{"name": "t", field: nested(limit)}])).is_ok());
        let found = parse_tasks(&json!([{"name": "t", field: nested(limit + 1)}])).unwrap_err();
        assert_eq!(fields(&found), [field]);
        assert_eq!(found[0].actual, json!(limit + 1));
    }
}

#[test]
fn a_flow_has_at_most_100_000_tasks_deleted_ones_included() {
    let many = |from: usize, to: usize| {
        (from..to)
            .map(|n| task(&n.to_string()).under("r"))
            .collect::<Vec<_>>()
    };
    let mut s = given(vec![group("r")]);
    for k in 0..5 {
        s = s
            .when(create(many(1 + k * 19_999, 1 + (k + 1) * 19_999)))
            .accepted();
    }
    s = s.when(create(many(99_996, 100_000))).accepted();
    assert_eq!(s.flow.size(), 100_000);
    let s = s.when(crate::support::delete("5")).accepted();
    let s = s.when(create(many(100_000, 100_001)));
    let fault = Fault::FlowTooLarge {
        tasks: 100_001,
        tasks_max: 100_000,
    };
    assert_eq!(*refusal(&s), Refusal::Invalid(vec![fault]));
    assert!(s.flow.task(id("100000")).is_none());
}

#[test]
fn a_refusal_reports_at_most_100_faults() {
    let tasks: Vec<_> = (0..300).map(|_| json!({"name": ""})).collect();
    assert_eq!(parse_tasks(&Value::Array(tasks)).unwrap_err().len(), 100);
    let deps: Vec<_> = (0..300).map(|i| json!({"id": format!("no{i}")})).collect();
    let refused = resolved_tasks(json!([{"name": "a", "dependencies": deps}])).unwrap_err();
    assert!(matches!(refused, Refusal::Invalid(faults) if faults.len() == 100));
    let names: Vec<String> = (0..300).map(|i| format!("no{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let s = given(vec![group("r")]).when(create(vec![task("a").under("r").after(&names)]));
    assert!(matches!(refusal(&s), Refusal::DependenciesNotFound(all) if all.len() == 100));
}
