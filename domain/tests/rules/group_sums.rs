//! What a group says of the tasks below it: its counts, its error and its progress.
//! spec: semantics / Groups, Retry

use crate::support::{cancel, error_of, report, result_of, verdict};
use serde_json::json;
use taskledger_domain::flow::{Event, FailureReason, RunEnded, RunState, StatusCounts};
use taskledger_domain::task::Progress;
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{Scenario, execute, given, group, id, retry, task};

/// A group of three of which the last has failed, in a group with another task.
fn two_of_three() -> Scenario {
    given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("g"),
        task("c").under("g"),
        task("d").under("r"),
    ])
    .when(execute("r"))
    .accepted()
    .completes("a")
    .completes("b")
    .completes("d")
    .fails("c")
    .then(&[("g", Failed), ("r", Failed)])
}

/// The progress that the latest end of the task tells.
fn progress_at_end(s: &Scenario, name: &str) -> Progress {
    let ends = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::TaskFailed(e) if e.task_id == id(name) => Some(e.progress),
        Event::TaskCancelled(e) if e.task_id == id(name) => Some(e.progress),
        _ => None,
    });
    ends.expect("the task failed or was cancelled")
}

fn last_run(s: &Scenario) -> RunEnded {
    let ended = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::RunEnded(e) => Some(e.clone()),
        _ => None,
    });
    ended.expect("a run ended")
}

#[test]
fn after_a_retry_groups_count_also_what_had_completed_before() {
    let s = two_of_three()
        .when(retry("c"))
        .accepted()
        .then(&[("g", InProgress), ("r", InProgress)])
        .completes("c")
        .then(&[("g", Completed), ("r", Completed)])
        .runs(false);
    let counts = |completed: u32| json!({"completed": completed, "failed": 0, "cancelled": 0});
    assert_eq!(result_of(&s, "g"), counts(3));
    assert_eq!(result_of(&s, "r"), counts(4));
    assert_eq!(verdict(&s), RunState::Completed);
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn after_a_retry_that_fails_again_the_error_counts_all_tasks() {
    let s = two_of_three().when(retry("c")).accepted().fails("c");
    assert_eq!(
        error_of(&s, "g"),
        "2 of 3 tasks completed, 1 failed, 0 cancelled, 0 not done"
    );
    assert_eq!(
        error_of(&s, "r"),
        "3 of 4 tasks completed, 1 failed, 0 cancelled, 0 not done"
    );
}

#[test]
fn after_a_retry_a_group_with_a_task_that_is_still_blocked_is_not_done() {
    let s = given(vec![
        group("r"),
        task("other").under("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("g").after(&["other"]),
    ])
    .when(execute("r"))
    .accepted()
    .fails("other")
    .fails("a")
    .when(retry("a"))
    .accepted()
    .completes("a")
    .then(&[("b", Pending), ("g", Failed), ("r", Failed)]);
    assert_eq!(
        error_of(&s, "g"),
        "1 of 2 tasks completed, 0 failed, 0 cancelled, 1 not done"
    );
    let s = s
        .when(retry("other"))
        .accepted()
        .completes("other")
        .completes("b")
        .then(&[("g", Completed), ("r", Completed)])
        .runs(false);
    assert_eq!(
        result_of(&s, "r"),
        json!({"completed": 3, "failed": 0, "cancelled": 0})
    );
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn groups_are_counted_neither_in_an_error_nor_by_a_run() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        group("empty").under("r"),
        task("b").under("r"),
    ])
    .when(execute("r"))
    .accepted()
    .completes("b")
    .fails("a");
    assert_eq!(
        error_of(&s, "r"),
        "1 of 2 tasks completed, 1 failed, 0 cancelled, 0 not done"
    );
    let counts = StatusCounts {
        completed: 1,
        failed: 1,
        ..StatusCounts::default()
    };
    assert_eq!(last_run(&s).counts, counts);
}

#[test]
fn an_error_tells_of_groups_when_every_task_completed() {
    let s = given(vec![
        group("r"),
        task("bad").under("r"),
        group("g").under("r"),
        group("gate").under("g").after(&["bad"]),
        group("fine").under("g"),
        task("a").under("gate"),
    ])
    .when(execute("r"))
    .accepted()
    .completes("a")
    .fails("bad")
    .then(&[("gate", Pending), ("g", Failed)]);
    assert_eq!(
        error_of(&s, "g"),
        "1 of 1 tasks completed, 0 failed, 0 cancelled, 0 not done; 1 of 2 groups completed"
    );
}

#[test]
fn a_group_that_fails_keeps_the_mean_of_its_children() {
    let s = two_of_three();
    assert_eq!(progress_at_end(&s, "g"), Progress::from_millionths(666_666));
    // (0.666666 + 1) / 2
    let root = Progress::from_millionths(833_333);
    assert_eq!(progress_at_end(&s, "r"), root);
    let at_end = last_run(&s).root;
    assert_eq!((at_end.status, at_end.progress), (Failed, root));
}

/// Counts are of tasks, wherever they are; progress says how far groups are that have started.
#[test]
fn a_group_that_never_started_counts_as_nothing_in_the_mean_around_it() {
    let s = given(vec![
        group("r"),
        task("bad").under("r"),
        task("good").under("r"),
        group("post").under("r").after(&["bad"]),
        task("report").under("post"),
    ])
    .when(execute("r"))
    .accepted()
    .completes("report")
    .completes("good")
    .fails("bad")
    .then(&[("post", Pending), ("report", Completed), ("r", Failed)]);
    assert_eq!(
        error_of(&s, "r"),
        "2 of 3 tasks completed, 1 failed, 0 cancelled, 0 not done"
    );
    let third = Progress::from_millionths(333_333);
    assert_eq!(progress_at_end(&s, "r"), third);
}

#[test]
fn a_group_that_is_cancelled_keeps_the_mean_of_its_children() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("g"),
    ])
    .when(execute("r"))
    .accepted()
    .completes("a")
    .when(report("b", 1, 0.5))
    .accepted()
    .when(cancel("r"))
    .accepted()
    .then(&[("b", Cancelled), ("g", Cancelled), ("r", Cancelled)]);
    for group in ["g", "r"] {
        assert_eq!(progress_at_end(&s, group), Progress::from(0.75), "{group}");
    }
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn a_group_that_misses_its_deadline_keeps_the_mean_of_its_children() {
    let s = given(vec![
        group("g").deadline_ms(1000),
        task("a").under("g"),
        task("b").under("g"),
    ])
    .when(execute("g"))
    .accepted()
    .completes("a")
    .after_ms(1000)
    .then(&[("g", Failed)]);
    let reason = s.history.iter().find_map(|(_, e)| match e {
        Event::TaskFailed(e) if e.task_id == id("g") => Some(e.reason),
        _ => None,
    });
    assert_eq!(reason, Some(FailureReason::Deadline));
    assert_eq!(progress_at_end(&s, "g"), Progress::from(0.5));
}
