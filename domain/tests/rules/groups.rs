//! Tasks without `schemas`. spec: semantics / Groups

use crate::support::{cancel, create, error_of, facts, fail, result_of, starts, verdict};
use serde_json::json;
use taskledger_domain::flow::{FailureReason, Outdated, RunState};
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{execute, given, group, id, task};

#[test]
fn a_group_runs_no_executor() {
    let s = given(vec![group("g"), task("a").under("g")])
        .when(execute("g"))
        .accepted();
    assert_eq!(s.server.granted, [id("a")], "a group takes no slot");
    assert_eq!(s.flow.task(id("g")).unwrap().method, None);
}

#[test]
fn a_group_is_in_progress_once_its_own_dependencies_are_satisfied() {
    let s = given(vec![
        group("r"),
        task("first").under("r"),
        group("g").under("r").after(&["first"]),
        task("a").under("g"),
    ])
    .when(execute("r"))
    .accepted()
    .then(&[("g", Pending), ("a", InProgress)])
    .completes("a")
    .then(&[("g", Pending)])
    .completes("first")
    .then(&[("g", Completed), ("r", Completed)]);
    assert_eq!(s.attempt("g"), 1);
}

#[test]
fn a_group_completes_with_counts_of_its_covered_descendants() {
    let s = given(vec![
        group("g"),
        group("h").under("g"),
        task("a").under("h"),
        task("b").under("g"),
        task("c").under("g").after_any(&["b"]),
    ])
    .when(execute("g"))
    .accepted()
    .fails("b")
    .completes("a")
    .completes("c")
    .then(&[("h", Completed), ("g", Completed)]);
    assert_eq!(
        result_of(&s, "h"),
        json!({"completed": 1, "failed": 0, "cancelled": 0})
    );
    assert_eq!(
        result_of(&s, "g"),
        json!({"completed": 2, "failed": 1, "cancelled": 0}),
        "the group inside runs nothing"
    );
}

#[test]
fn a_group_without_children_completes_at_once_with_an_empty_result() {
    let s = given(vec![group("g")]).when(execute("g")).accepted();
    let s = s.then(&[("g", Completed)]).runs(false);
    assert_eq!(result_of(&s, "g"), json!({}));
}

#[test]
fn a_group_fails_with_a_text_that_counts_when_a_child_failed_or_was_cancelled() {
    let tree = || {
        given(vec![group("g"), task("a").under("g"), task("b").under("g")])
            .when(execute("g"))
            .accepted()
    };
    let failed = tree()
        .fails("a")
        .then(&[("g", InProgress)])
        .completes("b")
        .then(&[("g", Failed)]);
    assert_eq!(
        error_of(&failed, "g"),
        "1 of 2 tasks completed, 1 failed, 0 cancelled, 0 not done"
    );
    let s = tree()
        .when(cancel("a"))
        .accepted()
        .then(&[("g", InProgress)])
        .completes("b");
    let s = s.then(&[("g", Failed)]);
    assert_eq!(
        error_of(&s, "g"),
        "1 of 2 tasks completed, 0 failed, 1 cancelled, 0 not done"
    );
    assert_eq!(verdict(&s), RunState::Failed);
}

#[test]
fn only_children_harm_a_group_not_deeper_descendants() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("below").under("a"),
    ])
    .when(execute("g"))
    .accepted()
    .fails("below")
    .completes("a")
    .then(&[("g", Completed)]);
    assert_eq!(result_of(&s, "g")["failed"], json!(1));
}

#[test]
fn a_failed_child_whose_dependents_are_all_optional_is_tolerated() {
    let s = |required: bool| {
        let user = task("c").under("g").after_any(&["a"]);
        let other = task("d").under("g");
        let other = if required { other.after(&["a"]) } else { other };
        given(vec![group("g"), task("a").under("g"), user, other])
            .when(execute("g"))
            .accepted()
    };
    let tolerated = s(false).completes("d").fails("a").completes("c");
    let _ = tolerated.then(&[("a", Failed), ("g", Completed)]);
    let harmed = s(true).fails("a").completes("c");
    let _ = harmed.then(&[("a", Failed), ("d", Pending), ("g", Failed)]);
}

#[test]
fn a_cancelled_child_whose_dependents_are_all_optional_is_tolerated() {
    let _ = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after_any(&["a"]),
    ])
    .when(execute("g"))
    .accepted()
    .when(cancel("a"))
    .accepted()
    .then(&[("b", InProgress)])
    .completes("b")
    .then(&[("a", Cancelled), ("g", Completed)]);
}

#[test]
fn a_group_waits_for_all_its_covered_descendants() {
    let _ = given(vec![
        group("g"),
        group("h").under("g"),
        group("i").under("h"),
        task("deep").under("i"),
        task("near").under("g"),
    ])
    .when(execute("g"))
    .accepted()
    .completes("near")
    .then(&[("g", InProgress), ("h", InProgress), ("i", InProgress)])
    .completes("deep")
    .then(&[("g", Completed), ("h", Completed), ("i", Completed)]);
}

