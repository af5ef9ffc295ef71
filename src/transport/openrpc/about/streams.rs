//! The methods whose answer is the beginning of a stream.

use super::super::schemas::{at, object, with_optional};
use super::{About, Example, GROUP, group};
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};

/// What a cursor looks like.
const CURSOR: &str = "AQAAAAAAAAADAAAAAAAAAAMC3q2-7wAA";

fn cursor() -> Value {
    json!({"type": "string", "minLength": 1, "description": "The cursor before the first event, for `tasks.resubscribe`, `Last-Event-ID` and `last_event_id`."})
}

fn shown() -> Value {
    json!({"task": at("Task"), "run": at("Run")})
}

/// `tasks.subscribe`.
#[must_use]
pub fn subscribe() -> About {
    let always = object(json!({"root_task_id": at("TaskId"), "cursor": cursor()}));
    About {
        description: "Shows a task, then streams the events of its flow from exactly that moment until it stops running; for a flow that never ran, until its first run has ended, or all its tasks were cancelled. Over HTTP the answer is `text/event-stream`: its first message is the JSON-RPC answer, the others are events, the last of which has `final: true`. On a socket the result has `subscription`, and the events are notifications. It stands alone: not in a batch, not without an id.",
        result: "subscribed",
        schema: with_optional(always, shown()),
        errors: &[ErrorKind::TaskNotFound, ErrorKind::QuotaExceeded],
        examples: vec![Example {
            name: "a group",
            description: "A task that has not run, with its flow.",
            params: json!({"task_id": GROUP}),
            result: json!({"task": group(), "root_task_id": GROUP, "cursor": CURSOR}),
        }],
    }
}

/// `tasks.resubscribe`.
#[must_use]
pub fn resubscribe() -> About {
    let always = object(json!({
        "root_task_id": at("TaskId"),
        "resumed": {"type": "boolean", "description": "Whether nothing is missing between `last_event_id` and the first event."},
        "cursor": cursor(),
    }));
    let over = json!({"type": "boolean", "enum": [true], "description": "The flow does not run, and its end was sent before: no event follows."});
    let mut optional = shown();
    optional["final"] = over;
    optional["reason"] = json!({
        "type": "string",
        "enum": ["malformed", "another_log", "ahead_of_log", "archived"],
        "description": "Why it is not resumed; then the task is shown, and the stream continues from there.",
    });
    About {
        description: "Resumes a stream of a flow after the last event that arrived. The answer is that of `tasks.subscribe`, without the task. A stream that cannot be resumed starts again, and says so.",
        result: "resubscribed",
        schema: with_optional(always, optional),
        errors: &[ErrorKind::TaskNotFound, ErrorKind::QuotaExceeded],
        examples: vec![Example {
            name: "an invalid cursor",
            description: "The task is shown again.",
            params: json!({"task_id": GROUP, "last_event_id": "lost"}),
            result: json!({
                "task": group(), "root_task_id": GROUP, "resumed": false, "reason": "malformed",
                "cursor": CURSOR,
            }),
        }],
    }
}
