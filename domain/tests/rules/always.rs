//! Steps that clean up: dependencies that are satisfied when the task has ended or can no longer run.

use crate::support::{cancel, change, fail, faults, path, resolved, updating, verdict};
use serde_json::{Value, json};
use taskledger_domain::codec::snapshot;
use taskledger_domain::flow::explain::Reason;
use taskledger_domain::flow::{Dependency, FailureReason, RunState, When};
use taskledger_domain::schedule::{Effect, resume};
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{Scenario, execute, given, group, id, retry, task};

/// `build`, `deploy` behind it, `clean` that always runs behind `deploy`, and `other` beside them.
fn deployed() -> Scenario {
    given(vec![
        group("r"),
        task("build").under("r"),
        task("deploy").under("r").after(&["build"]),
        task("clean").under("r").after_always(&["deploy"]),
        task("other").under("r"),
    ])
    .when(execute("r"))
    .accepted()
}

#[test]
fn it_waits_for_a_task_that_can_still_run() {
    let s = deployed().then(&[("clean", Pending)]);
    let s = s.completes("build");
    let s = s.then(&[("deploy", InProgress), ("clean", Pending)]);
    let _ = s.completes("deploy").then(&[("clean", InProgress)]);
}

#[test]
fn it_runs_when_the_task_has_ended_in_any_way() {
    let s = deployed().completes("build");
    let failed = s.clone().fails("deploy");
    let _ = failed.then(&[("deploy", Failed), ("clean", InProgress)]);
    let cancelled = s.when(cancel("deploy")).accepted();
    let _ = cancelled.then(&[("deploy", Cancelled), ("clean", InProgress)]);
}

#[test]
fn it_runs_as_soon_as_the_task_is_blocked_while_others_go_on() {
    let s = deployed().fails("build");
    let s = s.then(&[
        ("deploy", Pending),
        ("clean", InProgress),
        ("other", InProgress),
    ]);
    let s = s.completes("clean").completes("other").runs(false);
    // Cleaning up excuses nothing.
    let _ = s.then(&[("deploy", Pending), ("r", Failed)]);
}

#[test]
fn an_attempt_is_told_of_what_has_ended_and_not_of_what_is_blocked() {
    let s = given(vec![
        group("r"),
        task("build").under("r"),
        task("deploy").under("r").after(&["build"]),
        task("clean").under("r").after_always(&["deploy", "build"]),
    ]);
    let s = s.when(execute("r")).accepted().fails("build");
    let launches = resume(&s.flow);
    let [Effect::Launch(launch)] = launches.as_slice() else {
        panic!("{launches:?}");
    };
    let told: Vec<_> = launch.dependencies.iter().map(|(id, ..)| *id).collect();
    assert_eq!((launch.task, told), (id("clean"), vec![id("build")]));
}

#[test]
fn it_excuses_no_failure_of_the_task() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("clean").under("r").after_always(&["a"]),
    ]);
    let s = s
        .when(execute("r"))
        .accepted()
        .fails("a")
        .completes("clean");
    assert_eq!(verdict(&s.then(&[("r", Failed)])), RunState::Failed);
}

#[test]
fn blocks_reach_through_other_tasks_and_end_at_those_that_always_run() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
        task("c").under("r").after_any(&["b"]),
        task("clean").under("r").after_always(&["c"]),
        task("report").under("r").after(&["clean"]),
    ]);
    let s = s.when(execute("r")).accepted();
    let s = s.when(cancel("a")).accepted();
    let s = s.then(&[("b", Pending), ("c", Pending), ("clean", InProgress)]);
    let s = s.completes("clean").then(&[("report", InProgress)]);
    let s = s.completes("report").runs(false);
    assert_eq!(verdict(&s.then(&[("c", Pending)])), RunState::Failed);
}

#[test]
fn a_failure_that_is_retried_blocks_nobody() {
    let s = given(vec![
        group("r"),
        task("a").under("r").attempts(2, 1000),
        task("b").under("r").after(&["a"]),
        task("clean").under("r").after_always(&["b"]),
    ]);
    let s = s.when(execute("r")).accepted().fails("a");
    let s = s.then(&[("a", Pending), ("clean", Pending)]);
    let s = s.after_ms(1000).fails("a");
    let _ = s.then(&[("a", Failed), ("clean", InProgress)]);
}

