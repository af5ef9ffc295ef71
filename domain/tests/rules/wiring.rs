//! Inputs that are wired to results, in calls and updates.

use crate::support::{faults, minted, path, resolved, resolved_tasks};
use serde_json::{Value, json};
use taskledger_domain::flow::{CallTask, Command, Fault, Flow, Kind, Refusal, Rejection};
use taskledger_domain::task::call::{ResolvedTasks, Unresolved, read_tasks};
use taskledger_domain::task::wiring::{Unwired, WireFault};
use taskledger_domain::testing::{START, Server, id};

/// The wiring of the last task of a call, as it is stored.
fn stored(call: &ResolvedTasks) -> Value {
    let last = call.tasks.last().expect("a task");
    last.specification
        .schemas
        .as_ref()
        .expect("schemas")
        .to_map()["wiring"]
        .clone()
}

fn wired(on: &str, reference: &str) -> Value {
    json!({
        "name": "wired", "parent_id": "root", "dependencies": [{"id": on}],
        "schemas": {"method": "work", "wiring": {"x": reference}},
    })
}

#[test]
fn a_dependency_is_named_by_alias_name_or_id_whichever_the_list_has() {
    let root = json!({"id": "root", "name": "root"});
    let work = json!({"id": "alias", "name": "the work", "parent_id": "root"});
    for on in ["alias", "the work"] {
        for by in ["alias", "the work"] {
            let tasks = json!([root, work, wired(on, &format!("{by}.key"))]);
            let call = resolved_tasks(tasks).unwrap();
            assert_eq!(stored(&call), json!({"x": format!("{}.key", minted(1))}));
        }
    }
    let of_another_flow = id("stored").to_string();
    let call = resolved_tasks(json!([
        root,
        wired(&of_another_flow, &format!("{of_another_flow}#/a"))
    ]));
    assert_eq!(
        stored(&call.unwrap()),
        json!({"x": format!("{of_another_flow}#/a")})
    );
}

#[test]
fn what_is_no_dependency_is_refused_with_the_other_faults_of_the_references() {
    let tasks = json!([
        {"id": "root", "name": "root", "parent_id": "nobody"},
        {"id": "work", "name": "work", "parent_id": "root"},
        wired("work", "root.key"),
    ]);
    let Err(Refusal::Invalid(faults)) = resolved_tasks(tasks) else {
        panic!("it is not refused as invalid");
    };
    let unwired = Unwired {
        key: "x".to_owned(),
        text: "root.key".to_owned(),
        fault: WireFault::NoDependency,
    };
    let task = CallTask::Index(2);
    assert_eq!(faults.len(), 2);
    assert_eq!(faults[1], Fault::Wiring { task, unwired });
}

#[test]
fn a_reference_of_the_wrong_form_is_told_once() {
    let task = json!({"name": "a", "schemas": {"method": "work", "wiring": {"x": "a"}}});
    let found = faults(task.clone());
    assert_eq!(
        found.iter().map(path).collect::<Vec<_>>(),
        ["schemas/wiring/x"]
    );
    let list = read_tasks(&json!([task])).unwrap();
    let resolved = list.resolve(|_| minted(0));
    let Err(Refusal::Invalid(faults)) = resolved.map_err(Unresolved::first) else {
        panic!("it is not refused as invalid");
    };
    assert_eq!(faults.len(), 1);
}

#[test]
fn a_task_without_dependencies_can_wire_nothing() {
    let task = json!({"name": "a", "schemas": {"method": "work", "wiring": {"x": "a.b"}}});
    assert!(matches!(resolved(task), Err(Refusal::Invalid(faults)) if faults.len() == 1));
}

/// A task of the method `work` with a template that names `named`.
fn templated(name: &str, on: &[&str], named: &str) -> Value {
    let dependencies: Vec<Value> = on.iter().map(|id| json!({"id": id})).collect();
    json!({
        "id": name, "name": name, "parent_id": "root", "dependencies": dependencies,
        "schemas": {"method": "work", "templates": true}, "inputs": {"x": format!("{{{{{named}.key}}}}")},
    })
}

#[test]
fn templates_cannot_name_their_own_task_or_each_other() {
    let root = json!({"id": "root", "name": "root"});
    let own = resolved_tasks(json!([root, templated("a", &[], "a")]));
    let Err(Refusal::Invalid(faults)) = own else {
        panic!("{own:?}");
    };
    assert_eq!(faults.len(), 1);
    let told = format!("{:?}", faults[0]);
    assert!(told.contains("Not a dependency of the task"), "{told}");

    let call = |a: &[&str], b: &[&str]| {
        let tasks = json!([root, templated("a", a, "b"), templated("b", b, "a")]);
        let tasks = resolved_tasks(tasks)?.tasks;
        let mut flow = Flow::default();
        let created = flow.handle(&Command::Create(tasks), START, &mut Server::default());
        match created {
            Ok(_) => Ok(()),
            Err(Rejection::Refused(refusals)) => Err(refusals.first),
            Err(Rejection::Outdated(what)) => panic!("{what:?}"),
        }
    };
    let each_other = call(&["b"], &["a"]).unwrap_err();
    assert_eq!(each_other.kind(), Kind::Circular);
    assert_eq!(call(&["b"], &[]).unwrap_err().kind(), Kind::Invalid);
}
