//! Schemas and examples of the methods that change tasks.

use super::super::schemas::{at, object, with_optional};
use crate::transport::openrpc::schema_parts::warnings;
use serde_json::{Value, json};
use taskledger_domain::limits;

pub(in crate::transport) fn constant(word: &str) -> Value {
    json!({"type": "string", "enum": [word]})
}

/// What is answered when a run has begun.
pub(in crate::transport) fn started() -> Value {
    let always = object(json!({
        "root_task_id": at("TaskId"),
        "status": constant("started"),
        "run_id": at("TaskId"),
    }));
    let of_tasks = json!({"task_id": at("TaskId"), "task_ids": at("TaskIds"), "will_run": {
        "type": "object",
        "description": "Of a stored task: the tasks that the run starts, groups left out. Those that are blocked stay pending.",
        "properties": {
            "tasks": {"type": "array", "items": at("TaskId"), "maxItems": limits::WILL_RUN_LISTED_MAX,
                "description": "The first of them in order of creation."},
            "count": {"type": "integer", "minimum": 0, "description": "How many there are."},
        },
        "required": ["tasks", "count"],
        "additionalProperties": false,
    }});
    with_optional(with_optional(always, of_tasks), warnings())
}
