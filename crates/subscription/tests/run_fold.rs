//! The state of a run, folded notice by notice.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use serde_json::json;
use std::sync::Arc;
use taskledger_domain::flow::{
    CancelReason, Event, RunEnded, RunStage, RunState, StatusCounts, TaskCancelled, TaskStarted,
};
use taskledger_domain::question::Asks;
use taskledger_domain::task::Progress;
use taskledger_domain::{EventId, FlowId, Metadata, Recorded, RunId, TaskId, Timestamp};
use taskledger_subscription::notice::notices;
use taskledger_subscription::run_fold::{Fold, FoldChange};
use uuid::Uuid;

const RUN: RunId = RunId(Uuid::from_u128(9));

fn task(n: u128) -> TaskId {
    TaskId(Uuid::from_u128(n))
}

fn started(n: u128) -> Event {
    Event::TaskStarted(TaskStarted {
        task_id: task(n),
        attempt: 1,
        run_id: RUN,
        lease: None,
    })
}

fn suspended(n: u128) -> Event {
    let suspended = json!({
        "task_id": Uuid::from_u128(n), "attempt": 1, "suspension_id": Uuid::from_u128(n),
        "question": {"question": "?"}, "on_answer": "complete", "on_expiry": "fail",
    });
    Event::TaskSuspended(serde_json::from_value(suspended).unwrap())
}

fn cancelled(n: u128) -> Event {
    Event::TaskCancelled(TaskCancelled {
        task_id: task(n),
        attempt: Some(1),
        error: "cancelled".to_owned(),
        reason: CancelReason::Requested,
        progress: Progress::ZERO,
        remarks: None,
    })
}

fn ended() -> Event {
    Event::RunEnded(RunEnded {
        run_id: RUN,
        task_id: task(1),
        state: RunState::Cancelled,
        counts: StatusCounts::default(),
        root: taskledger_domain::testing::root_at_end(),
        others: 0,
        rejected: false,
    })
}

/// The stages that are told of these events, each at its time.
fn told(events: Vec<(i64, Event)>) -> Vec<(RunStage, i64)> {
    let flow = FlowId(Uuid::from_u128(1));
    let mut fold = Fold::begun(flow, task(1), Timestamp(0));
    let mut stages = Vec::new();
    for (version, (at, event)) in (1..).zip(events) {
        let recorded = Recorded {
            position: version,
            flow,
            version,
            id: EventId(Uuid::from_u128(version.into())),
            time: Timestamp(at),
            recorded_at: Timestamp(at),
            metadata: Metadata {
                actor: Arc::from("test"),
                correlation: Arc::from("test"),
                causation: None,
                trace: None,
            },
            event: Arc::new(event),
        };
        for notice in notices(&recorded) {
            for told in fold.take(&notice, RUN, Some(Asks::Input)) {
                if let FoldChange::Status(stand) = told {
                    stages.push((stand.stage, stand.at.0));
                }
            }
        }
    }
    stages
}

#[test]
fn a_question_that_ends_with_its_run_is_not_followed_by_work() {
    let events = vec![
        (1, started(1)),
        (2, suspended(1)),
        (3, cancelled(1)),
        (3, ended()),
    ];
    let expected = [
        (RunStage::Working, 1),
        (RunStage::InputRequired, 2),
        (RunStage::Cancelled, 3),
    ];
    assert_eq!(told(events), expected);
}

#[test]
fn a_run_that_goes_on_without_its_question_works_since_the_question_ended() {
    let events = vec![
        (1, started(1)),
        (2, suspended(1)),
        (3, cancelled(1)),
        (5, started(2)),
    ];
    let expected = [
        (RunStage::Working, 1),
        (RunStage::InputRequired, 2),
        (RunStage::Working, 3),
    ];
    assert_eq!(told(events), expected);
}

#[test]
fn the_oldest_question_that_waits_is_told() {
    let events = vec![
        (1, suspended(1)),
        (2, suspended(2)),
        (3, cancelled(1)),
        (4, ended()),
    ];
    let expected = [
        (RunStage::InputRequired, 1),
        (RunStage::InputRequired, 3),
        (RunStage::Cancelled, 4),
    ];
    assert_eq!(told(events), expected);
}