#[test]
fn when_nothing_moves_open_groups_are_decided_deepest_first() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        group("h").under("g"),
        task("a").under("h"),
        task("b").under("h").after(&["a"]),
    ])
    .when(execute("r"))
    .accepted()
    .fails("a");
    let ended: Vec<_> = facts(&s, &["r", "g", "h"]).into_iter().collect();
    assert_eq!(
        ended,
        [
            ("TaskFailed", "h"),
            ("TaskFailed", "g"),
            ("TaskFailed", "r")
        ]
    );
    assert_eq!(
        error_of(&s, "h"),
        "0 of 2 tasks completed, 1 failed, 0 cancelled, 1 not done"
    );
    let _ = s.then(&[("b", Pending)]).runs(false);
}

#[test]
fn dependents_are_looked_at_again_after_each_group_that_is_decided() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        group("h").under("g"),
        task("a").under("h"),
        task("b").under("h").after(&["a"]),
        task("rescue").under("g").after_any(&["h"]),
    ])
    .when(execute("r"))
    .accepted()
    .fails("a")
    .then(&[("h", Failed), ("rescue", InProgress), ("g", InProgress)]);
    assert_eq!(starts(&s, &["rescue"]), ["rescue"]);
    let _ = s
        // `b` stays blocked, and blocked descendants count as not done.
        .completes("rescue")
        .then(&[("g", Failed), ("r", Failed)])
        .runs(false);
}

#[test]
fn a_group_waits_while_something_of_it_is_awaited() {
    let _ = given(vec![group("g"), task("a").under("g").attempts(2, 1000)])
        .when(execute("g"))
        .accepted()
        .when(fail("a", 1, FailureReason::Executor))
        .accepted()
        .then(&[("a", Pending), ("g", InProgress)])
        .runs(true)
        .after_ms(1000)
        .then(&[("a", InProgress)])
        .completes("a")
        .then(&[("g", Completed)]);
}

#[test]
fn a_failed_group_opens_again_with_its_next_run() {
    let _ = given(vec![group("g"), task("a").under("g"), task("b").under("g")])
        .when(execute("g"))
        .accepted()
        .fails("a")
        .completes("b")
        .then(&[("g", Failed)])
        .when(execute("g"))
        .accepted()
        .then(&[("g", InProgress), ("a", InProgress), ("b", Completed)])
        .completes("a")
        .then(&[("g", Completed)]);
}

#[test]
fn a_completed_descendant_counts_in_the_next_run() {
    let s = given(vec![group("g"), task("a").under("g"), task("b").under("g")])
        .when(execute("a"))
        .accepted()
        .completes("a")
        .when(execute("g"))
        .accepted()
        .completes("b")
        .then(&[("g", Completed)]);
    assert_eq!(
        result_of(&s, "g"),
        json!({"completed": 2, "failed": 0, "cancelled": 0})
    );
}

#[test]
fn a_completed_descendant_that_another_run_holds_counts_too() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("g"),
        task("other").under("r").after(&["a"]),
        task("last").under("r").after(&["other"]),
    ])
    .when(taskledger_domain::testing::start(
        "last",
        taskledger_domain::flow::RunKind::Execute,
        "one",
    ))
    .accepted()
    .completes("a")
    .then(&[("other", InProgress)])
    .when(execute("g"))
    .accepted()
    .then(&[("b", InProgress), ("g", InProgress)])
    .completes("b")
    .then(&[("g", Completed)]);
    assert_eq!(
        result_of(&s, "g"),
        json!({"completed": 2, "failed": 0, "cancelled": 0})
    );
    let s = s.completes("other").completes("last").runs(false);
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn a_task_added_to_a_running_group_is_waited_for() {
    let _ = given(vec![group("g"), task("a").under("g")])
        .when(execute("g"))
        .accepted()
        .when(create(vec![task("b").under("g")]))
        .accepted()
        .then(&[("b", InProgress)])
        .completes("a")
        .then(&[("g", InProgress)])
        .completes("b")
        .then(&[("g", Completed)]);
}

#[test]
fn a_group_may_depend_on_its_own_descendant() {
    let _ = given(vec![
        group("g").after(&["a"]),
        task("a").under("g"),
        task("b").under("g"),
    ])
    .when(execute("g"))
    .accepted()
    .then(&[("g", Pending), ("a", InProgress), ("b", InProgress)])
    .completes("b")
    .completes("a")
    .then(&[("g", Completed)]);
}

#[test]
fn a_group_is_not_executed_by_its_outcome_commands() {
    let _ = given(vec![group("g"), task("a").under("g")])
        .when(execute("g"))
        .accepted()
        .when(crate::support::complete("g", 1))
        .is_outdated(Outdated::Attempt);
}
