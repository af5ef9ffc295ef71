//! Events of tasks that wait for people.

use taskledger_domain::flow::{
    Event, OnAnswer, OnExpiry, RequeueReason, TaskAnswered, TaskRequeued, TaskSuspended,
};
use taskledger_domain::{Payload, SuspensionId, Timestamp};
use taskledger_projections::TaskRow;

pub fn suspended(row: &TaskRow, expires_at: Timestamp) -> Event {
    Event::TaskSuspended(TaskSuspended {
        task_id: row.id,
        attempt: row.attempt,
        suspension_id: SuspensionId(row.id.0),
        asks: Default::default(),
        question: Payload::parse(r#"{"question":"Go\u0000 on?"}"#).unwrap(),
        on_answer: OnAnswer::Continue,
        expires_at: Some(expires_at),
        remind_every_ms: None,
        reminders: 0,
        ladder: Vec::new(),
        on_expiry: OnExpiry::Fail,
    })
}

pub fn answered(row: &TaskRow) -> Event {
    Event::TaskAnswered(TaskAnswered {
        task_id: row.id,
        attempt: row.attempt,
        suspension_id: SuspensionId(row.id.0),
        answer: Payload::parse(r#"{"value":true}"#).unwrap(),
        responded_by: "ann".to_owned(),
        on_behalf_of: None,
    })
}

pub fn again(row: &TaskRow) -> Option<Event> {
    Some(Event::TaskRequeued(TaskRequeued {
        task_id: row.id,
        run_id: row.run_id?,
        reason: RequeueReason::Answered,
        next_attempt_at: None,
    }))
}
