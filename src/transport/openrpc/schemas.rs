//! The schemas of answers, beside those of what callers write (`domain::task::schema`). Answers may get more members,
//! so none of these forbids others.

use super::about::work;
pub(super) use super::schema_parts::{at, object, with_optional};
use serde_json::{Map, Value, json};
use taskledger_domain::limits::{NAME_CHARS_MAX, TASKS_PER_CALL_MAX, VIOLATIONS_MAX};
use taskledger_domain::task::Status;
use taskledger_domain::task::schema::{self, UUID_V4_PATTERN};

/// `components.schemas`.
pub(super) fn components() -> Value {
    let answered = [
        ("TaskId", task_id()),
        ("Status", status()),
        ("Task", task()),
        ("Dependency", dependency()),
        ("Blocker", blocker()),
        ("TaskTreeNode", node()),
        ("AsOf", moment()),
        ("Run", run()),
        ("StatusCounts", counts()),
        ("TaskIds", task_ids()),
        ("Claim", work::claim_schema()),
        ("Violation", violation()),
        ("ErrorData", error_data()),
    ];
    let written = schema::components();
    let all = answered.into_iter().chain(written);
    Value::Object(
        all.map(|(name, schema)| (name.to_owned(), schema))
            .collect::<Map<_, _>>(),
    )
}

fn task_id() -> Value {
    json!({
        "type": "string",
        "format": "uuid",
        "pattern": UUID_V4_PATTERN,
        "description": "A UUID v4.",
    })
}

fn status() -> Value {
    json!({"type": "string", "enum": Status::ALL.map(Status::as_str)})
}

/// The protocol's own members as its data model has them, then ours.
fn task() -> Value {
    let time = |description: &str| json!({"type": "string", "format": "date-time", "description": description});
    let time_or_null = |description: &str| json!({"type": ["string", "null"], "format": "date-time", "description": description});
    let object_or_null =
        |description: &str| json!({"type": ["object", "null"], "description": description});
    json!({
        "type": "object",
        "required": ["id", "name", "status"],
        "properties": {
            "id": {"type": "string", "format": "uuid", "description": "The task's id, a UUID v4."},
            "parent_id": {"type": ["string", "null"], "format": "uuid", "description": "The task above it; orders no execution."},
            "user_id": {"type": ["string", "null"], "minLength": 1, "description": "Whose task it is."},
            "name": {"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX, "description": "A name for people."},
            "status": {"type": "string", "enum": Status::ALL.map(Status::as_str), "description": "Its status."},
            "priority": {"type": "integer", "minimum": 0, "maximum": 3, "default": 2, "description": "0 urgent, 1 high, 2 normal, 3 low."},
            "inputs": {"type": "object", "default": {}, "description": "What the executor works on."},
            "schemas": object_or_null("Which executor runs it; null for a group."),
            "params": object_or_null("How it is run."),
            "result": object_or_null("What a completed task produced."),
            "error": {"type": ["string", "null"], "description": "Why a failed or cancelled task ended."},
            "dependencies": {"type": "array", "items": at("Dependency"), "default": [], "description": "The tasks that it waits for."},
            "progress": {"type": "number", "minimum": 0.0, "maximum": 1.0, "default": 0.0, "description": "How far it is."},
            "created_at": time("When it was created."),
            "started_at": time_or_null("When its latest attempt began; null while pending."),
            "updated_at": time("When it last changed."),
            "completed_at": time_or_null("When it ended; null until then."),
            "root_task_id": {"type": "string", "format": "uuid", "description": "The root of its flow."},
            "attempt": {"type": "integer", "minimum": 0, "description": "Attempts so far."},
            "start_at": time("Neither it nor a task below it starts before this time; absent when it does not say."),
            "next_attempt_at": time("While it waits for its next attempt, or by `start_at` or `delay_seconds` for its first: not before this time."),
            "suspension": {"type": "object", "description": "While it waits for a person: `suspension_id`, `question`, `since`, `expires_at`."},
            "blocked_by": {"type": "array", "minItems": 1, "items": at("Blocker"), "description": "While pending: required dependencies that failed or were cancelled."},
            "skipped": {"type": "boolean", "enum": [true], "description": "It is pending, and the latest run that covered it has ended without it."},
            "labels": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}, "description": "What it is found by; absent when it has none."},
            "run": at("Run"),
            "as_of": at("AsOf"),
        },
    })
}

fn moment() -> Value {
    let mut moment = object(json!({
        "position": {"type": "integer", "minimum": 1, "description": "Its position in the log."},
        "time": {"type": "string", "format": "date-time", "description": "When it was decided."},
    }));
    moment["description"] = json!(
        "In an answer to a call with `as_of`: the last event of the flow that the answer includes."
    );
    moment
}

fn dependency() -> Value {
    json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string", "format": "uuid", "description": "The task that is waited for."},
            "required": {"type": "boolean", "default": true, "description": "Whether it must complete, or only end."},
            "when": {"type": "string", "enum": ["always"], "description": "It is enough that it can no longer run."},
        },
    })
}

fn blocker() -> Value {
    object(json!({
        "id": at("TaskId"),
        "status": {"type": "string", "enum": ["failed", "cancelled"]},
    }))
}

fn node() -> Value {
    let node = object(json!({
        "task": at("Task"),
        "children": {"type": "array", "items": at("TaskTreeNode")},
    }));
    with_optional(node, json!({"as_of": at("AsOf")}))
}

fn run() -> Value {
    let run = object(json!({
        "id": at("TaskId"),
        "state": {"type": "string", "enum": ["running", "completed", "failed", "cancelled"]},
        "counts": at("StatusCounts"),
    }));
    let skipped = json!({"type": "integer", "minimum": 0, "description": "Once it has ended: tasks that it has left pending, groups left out."});
    let mut run = with_optional(run, json!({"skipped": skipped}));
    run["description"] = json!(
        "The latest run that covers the task. Shown by the root of the run, and by the root of the flow."
    );
    run
}

fn counts() -> Value {
    let members = Status::ALL.map(|status| {
        let count = json!({"type": "integer", "minimum": 0});
        (status.as_str().to_owned(), count)
    });
    object(Value::Object(Map::from_iter(members)))
}

fn task_ids() -> Value {
    json!({
        "type": "object",
        "maxProperties": TASKS_PER_CALL_MAX,
        "additionalProperties": at("TaskId"),
        "description": "The id of each task, by the id or name that the call gives it.",
    })
}

fn violation() -> Value {
    object(json!({
        "field": {"type": "string", "description": "The last name in `path`."},
        "reason": {"type": "string", "minLength": 1, "description": "What is wrong."},
        "expected": {"type": "string", "description": "What would be accepted."},
        "actual": {"description": "The value found, shortened; null when it is absent."},
        "path": {
            "type": "array",
            "items": {"type": ["string", "integer"], "minimum": 0},
            "description": "From the parameters to the value; positions in arrays are integers.",
        },
    }))
}

/// A single fault stands flat beside its list too, so that both of the protocol's examples hold.
fn error_data() -> Value {
    let flat = violation();
    json!({
        "type": "object",
        "required": ["errors"],
        "properties": {
            "errors": {"type": "array", "maxItems": VIOLATIONS_MAX, "items": at("Violation")},
            "more": {"type": "integer", "minimum": 1, "description": "Faults beyond those that are listed."},
        },
        "if": {"properties": {"errors": {"minItems": 1, "maxItems": 1}}},
        "then": {"required": flat["required"], "properties": flat["properties"]},
        "else": {"not": {"required": ["field"]}},
    })
}
