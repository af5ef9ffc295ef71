//! A run as the protocol's document shows tasks of A2A. The official protocol is `transport/a2a`'s.
//! spec: interface / A2A Protocol Task Mapping

use crate::application::api::runs::{Artifact, HistoryEntry, OutputPart, RunView};
use crate::application::api::views::TaskRow;
use serde_json::{Map, Value, json};

/// The member of `metadata` that asks for this form, and its name in answers.
pub(in super::super) const PROTOCOL: &str = "protocol";
/// Its value.
const A2A: &str = "a2a";

/// Whether a call asks for this form.
pub(in super::super) fn is_asked_for(metadata: Option<&Map<String, Value>>) -> bool {
    let asked = metadata.and_then(|it| it.get(PROTOCOL));
    asked.and_then(Value::as_str) == Some(A2A)
}

/// A run of a task: its id is that of the execution, `context_id` the task's.
pub(in super::super) fn task(view: &RunView, row: &TaskRow) -> Value {
    let root = view.flow.root().to_string();
    let mut data = json!({
        PROTOCOL: A2A,
        "status": row.status.as_str(),
        "progress": row.progress,
        "root_task_id": root,
    });
    if let Some(error) = &row.error {
        data["error"] = Value::from(&**error);
    }
    let mut metadata = json!({PROTOCOL: A2A, "root_task_id": root});
    if let Some(user) = &row.user_id {
        metadata["user_id"] = Value::from(&**user);
    }
    if view.artifacts_left_out > 0 {
        metadata["artifacts_left_out"] = view.artifacts_left_out.into();
    }
    let message = json!({
        "kind": "message",
        "role": "agent",
        "parts": [{"kind": "data", "data": data}],
    });
    json!({
        "id": view.run.to_string(),
        "context_id": view.task.to_string(),
        "kind": "task",
        "status": {"state": row.status.as_str(), "message": message, "timestamp": view.status.at},
        "artifacts": view.artifacts.iter().map(artifact).collect::<Vec<_>>(),
        "history": view.history.iter().map(said).collect::<Vec<_>>(),
        "metadata": metadata,
    })
}

fn artifact(it: &Artifact) -> Value {
    let output = it.output.iter().map(|part| match &**part {
        OutputPart::Text(text) => json!({"kind": "text", "text": text}),
        OutputPart::Data(data) => json!({"kind": "data", "data": data.to_map()}),
    });
    let result = it.result.iter();
    let result = result.map(|it| json!({"kind": "data", "data": it.to_map()}));
    json!({
        "artifact_id": it.task.to_string(),
        "name": it.name,
        "parts": output.chain(result).collect::<Vec<_>>(),
    })
}

fn said(entry: &HistoryEntry) -> Value {
    match entry {
        HistoryEntry::Message { message, .. } => Value::Object(message.to_map()),
        HistoryEntry::Question(question) => json!({
            "kind": "message",
            "role": "agent",
            "parts": [{"kind": "data", "data": question.question.to_map()}],
        }),
    }
}
