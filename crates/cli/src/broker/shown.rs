//! Messages of the wire as JSON and as lines for people.

use crate::output::printable;
use chrono::{DateTime, SecondsFormat};
use prost_types::{Struct, Timestamp};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use taskledger_eventbus::values::json_of;
use taskledger_eventbus::{Priority, TaskMessage, TaskProgress, TaskResult, TaskStatus};

fn time(at: Option<Timestamp>) -> Value {
    let at = at.and_then(|at| DateTime::from_timestamp(at.seconds, u32::try_from(at.nanos).ok()?));
    at.map_or(Value::Null, |at| {
        Value::from(at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    })
}

fn values(of: Option<&Struct>) -> Value {
    match of {
        None => Value::Null,
        // A server that is not ours may send what JSON cannot say.
        Some(of) => json_of(of.clone(), "value").map_or(Value::Null, Value::Object),
    }
}

/// The name of a status without its beginning, which all of them share.
fn status(of: TaskStatus) -> String {
    of.as_str_name()
        .trim_start_matches("TASK_STATUS_")
        .to_lowercase()
}

/// What an agent works on.
pub(super) fn parameters(task: &TaskMessage) -> Map<String, Value> {
    if let Value::Object(map) = values(task.parameters.as_ref()) {
        map
    } else {
        Map::new()
    }
}

pub(super) fn task(task: &TaskMessage) -> Value {
    let priority = Priority::try_from(task.priority).unwrap_or(Priority::Unspecified);
    let priority = priority.as_str_name().trim_start_matches("PRIORITY_");
    json!({
        "task_id": task.task_id, "task_type": task.task_type, "parameters": values(task.parameters.as_ref()),
        "requester_agent_id": task.requester_agent_id, "responder_agent_id": task.responder_agent_id,
        "priority": priority.to_lowercase(), "deadline": time(task.deadline),
        "metadata": values(task.metadata.as_ref()), "created_at": time(task.created_at),
    })
}

pub(super) fn task_line(task: &TaskMessage) -> String {
    let parameters = Value::Object(parameters(task)).to_string();
    let (id, kind) = (printable(&task.task_id), printable(&task.task_type));
    format!("{id}  {kind}  {}", printable(&parameters))
}

pub(super) fn result(result: &TaskResult) -> Value {
    json!({
        "task_id": result.task_id, "status": status(result.status()), "result": values(result.result.as_ref()),
        "error_message": result.error_message, "executor_agent_id": result.executor_agent_id,
        "completed_at": time(result.completed_at),
        "execution_metadata": values(result.execution_metadata.as_ref()),
    })
}

pub(super) fn result_line(result: &TaskResult) -> String {
    let said = match result.error_message.as_str() {
        "" => values(result.result.as_ref()).to_string(),
        error => error.to_owned(),
    };
    let (id, status) = (printable(&result.task_id), status(result.status()));
    format!("{id}  {status}  {}", printable(&said))
}

pub(super) fn progress(progress: &TaskProgress) -> Value {
    json!({
        "task_id": progress.task_id, "status": status(progress.status()),
        "progress_percentage": progress.progress_percentage, "progress_message": progress.progress_message,
        "progress_data": values(progress.progress_data.as_ref()),
        "executor_agent_id": progress.executor_agent_id, "updated_at": time(progress.updated_at),
    })
}

pub(super) fn progress_line(progress: &TaskProgress) -> String {
    let (id, message) = (
        printable(&progress.task_id),
        printable(&progress.progress_message),
    );
    let line = format!("{id}  {} %  {message}", progress.progress_percentage);
    line.trim_end().to_owned()
}

/// As of a run: 0 completed, 1 failed, 3 cancelled.
pub(super) fn exit_code(result: &TaskResult) -> ExitCode {
    match result.status() {
        TaskStatus::Completed => ExitCode::SUCCESS,
        TaskStatus::Cancelled => ExitCode::from(3),
        TaskStatus::Failed
        | TaskStatus::Unspecified
        | TaskStatus::Pending
        | TaskStatus::InProgress => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_shown_with_what_counts() {
        let mut of = TaskResult {
            task_id: "t\u{1b}".to_owned(),
            status: TaskStatus::Completed.into(),
            result: Some(Struct::default()),
            completed_at: Some(Timestamp {
                seconds: 0,
                nanos: 5_000_000,
            }),
            ..TaskResult::default()
        };
        assert_eq!(result(&of)["completed_at"], "1970-01-01T00:00:00.005Z");
        assert_eq!(result(&of)["status"], "completed");
        assert!(result_line(&of).ends_with("  completed  {}"));
        assert!(!result_line(&of).contains('\u{1b}'));
        of.status = TaskStatus::Failed.into();
        of.error_message = "bad page".to_owned();
        assert!(result_line(&of).ends_with("  failed  bad page"));
    }
}
