//! `tasks.delete`. spec: semantics / Methods, tasks.delete; interface / tasks.delete

use crate::support::{cancel, change, create, delete, delete_all, facts, refusal, updating};
use taskledger_domain::flow::{Kind, Refusal};
use taskledger_domain::task::Status::Pending;
use taskledger_domain::testing::{execute, given, group, id, task};

/// A refusal because of children, dependents, and tasks below that are not pending.
fn hindered(task: &str, [children, dependents, not_pending]: [&[&str]; 3]) -> Refusal {
    let ids = |names: &[&str]| names.iter().copied().map(id).collect();
    Refusal::DeleteHindered {
        task: id(task),
        children: ids(children),
        dependents: ids(dependents),
        not_pending: ids(not_pending),
    }
}

#[test]
fn a_pending_task_can_be_deleted_and_is_gone_from_reads() {
    let s = given(vec![group("r"), task("a").under("r")])
        .when(delete("a"))
        .accepted();
    assert!(s.flow.task(id("a")).is_none());
    assert_eq!(s.flow.size(), 2, "but never from history");
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn only_a_pending_task_can_be_deleted() {
    let running = given(vec![task("a")]).when(execute("a")).accepted();
    let done = running.clone().completes("a");
    let failed = running.clone().fails("a");
    let cancelled = running.clone().when(cancel("a")).accepted();
    for s in [running, done, failed, cancelled] {
        let (task, status) = (id("a"), s.status("a").unwrap());
        let s = s.when(delete("a"));
        assert_eq!(*refusal(&s), Refusal::DeleteNotPending { task, status });
    }
}

#[test]
fn a_task_with_children_cannot_be_deleted_and_they_are_listed() {
    let s = given(vec![group("r"), task("a").under("r"), task("b").under("r")]).when(delete("r"));
    assert_eq!(*refusal(&s), hindered("r", [&["a", "b"], &[], &[]]));
}

#[test]
fn a_task_with_dependents_cannot_be_deleted_and_they_are_listed() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
        task("c").under("r").after_any(&["a"]),
    ])
    .when(delete("a"));
    assert_eq!(*refusal(&s), hindered("a", [&[], &["b", "c"], &[]]));
    let s = s.when(delete("b")).accepted().when(delete("c")).accepted();
    let _ = s.when(delete("a")).accepted();
}

#[test]
fn children_and_dependents_are_reported_at_once() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("r").after(&["g"]),
    ]);
    let s = s.when(delete("g"));
    assert_eq!(*refusal(&s), hindered("g", [&["a"], &["b"], &[]]));
}

#[test]
fn cascade_deletes_the_subtree_children_first() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("a").after(&["a"]),
    ])
    .when(delete_all("g"))
    .accepted();
    let gone: Vec<_> = facts(&s, &["g", "a", "b"])
        .into_iter()
        .map(|(_, n)| n)
        .collect();
    assert_eq!(gone, ["b", "a", "g"]);
    assert_eq!(s.flow, s.replayed());
    let _ = s.then(&[("r", Pending)]);
}

#[test]
fn cascade_is_refused_when_something_below_is_not_pending() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
    ]);
    let s = s.when(execute("a")).accepted().when(delete_all("g"));
    assert_eq!(*refusal(&s), hindered("g", [&[], &[], &["a"]]));
}

#[test]
fn cascade_is_refused_when_something_outside_depends_on_the_subtree() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
        task("out").under("r").after(&["a"]),
    ])
    .when(delete_all("g"));
    assert_eq!(*refusal(&s), hindered("g", [&[], &["out"], &[]]));
    assert_eq!(s.status("a"), Some(Pending));
}

#[test]
fn a_deleted_task_is_unknown_afterwards() {
    let s = given(vec![group("r"), task("a").under("r")])
        .when(delete("a"))
        .accepted();
    let _ = s.clone().when(delete("a")).rejects(Kind::NotFound);
    let _ = s.clone().when(execute("a")).rejects(Kind::NotFound);
    let _ = updating(s.clone(), change("r").dependencies(&["a"])).rejects(Kind::InvalidDependency);
    let _ = s
        .when(create(vec![task("a").under("r")]))
        .rejects(Kind::Invalid);
}

#[test]
fn a_whole_flow_can_be_deleted() {
    let s = given(vec![group("r"), task("a").under("r")])
        .when(delete_all("r"))
        .accepted();
    assert_eq!((s.status("r"), s.status("a")), (None, None));
    assert_eq!(s.flow, s.replayed());
    let bytes = taskledger_domain::codec::snapshot::encode(&s.flow);
    assert_eq!(
        taskledger_domain::codec::snapshot::decode(&bytes).unwrap(),
        s.flow
    );
    let _ = s
        .when(create(vec![task("b").under("r")]))
        .rejects(Kind::InvalidParent);
}
