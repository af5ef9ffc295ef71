//! Tasks that wait for people: who answers what is not asked.

use super::super::error::{ErrorKind, RpcError};
use serde_json::{Value, json};
use taskledger_domain::{SuspensionId, TaskId};

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
