//! What workers say beside reports and outcomes: kept with the event, decided by nothing.

use crate::support::{cancel, cancel_all, complete, fail, report};
use taskledger_domain::flow::{Event, FailureReason, Kind, Outdated, Remarks};
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::testing::{Scenario, execute, given, id, task};
use taskledger_domain::{Payload, TaskId};

fn remarks() -> Remarks {
    let payload = |text| Some(Payload::parse(text).expect("a JSON object"));
    Remarks {
        data: payload(r#"{"pages":3}"#),
        execution: payload(r#"{"seconds":1.5}"#),
        completed_at: Some("2026-01-01T00:00:00.000000001Z".into()),
    }
}

fn running() -> Scenario {
    let s = given(vec![
        task("a").attempts(2, 1000),
        task("b").under("a").after(&["a"]),
    ]);
    s.when(execute("a"))
        .then(&[("a", InProgress), ("b", Pending)])
}

/// The remarks of the last events, by task.
fn found(s: &Scenario) -> Vec<(TaskId, Option<Remarks>)> {
    let (events, _) = s.last.as_ref().expect("it was accepted");
    let of = |event: &Event| match event {
        Event::TaskProgressed(e) => Some((e.task_id, e.remarks.clone())),
        Event::TaskCompleted(e) => Some((e.task_id, e.remarks.clone())),
        Event::TaskFailed(e) => Some((e.task_id, e.remarks.clone())),
        Event::TaskCancelled(e) => Some((e.task_id, e.remarks.clone())),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn remarks_are_kept_with_the_event_of_the_task_that_was_named() {
    let with = || Some(remarks());
    let s = running().when(complete("a", 1).remarked(with()));
    assert_eq!(found(&s.then(&[("a", Completed)])), [(id("a"), with())]);
    let failure = fail("a", 1, FailureReason::NotRetryable).remarked(with());
    let s = running().when(failure);
    assert_eq!(found(&s.then(&[("a", Failed)])), [(id("a"), with())]);
    let s = running().when(cancel_all("a").remarked(with()));
    let s = s.then(&[("a", Cancelled), ("b", Cancelled)]);
    assert_eq!(found(&s), [(id("b"), None), (id("a"), with())]);
}

#[test]
fn an_attempt_that_is_followed_by_another_keeps_its_remarks_too() {
    let failure = fail("a", 1, FailureReason::Executor).remarked(Some(remarks()));
    let s = running().when(failure).then(&[("a", Pending)]);
    assert_eq!(found(&s), [(id("a"), Some(remarks()))]);
}

#[test]
fn remarks_are_worth_a_report_of_their_own() {
    let s = running().when(report("a", 1, 0.0));
    assert_eq!(found(&s), [], "nothing has changed");
    let s = s.when(report("a", 1, 0.0).remarked(Some(remarks())));
    assert_eq!(found(&s), [(id("a"), Some(remarks()))]);
}

#[test]
fn what_is_refused_is_refused_with_remarks() {
    let s = running().when(complete("a", 7).remarked(Some(remarks())));
    let _ = s.is_outdated(Outdated::Attempt).then(&[("a", InProgress)]);
    let s = running().completes("a");
    let again = cancel("a").remarked(Some(remarks()));
    let _ = s.when(again).rejects(Kind::InvalidTransition);
}

#[test]
fn there_are_no_remarks_without_a_member() {
    assert_eq!(Remarks::of(None, None), None);
    assert_eq!(cancel("a").remarked(None), cancel("a"));
    assert_eq!(cancel("a").remarked(Some(remarks())).plain(), &cancel("a"));
}
