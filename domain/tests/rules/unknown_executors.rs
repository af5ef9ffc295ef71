//! Methods that no executor has. spec: semantics / Methods, tasks.execute

use crate::support::{create, error_of, execute_unknown, refusal};
use taskledger_domain::flow::{Event, FailureReason, Refusal, UnknownExecutor};
use taskledger_domain::schedule::next_due;
use taskledger_domain::task::Status::{Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{START, Scenario, execute, given, group, id, task};

fn waiting() -> Scenario {
    given(vec![group("r"), task("a").under("r").method("later")])
        .when(execute_unknown("r", "run", 300_000))
        .accepted()
        .then(&[("a", Pending)])
        .runs(true)
}

#[test]
fn a_method_that_no_executor_has_is_refused_and_nothing_starts() {
    let s = given(vec![
        group("r"),
        task("ok").under("r"),
        task("a").under("r").method("nope"),
        task("b").under("r").method("none"),
    ]);
    let before = s.flow.clone();
    let s = s.when(execute("r"));
    let unknown = [("a", "nope"), ("b", "none")].map(|(task, method)| UnknownExecutor {
        task: id(task),
        method: method.to_owned(),
    });
    assert_eq!(*refusal(&s), Refusal::ExecutorsNotFound(unknown.to_vec()));
    assert_eq!(s.flow, before);
}

#[test]
fn a_completed_task_needs_no_executor_any_more() {
    let mut s = given(vec![
        group("r"),
        task("a").under("r").method("once"),
        task("b").under("r"),
    ]);
    s = s.when(execute("a")).accepted().completes("a");
    s.server.executors.remove("once");
    let _ = s.when(execute("r")).accepted().then(&[("b", InProgress)]);
}

#[test]
fn an_allowed_unknown_executor_is_waited_for() {
    let mut s = waiting();
    assert_eq!(
        next_due(&s.flow, s.now, &s.server),
        Some(START.plus_ms(300_000))
    );
    s.server.executors.insert("later".to_owned(), true);
    let _ = s
        .after_ms(1000)
        .then(&[("a", InProgress)])
        .completes("a")
        .then(&[("r", Completed)]);
}

#[test]
fn after_the_wait_the_task_starts_and_fails_with_the_executors_name() {
    let s = waiting()
        .after_ms(299_999)
        .then(&[("a", Pending)])
        .after_ms(1);
    let s = s.then(&[("a", Failed), ("r", Failed)]).runs(false);
    assert_eq!(error_of(&s, "a"), "executor `later` not found");
    let (events, _) = s.last.as_ref().unwrap();
    assert!(matches!(&events[0], Event::TaskStarted(e) if e.attempt == 1));
    assert!(
        matches!(&events[1], Event::TaskFailed(e) if e.reason == FailureReason::ExecutorNotFound)
    );
}

#[test]
fn the_wait_begins_when_the_task_is_ready() {
    let s = given(vec![
        group("r"),
        task("x").under("r"),
        task("a").under("r").method("later").after(&["x"]),
    ])
    .when(execute_unknown("r", "run", 1000))
    .accepted()
    .after_ms(900)
    .completes("x")
    .after_ms(999)
    .then(&[("a", Pending)]);
    let _ = s.after_ms(1).then(&[("a", Failed)]);
}

#[test]
fn runs_that_wait_differently_long_give_up_each_at_its_time() {
    let s = given(vec![
        group("r"),
        task("long").under("r").method("later"),
        task("short").under("r").method("later"),
    ])
    .when(execute_unknown("long", "one", 5000))
    .accepted()
    .after_ms(10)
    .when(execute_unknown("short", "two", 100))
    .accepted();
    assert_eq!(
        next_due(&s.flow, s.now, &s.server),
        Some(START.plus_ms(110))
    );
    let s = s
        .after_ms(100)
        .then(&[("short", Failed), ("long", Pending)]);
    assert_eq!(
        next_due(&s.flow, s.now, &s.server),
        Some(START.plus_ms(5000))
    );
    let _ = s.after_ms(4890).then(&[("long", Failed)]).runs(false);
}

#[test]
fn all_priorities_give_up_in_time() {
    let tasks = (0..4).map(|p| task(&p.to_string()).under("r").method("later").priority(p));
    let tasks = std::iter::once(group("r")).chain(tasks).collect();
    let s = given(tasks)
        .when(execute_unknown("r", "run", 10))
        .accepted()
        .after_ms(10);
    let _ = s
        .then(&["0", "1", "2", "3"].map(|n| (n, Failed)))
        .runs(false);
}

#[test]
fn a_group_waits_while_an_executor_is_awaited() {
    let s = given(vec![
        group("r"),
        task("x").under("r"),
        task("a").under("r").method("later"),
    ]);
    let s = s
        .when(execute_unknown("r", "run", 1000))
        .accepted()
        .fails("x");
    let _ = s
        .then(&[("r", InProgress)])
        .after_ms(1000)
        .then(&[("a", Failed), ("r", Failed)]);
}

#[test]
fn a_task_added_to_a_running_run_with_an_unknown_method_waits_like_the_others() {
    let s = given(vec![group("r"), task("x").under("r")])
        .when(execute("r"))
        .accepted();
    let s = s
        .when(create(vec![task("a").under("r").method("later")]))
        .accepted();
    let s = s
        .then(&[("a", Pending)])
        .after_ms(300_000)
        .then(&[("a", Failed)]);
    let _ = s.completes("x").then(&[("r", Failed)]);
}
