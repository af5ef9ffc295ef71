//! What a retry or a re-execution runs again. spec: semantics / Methods, `tasks.retry`

use crate::support::{cancel, refusal, result_of, verdict};
use serde_json::json;
use taskledger_domain::flow::{
    Done, Event, Refusal, RequeueReason, RunKind, RunState, TransitionFault,
};
use taskledger_domain::limits;
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::testing::{
    Scenario, execute, given, group, id, retry, start, task, with_failed,
};

/// Two fetches that may fail, a step that merges what there is, a step that publishes, and one that cleans up.
fn published() -> Scenario {
    given(vec![
        group("r"),
        task("fetch a").under("r"),
        task("fetch b").under("r"),
        task("merge").under("r").after_any(&["fetch a", "fetch b"]),
        task("publish").under("r").after(&["merge"]),
        task("clean").under("r").after_always(&["publish"]),
    ])
    .when(execute("r"))
    .accepted()
    .fails("fetch a")
    .fails("fetch b")
}

fn requeued(s: &Scenario) -> Vec<&'static str> {
    let (events, _) = s.last.as_ref().expect("it was accepted");
    let names = [
        "r", "g", "h", "step", "fetch a", "fetch b", "merge", "publish", "clean",
    ];
    let again = events.iter().filter_map(|event| match event {
        Event::TaskRequeued(e) if e.reason == RequeueReason::Rerun => {
            names.into_iter().find(|name| id(name) == e.task_id)
        }
        _ => None,
    });
    again.collect()
}

