//! `params.deadline`. spec: semantics / Inputs and schemas; State machine

use crate::support::{change, create, create_and_execute, error_of, refusal, updating};
use taskledger_domain::flow::{CallTask, CancelReason, Event, FailureReason, Fault, Refusal};
use taskledger_domain::schedule::next_due;
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{START, execute, given, group, id, task};

#[test]
fn an_attempt_fails_when_its_deadline_passes() {
    let s = given(vec![task("a").deadline_ms(100)])
        .when(execute("a"))
        .accepted();
    assert_eq!(
        next_due(&s.flow, s.now, &s.server),
        Some(START.plus_ms(100))
    );
    let s = s
        .after_ms(99)
        .then(&[("a", InProgress)])
        .after_ms(1)
        .then(&[("a", Failed)])
        .runs(false);
    assert!(
        error_of(&s, "a").contains("deadline"),
        "{}",
        error_of(&s, "a")
    );
    let reason = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::TaskFailed(e) => Some(e.reason),
        _ => None,
    });
    assert_eq!(reason, Some(FailureReason::Deadline));
}

#[test]
fn a_task_whose_deadline_passes_before_it_could_start_is_cancelled_with_a_reason() {
    let mut s = given(vec![task("a").deadline_ms(100)]);
    s.server.slots = 0;
    let s = s
        .when(execute("a"))
        .accepted()
        .then(&[("a", Pending)])
        .after_ms(100);
    let s = s.then(&[("a", Cancelled)]).runs(false);
    assert!(error_of(&s, "a").ends_with("passed before the task could start"));
    let reason = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::TaskCancelled(e) => Some((e.reason, e.attempt)),
        _ => None,
    });
    assert_eq!(reason, Some((CancelReason::Deadline, None)));
}

#[test]
fn the_error_of_a_deadline_that_passes_between_two_attempts_mentions_a_start() {
    let mut s = given(vec![task("a").attempts(2, 50).deadline_ms(100)])
        .when(execute("a"))
        .accepted()
        .fails("a")
        .then(&[("a", Pending)]);
    s.server.slots = 0;
    let s = s.after_ms(100).then(&[("a", Cancelled)]).runs(false);
    let error = error_of(&s, "a");
    assert!(
        error.ends_with("passed before the task could start again"),
        "{error}"
    );
}

#[test]
fn a_blocked_task_is_cancelled_at_its_deadline_while_the_run_is_on() {
    let _ = given(vec![
        group("r"),
        task("slow").under("r"),
        task("b").under("r").after(&["slow"]).deadline_ms(50),
    ])
    .when(execute("r"))
    .accepted()
    .after_ms(50)
    .then(&[("slow", InProgress), ("b", Cancelled)]);
}

#[test]
fn descendants_inherit_a_deadline_and_the_earliest_counts() {
    let s = given(vec![
        group("r").deadline_ms(100),
        group("g").under("r").deadline_ms(200),
        task("a").under("g").deadline_ms(50),
        task("b").under("g"),
    ]);
    let deadline = |n| s.flow.task(id(n)).unwrap().deadline;
    let expected = [100, 100, 50, 100].map(|ms| Some(START.plus_ms(ms)));
    assert_eq!(["r", "g", "a", "b"].map(deadline), expected);
    let s = s.when(execute("r")).accepted().after_ms(50);
    let s = s.then(&[("a", Failed), ("b", InProgress)]).after_ms(50);
    let _ = s
        .then(&[("b", Failed), ("g", Failed), ("r", Failed)])
        .runs(false);
}

#[test]
fn a_task_without_a_deadline_above_it_has_none() {
    let s = given(vec![group("r"), task("a").under("r").deadline_ms(5)]);
    assert_eq!(s.flow.task(id("r")).unwrap().deadline, None);
}

#[test]
fn a_group_fails_at_its_deadline() {
    let _ = given(vec![group("g").deadline_ms(10), task("a").under("g")])
        .when(execute("g"))
        .accepted()
        .after_ms(10)
        .then(&[("g", Failed), ("a", Failed)])
        .runs(false);
}

#[test]
fn executing_over_a_deadline_that_has_passed_is_invalid() {
    let mut s = given(vec![
        group("r"),
        task("a").under("r").deadline_ms(10),
        task("b").under("r"),
    ]);
    s.now = START.plus_ms(10);
    let refused = s.clone().when(execute("r"));
    let fault = Fault::DeadlinePassed {
        task: id("a"),
        deadline: START.plus_ms(10),
    };
    assert_eq!(*refusal(&refused), Refusal::Invalid(vec![fault]));
    let _ = s.when(execute("b")).accepted();
}

#[test]
fn a_passed_deadline_of_a_new_task_is_told_with_the_task() {
    let a = task("a").under("r").deadline_ms(0);
    let s = given(vec![]).when(create_and_execute(vec![group("r"), a]));
    let fault = Fault::NewDeadlinePassed {
        task: CallTask::Id(id("a")),
        deadline: START,
    };
    assert_eq!(*refusal(&s), Refusal::Invalid(vec![fault]));
}

#[test]
fn a_passed_deadline_of_a_completed_task_does_not_matter() {
    let s = given(vec![
        group("r"),
        task("a").under("r").deadline_ms(10),
        task("b").under("r"),
    ]);
    let s = s.when(execute("a")).accepted().completes("a").after_ms(20);
    let _ = s
        .when(execute("r"))
        .accepted()
        .then(&[("a", Completed), ("b", InProgress)]);
}

#[test]
fn a_deadline_counts_only_while_a_run_covers_the_task() {
    let _ = given(vec![task("a").deadline_ms(10)])
        .after_ms(20)
        .then(&[("a", Pending)]);
}

#[test]
fn a_changed_deadline_counts_at_once_for_all_descendants() {
    let s = given(vec![
        group("r"),
        task("x").under("r"),
        group("g").under("r").after(&["x"]),
        task("a").under("g").after(&["x"]),
    ]);
    let s = s.when(execute("r")).accepted();
    let s = updating(s, change("g").deadline(Some(START.plus_ms(30)))).accepted();
    assert_eq!(
        s.flow.task(id("a")).unwrap().deadline,
        Some(START.plus_ms(30))
    );
    let s = s
        .after_ms(30)
        .then(&[("g", Cancelled), ("a", Cancelled), ("x", InProgress)]);
    assert_eq!(s.flow, s.replayed());
    let s = given(vec![group("g").deadline_ms(30), task("a").under("g")]);
    let s = updating(s, change("g").deadline(None)).accepted();
    assert_eq!(s.flow.task(id("a")).unwrap().deadline, None);
}

#[test]
fn a_new_child_inherits_the_deadline_too() {
    let s = given(vec![group("r").deadline_ms(40)])
        .when(create(vec![task("a").under("r")]))
        .accepted();
    assert_eq!(
        s.flow.task(id("a")).unwrap().deadline,
        Some(START.plus_ms(40))
    );
}

#[test]
fn moving_a_task_gives_it_the_deadline_of_its_new_ancestors() {
    let s = given(vec![
        group("r"),
        group("early").under("r").deadline_ms(10),
        group("late").under("r").deadline_ms(90),
        task("a").under("early"),
        task("b").under("a"),
    ]);
    let s = updating(s, change("a").parent(Some("late"))).accepted();
    for name in ["a", "b"] {
        assert_eq!(
            s.flow.task(id(name)).unwrap().deadline,
            Some(START.plus_ms(90))
        );
    }
}
