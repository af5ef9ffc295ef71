//! What a run covers, and how it ends. spec: semantics / Runs; Methods, tasks.execute

use crate::support::{cancel, create, create_and_execute, delete, refusal, verdict};
use taskledger_domain::flow::{
    Command, Event, FailureReason, Kind, Refusal, RunKind, RunState, TransitionFault,
};
use taskledger_domain::schedule::{Effect, react, resume};
use taskledger_domain::task::Progress;
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{Scenario, execute, given, group, id, run, start, task};

/// Ranges of ordinals that the latest run covers.
fn covers(s: &Scenario) -> Vec<(u32, u32)> {
    let found = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::RunStarted(e) => Some(e.covers.clone()),
        _ => None,
    });
    found.expect("a run began")
}

fn ended(s: &Scenario) -> &taskledger_domain::flow::RunEnded {
    let found = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::RunEnded(e) => Some(e),
        _ => None,
    });
    found.expect("a run ended")
}

#[test]
fn creating_tasks_starts_nothing() {
    let _ = given(vec![group("r"), task("a").under("r")])
        .after_ms(10)
        .then(&[("r", Pending), ("a", Pending)])
        .runs(false);
}

#[test]
fn execute_with_tasks_creates_a_tree_and_runs_it_in_one_append() {
    let tasks = vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
    ];
    let s = given(vec![]).when(create_and_execute(tasks)).accepted();
    let s = s.then(&[("r", InProgress), ("a", InProgress), ("b", Pending)]);
    assert_eq!(covers(&s), [(0, 2)]);
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn a_refused_execute_with_tasks_creates_nothing() {
    let tasks = vec![group("r"), task("a").under("r").method("nobody")];
    let s = given(vec![])
        .when(create_and_execute(tasks))
        .rejects(Kind::ExecutorNotFound);
    assert_eq!((s.flow.size(), s.flow.version()), (0, 0));
}

#[test]
fn a_run_covers_the_subtree_that_was_asked_for() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        group("g").under("r"),
        task("b").under("g"),
        task("c").under("b"),
    ])
    .when(execute("g"))
    .accepted()
    .then(&[
        ("r", Pending),
        ("a", Pending),
        ("b", InProgress),
        ("c", InProgress),
    ]);
    assert_eq!(covers(&s), [(2, 4)]);
}

#[test]
fn a_run_covers_dependencies_and_the_whole_subtrees_of_covered_groups() {
    let s = given(vec![
        group("r"),
        task("far").under("r"),
        group("g").under("r"),
        task("a").under("g").after(&["far"]),
        task("b").under("r").after_any(&["g"]),
        task("below b").under("b"),
        task("user").under("r").after(&["b"]),
        task("free").under("r"),
    ])
    .when(execute("user"))
    .accepted();
    assert_eq!(
        covers(&s),
        [(1, 4), (6, 6)],
        "of a task with a method only itself"
    );
    let _ = s.then(&[("far", InProgress), ("below b", Pending), ("free", Pending)]);
}

#[test]
fn a_task_created_below_a_covered_task_joins_the_run() {
    let s = given(vec![group("r"), task("a").under("r")])
        .when(execute("r"))
        .accepted();
    let s = s
        .when(create(vec![
            task("b").under("a"),
            task("c").under("b").after(&["a"]),
        ]))
        .accepted();
    let s = s.then(&[("b", InProgress), ("c", Pending)]);
    assert_eq!(s.flow.task(id("c")).unwrap().run_id, Some(run("run")));
    let s = s
        .completes("a")
        .completes("b")
        .then(&[("r", InProgress)])
        .completes("c");
    let _ = s.then(&[("r", Completed)]).runs(false);
}

#[test]
fn a_task_created_below_an_uncovered_task_does_not_join() {
    let s = given(vec![group("r"), task("a").under("r"), task("b").under("r")]);
    let s = s
        .when(execute("a"))
        .accepted()
        .when(create(vec![task("c").under("b")]))
        .accepted();
    assert_eq!(s.flow.task(id("c")).unwrap().run_id, None);
    let _ = s.then(&[("c", Pending)]);
}

