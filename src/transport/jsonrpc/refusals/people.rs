//! Tasks that wait for people: who answers what is not asked, and who claims what has to wait for an answer.

use super::super::error::{ErrorKind, RpcError};
use serde_json::{Value, json};
use taskledger_domain::{SuspensionId, TaskId, Timestamp};

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

/// -31023: a result that the task is wired to waits for a person.
pub(super) fn upstream_suspended(
    task: TaskId,
    name: Option<&str>,
    upstream: TaskId,
    expires_at: Option<Timestamp>,
) -> RpcError {
    RpcError::of(
        ErrorKind::UpstreamSuspended,
        "task_id",
        "a task whose result it needs waits for a person",
        "a task whose wired inputs are in the results of its dependencies",
        &task.to_string().into(),
    )
    .with("error", "UpstreamIntentSuspendedError")
    .with("task_id", task.to_string())
    .with("phase_name", name)
    .with("suspended_intent_id", upstream.to_string())
    .with("expected_resume_at", json!(expires_at))
    .with(
        "message",
        format!("Task claim rejected: `{upstream}` waits for a person"),
    )
}
