//! Refusals of answers that a task does not wait for.

use super::super::error::{ErrorKind, RpcError};
use serde_json::{Value, json};
use taskledger_domain::{RunId, SuspensionId, TaskId};

/// -31011: the task does not wait for this answer. `data.suspension_id` says for which it does.
pub(super) fn not_suspended(task: TaskId, suspension: Option<SuspensionId>) -> RpcError {
    let (field, reason) = match suspension {
        Some(_) => ("suspension_id", "the task waits for another answer"),
        None => ("task_id", "the task does not wait for an answer"),
    };
    RpcError::of(
        ErrorKind::NotSuspended,
        field,
        reason,
        "a task that waits, and the `suspension_id` that `tasks.get` shows",
        &Value::Null,
    )
    .with("task_id", task.to_string())
    .with("suspension_id", json!(suspension))
}

/// -32001: there is no such run, or it is somebody else's.
pub(super) fn run_not_found(run: RunId) -> RpcError {
    RpcError::of(
        ErrorKind::TaskNotFound,
        "run_id",
        "Run not found",
        "the id of a run of yours",
        &run.to_string().into(),
    )
}

/// -32006: nothing comes after the end of a run.
pub(super) fn run_over(run: RunId) -> RpcError {
    RpcError::of(
        ErrorKind::InvalidTransition,
        "run_id",
        "the run has ended",
        "a run that is on",
        &run.to_string().into(),
    )
}

/// -31011: nobody waits for what is said to the run.
pub(super) fn run_not_waiting(run: RunId, task: Option<TaskId>) -> RpcError {
    RpcError::of(
        ErrorKind::NotSuspended,
        "run_id",
        "no task of the run waits for an answer",
        "a run in which a task waits",
        &run.to_string().into(),
    )
    .with("task_id", json!(task))
}
