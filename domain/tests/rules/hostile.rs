//! Input made to hurt: the cost and the size of every answer stay bounded.

use crate::support::{
    cancel, change, create, delete_all, execute_unknown, faults, refusal, resolved_tasks, updating,
};
use serde_json::{Value, json};
use taskledger_domain::Payload;
use taskledger_domain::codec::snapshot;
use taskledger_domain::flow::Refusal;
use taskledger_domain::task::Status::{Cancelled, Completed, InProgress};
use taskledger_domain::task::call::{NewTask, parse_tasks};
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};

const MANY: usize = 20_000;

fn names() -> Vec<String> {
    (0..MANY - 2).map(|n| n.to_string()).collect()
}

fn fan(hub: NewTask, leaf: impl Fn(NewTask) -> NewTask) -> Scenario {
    let mut tasks = vec![group("r"), hub];
    tasks.extend(names().iter().map(|n| leaf(task(n).under("r"))));
    given(tasks)
}

#[test]
fn a_list_of_a_million_faults_is_refused_with_few_violations() {
    let million = |v: Value| Value::Array(vec![v; 1_000_000]);
    for params in [
        json!({"tasks": million(json!(1))}),
        json!({"tasks": million(json!({}))}),
        json!({"name": "a", "children": million(json!(1))}),
        json!({"name": "a", "children": million(json!({}))}),
        json!({"name": "a", "dependencies": million(json!(1))}),
    ] {
        let found = faults(params);
        assert!(!found.is_empty() && found.len() <= 100, "{}", found.len());
    }
    let unknown: serde_json::Map<_, _> =
        (0..100_000).map(|n| (format!("k{n}"), json!(n))).collect();
    assert_eq!(faults(Value::Object(unknown.clone())).len(), 100);
    let mut listed = unknown.clone();
    listed.insert("tasks".to_owned(), json!([{"name": "a"}]));
    assert_eq!(faults(Value::Object(listed)).len(), 100);
    let found = faults(json!({"name": "a", "dependencies": [unknown.clone()]}));
    assert_eq!(found.len(), 100);
    assert_eq!(faults(json!({"task": {"name": "a"}, "x": 1})).len(), 1);
    assert_eq!(
        crate::support::update_faults(Value::Object(unknown)).len(),
        100
    );
}

#[test]
fn many_bad_roots_and_parents_are_refused_with_few_violations() {
    let roots: Vec<_> = (0..MANY).map(|n| json!({"name": n.to_string()})).collect();
    let stored = "660e8400-e29b-41d4-a716-446655440001";
    let mut joining = roots.clone();
    joining[0]["parent_id"] = json!(stored);
    let children: Vec<_> = (1..MANY)
        .map(|_| json!({"name": "c", "parent_id": stored}))
        .collect();
    for tasks in [
        json!(roots),
        json!(joining),
        json!([{"name": "r", "children": children}]),
    ] {
        let refusal = resolved_tasks(tasks).unwrap_err();
        assert!(
            matches!(&refusal, Refusal::InvalidTree(faults) if faults.len() <= 100),
            "{refusal:?}"
        );
    }
}

#[test]
fn a_deep_tree_is_parsed_without_recursion_and_refused() {
    let mut tree = json!({"name": "leaf"});
    for _ in 0..500 {
        tree = json!({"name": "n", "children": [tree]});
    }
    let list = parse_tasks(&json!([tree])).unwrap();
    let mut n = 0;
    let tasks = list.resolve(|_| {
        n += 1;
        id(&n.to_string())
    });
    let s = given(vec![]).when(create(tasks.unwrap().tasks));
    assert!(matches!(refusal(&s), Refusal::InvalidTree(faults) if faults.len() == 100));
}

#[test]
fn a_fan_in_of_20_000_runs_is_cancelled_and_deleted() {
    let all = names();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let sink = fan(task("sink").under("r").after(&all), |t| t);
    let s = sink.clone().when(execute("r")).accepted();
    assert_eq!(s.server.granted.len(), MANY - 2);
    let s = s
        .when(cancel("r"))
        .accepted()
        .then(&[("sink", Cancelled)])
        .runs(false);
    assert_eq!(s.flow, s.replayed());
    let s = sink.when(delete_all("r")).accepted();
    assert_eq!(s.status("sink"), None);
}