#[test]
fn deleting_a_pending_task_takes_it_out_of_the_run() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
    ])
    .when(execute("r"))
    .accepted()
    .when(delete("b"))
    .accepted()
    .completes("a")
    .then(&[("r", Completed)])
    .runs(false);
    assert_eq!(ended(&s).counts.completed, 1);
    assert_eq!(ended(&s).counts.pending, 0);
}

#[test]
fn pending_and_failed_tasks_run_completed_ones_are_kept_cancelled_ones_are_skipped() {
    let s = given(vec![
        group("r"),
        task("p").under("r"),
        task("f").under("r"),
        task("d").under("r"),
        task("c").under("r"),
    ]);
    let s = s
        .when(execute("f"))
        .accepted()
        .fails("f")
        .when(execute("d"))
        .accepted()
        .completes("d");
    let s = s.when(cancel("c")).accepted().when(execute("r")).accepted();
    let expected = [
        ("p", InProgress),
        ("f", InProgress),
        ("d", Completed),
        ("c", Cancelled),
    ];
    let s = s.then(&expected).completes("p").completes("f");
    let _ = s.then(&[("r", Failed)]).runs(false);
}

#[test]
fn a_run_with_a_blocked_root_ends_and_leaves_it_pending() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
    ])
    .when(execute("b"))
    .accepted()
    .fails("a")
    .then(&[("b", Pending)])
    .runs(false);
    assert_eq!(verdict(&s), RunState::Failed);
    assert_eq!((ended(&s).task_id, ended(&s).run_id), (id("b"), run("run")));
    assert_eq!((ended(&s).counts.failed, ended(&s).counts.pending), (1, 1));
}

#[test]
fn verdicts_are_completed_failed_and_cancelled() {
    let s = || given(vec![task("a")]).when(execute("a")).accepted();
    assert_eq!(verdict(&s().completes("a")), RunState::Completed);
    assert_eq!(verdict(&s().fails("a")), RunState::Failed);
    assert_eq!(
        verdict(&s().when(cancel("a")).accepted()),
        RunState::Cancelled
    );
    assert_eq!(s().flow.run_state(run("run")), Some(RunState::Running));
    assert_eq!(s().completes("a").flow.run_state(run("run")), None);
}

#[test]
fn a_tolerated_failure_does_not_fail_the_run() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after_any(&["a"]),
    ]);
    let s = s
        .when(execute("b"))
        .accepted()
        .fails("a")
        .completes("b")
        .runs(false);
    assert_eq!(verdict(&s), RunState::Completed);
}

#[test]
fn the_last_event_of_a_run_is_its_end() {
    let s = given(vec![group("r"), task("a").under("r")])
        .when(execute("r"))
        .accepted()
        .completes("a");
    assert!(matches!(s.history.last(), Some((_, Event::RunEnded(_)))));
}

#[test]
fn nothing_to_run_is_an_invalid_transition() {
    let s = given(vec![group("r"), task("a").under("r")])
        .when(execute("r"))
        .accepted();
    let s = s.completes("a").when(execute("r"));
    let fault = TransitionFault::NothingToExecute { task: id("r") };
    assert_eq!(*refusal(&s), Refusal::InvalidTransition(vec![fault]));
}

#[test]
fn an_active_run_that_covers_an_uncompleted_task_of_the_set_is_already_executing() {
    let tree = vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
    ];
    let s = given(tree).when(execute("b")).accepted();
    for other in ["a", "b", "r"] {
        let again = s.clone().when(start(other, RunKind::Execute, "two"));
        let again = again.rejects(Kind::AlreadyExecuting);
        assert_eq!(again.flow, s.flow);
    }
    // A completed task is shared.
    let s = s
        .completes("a")
        .when(create(vec![task("c").under("r").after(&["a"])]))
        .accepted();
    let s = s.when(start("c", RunKind::Execute, "two")).accepted();
    let _ = s
        .then(&[("b", InProgress), ("c", InProgress)])
        .completes("b")
        .completes("c")
        .runs(false);
}

