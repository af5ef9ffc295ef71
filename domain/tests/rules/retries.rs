//! Failures with attempts left, and `tasks.retry`. spec: semantics / State machine, Retry; Methods

use crate::support::{cancel, delete, fail};
use taskledger_domain::Timestamp;
use taskledger_domain::flow::{Command, Event, FailureReason, Kind, RequeueReason};
use taskledger_domain::limits::RETRY_AFTER_MS_MAX;
use taskledger_domain::schedule::next_due;
use taskledger_domain::task::RetryPolicy;
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::testing::{START, Scenario, execute, given, group, retry, task};

fn one(attempts: u32, delay_ms: u64) -> Scenario {
    given(vec![task("a").attempts(attempts, delay_ms)])
        .when(execute("a"))
        .accepted()
}

fn with_policy(mut task: NewTask, change: impl FnOnce(&mut RetryPolicy)) -> NewTask {
    let policy = task.specification.retry.as_mut();
    change(policy.expect("it has attempts"));
    task
}

#[test]
fn a_failure_with_retries_left_appends_failed_and_pending_together() {
    let s = one(2, 500)
        .when(fail("a", 1, FailureReason::Executor))
        .accepted();
    let (events, _) = s.last.as_ref().unwrap();
    let [Event::TaskFailed(failed), Event::TaskRequeued(requeued)] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(failed.will_retry);
    assert_eq!(requeued.reason, RequeueReason::Retry);
    assert_eq!(requeued.next_attempt_at, Some(START.plus_ms(500)));
    let _ = s.then(&[("a", Pending)]).runs(true);
}

/// A failure after which the called server asks for a pause.
fn asked_to_wait(retry_after_ms: u64) -> Command {
    let mut failure = fail("a", 1, FailureReason::Executor);
    if let Command::Fail {
        retry_after_ms: asked,
        ..
    } = &mut failure
    {
        *asked = retry_after_ms;
    }
    failure
}

fn next_attempt_at(s: &Scenario) -> Option<Timestamp> {
    let (events, _) = s.last.as_ref().ok()?;
    events.iter().find_map(|event| match event {
        Event::TaskRequeued(e) => e.next_attempt_at,
        _ => None,
    })
}

#[test]
fn a_pause_that_a_called_server_asks_for_is_kept_within_the_budget_of_time() {
    let at = |asked_ms| next_attempt_at(&one(2, 500).when(asked_to_wait(asked_ms)));
    assert_eq!(at(3_000), Some(START.plus_ms(3_000)));
    assert_eq!(at(100), Some(START.plus_ms(500)), "it shortens no pause");
    assert_eq!(at(u64::MAX), Some(START.plus_ms(RETRY_AFTER_MS_MAX)));

    let short = with_policy(task("a").attempts(2, 500), |policy| {
        policy.max_elapsed_ms = Some(2_000);
    });
    let begun = given(vec![short]).when(execute("a")).accepted();
    let s = begun.when(asked_to_wait(3_000)).then(&[("a", Failed)]);
    assert_eq!(next_attempt_at(&s), None);
    let _ = s.runs(false);
}

#[test]
fn the_last_failure_is_final() {
    let s = one(2, 0)
        .fails("a")
        .then(&[("a", InProgress)])
        .fails("a")
        .then(&[("a", Failed)]);
    let last = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::TaskFailed(e) => Some(e.will_retry),
        _ => None,
    });
    assert_eq!(last, Some(false));
    assert_eq!(s.attempt("a"), 2);
    let _ = s.runs(false);
}

#[test]
fn the_next_attempt_waits_for_its_time() {
    let s = one(2, 500).fails("a");
    assert_eq!(
        next_due(&s.flow, s.now, &s.server),
        Some(START.plus_ms(500))
    );
    let s = s
        .after_ms(499)
        .then(&[("a", Pending)])
        .after_ms(1)
        .then(&[("a", InProgress)]);
    assert_eq!(next_due(&s.flow, s.now, &s.server), None);
}

#[test]
fn dependents_and_groups_see_only_pending() {
    let _ = given(vec![
        group("g"),
        task("a").under("g").attempts(2, 10),
        task("b").under("g").after_any(&["a"]),
    ])
    .when(execute("g"))
    .accepted()
    .fails("a")
    .then(&[("a", Pending), ("b", Pending), ("g", InProgress)])
    .after_ms(10)
    .completes("a")
    .then(&[("b", InProgress)])
    .completes("b")
    .then(&[("g", Completed)]);
}

#[test]
fn only_failures_that_another_attempt_could_mend_are_retried() {
    let cases = [
        (FailureReason::Executor, Pending),
        (FailureReason::Timeout, Pending),
        (FailureReason::InvalidResult, Pending),
        (FailureReason::InvalidInputs, Failed),
        (FailureReason::Deadline, Failed),
        (FailureReason::ExecutorNotFound, Failed),
        (FailureReason::Interrupted, Failed),
        (FailureReason::Group, Failed),
    ];
    for (reason, expected) in cases {
        let _ = one(3, 10)
            .when(fail("a", 1, reason))
            .accepted()
            .then(&[("a", expected)]);
    }
}

