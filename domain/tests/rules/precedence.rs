//! When several refusals apply. spec: semantics / Errors

use crate::support::{change, create, create_and_execute, refusal, resolved_tasks, updating};
use serde_json::json;
use taskledger_domain::flow::{Changeable, Kind, Refusal, RunConflict, UnknownDependency};
use taskledger_domain::testing::{execute, given, group, id, task};

#[test]
fn the_kinds_are_ordered_as_the_protocol_orders_them() {
    let order = [
        Kind::NotFound,
        Kind::Invalid,
        Kind::InvalidTree,
        Kind::InvalidParent,
        Kind::InvalidDependency,
        Kind::Circular,
        Kind::ExecutorNotFound,
        Kind::AlreadyExecuting,
    ];
    assert!(order.is_sorted());
}

#[test]
fn a_meaningless_reference_beats_a_faulty_tree() {
    let tasks = json!([{"name": "a", "dependencies": [{"id": "none"}]}, {"name": "b"}]);
    assert_eq!(resolved_tasks(tasks).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn families_of_faults_in_new_tasks_come_in_their_order() {
    let s = given(vec![group("r"), task("b").under("r")]);
    let own = || task("own").under("r").after(&["own"]);
    let missing = || task("missing").under("r").after(&["nobody"]);
    let orphan = || task("orphan").under("nobody");
    let root = || task("root");
    let taken = || task("b").under("r");
    for (tasks, kind) in [
        (
            vec![own(), missing(), orphan(), root(), taken()],
            Kind::Invalid,
        ),
        (vec![own(), missing(), orphan(), root()], Kind::InvalidTree),
        (vec![own(), missing(), orphan()], Kind::InvalidParent),
        (vec![own(), missing()], Kind::InvalidDependency),
        (vec![own()], Kind::Circular),
    ] {
        let _ = s.clone().when(create(tasks)).rejects(kind);
    }
}

#[test]
fn a_faulty_graph_beats_an_unknown_executor() {
    let tasks = |deps: &[&str]| vec![group("r"), task("a").under("r").method("nope").after(deps)];
    let _ = given(vec![])
        .when(create_and_execute(tasks(&["a"])))
        .rejects(Kind::Circular);
    let _ = given(vec![])
        .when(create_and_execute(tasks(&["x"])))
        .rejects(Kind::InvalidDependency);
    let _ = given(vec![])
        .when(create_and_execute(tasks(&[])))
        .rejects(Kind::ExecutorNotFound);
}

#[test]
fn a_passed_deadline_beats_every_fault_of_the_graph() {
    let tasks = vec![
        group("r"),
        task("a").under("nobody").after(&["a"]).deadline_ms(0),
    ];
    let _ = given(vec![])
        .when(create_and_execute(tasks))
        .rejects(Kind::Invalid);
}

#[test]
fn an_unknown_executor_beats_an_active_run() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").method("nope"),
    ]);
    let s = s.when(execute("a")).accepted();
    let _ = s.when(execute("r")).rejects(Kind::ExecutorNotFound);
}

#[test]
fn an_active_run_beats_nothing_to_execute() {
    let s = given(vec![task("a")]).when(execute("a")).accepted();
    let _ = s.when(execute("a")).rejects(Kind::AlreadyExecuting);
}

#[test]
fn in_an_update_too_the_first_family_wins_whatever_field_it_comes_from() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("x").under("r"),
    ]);
    let s = s.when(execute("x")).accepted();
    let own = updating(s.clone(), change("x").dependencies(&["x"]));
    let _ = own.rejects(Kind::Circular);
    let missing = updating(
        s.clone(),
        change("x").dependencies(&["nobody"]).user(Some("u")),
    );
    let _ = missing.rejects(Kind::InvalidDependency);
    let parent = updating(
        s.clone(),
        change("x").dependencies(&["nobody"]).parent(Some("nobody")),
    );
    let _ = parent.rejects(Kind::InvalidParent);
    let tree = updating(
        s.clone(),
        change("g").dependencies(&["nobody"]).parent(Some("a")),
    );
    let _ = tree.rejects(Kind::InvalidTree);
    let _ = updating(s, change("x").dependencies(&["a"])).rejects(Kind::AlreadyExecuting);
}

#[test]
fn all_violations_of_the_winning_family_are_reported() {
    let s = given(vec![group("r")]).when(create(vec![
        task("a").under("r").after(&["n1", "n2"]),
        task("b").under("r").after(&["n3"]),
    ]));
    let unknown = [("a", 0, "n1"), ("a", 1, "n2"), ("b", 0, "n3")];
    let unknown = unknown.map(|(task, index, dependency)| UnknownDependency {
        task: id(task),
        index,
        dependency: id(dependency),
    });
    assert_eq!(
        *refusal(&s),
        Refusal::DependenciesNotFound(unknown.to_vec())
    );
    let s = given(vec![group("r"), task("x").under("r"), task("y").under("r")])
        .when(execute("x"))
        .accepted();
    let s = updating(s, change("x").user(Some("u")).dependencies(&["y"]));
    // The status once, and the dependency that is not covered.
    let conflicts = [
        RunConflict::InProgress {
            task: id("x"),
            changeable: Changeable::Pending,
        },
        RunConflict::DependencyNotCovered {
            task: id("x"),
            index: 0,
            dependency: id("y"),
        },
    ];
    assert_eq!(*refusal(&s), Refusal::AlreadyExecuting(conflicts.to_vec()));
}