#[test]
fn two_runs_of_a_flow_end_each_for_itself() {
    let s = given(vec![group("r"), task("a").under("r"), task("b").under("r")]);
    let s = s.when(start("a", RunKind::Execute, "one")).accepted();
    let s = s.when(start("b", RunKind::Execute, "two")).accepted();
    let s = s.completes("a").runs(true);
    assert_eq!(ended(&s).run_id, run("one"));
    let s = s.completes("b").runs(false);
    assert_eq!(ended(&s).run_id, run("two"));
}

#[test]
fn a_new_run_starts_its_retry_budget_and_delays_anew() {
    let s = given(vec![task("a").attempts(2, 60_000)])
        .when(execute("a"))
        .accepted();
    let s = s
        .fails("a")
        .then(&[("a", Pending)])
        .after_ms(60_000)
        .fails("a");
    let s = s.then(&[("a", Failed)]).when(execute("a")).accepted();
    let s = s
        .then(&[("a", InProgress)])
        .fails("a")
        .then(&[("a", Pending)]);
    assert_eq!(s.attempt("a"), 3);
}

#[test]
fn what_is_started_is_launched_and_what_was_cancelled_is_stopped() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("b").under("r").after(&["a"]),
    ]);
    let s = s.when(execute("r")).accepted();
    let launched: Vec<_> = s
        .history
        .iter()
        .filter_map(|(_, e)| react(&s.flow, e))
        .collect();
    let [Effect::Launch(launch)] = &launched[..] else {
        panic!("one launch: {launched:?}");
    };
    assert_eq!(
        (launch.task, launch.attempt, launch.run_id),
        (id("a"), 1, run("run"))
    );
    assert_eq!(resume(&s.flow), launched, "the state alone gives the same");
    let s = s.completes("a");
    let Some(Effect::Launch(launch)) = resume(&s.flow).pop() else {
        panic!("b runs");
    };
    let a = s.flow.task(id("a")).unwrap();
    assert_eq!(launch.dependencies, [(id("a"), a.name_at, a.outcome_at)]);
    let s = s.when(cancel("b")).accepted();
    let (events, _) = s.last.as_ref().unwrap();
    let effects: Vec<_> = events.iter().filter_map(|e| react(&s.flow, e)).collect();
    assert!(effects.contains(&Effect::Stop {
        task: id("b"),
        attempt: 1
    }));
    assert!(resume(&s.flow).is_empty());
}

#[test]
fn a_wake_without_anything_due_changes_nothing() {
    let s = given(vec![task("a")]).when(execute("a")).accepted();
    let before = s.flow.clone();
    let s = s.when(Command::Wake).accepted();
    assert!(s.last.as_ref().unwrap().0.is_empty());
    assert_eq!(s.flow, before);
}

/// The task is rejected by whoever was to carry it out.
fn rejected(s: Scenario, name: &str) -> Scenario {
    let fail = Command::Fail {
        task: id(name),
        attempt: s.attempt(name),
        error: "not by policy".to_owned(),
        reason: FailureReason::Rejected,
        progress: Progress::ZERO,
        lease: None,
        retry_after_ms: 0,
    };
    s.when(fail).accepted()
}

#[test]
fn a_rejection_takes_no_other_attempt_and_is_that_of_a_run_which_failed_for_nothing_else() {
    let tasks = || {
        given(vec![
            group("r"),
            task("a").under("r").attempts(3, 500),
            task("b").under("r").after(&["a"]),
            task("c").under("r"),
        ])
        .when(execute("r"))
        .accepted()
    };
    let alone = rejected(tasks(), "a").then(&[("a", Failed), ("b", Pending)]);
    let alone = alone.completes("c");
    assert_eq!(ended(&alone).state, RunState::Failed);
    assert!(ended(&alone).rejected);
    assert_eq!(alone.flow, alone.replayed());
    let with_another = rejected(tasks(), "a").fails("c");
    assert!(!ended(&with_another).rejected);
    // The next run begins anew.
    let again = alone.when(execute("r")).accepted().completes("a");
    let again = again.completes("b");
    assert_eq!(ended(&again).state, RunState::Completed);
    assert!(!ended(&again).rejected);
}
