//! Waits that the plan does not bound are bounded by their run, so that it ends. spec: semantics / Runs

use crate::support::{error_of, execute_unknown};
use taskledger_domain::flow::{Command, Event, FailureReason, OnAnswer, Suspend, WaitBounds};
use taskledger_domain::question::prepare;
use taskledger_domain::task::Status::{Completed, Failed, InProgress, Pending};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};
use taskledger_domain::{Payload, SuspensionId};

const DAY_MS: u64 = 24 * 3600 * 1000;
const WEEK_MS: u64 = 7 * DAY_MS;

/// Workers claim tasks of the method `resize`, which none does.
fn run_within(tasks: Vec<NewTask>, wait_bounds: WaitBounds) -> Scenario {
    let name = tasks[0].name.clone();
    let mut s = given(tasks);
    s.server.remote.insert("resize".to_owned());
    let Command::Execute(mut order) = execute(&name) else {
        panic!("it executes");
    };
    order.wait_bounds = wait_bounds;
    s.when(Command::Execute(order)).accepted()
}

fn starts_within(start_ms: u64) -> WaitBounds {
    WaitBounds {
        start_ms: Some(start_ms),
        answer_ms: None,
    }
}

#[test]
fn a_task_that_no_worker_claims_fails_and_its_run_ends() {
    let tree = || {
        vec![
            group("r"),
            task("a").under("r"),
            task("far").under("r").method("resize").after(&["a"]),
        ]
    };
    let s = run_within(tree(), starts_within(WEEK_MS)).after_ms(DAY_MS);
    // The wait begins when the task is ready.
    let s = s.completes("a").after_ms(WEEK_MS - 1);
    let s = s.then(&[("far", Pending), ("r", InProgress)]).after_ms(1);
    let s = s.then(&[("far", Failed), ("r", Failed)]).runs(false);
    assert!(error_of(&s, "far").starts_with("no worker claimed it within 604800 s: "));
    assert_eq!(s.flow, s.replayed());
    let forever = run_within(tree(), WaitBounds::default());
    let _ = forever
        .completes("a")
        .after_ms(400 * DAY_MS)
        .then(&[("far", Pending)])
        .runs(true);
}

#[test]
fn what_a_task_says_of_its_wait_counts_and_so_does_the_wait_for_an_unknown_executor() {
    let mut own = task("far").method("resize");
    own.specification.start_within_ms = Some(2 * WEEK_MS);
    let s = run_within(vec![own], starts_within(DAY_MS)).after_ms(WEEK_MS);
    let _ = s
        .then(&[("far", Pending)])
        .after_ms(WEEK_MS)
        .then(&[("far", Failed)]);
    let Command::Execute(mut order) = execute_unknown("a", "run", 2 * DAY_MS) else {
        panic!("it executes");
    };
    order.wait_bounds = starts_within(DAY_MS);
    let s = given(vec![task("a").method("absent")]).when(Command::Execute(order));
    let s = s
        .accepted()
        .after_ms(2 * DAY_MS - 1)
        .then(&[("a", Pending)])
        .after_ms(1);
    let reason = s
        .last
        .as_ref()
        .expect("accepted")
        .0
        .iter()
        .find_map(|event| match event {
            Event::TaskFailed(e) => Some(e.reason),
            _ => None,
        });
    assert!(matches!(
        reason,
        Some(FailureReason::ExecutorNotFound | FailureReason::NotStarted)
    ));
}

#[test]
fn a_question_without_time_out_expires_with_the_bound_of_its_run() {
    let asks = |question: &str, bounds: WaitBounds| {
        let s = run_within(vec![task("a")], bounds);
        let members = Payload::parse(question).expect("an object").to_map();
        let prepared = prepare(&members, OnAnswer::Continue, None);
        let (asked, question, on_expiry) = prepared.expect("a question");
        s.when(Command::Suspend(Suspend {
            task: id("a"),
            attempt: 1,
            lease: None,
            suspension: SuspensionId(id("question").0),
            asked,
            question,
            on_answer: OnAnswer::Continue,
            on_expiry,
        }))
        .accepted()
    };
    let answered_within = |answer_ms| WaitBounds {
        start_ms: None,
        answer_ms: Some(answer_ms),
    };
    let plain = r#"{"question":"Go on?","response_type":"confirm"}"#;
    let s = asks(plain, answered_within(DAY_MS)).after_ms(DAY_MS - 1);
    let s = s
        .then(&[("a", InProgress)])
        .after_ms(1)
        .then(&[("a", Failed)]);
    let s = s.runs(false);
    assert_eq!(error_of(&s, "a"), "nobody answered within 86400 s");
    let fallback = r#"{"question":"Go on?","response_type":"confirm",
        "fallback_policy":"complete_with_fallback","fallback_value":{"late":true}}"#;
    let s = asks(fallback, answered_within(DAY_MS)).after_ms(DAY_MS);
    let _ = s.then(&[("a", Completed)]).runs(false);
    let own = r#"{"question":"Go on?","response_type":"confirm","timeout_seconds":172800}"#;
    let s = asks(own, answered_within(DAY_MS)).after_ms(DAY_MS);
    let _ = s.then(&[("a", InProgress)]);
    let forever = asks(plain, WaitBounds::default()).after_ms(400 * DAY_MS);
    let _ = forever.then(&[("a", InProgress)]).runs(true);
}
