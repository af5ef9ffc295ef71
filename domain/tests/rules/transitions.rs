//! The state machine. spec: semantics / State machine; validation / State Transition Validation

use crate::support::{cancel, complete, error_of, fail, report, result_of};
use serde_json::json;
use taskledger_domain::flow::RunKind;
use taskledger_domain::flow::{Command, Done, Event, FailureReason, Kind, Outdated, RequeueReason};
use taskledger_domain::task::Progress;
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{Scenario, execute, given, group, id, retry, start, task};

fn running() -> Scenario {
    given(vec![task("a")]).when(execute("a")).accepted()
}

#[test]
fn a_new_task_is_pending() {
    let s = given(vec![task("a")]).then(&[("a", Pending)]);
    assert_eq!(s.last.unwrap().1, Done::Status(Pending));
}

#[test]
fn pending_becomes_in_progress_by_a_run_with_the_next_attempt() {
    let s = running().then(&[("a", InProgress)]);
    assert_eq!(s.attempt("a"), 1);
    let (events, _) = s.last.as_ref().unwrap();
    assert!(
        events
            .iter()
            .any(|e| matches!(e, Event::TaskStarted(e) if e.attempt == 1))
    );
}

#[test]
fn in_progress_becomes_completed_with_the_result() {
    let s = running()
        .when(complete("a", 1))
        .accepted()
        .then(&[("a", Completed)]);
    assert_eq!(result_of(&s, "a"), json!({"n": 1}));
}

#[test]
fn in_progress_becomes_failed_with_an_error_and_its_progress_kept() {
    let s = running()
        .when(Command::Fail {
            task: id("a"),
            attempt: 1,
            error: "disk full".to_owned(),
            reason: FailureReason::Executor,
            progress: Progress::from(0.4),
            lease: None,
            retry_after_ms: 0,
        })
        .accepted()
        .then(&[("a", Failed)]);
    assert_eq!(error_of(&s, "a"), "disk full");
    let kept = s.history.iter().find_map(|(_, e)| match e {
        Event::TaskFailed(e) => Some(e.progress),
        _ => None,
    });
    assert_eq!(kept, Some(Progress::from(0.4)));
}

#[test]
fn an_error_is_never_empty_and_never_longer_than_16_kib() {
    let failing = |error: String| {
        let s = running().when(Command::Fail {
            task: id("a"),
            attempt: 1,
            error,
            reason: FailureReason::Executor,
            progress: Progress::ZERO,
            lease: None,
            retry_after_ms: 0,
        });
        error_of(&s.accepted(), "a")
    };
    assert_eq!(failing(String::new()), "failed without a message");
    assert_eq!(failing("é".repeat(20_000)).len(), 16 * 1024);
    let cancelling = |reason: Option<String>| {
        let s = running().when(Command::Cancel {
            task: id("a"),
            cascade: false,
            reason,
        });
        error_of(&s.accepted(), "a")
    };
    assert_eq!(cancelling(None), "cancelled on request");
    assert_eq!(cancelling(Some(String::new())), "cancelled on request");
    assert_eq!(cancelling(Some("no need".to_owned())), "no need");
    assert_eq!(cancelling(Some("x".repeat(20_000))).len(), 16 * 1024);
}

#[test]
fn failed_becomes_pending_and_runs_again_with_a_new_attempt() {
    let s = running().fails("a").then(&[("a", Failed)]).runs(false);
    for command in [execute("a"), retry("a")] {
        let s = s
            .clone()
            .when(command)
            .accepted()
            .then(&[("a", InProgress)]);
        assert_eq!(s.attempt("a"), 2, "attempt numbers never restart");
        let (events, _) = s.last.as_ref().unwrap();
        assert!(events.iter().any(|e| matches!(
            e,
            Event::TaskRequeued(e) if e.reason == RequeueReason::Rerun && e.next_attempt_at.is_none()
        )));
    }
}

#[test]
fn a_closed_task_never_runs_again() {
    let completed = running().completes("a");
    let cancelled = given(vec![task("a")]).when(cancel("a")).accepted();
    for s in [completed, cancelled] {
        let before = s.flow.clone();
        let s = s.when(execute("a")).rejects(Kind::InvalidTransition);
        let s = s.when(retry("a")).rejects(Kind::InvalidTransition);
        let s = s.when(cancel("a")).rejects(Kind::InvalidTransition);
        assert_eq!(s.flow, before);
    }
}

