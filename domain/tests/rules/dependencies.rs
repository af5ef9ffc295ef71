//! Which messages wait for earlier ones. spec: semantics / Dependencies and failure; data-model / Dependency
//! Resolution Algorithm; validation / Dependency Validation

use crate::support::{cancel, change, create, cycle, refusal, updating};
use taskledger_domain::flow::{
    ClosedBy, Dependency, Kind, Refusal, SelfDependency, UnknownDependency, When,
};
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::testing::{execute, given, group, id, task};

fn pair(b: NewTask) -> taskledger_domain::testing::Scenario {
    given(vec![group("r"), task("a").under("r"), b.under("r")])
        .when(execute("r"))
        .accepted()
}

#[test]
fn a_required_dependency_is_satisfied_only_by_completion() {
    let _ = pair(task("b").after(&["a"]))
        .then(&[("b", Pending)])
        .completes("a")
        .then(&[("b", InProgress)]);
    let _ = pair(task("b").after(&["a"]))
        .fails("a")
        .then(&[("b", Pending)]);
    let s = pair(task("b").after(&["a"])).when(cancel("a")).accepted();
    let _ = s.then(&[("a", Cancelled), ("b", Pending)]);
}

#[test]
fn an_optional_dependency_is_satisfied_by_any_terminal_status() {
    let b = || pair(task("b").after_any(&["a"])).then(&[("b", Pending)]);
    let _ = b().completes("a").then(&[("b", InProgress)]);
    let _ = b().fails("a").then(&[("a", Failed), ("b", InProgress)]);
    let _ = b().when(cancel("a")).accepted().then(&[("b", InProgress)]);
}

#[test]
fn all_dependencies_must_be_satisfied() {
    let _ = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r"),
        task("c").under("r").after(&["a"]).after_any(&["b"]),
    ])
    .when(execute("r"))
    .accepted()
    .completes("a")
    .then(&[("c", Pending)])
    .fails("b")
    .then(&[("c", InProgress)]);
}

#[test]
fn a_failure_does_not_cascade_and_the_failed_task_may_run_again() {
    let _ = pair(task("b").after(&["a"]))
        .fails("a")
        .then(&[("a", Failed), ("b", Pending)])
        .runs(false)
        .when(execute("r"))
        .accepted()
        .completes("a")
        .then(&[("b", InProgress)])
        .completes("b")
        .then(&[("r", Completed)]);
}

#[test]
fn tasks_that_can_never_begin_are_found_with_the_end_that_keeps_them() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
        task("c").under("r").after_any(&["b"]),
        task("d").under("r").after_any(&["a"]),
        task("e").under("r").after(&["d"]),
        task("f").under("r").after(&["e"]),
        task("z").under("r"),
    ])
    .when(execute("r"))
    .accepted();
    assert_eq!(s.flow.blocked(), []);
    let pending = ["b", "c", "d", "e", "f"].map(id);
    let of_run = |s: &taskledger_domain::testing::Scenario| {
        let run = s.flow.task(id("b")).unwrap().run_id.unwrap();
        s.flow.pending_in(run)
    };
    assert_eq!(of_run(&s), pending);
    let s = s.fails("a");
    let failed = s.flow.task(id("a")).unwrap().outcome_at;
    let kept = [(id("b"), failed), (id("c"), failed)];
    assert_eq!(s.flow.blocked(), kept, "what any end satisfies goes on");
    let s = s.when(cancel("d")).accepted();
    let cancelled = s.flow.task(id("d")).unwrap().outcome_at;
    let more = [(id("e"), cancelled), (id("f"), cancelled)];
    assert_eq!(s.flow.blocked(), [kept, more].concat());
    assert_eq!(s.flow.blocked(), s.replayed().blocked());
    // Behind the end of its run a task waits for nothing.
    assert_eq!(s.completes("z").runs(false).flow.blocked(), []);
}

#[test]
fn a_blocked_dependency_blocks_its_dependents_optional_or_not() {
    let _ = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
        task("c").under("r").after_any(&["b"]),
        task("d").under("r").after(&["c"]),
    ])
    .when(execute("r"))
    .accepted()
    .fails("a")
    .then(&[("b", Pending), ("c", Pending), ("d", Pending)])
    .runs(false);
}

#[test]
fn dependencies_order_tasks_in_any_order_of_writing() {
    let _ = given(vec![
        group("r"),
        task("b").under("r").after(&["a"]),
        task("a").under("r"),
    ])
    .when(execute("r"))
    .accepted()
    .then(&[("a", InProgress), ("b", Pending)])
    .completes("a")
    .then(&[("b", InProgress)]);
}