#[test]
fn a_retry_that_would_begin_after_the_deadline_is_not_made() {
    let s = given(vec![task("a").attempts(3, 500).deadline_ms(500)])
        .when(execute("a"))
        .accepted();
    let _ = s.fails("a").then(&[("a", Failed)]).runs(false);
    let s = given(vec![task("a").attempts(3, 499).deadline_ms(500)])
        .when(execute("a"))
        .accepted();
    let _ = s.fails("a").then(&[("a", Pending)]).runs(true);
}

#[test]
fn a_task_between_two_attempts_can_be_cancelled_and_deleted() {
    let _ = one(2, 500)
        .fails("a")
        .when(cancel("a"))
        .accepted()
        .then(&[("a", Cancelled)])
        .runs(false);
    let s = one(2, 500)
        .fails("a")
        .when(delete("a"))
        .accepted()
        .runs(false);
    assert_eq!(s.status("a"), None);
}

#[test]
fn no_attempt_begins_later_than_the_policy_allows() {
    // Delays of 400 ms: the third attempt would begin 800 ms after the first.
    let bounded = with_policy(task("a").attempts(5, 400), |policy| {
        policy.max_elapsed_ms = Some(799)
    });
    let s = given(vec![bounded]).when(execute("a")).accepted();
    let s = s.fails("a").after_ms(400).then(&[("a", InProgress)]);
    let s = s.fails("a").then(&[("a", Failed)]).runs(false);
    assert_eq!(s.attempt("a"), 2);
    // Another run has as much time again.
    let s = s.after_ms(10_000).when(retry("a")).accepted();
    let s = s.fails("a").then(&[("a", Pending)]).after_ms(400);
    let _ = s.fails("a").then(&[("a", Failed)]);
}

#[test]
fn an_attempt_at_the_very_end_of_the_time_is_still_made() {
    let bounded = with_policy(task("a").attempts(5, 400), |policy| {
        policy.max_elapsed_ms = Some(400)
    });
    let s = given(vec![bounded]).when(execute("a")).accepted();
    let _ = s.fails("a").then(&[("a", Pending)]);
}

#[test]
fn jitter_is_the_same_on_every_server_and_only_shortens_delays() {
    let varied = with_policy(task("a").attempts(2, 1000), |policy| policy.jitter = 1.0);
    let at = || {
        let s = given(vec![varied.clone()]).when(execute("a")).accepted();
        let s = s.fails("a");
        next_due(&s.flow, s.now, &s.server).expect("it is tried again")
    };
    assert_eq!(at(), at());
    assert!(at() > START && at() < START.plus_ms(1000), "{}", at());
}

#[test]
fn delays_never_overflow() {
    let policy = RetryPolicy {
        max_attempts: u32::MAX,
        initial_delay_ms: u64::MAX,
        multiplier: f64::MAX,
        max_delay_ms: u64::MAX,
        jitter: 0.0,
        max_elapsed_ms: None,
    };
    for attempt in [0, 1, 2, 1000, u32::MAX - 1] {
        assert_eq!(policy.delay_ms_after(attempt, 1.0), Some(u64::MAX));
    }
    assert_eq!(policy.delay_ms_after(u32::MAX, 1.0), None);
    let zero = RetryPolicy {
        initial_delay_ms: 0,
        ..policy
    };
    assert_eq!(zero.delay_ms_after(1000, 1.0), Some(0));
    assert_eq!(
        START.plus_ms(u64::MAX),
        taskledger_domain::Timestamp::FAR_FUTURE
    );
}

#[test]
fn retry_runs_the_failed_task_the_pending_ones_behind_it_and_the_failed_groups_around_them() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
        group("h").under("r"),
        task("c").under("h").after(&["b"]),
        task("d").under("h"),
        task("bad").under("r"),
        task("behind bad").under("r").after(&["bad"]),
    ])
    .when(execute("r"))
    .accepted()
    .fails("a")
    .fails("bad")
    .completes("d")
    .then(&[
        ("g", Failed),
        ("h", Failed),
        ("r", Failed),
        ("b", Pending),
        ("c", Pending),
    ])
    .when(retry("a"))
    .accepted()
    .then(&[
        ("r", InProgress),
        ("g", InProgress),
        ("h", InProgress),
        ("a", InProgress),
    ])
    .then(&[("bad", Failed), ("behind bad", Pending), ("d", Completed)])
    .completes("a")
    .completes("b")
    .completes("c")
    .then(&[("g", Completed), ("h", Completed), ("r", Failed)])
    .runs(false);
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn only_a_failed_task_can_be_retried() {
    let pending = given(vec![task("a")]);
    let running = pending.clone().when(execute("a")).accepted();
    let completed = running.clone().completes("a");
    let cancelled = running.clone().when(cancel("a")).accepted();
    for s in [pending, running, completed, cancelled] {
        let _ = s.when(retry("a")).rejects(Kind::InvalidTransition);
    }
}

#[test]
fn a_failed_task_that_an_active_run_covers_is_already_executing() {
    let s = given(vec![group("r"), task("a").under("r"), task("b").under("r")]);
    let s = s.when(execute("r")).accepted().fails("a");
    let _ = s.when(retry("a")).rejects(Kind::AlreadyExecuting);
}