#[test]
fn a_failed_task_cannot_be_cancelled() {
    let _ = running()
        .fails("a")
        .when(cancel("a"))
        .rejects(Kind::InvalidTransition);
}

#[test]
fn an_outcome_of_a_task_that_is_not_in_progress_is_refused_and_changes_nothing() {
    let pending = given(vec![task("a")]);
    let completed = running().completes("a");
    let cancelled = running().when(cancel("a")).accepted();
    let failed = running().fails("a");
    for s in [pending, completed, cancelled, failed] {
        for attempt in [0, 1, 2] {
            for command in [
                complete("a", attempt),
                fail("a", attempt, FailureReason::Executor),
                report("a", attempt, 0.5),
            ] {
                let before = s.flow.clone();
                let after = s.clone().when(command).is_outdated(Outdated::Attempt);
                assert_eq!(after.flow, before);
            }
        }
    }
}

#[test]
fn an_outcome_with_a_stale_attempt_is_refused() {
    let s = running().fails("a").when(execute("a")).accepted();
    for stale in [0, 1, 3] {
        let s = s
            .clone()
            .when(complete("a", stale))
            .is_outdated(Outdated::Attempt);
        let s = s
            .when(fail("a", stale, FailureReason::Timeout))
            .is_outdated(Outdated::Attempt);
        let _ = s
            .when(report("a", stale, 0.1))
            .is_outdated(Outdated::Attempt)
            .then(&[("a", InProgress)]);
    }
    let _ = s
        .when(complete("a", 2))
        .accepted()
        .then(&[("a", Completed)]);
}

#[test]
fn an_outcome_is_recorded_once() {
    let s = running().when(complete("a", 1)).accepted();
    let s = s.when(complete("a", 1)).is_outdated(Outdated::Attempt);
    let outcomes = s
        .history
        .iter()
        .filter(|(_, e)| matches!(e, Event::TaskCompleted(_)));
    assert_eq!(outcomes.count(), 1);
}

#[test]
fn nobody_but_its_run_ends_a_group() {
    let s = given(vec![group("g"), task("a").under("g")])
        .when(execute("g"))
        .accepted();
    for command in [
        complete("g", 1),
        fail("g", 1, FailureReason::Executor),
        report("g", 1, 0.5),
    ] {
        let _ = s
            .clone()
            .when(command)
            .is_outdated(Outdated::Attempt)
            .then(&[("g", InProgress)]);
    }
}

#[test]
fn a_late_outcome_of_a_cancelled_task_is_ignored() {
    let _ = running()
        .when(cancel("a"))
        .accepted()
        .when(complete("a", 1))
        .is_outdated(Outdated::Attempt)
        .then(&[("a", Cancelled)]);
}

#[test]
fn progress_is_recorded_when_it_changes() {
    let s = running().when(report("a", 1, 0.25)).accepted();
    assert_eq!(s.last.as_ref().unwrap().0.len(), 1);
    let s = s.when(report("a", 1, 0.25)).accepted();
    assert!(s.last.unwrap().0.is_empty(), "no change, no event");
}

#[test]
fn progress_stays_between_0_and_1() {
    for (given, kept) in [
        (-1.0, 0.0),
        (2.0, 1.0),
        (f64::NAN, 0.0),
        (f64::INFINITY, 1.0),
        (0.5, 0.5),
    ] {
        assert!(
            (Progress::from(given).fraction() - kept).abs() < 1e-9,
            "{given}"
        );
    }
}

#[test]
fn the_answer_carries_the_status_of_the_task_that_was_addressed() {
    let done = |s: &Scenario| s.last.as_ref().unwrap().1.clone();
    let s = given(vec![task("a").attempts(2, 5)])
        .when(execute("a"))
        .accepted();
    assert!(matches!(done(&s), Done::Begun(will_run) if will_run.tasks == [id("a")]));
    let s = s.when(fail("a", 1, FailureReason::Executor)).accepted();
    assert_eq!(done(&s), Done::Status(Pending), "it will be tried again");
    let s = s
        .after_ms(5)
        .when(fail("a", 2, FailureReason::Executor))
        .accepted();
    assert_eq!(done(&s), Done::Status(Failed));
    let s = s.when(start("a", RunKind::Retry, "again")).accepted();
    let s = s.when(cancel("a")).accepted();
    assert_eq!(done(&s), Done::Status(Cancelled));
}