#[test]
fn dependencies_keep_the_order_in_which_they_were_written() {
    let s = given(vec![
        group("r"),
        task("x")
            .under("r")
            .after(&["late"])
            .after_any(&["middle"])
            .after(&["early"]),
        task("early").under("r"),
        task("middle").under("r"),
        task("late").under("r"),
    ]);
    let expected = [("late", true), ("middle", false), ("early", true)];
    let expected = expected.map(|(n, required)| Dependency {
        id: id(n),
        when: When::required(required),
    });
    assert_eq!(s.flow.task(id("x")).unwrap().dependencies, expected);
}

#[test]
fn a_dependency_must_name_a_task_of_the_same_flow() {
    let s = given(vec![group("r"), task("gone").under("r")])
        .when(crate::support::delete("gone"))
        .accepted();
    for missing in ["nobody", "gone"] {
        let s = s
            .clone()
            .when(create(vec![task("a").under("r").after(&[missing])]));
        let expected = UnknownDependency {
            task: id("a"),
            index: 0,
            dependency: id(missing),
        };
        assert_eq!(*refusal(&s), Refusal::DependenciesNotFound(vec![expected]));
    }
}

#[test]
fn a_task_must_not_depend_on_itself() {
    let s = given(vec![group("r"), task("a").under("r")]);
    let created = s
        .clone()
        .when(create(vec![task("b").under("r").after(&["b"])]));
    let own = |task| {
        let (task, index) = (id(task), 0);
        Refusal::SelfDependency(vec![SelfDependency { task, index }])
    };
    assert_eq!(*refusal(&created), own("b"));
    let updated = updating(s, change("a").dependencies(&["a"]));
    assert_eq!(*refusal(&updated), own("a"));
}

#[test]
fn a_cycle_among_new_tasks_is_refused_and_listed_with_the_first_repeated() {
    let s = given(vec![group("r")])
        .when(create(vec![
            task("a").under("r").after(&["b"]),
            task("b").under("r").after(&["c"]),
            task("c").under("r").after_any(&["a"]),
            task("d").under("r").after(&["a"]),
        ]))
        .rejects(Kind::Circular);
    let expected = ["a", "b", "c", "a"].map(id);
    assert_eq!(cycle(refusal(&s)), expected, "each waits for the next");
}

#[test]
fn a_changed_dependency_must_not_close_a_cycle() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
        task("c").under("r").after(&["b"]),
    ]);
    let s = updating(s, change("a").dependencies(&["c"])).rejects(Kind::Circular);
    let expected = Refusal::CircularDependency {
        cycle: ["a", "c", "b", "a"].map(id).to_vec(),
        len: 3,
        closed_by: ClosedBy::Dependency(0),
        has_group: false,
    };
    assert_eq!(*refusal(&s), expected);
    let _ = updating(s, change("c").dependencies(&["a"])).accepted();
}

#[test]
fn cycles_of_2_and_of_10_000_tasks_are_refused_and_listed_whole() {
    for n in [2_usize, 10_000] {
        let name = |k: usize| (k % n).to_string();
        let mut tasks = vec![group("r")];
        tasks.extend((0..n).map(|k| task(&name(k)).under("r").after(&[&name(k + 1)])));
        let s = given(vec![]).when(create(tasks)).rejects(Kind::Circular);
        let listed = cycle(refusal(&s));
        assert_eq!(listed.len(), n + 1);
        assert_eq!(listed.first(), listed.last());
        // The same cycle, closed by an update.
        let mut tasks = vec![group("r")];
        tasks.extend((0..n - 1).map(|k| task(&name(k)).under("r").after(&[&name(k + 1)])));
        tasks.push(task(&name(n - 1)).under("r"));
        let s = updating(given(tasks), change(&name(n - 1)).dependencies(&["0"]));
        let s = s.rejects(Kind::Circular);
        let listed = cycle(refusal(&s));
        assert_eq!(listed.len(), n + 1);
        assert_eq!(listed.first(), listed.last());
    }
}

#[test]
fn a_diamond_is_no_cycle() {
    let _ = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
        task("c").under("r").after(&["a"]),
        task("d").under("r").after(&["b", "c"]),
    ])
    .when(execute("r"))
    .accepted()
    .completes("a")
    .completes("b")
    .then(&[("d", Pending)])
    .completes("c")
    .then(&[("d", InProgress)]);
}

#[test]
fn a_task_may_depend_on_a_completed_task() {
    let _ = given(vec![group("r"), task("a").under("r")])
        .when(execute("a"))
        .accepted()
        .completes("a")
        .when(create(vec![task("b").under("r").after(&["a"])]))
        .accepted()
        .when(execute("b"))
        .accepted()
        .then(&[("a", Completed), ("b", InProgress)]);
}

#[test]
fn a_task_may_depend_on_a_group() {
    let _ = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("r").after(&["g"]),
    ])
    .when(execute("r"))
    .accepted()
    .then(&[("b", Pending)])
    .completes("a")
    .then(&[("g", Completed), ("b", InProgress)]);
}
