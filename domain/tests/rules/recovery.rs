//! After a restart of the server. spec: semantics / Execution guarantees

use crate::support::error_of;
use hashbrown::HashSet;
use taskledger_domain::flow::{Command, Event, FailureReason, RequeueReason};
use taskledger_domain::task::Status::{Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};

fn running(method: &str, attempts: u32) -> Scenario {
    let a = task("a").method(method);
    let a = if attempts > 1 {
        a.attempts(attempts, 100)
    } else {
        a
    };
    given(vec![a]).when(execute("a")).accepted()
}

#[test]
fn an_idempotent_attempt_goes_failed_then_pending_in_one_append_and_runs_again() {
    let s = running("echo", 1).restarts();
    let (events, _) = s.last.as_ref().unwrap();
    let [
        Event::TaskFailed(failed),
        Event::TaskRequeued(again),
        Event::TaskStarted(started),
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        (failed.attempt, failed.reason, failed.will_retry),
        (1, FailureReason::Interrupted, true)
    );
    assert_eq!(
        (again.reason, again.next_attempt_at),
        (RequeueReason::Interrupted, None)
    );
    assert_eq!(started.attempt, 2);
}

#[test]
fn an_attempt_that_is_not_idempotent_runs_at_most_once() {
    let s = running("once", 1)
        .restarts()
        .then(&[("a", Failed)])
        .runs(false);
    assert_eq!(error_of(&s, "a"), "interrupted by a restart of the server");
}

#[test]
fn a_retry_policy_consents_to_repetition() {
    let s = running("once", 2)
        .restarts()
        .then(&[("a", Pending)])
        .after_ms(100);
    let s = s.then(&[("a", InProgress)]).restarts();
    let _ = s.then(&[("a", Failed)]).runs(false);
}

#[test]
fn an_unknown_executor_counts_as_not_idempotent() {
    let mut s = running("echo", 1);
    s.server.executors.clear();
    let _ = s.restarts().then(&[("a", Failed)]);
}

#[test]
fn at_most_three_interruptions_a_run_are_forgiven() {
    let mut s = running("echo", 1);
    for _ in 0..3 {
        s = s.restarts().then(&[("a", InProgress)]);
    }
    let s = s.restarts().then(&[("a", Failed)]).runs(false);
    assert_eq!(s.attempt("a"), 4);
    let s = s.when(execute("a")).accepted().restarts();
    let _ = s.then(&[("a", InProgress)]);
}

#[test]
fn an_interruption_does_not_consume_the_retry_budget_of_an_idempotent_task() {
    let s = running("echo", 2)
        .restarts()
        .fails("a")
        .then(&[("a", Pending)]);
    let _ = s.after_ms(100).fails("a").then(&[("a", Failed)]);
}

#[test]
fn attempts_that_are_alive_are_left_alone() {
    let s = given(vec![group("g"), task("a").under("g"), task("b").under("g")]);
    let s = s.when(execute("g")).accepted();
    let alive: HashSet<_> = [(id("a"), 1), (id("b"), 7)].into_iter().collect();
    let s = s
        .when(Command::Recover { alive })
        .accepted()
        .then(&[("g", InProgress)]);
    assert_eq!(
        (s.attempt("a"), s.attempt("b")),
        (1, 2),
        "an older attempt is not this one"
    );
}

#[test]
fn nothing_stays_in_progress_for_ever() {
    let s = given(vec![
        group("g"),
        task("a").under("g").method("once"),
        task("b").under("g").after(&["a"]),
    ]);
    let s = s.when(execute("g")).accepted().restarts();
    let _ = s
        .then(&[("a", Failed), ("b", Pending), ("g", Failed)])
        .runs(false);
}

#[test]
fn a_recovery_without_lost_attempts_changes_nothing() {
    let s = running("echo", 1).completes("a").restarts();
    assert!(s.last.as_ref().unwrap().0.is_empty());
    let _ = s.then(&[("a", Completed)]);
}

#[test]
fn a_group_in_progress_survives_a_restart() {
    let s = given(vec![group("g"), task("a").under("g")])
        .when(execute("g"))
        .accepted()
        .restarts();
    assert_eq!(s.attempt("g"), 1);
    let _ = s
        .then(&[("g", InProgress)])
        .completes("a")
        .then(&[("g", Completed)]);
}