#[test]
fn a_later_run_frees_what_was_blocked() {
    let s = deployed()
        .fails("build")
        .completes("clean")
        .completes("other");
    let s = s.runs(false).when(retry("build")).accepted();
    let s = s.completes("build").completes("deploy");
    // What it cleans up after has run, so it runs again.
    let s = s
        .then(&[("clean", InProgress)])
        .completes("clean")
        .runs(false);
    let _ = s.then(&[
        ("deploy", Completed),
        ("clean", Completed),
        ("r", Completed),
    ]);
}

#[test]
fn it_is_known_who_is_blocked_when_such_a_dependency_comes_or_goes_late() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
        task("clean").under("r").after(&["b"]),
        task("other").under("r"),
    ]);
    let s = s.when(execute("r")).accepted().fails("a");
    let s = s.then(&[("clean", Pending), ("other", InProgress)]);
    let on_b = |s: &Scenario, when| {
        let s = updating(s.clone(), change("clean").dependency("b", when)).accepted();
        let read = snapshot::decode(&snapshot::encode(&s.flow)).expect("it was just written");
        assert_eq!(read, s.flow);
        s
    };
    let _ = on_b(&s, When::Always).then(&[("clean", InProgress)]);
    let _ = on_b(&s, When::Ended).then(&[("clean", Pending)]);
    // The same with the dependency taken back before it could matter.
    let mut s = s;
    s.server.slots = 0;
    let mut s = on_b(&on_b(&s, When::Always), When::Completed);
    s.server.slots = 8;
    let _ = s.completes("other").then(&[("clean", Pending)]);
}

#[test]
fn a_call_says_always_and_nothing_else_and_not_that_it_requires_too() {
    let call = |on: Value| {
        json!({"tasks": [{"id": "r", "name": "r"}, {"id": "a", "name": "a", "parent_id": "r"},
            {"name": "b", "parent_id": "r", "dependencies": [on]}]})
    };
    for fine in [
        json!({"id": "a", "when": "always"}),
        json!({"id": "a", "when": "always", "required": false}),
    ] {
        let read = resolved(call(fine)).expect("it is valid");
        assert_eq!(read.tasks[2].dependencies[0].when, When::Always);
    }
    for faulty in [
        json!({"id": "a", "when": "always", "required": true}),
        json!({"id": "a", "when": "completed"}),
        json!({"id": "a", "when": null}),
        json!({"id": "a", "when": true}),
    ] {
        let paths: Vec<_> = faults(call(faulty.clone())).iter().map(path).collect();
        assert_eq!(paths, ["tasks/2/dependencies/0/when"], "{faulty}");
    }
}

#[test]
fn it_is_stored_and_shown_beside_what_older_readers_know() {
    let text = |when| {
        let dependency = Dependency { id: id("a"), when };
        let text = serde_json::to_value(dependency).expect("it can be written");
        let read: Dependency = serde_json::from_value(text.clone()).expect("it can be read");
        assert_eq!(read, dependency);
        (text["required"].clone(), text["when"].clone())
    };
    assert_eq!(text(When::Completed), (true.into(), Value::Null));
    assert_eq!(text(When::Ended), (false.into(), Value::Null));
    assert_eq!(text(When::Always), (false.into(), "always".into()));
}

#[test]
fn an_explanation_says_what_still_is_waited_for() {
    let explained = |s: &Scenario| {
        let found = s
            .flow
            .explain(id("clean"), s.now, &s.server)
            .expect("it is there");
        found.reasons
    };
    let reasons = explained(&deployed());
    let [Reason::WaitsForDependencies(list)] = reasons.as_slice() else {
        panic!("{reasons:?}");
    };
    assert_eq!(
        (list.items[0].when, list.items[0].can_satisfy),
        (When::Always, true)
    );
    // Nothing is left of it once the task is blocked: only a slot is missing.
    let mut full = deployed();
    full.server.slots = 0;
    let full = full
        .when(fail("build", 1, FailureReason::Executor))
        .accepted();
    let reasons = explained(&full);
    assert!(
        matches!(reasons.as_slice(), [Reason::WaitsForSlot(_)]),
        "{reasons:?}"
    );
}
