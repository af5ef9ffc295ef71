//! The methods that show what happened, and why.

use super::super::schemas::{at, object, with_optional};
use super::{About, Example, GROUP, MINTED};
use crate::application::history::EventType;
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};
use taskledger_domain::limits::LIST_LIMIT_MAX;

fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

fn time_or_null() -> Value {
    json!({"type": ["string", "null"], "format": "date-time"})
}

/// `tasks.history`.
#[must_use]
pub fn history() -> About {
    let types: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    let place = json!({"type": "integer", "minimum": 1});
    let event = with_optional(
        object(json!({
            "id": uuid(),
            "sequence": place,
            "position": place,
            "timestamp": {"type": "string", "format": "date-time"},
            "type": {"type": "string", "enum": types},
            "task_id": at("TaskId"),
            "actor": {"type": "string"},
            "correlation_id": {"type": "string"},
            "data": {"type": "object", "description": "What changed, by the type of the event."},
        })),
        json!({"causation_id": uuid()}),
    );
    let page = object(json!({
        "task_id": at("TaskId"),
        "root_task_id": at("TaskId"),
        "events": {"type": "array", "maxItems": LIST_LIMIT_MAX, "items": event},
    }));
    let more = json!({
        "next_cursor": {"type": "string", "minLength": 1, "description": "For the next page, when there is one."},
    });
    About {
        description: "Shows the events of a task, or of its whole flow, as they were recorded, a page at a time. Also for a task that was deleted.",
        result: "history",
        schema: with_optional(page, more),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![Example {
            name: "how a task began",
            description: "The events of its creation.",
            params: json!({"task_id": GROUP, "types": ["task_created"]}),
            result: json!({"task_id": GROUP, "root_task_id": GROUP, "events": [{
                "id": MINTED, "sequence": 1, "position": 1,
                "timestamp": "2026-01-15T10:30:00.000000Z", "type": "task_created",
                "task_id": GROUP, "actor": "user-123", "correlation_id": "request-1",
                "data": {"status": {"from": null, "to": "pending"}, "name": "report"},
            }]}),
        }],
    }
}

/// `tasks.explain`.
#[must_use]
pub fn explain() -> About {
    let reason = object(json!({
        "code": {"type": "string", "minLength": 1, "description": "For programs."},
        "message": {"type": "string", "minLength": 1, "description": "For people."},
    }));
    let text_or_null = json!({"type": ["string", "null"]});
    let attempt = object(json!({
        "attempt": {"type": "integer", "minimum": 1},
        "run_id": {"type": ["string", "null"], "format": "uuid"},
        "started_at": time_or_null(),
        "ended_at": time_or_null(),
        "outcome": {"enum": ["completed", "failed", "cancelled", null]},
        "reason": text_or_null,
        "error": text_or_null,
    }));
    let always = object(json!({
        "task_id": at("TaskId"),
        "root_task_id": at("TaskId"),
        "name": {"type": "string"},
        "status": at("Status"),
        "summary": {"type": "string", "minLength": 1, "description": "The reasons as one sentence."},
        "reasons": {"type": "array", "minItems": 1, "items": reason, "description": "The weightiest first; each has more members by its code."},
        "attempt": {"type": "integer", "minimum": 0},
    }));
    let sometimes = json!({
        "executor": {"type": "string", "description": "Absent for a group."},
        "attempts": {"type": "array", "minItems": 1, "items": attempt, "description": "The latest ones."},
        "more_attempts": {"type": "integer", "minimum": 1, "description": "Earlier ones."},
    });
    About {
        description: "Says why a task is not running, what it is doing, or why it ended as it did.",
        result: "explanation",
        schema: with_optional(always, sometimes),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![Example {
            name: "a task that no run covers",
            description: "It was created and not executed.",
            params: json!({"task_id": GROUP}),
            result: json!({
                "task_id": GROUP, "root_task_id": GROUP, "name": "report", "status": "pending",
                "summary": "`report` is pending: no run covers it",
                "reasons": [{"code": "not_covered", "message": "no run covers it"}],
                "attempt": 0,
            }),
        }],
    }
}
