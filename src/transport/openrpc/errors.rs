//! The rows of the error table as the document shows them.

use crate::transport::jsonrpc::ErrorKind;
use crate::transport::openrpc::schema_parts::text;
use serde_json::{Map, Value, json};

/// What every method can answer, whatever it does.
const ALWAYS: &[ErrorKind] = &[
    ErrorKind::InvalidParams,
    ErrorKind::Internal,
    ErrorKind::Busy,
    ErrorKind::Unauthorized,
];

/// All errors of a method: its own, and those of every method.
pub(super) fn of(own: &[ErrorKind]) -> impl Iterator<Item = ErrorKind> {
    ALWAYS.iter().chain(own).copied()
}

pub(super) fn reference(kind: ErrorKind) -> Value {
    json!({"$ref": format!("#/components/errors/{}", name(kind))})
}

/// Of a claim: absent when results lack values.
const INCOMPLETE_DEPENDENCIES: &str = "incomplete_dependencies";

/// The component of a row.
fn name(kind: ErrorKind) -> String {
    format!("{kind:?}")
}

/// `components.errors`; `data` is the schema of what is sent there.
pub(super) fn components() -> Value {
    let rows = ErrorKind::ALL.into_iter().map(|kind| {
        let (code, message) = kind.row();
        let row = json!({"code": code, "message": message, "data": data(kind)});
        (name(kind), row)
    });
    Value::Object(rows.collect::<Map<_, _>>())
}