#[test]
fn a_retry_leaves_tolerated_failures_elsewhere_as_they_are() {
    let s = published()
        .completes("merge")
        .fails("publish")
        .completes("clean");
    let s = s
        .then(&[("r", Failed)])
        .runs(false)
        .when(retry("publish"))
        .accepted();
    assert_eq!(requeued(&s), ["r", "publish", "clean"]);
    let s = s.then(&[
        ("fetch a", Failed),
        ("fetch b", Failed),
        ("merge", Completed),
        ("publish", InProgress),
        ("clean", Pending),
    ]);
    let s = s.completes("publish").then(&[("clean", InProgress)]);
    let s = s.completes("clean").runs(false).then(&[("r", Completed)]);
    assert_eq!(verdict(&s), RunState::Completed);
    let counts = json!({"completed": 3, "failed": 2, "cancelled": 0});
    assert_eq!(result_of(&s, "r"), counts);
    assert_eq!((s.attempt("fetch a"), s.attempt("clean")), (1, 2));
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn a_tolerated_failure_stays_though_the_step_that_tolerated_it_runs_again() {
    let s = published().fails("merge").completes("clean").runs(false);
    for command in [retry("merge"), start("r", RunKind::Execute, "two")] {
        let s = s.clone().when(command).accepted();
        assert_eq!(requeued(&s), ["r", "merge", "clean"]);
        let _ = s.then(&[
            ("merge", InProgress),
            ("fetch a", Failed),
            ("publish", Pending),
        ]);
    }
}

#[test]
fn all_failed_tasks_run_again_when_the_call_asks_for_them() {
    let s = published()
        .completes("merge")
        .fails("publish")
        .completes("clean")
        .runs(false);
    let s = s.when(with_failed(retry("publish"))).accepted();
    assert_eq!(
        requeued(&s),
        ["r", "fetch a", "fetch b", "publish", "clean"]
    );
    let _ = s.then(&[
        ("fetch a", InProgress),
        ("merge", Completed),
        ("publish", InProgress),
    ]);
}

#[test]
fn a_completed_flow_with_tolerated_failures_has_nothing_to_execute() {
    let s = published()
        .completes("merge")
        .completes("publish")
        .completes("clean");
    let s = s.runs(false).then(&[("r", Completed)]);
    let again = s.clone().when(execute("r"));
    let fault = TransitionFault::NothingToExecute { task: id("r") };
    assert_eq!(*refusal(&again), Refusal::InvalidTransition(vec![fault]));
    let again = s.clone().when(with_failed(execute("r"))).accepted();
    assert_eq!(requeued(&again), ["fetch a", "fetch b"]);
    // The task itself is what the call asks for.
    for command in [retry("fetch a"), execute("fetch a")] {
        let again = s.clone().when(command).accepted();
        assert_eq!(requeued(&again), ["fetch a"]);
    }
}

#[test]
fn an_execution_runs_failures_that_were_not_tolerated() {
    let s = published()
        .completes("merge")
        .fails("publish")
        .completes("clean")
        .runs(false);
    let s = s.when(execute("r")).accepted();
    assert_eq!(requeued(&s), ["r", "publish", "clean"]);
}

#[test]
fn failures_below_a_tolerated_group_stay_unless_something_needs_them() {
    let flow = |others: Vec<NewTask>| {
        let mut tasks = vec![
            group("r"),
            group("g").under("r"),
            task("fetch a").under("g"),
            task("step").under("g"),
            task("merge").under("r").after_any(&["g"]),
        ];
        tasks.extend(others);
        let s = given(tasks).when(execute("r")).accepted();
        let s = s.completes("step").fails("fetch a").fails("merge");
        s.runs(false).then(&[("g", Failed), ("r", Failed)])
    };
    let s = flow(Vec::new()).when(execute("r")).accepted();
    assert_eq!(requeued(&s), ["r", "merge"]);
    let s = s.completes("merge").runs(false);
    let _ = s.then(&[("g", Failed), ("r", Completed)]);
    // A task outside the group, and one in it.
    let outside = task("publish").under("r").after(&["fetch a"]);
    let inside = task("fetch b").under("g").after(&["fetch a"]);
    for other in [outside, inside] {
        let s = flow(vec![other]).when(execute("r")).accepted();
        let expected = ["r", "g", "fetch a", "merge"];
        assert_eq!(requeued(&s), expected);
    }
}

#[test]
fn nothing_behind_a_completed_step_runs() {
    let s = published()
        .completes("merge")
        .when(cancel("fetch a"))
        .completes("publish");
    let s = s.completes("clean").runs(false);
    let s = s.when(crate::support::create(vec![
        task("report").under("r").after(&["publish"]),
    ]));
    let s = s.accepted().when(start("report", RunKind::Execute, "two"));
    let s = s
        .accepted()
        .then(&[("report", InProgress), ("fetch b", Failed)]);
    assert!(requeued(&s).is_empty());
    let s = s.completes("report").runs(false);
    assert_eq!(verdict(&s), RunState::Completed);
}

#[test]
fn a_group_that_cleans_up_runs_again_with_all_its_steps() {
    let s = given(vec![
        group("r"),
        task("publish").under("r"),
        group("g").under("r").after_always(&["publish"]),
        task("step").under("g"),
        group("h").under("r"),
        task("clean").under("h").after_always(&["g"]),
    ]);
    let s = s
        .when(execute("r"))
        .accepted()
        .fails("publish")
        .completes("step");
    let s = s
        .completes("clean")
        .then(&[("g", Completed), ("h", Completed)])
        .runs(false);
    let s = s.when(retry("publish")).accepted();
    assert_eq!(requeued(&s).len(), 6, "{:?}", requeued(&s));
    let s = s
        .completes("publish")
        .completes("step")
        .fails("clean")
        .runs(false);
    let s = s.then(&[("g", Completed), ("h", Failed), ("r", Failed)]);
    assert_eq!(verdict(&s), RunState::Failed);
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn a_step_that_cleans_up_stays_when_nothing_before_it_runs_again() {
    let s = published().fails("merge").fails("clean").runs(false);
    let s = s.when(retry("clean")).accepted();
    assert_eq!(requeued(&s), ["r", "clean"]);
    let s = s.completes("clean").runs(false);
    let _ = s.then(&[
        ("merge", Failed),
        ("publish", Pending),
        ("clean", Completed),
    ]);
}

#[test]
fn a_cancelled_step_that_cleans_up_does_not_run_again() {
    let s = published()
        .completes("merge")
        .fails("publish")
        .when(cancel("clean"))
        .accepted();
    let s = s.runs(false).when(retry("publish")).accepted();
    assert_eq!(requeued(&s), ["r", "publish"]);
    let s = s.completes("publish").runs(false);
    let _ = s.then(&[("clean", Cancelled)]);
}

#[test]
fn a_completed_group_around_a_step_that_cleans_up_is_judged_again() {
    let s = given(vec![
        group("r"),
        task("publish").under("r"),
        group("h").under("r"),
        task("step").under("h"),
        task("clean").under("h").after_always(&["publish"]),
    ]);
    let s = s.when(execute("r")).accepted().fails("publish");
    let s = s.completes("step").completes("clean").runs(false);
    for command in [retry("publish"), start("r", RunKind::Execute, "two")] {
        let s = s.clone().when(command).accepted();
        assert_eq!(requeued(&s), ["r", "publish", "h", "clean"]);
        let s = s.completes("publish").fails("clean").runs(false);
        let s = s.then(&[("step", Completed), ("h", Failed), ("r", Failed)]);
        assert_eq!(verdict(&s), RunState::Failed);
    }
}

#[test]
fn the_answer_lists_what_will_run() {
    let s = published()
        .completes("merge")
        .fails("publish")
        .completes("clean")
        .runs(false);
    let s = s.when(retry("publish")).accepted();
    let Ok((_, Done::Begun(will_run))) = &s.last else {
        panic!("{:?}", s.last);
    };
    assert_eq!(will_run.tasks, [id("publish"), id("clean")]);
    assert_eq!(will_run.count, 2);
    let many: Vec<String> = (0..=limits::WILL_RUN_LISTED_MAX)
        .map(|n| format!("t{n}"))
        .collect();
    let tasks = many.iter().map(|name| task(name).under("r"));
    let s = given(std::iter::once(group("r")).chain(tasks).collect());
    let s = s.when(execute("r")).accepted();
    let Ok((_, Done::Begun(will_run))) = &s.last else {
        panic!("{:?}", s.last);
    };
    assert_eq!(will_run.tasks.len(), limits::WILL_RUN_LISTED_MAX);
    assert_eq!(will_run.count as usize, limits::WILL_RUN_LISTED_MAX + 1);
}
