//! `tasks.cancel`. spec: semantics / Methods, tasks.cancel; interface / tasks.cancel

use crate::support::{cancel, cancel_all, facts, verdict};
use taskledger_domain::flow::{Done, Event, Kind, RunState};
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};

fn tree() -> Scenario {
    given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
        task("c").under("a"),
    ])
}

#[test]
fn a_pending_task_can_be_cancelled_without_a_run() {
    let s = given(vec![task("a")])
        .when(cancel("a"))
        .accepted()
        .then(&[("a", Cancelled)]);
    assert_eq!(s.last.unwrap().1, Done::Status(Cancelled));
}

#[test]
fn a_task_in_progress_can_be_cancelled_and_its_attempt_is_named() {
    let s = given(vec![task("a")])
        .when(execute("a"))
        .accepted()
        .when(cancel("a"))
        .accepted();
    let attempt = s.history.iter().find_map(|(_, e)| match e {
        Event::TaskCancelled(e) => Some(e.attempt),
        _ => None,
    });
    assert_eq!(attempt, Some(Some(1)));
    let s = s.then(&[("a", Cancelled)]).runs(false);
    assert_eq!(verdict(&s), RunState::Cancelled);
}

#[test]
fn a_terminal_task_cannot_be_cancelled() {
    let running = given(vec![task("a")]).when(execute("a")).accepted();
    for s in [
        running.clone().completes("a"),
        running.clone().fails("a"),
        running.when(cancel("a")).accepted(),
    ] {
        let _ = s.when(cancel("a")).rejects(Kind::InvalidTransition);
    }
}

#[test]
fn cancelling_a_group_cancels_its_open_descendants() {
    let s = tree()
        .when(execute("r"))
        .accepted()
        .completes("c")
        .when(cancel("g"))
        .accepted();
    let s = s.then(&[
        ("g", Cancelled),
        ("a", Cancelled),
        ("b", Cancelled),
        ("c", Completed),
    ]);
    let order: Vec<_> = facts(&s, &["g", "a", "b"])
        .into_iter()
        .map(|(_, n)| n)
        .collect();
    assert_eq!(order, ["b", "a", "g"], "children before their group");
    let _ = s.then(&[("r", Failed)]).runs(false);
}

#[test]
fn a_pending_group_is_cancelled_with_its_descendants_too() {
    let _ = tree().when(cancel("g")).accepted().then(&[
        ("r", Pending),
        ("g", Cancelled),
        ("a", Cancelled),
        ("b", Cancelled),
        ("c", Cancelled),
    ]);
}

#[test]
fn cancelling_a_task_with_a_method_leaves_its_children_unless_asked() {
    let s = tree().when(execute("r")).accepted();
    let _ = s
        .clone()
        .when(cancel("a"))
        .accepted()
        .then(&[("a", Cancelled), ("c", InProgress)]);
    let _ = s
        .when(cancel_all("a"))
        .accepted()
        .then(&[("a", Cancelled), ("c", Cancelled)]);
}

#[test]
fn dependents_of_a_cancelled_task_follow_the_dependency_rule() {
    let s = given(vec![
        group("r"),
        task("a").under("r"),
        task("must").under("r").after(&["a"]),
        task("may").under("r").after_any(&["a"]),
    ])
    .when(execute("r"))
    .accepted()
    .when(cancel("a"))
    .accepted()
    .then(&[("must", Pending), ("may", InProgress)]);
    let _ = s
        .completes("may")
        .then(&[("r", Failed), ("must", Pending)])
        .runs(false);
}

#[test]
fn cancelling_the_root_of_a_run_ends_the_run_as_cancelled() {
    let s = tree()
        .when(execute("r"))
        .accepted()
        .when(cancel("r"))
        .accepted()
        .runs(false);
    assert_eq!(verdict(&s), RunState::Cancelled);
}

#[test]
fn a_dependency_outside_a_cancelled_group_goes_on() {
    let s = given(vec![
        group("top"),
        task("out").under("top"),
        group("g").under("top"),
        task("a").under("g").after(&["out"]),
    ])
    .when(execute("g"))
    .accepted()
    .when(cancel("g"))
    .accepted()
    .then(&[("out", InProgress), ("a", Cancelled)])
    .runs(true)
    .completes("out")
    .runs(false);
    assert_eq!(verdict(&s), RunState::Cancelled);
    assert!(s.flow.task(id("top")).is_some());
}

#[test]
fn a_group_with_a_cancelled_child_still_waits_for_the_others() {
    let s = given(vec![group("g"), task("a").under("g"), task("b").under("g")]);
    let s = s.when(execute("g")).accepted().when(cancel("a")).accepted();
    let _ = s
        .then(&[("g", InProgress)])
        .completes("b")
        .then(&[("g", Failed)]);
}