#[test]
fn a_hub_with_20_000_dependents_completes_is_rewired_and_deleted() {
    let s = fan(task("hub").under("r"), |t| t.after(&["hub"]));
    let done = s.clone().when(execute("r")).accepted().completes("hub");
    assert_eq!(done.server.granted.len(), MANY - 1);
    let s = s.when(delete_all("r")).accepted();
    assert_eq!(s.status("hub"), None);
}

#[test]
fn a_task_in_a_run_may_be_given_20_000_dependencies() {
    let s = fan(task("x").under("r").after(&["0"]), |t| t)
        .when(execute("r"))
        .accepted();
    let all = names();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let s = updating(s, change("x").dependencies(&all)).accepted();
    let s = updating(s, change("x").dependencies(&all[1..])).accepted();
    assert_eq!(s.flow.task(id("x")).unwrap().dependencies.len(), MANY - 3);
}

#[test]
fn twenty_thousand_open_groups_beside_many_unknown_methods_are_decided() {
    let n = 5000;
    let mut tasks = vec![
        group("top"),
        group("r").under("top"),
        group("w").under("top"),
    ];
    tasks.push(task("bad").under("r"));
    for k in 0..n {
        tasks.push(group(&format!("g{k}")).under("r"));
        tasks.push(
            task(&format!("t{k}"))
                .under(&format!("g{k}"))
                .after(&["bad"]),
        );
    }
    for k in 0..n {
        tasks.push(
            task(&format!("w{k}"))
                .under("w")
                .method(&format!("unknown{k}")),
        );
    }
    let s = given(tasks)
        .when(execute_unknown("w", "one", 1_000_000))
        .accepted();
    let s = s
        .when(execute_unknown("r", "two", 1_000_000))
        .accepted()
        .fails("bad");
    assert_eq!(
        s.status("g4999"),
        Some(taskledger_domain::task::Status::Failed)
    );
    let _ = s.runs(true);
}

#[test]
fn five_thousand_runs_of_one_flow_begin_and_end() {
    let n = 5000;
    let mut tasks = vec![group("r")];
    tasks.extend((0..n).map(|k| task(&k.to_string()).under("r")));
    let mut s = given(tasks);
    for k in 0..n {
        let name = k.to_string();
        s = s
            .when(execute_unknown(&name, &format!("run{k}"), 1))
            .accepted();
    }
    for k in 0..n {
        s = s.completes(&k.to_string());
    }
    let _ = s.then(&[("0", Completed), ("4999", Completed)]).runs(false);
}

#[test]
fn a_result_nested_too_deep_to_be_read_again_is_refused() {
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    assert_eq!(Payload::parse(&nested(100)).unwrap().to_map().len(), 1);
    for levels in [127, 128, 129, 1000, 100_000] {
        if let Ok(payload) = Payload::parse(&nested(levels)) {
            assert_eq!(payload.to_map().len(), 1, "what is accepted can be read");
        }
    }
    assert!(Payload::parse(&nested(100_000)).is_err());
    for text in ["[]", "1", "null", "\"x\"", "", "{", "{} {}", "{\"a\":}"] {
        assert!(Payload::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_damaged_snapshot_is_an_error_and_never_a_panic() {
    let s = given(vec![
        group("r").user("u"),
        group("g").under("r").deadline_ms(1000),
        task("a").under("g").attempts(3, 5),
        task("b").under("r").after(&["g"]).after_any(&["a"]),
    ]);
    let s = s.when(execute("r")).accepted().then(&[("a", InProgress)]);
    let bytes = snapshot::encode(&s.flow);
    for at in 0..bytes.len() {
        assert!(snapshot::decode(&bytes[..at]).is_err(), "cut at {at}");
        for flip in [0x01, 0x02, 0x7f, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            // Some damage gives another sound state; using it must not panic either.
            if let Ok(flow) = snapshot::decode(&damaged) {
                let _ = (
                    flow.copy_set(id("r"), true),
                    flow.task(id("b")),
                    flow.weight_bytes(),
                );
                let _ = taskledger_domain::schedule::resume(&flow);
            }
        }
    }
    assert!(snapshot::decode(&[]).is_err());
    assert!(snapshot::decode(&[0xff; 64]).is_err());
}
