//! Events of the log for the store under test: each task is a flow of its own.

use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_broker::Blocked;
use taskledger_domain::flow::{
    CancelReason, Event, FailureReason, RequeueReason, Specification, TaskCancelled, TaskCompleted,
    TaskCreated, TaskFailed, TaskRequeued, TaskStarted,
};
use taskledger_domain::task::{Priority, Progress};
use taskledger_domain::{
    EventId, FlowId, Metadata, Payload, Position, Recorded, RunId, TaskId, Timestamp,
};
use uuid::Uuid;

pub(crate) const ACTOR: &str = "service:agents";

pub(crate) fn task(number: u128) -> TaskId {
    TaskId(Uuid::from_u128(number))
}

pub(crate) fn at(position: Position) -> Timestamp {
    Timestamp(1_767_225_600_000_000 + i64::try_from(position).unwrap())
}

/// An event of the flow of a task; its version is its position.
fn recorded(actor: &str, position: Position, task: TaskId, event: Event) -> Arc<Recorded> {
    Arc::new(Recorded {
        position,
        flow: task.as_flow(),
        version: position,
        id: EventId(Uuid::from_u128(u128::from(position))),
        time: at(position),
        recorded_at: at(position),
        metadata: Metadata {
            actor: Arc::from(actor),
            correlation: Arc::from("test"),
            causation: None,
            trace: None,
        },
        event: Arc::new(event),
    })
}

fn creation(task: TaskId, params: &Value) -> TaskCreated {
    TaskCreated {
        task_id: task,
        ordinal: 0,
        parent_id: None,
        name: "data.analysis".to_owned(),
        user_id: None,
        priority: Priority::new(2).unwrap(),
        dependencies: Vec::new(),
        specification: Specification {
            inputs: Payload::empty(),
            schemas: None,
            params: params.as_object().map(Payload::from_map),
            method: None,
            retry: None,
            timeout_ms: None,
            deadline: None,
            remote: true,
            start_within_ms: None,
            cancel_grace_ms: None,
            start_at: None,
            delay_ms: None,
        },
        copied_from: None,
        labels: taskledger_domain::task::Labels::default(),
        run_id: None,
    }
}

fn marked(requester: &str, external_id: &str) -> Value {
    json!({"timeout_seconds": 5, "eventbus": {
        "task_id": external_id, "requester": requester, "responder": "writer", "metadata": {"n": 1.5},
    }})
}

/// `actor` creates a task with these `params`.
pub(crate) fn created(position: Position, id: u128, params: &Value) -> Arc<Recorded> {
    let event = Event::TaskCreated(creation(task(id), params));
    recorded(ACTOR, position, task(id), event)
}

pub(crate) fn published_by(
    actor: &str,
    position: Position,
    id: u128,
    (requester, external_id): (&str, &str),
) -> Arc<Recorded> {
    let event = creation(task(id), &marked(requester, external_id));
    recorded(actor, position, task(id), Event::TaskCreated(event))
}

pub(crate) fn published(
    position: Position,
    id: u128,
    requester: &str,
    external_id: &str,
) -> Arc<Recorded> {
    published_by(ACTOR, position, id, (requester, external_id))
}

pub(crate) fn copied(position: Position, id: u128, from: u128, external_id: &str) -> Arc<Recorded> {
    let mut event = creation(task(id), &marked("ann", external_id));
    event.copied_from = Some(task(from));
    recorded(ACTOR, position, task(id), Event::TaskCreated(event))
}

pub(crate) fn completed(position: Position, id: u128) -> Arc<Recorded> {
    let event = Event::TaskCompleted(TaskCompleted {
        task_id: task(id),
        attempt: 1,
        result: Payload::empty(),
        remarks: None,
        parts: 0,
    });
    recorded("engine", position, task(id), event)
}

pub(crate) fn failed(position: Position, id: u128, will_retry: bool) -> Arc<Recorded> {
    let event = Event::TaskFailed(TaskFailed {
        task_id: task(id),
        attempt: 1,
        error: "no".to_owned(),
        reason: FailureReason::Executor,
        progress: Progress::ZERO,
        will_retry,
        remarks: None,
        breach: None,
    });
    recorded("engine", position, task(id), event)
}

pub(crate) fn started(position: Position, id: u128) -> Arc<Recorded> {
    let event = Event::TaskStarted(TaskStarted {
        task_id: task(id),
        attempt: 1,
        run_id: RunId(Uuid::from_u128(1)),
        lease: None,
    });
    recorded("engine", position, task(id), event)
}

pub(crate) fn requeued(position: Position, id: u128, reason: RequeueReason) -> Arc<Recorded> {
    let event = Event::TaskRequeued(TaskRequeued {
        task_id: task(id),
        run_id: RunId(Uuid::from_u128(1)),
        reason,
        next_attempt_at: None,
    });
    recorded("engine", position, task(id), event)
}

pub(crate) fn cancelled(position: Position, id: u128) -> Arc<Recorded> {
    let event = Event::TaskCancelled(TaskCancelled {
        task_id: task(id),
        attempt: None,
        error: "cancelled".to_owned(),
        reason: CancelReason::Requested,
        progress: Progress::ZERO,
        remarks: None,
    });
    recorded("engine", position, task(id), event)
}

pub(crate) fn flow(id: u128) -> FlowId {
    task(id).as_flow()
}

/// A task that cannot run because of this event, as it was told with an event at this position.
pub(crate) fn blocked(id: u128, cause: &Arc<Recorded>, told: u64) -> Blocked {
    Blocked {
        task: task(id),
        cause: cause.clone(),
        told: (told, at(told)),
    }
}