fn data(kind: ErrorKind) -> Value {
    let ids = |description: &str| {
        json!({
            "type": "array",
            "items": {"type": "string"},
            "description": description,
        })
    };
    let (required, members) = match kind {
        ErrorKind::CircularDependency => (
            true,
            json!({"cycle": ids("Each task waits for the next; the first is repeated at the end. Tasks of the call by the names that it gives them.")}),
        ),
        ErrorKind::InvalidTree => (
            false,
            json!({"cycle": ids("Tasks of the call whose parents form a cycle, by the names that it gives them: each is below the next; the first is repeated at the end.")}),
        ),
        ErrorKind::NotDeletable => (
            false,
            json!({
                "children": ids("Tasks below it."),
                "dependents": ids("Tasks that depend on it."),
                "not_pending": ids("Tasks below it that have started."),
            }),
        ),
        ErrorKind::Busy => (
            true,
            json!({"retry_after_ms": {"type": "integer", "minimum": 0, "description": "When to try again."}}),
        ),
        ErrorKind::QuotaExceeded => (
            true,
            json!({
                "quota": text("What there is enough of: `open_flows`, `waiting_tasks`, `webhooks`, `streams`, `callbacks` or `waiting_claims`."),
                "limit": {"type": "integer", "minimum": 0, "description": "How much there may be."},
                "used": {"type": "integer", "minimum": 0, "description": "How much there is."},
                "requested": {"type": "integer", "minimum": 1, "description": "How much more the call asks for."},
            }),
        ),
        ErrorKind::InputWiring => (
            true,
            json!({
                "error": {"type": "string", "const": "InputWiringError"},
                "phase_name": text("The first phase with such inputs."),
                "invalid_refs": {"type": "array", "items": {"type": "string"}, "description": "The references of that phase that are wrong, as written."},
                "suggestion": {"type": ["string", "null"], "description": "How to mend it, if that can be guessed."},
                "message": text("What is wrong, for people."),
                "faults": {"type": "array", "items": {"type": "object"}, "description": "All faults with their positions, as `workflows.validate` reports them."},
            }),
        ),
        ErrorKind::UnresolvableInput => (
            true,
            json!({
                "error": {"type": "string", "const": "UnresolvableInputError"},
                "task_id": {"$ref": "#/components/schemas/TaskId"},
                "phase_name": text("The name of the task."),
                "unresolvable_refs": {"type": "array", "items": {"type": "string"}, "description": "References of `schemas.wiring` for which no result has a value."},
                "incomplete_dependencies": {"type": "array", "items": {"type": "object", "properties": {"task_id": {"$ref": "#/components/schemas/TaskId"}, "phase_name": {"type": ["string", "null"]}, "status": {"$ref": "#/components/schemas/Status"}}}, "description": "Dependencies that have not completed; absent when all have."},
                "message": text("What is wrong, for people."),
            }),
        ),
        ErrorKind::UpstreamSuspended => (
            true,
            json!({
                "error": {"type": "string", "const": "UpstreamIntentSuspendedError"},
                "task_id": {"$ref": "#/components/schemas/TaskId"},
                "phase_name": text("The name of the task."),
                "suspended_intent_id": text("The task that waits for a person."),
                "expected_resume_at": {"type": ["string", "null"], "format": "date-time", "description": "Until when at the latest; null for no bound."},
                "message": text("What is wrong, for people."),
            }),
        ),
        ErrorKind::ScheduleChanged => (
            true,
            json!({
                "version": {"type": "integer", "minimum": 1, "description": "The version of the schedule."},
            }),
        ),
        ErrorKind::WorkflowChanged => (
            true,
            json!({
                "version": {"type": ["integer", "null"], "minimum": 1, "description": "The newest version; null when none is kept."},
            }),
        ),
        ErrorKind::NotSuspended => (
            true,
            json!({
                "task_id": {"$ref": "#/components/schemas/TaskId"},
                "suspension_id": {"type": ["string", "null"], "format": "uuid", "description": "The answer that the task waits for; null when it waits for none."},
            }),
        ),
        ErrorKind::MissingOutput => (
            true,
            rejected_output(
                "MissingOutputError",
                json!({
                    "missing_keys": {"type": "array", "items": {"type": "string"}, "description": "Keys of `schemas.outputs` that the result lacks."},
                }),
            ),
        ),
        ErrorKind::OutputTypeMismatch => (
            true,
            rejected_output(
                "OutputTypeMismatchError",
                json!({
                    "key": text("That of the first mismatch."),
                    "expected_type": text("That of the first mismatch."),
                    "actual_type": text("That of the first mismatch."),
                }),
            ),
        ),
        ErrorKind::LeaseNotHeld => (
            true,
            json!({
                "task_id": {"$ref": "#/components/schemas/TaskId"},
                "reason": {
                    "type": "string",
                    "enum": ["ended", "cancelled", "timed_out", "deadline", "lost", "unknown"],
                    "description": "`ended`: the attempt has another outcome; `cancelled`: the task was cancelled; `timed_out`: the attempt took longer than it may; `deadline`: the deadline of the task has passed; `lost`: the lease ended; `unknown`: the caller holds no such lease.",
                },
            }),
        ),
        ErrorKind::Unauthorized => (
            false,
            json!({"scope": text("What the credentials must allow; absent when there are none that hold.")}),
        ),
        ErrorKind::Internal => (
            false,
            json!({
                "error_id": text("Where the server's log has the cause."),
                "retry_after_ms": {"type": "integer", "minimum": 0},
                "limit_bytes": {"type": "integer", "minimum": 0},
            }),
        ),
        ErrorKind::ExecutorNotFound => (
            false,
            json!({"hint": text("What the caller or the operator can do.")}),
        ),
        ErrorKind::MethodNotFound => (
            true,
            json!({"method": {"description": "As it was called."}}),
        ),
        ErrorKind::ParseError
        | ErrorKind::InvalidRequest
        | ErrorKind::InvalidParams
        | ErrorKind::TaskNotFound
        | ErrorKind::WebhookNotFound
        | ErrorKind::WorkflowNotFound
        | ErrorKind::ScheduleNotFound
        | ErrorKind::InvalidTransition
        | ErrorKind::AlreadyExecuting
        | ErrorKind::InvalidParent
        | ErrorKind::InvalidDependency => return reference_to_data(),
    };
    let names: Vec<&String> = members
        .as_object()
        .map(|m| m.keys().collect())
        .unwrap_or_default();
    let mut more = json!({"type": "object", "properties": members});
    if required {
        // The one that is not always there.
        let always = names
            .iter()
            .filter(|name| name.as_str() != INCOMPLETE_DEPENDENCIES);
        more["required"] = json!(always.collect::<Vec<_>>());
    }
    json!({"allOf": [reference_to_data(), more]})
}

fn reference_to_data() -> Value {
    json!({"$ref": "#/components/schemas/ErrorData"})
}

/// `data` of a result that was refused.
fn rejected_output(name: &str, mut more: Value) -> Value {
    let mismatch = json!({"type": "object", "properties": {
        "key": text("The key of `schemas.outputs`."),
        "pointer": text("Where the value is in the result, as a JSON pointer."),
        "expected_type": text("The declared type."),
        "actual_type": text("The type of the value; for an enumeration the value."),
    }});
    more["error"] = json!({"type": "string", "const": name});
    more["task_id"] = json!({"$ref": "#/components/schemas/TaskId"});
    more["phase_name"] = text("The name of the task.");
    more["message"] = text("What is wrong, for people.");
    more["mismatches"] = json!({"type": "array", "items": mismatch, "description": "All values that are not of their declared types."});
    more
}
