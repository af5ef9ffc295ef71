//! How checks follow a run as server-sent events.

use crate::clauses::prelude::*;
use crate::stream::{Message, messages};

/// The messages of a run that is followed with `metadata.stream`, until the stream ends.
pub(super) async fn followed(probe: &Probe, tasks: &[NewTask]) -> Result<Vec<Value>, Finding> {
    let elements: Vec<Value> = tasks.iter().map(NewTask::element).collect();
    let request = json!({
        "jsonrpc": "2.0", "id": "stream", "method": "tasks.execute",
        "params": {"tasks": elements}, "metadata": {"stream": true},
    });
    let headers = [
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
    ];
    let answer = probe.raw(request.to_string(), &headers).await?;
    ensure!(
        answer
            .header("content-type")
            .starts_with("text/event-stream"),
        "{}: expected an event stream",
        answer.story()
    );
    let broken = |error| Finding::failed(format!("{}: no JSON: {error}", answer.story()));
    // An event is named by its data, or by the field of its message.
    let read = |message: Message| -> Result<Value, Finding> {
        let data: Value = serde_json::from_str(&message.data).map_err(broken)?;
        let named = !message.event.is_empty() && data["event"].is_null();
        Ok(if named {
            json!({"event": message.event, "data": data})
        } else {
            data
        })
    };
    messages(&answer.body).into_iter().map(read).collect()
}

/// The `data` of the events of this kind. An event may be the result of an answer.
pub(super) fn updates_of<'a>(messages: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let event = |message: &'a Value| message.get("result").unwrap_or(message);
    let of_kind = |event: &&Value| event["event"] == kind;
    let events = messages.iter().map(event).filter(of_kind);
    events.map(|event| &event["data"]).collect()
}
