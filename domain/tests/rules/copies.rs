//! Which tasks `tasks.copy` copies. spec: semantics / Methods, tasks.copy

use crate::support::delete;
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};

fn copied(s: &Scenario, name: &str, children: bool) -> Vec<taskledger_domain::TaskId> {
    s.flow
        .copy_set(id(name), children)
        .expect("the task exists")
}

fn flow() -> Scenario {
    given(vec![
        group("r"),
        task("shared").under("r"),
        group("g").under("r"),
        task("a").under("g").after(&["shared"]),
        task("b").under("g").after(&["shared"]),
        task("free").under("r"),
    ])
}

#[test]
fn without_children_only_the_task_is_copied() {
    assert_eq!(copied(&flow(), "g", false), [id("g")]);
}

#[test]
fn with_children_what_a_run_would_cover_is_copied_shared_dependencies_once() {
    assert_eq!(
        copied(&flow(), "g", true),
        ["g", "a", "b", "shared"].map(id)
    );
}

#[test]
fn the_asked_task_comes_first_and_parents_before_children() {
    let s = given(vec![
        group("r"),
        group("far").under("r"),
        group("inner").under("far"),
        task("deep").under("inner"),
        task("x").under("r").after(&["far"]),
        task("below").under("x"),
    ]);
    let set = copied(&s, "x", true);
    assert_eq!(set, ["x", "below", "far", "inner", "deep"].map(id));
}

#[test]
fn the_status_does_not_matter_and_deleted_tasks_are_left_out() {
    let s = flow()
        .when(execute("shared"))
        .accepted()
        .completes("shared");
    let s = s.when(delete("b")).accepted();
    assert_eq!(copied(&s, "g", true), ["g", "a", "shared"].map(id));
    assert_eq!(s.flow.copy_set(id("b"), true), None);
    assert_eq!(s.flow.copy_set(id("nobody"), false), None);
}

#[test]
fn the_whole_flow_is_copied_from_its_root() {
    assert_eq!(copied(&flow(), "r", true).len(), 6);
}
