//! The rows of the error table as the document shows them.

use crate::transport::jsonrpc::ErrorKind;
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
    let text = |description: &str| json!({"type": "string", "description": description});
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
                "quota": text("What there is enough of: `open_flows`, `waiting_tasks`, `webhooks` or `streams`."),
                "limit": {"type": "integer", "minimum": 0, "description": "How much there may be."},
                "used": {"type": "integer", "minimum": 0, "description": "How much there is."},
            }),
        ),
        ErrorKind::LeaseNotHeld => (
            true,
            json!({
                "task_id": {"$ref": "#/components/schemas/TaskId"},
                "reason": {
                    "type": "string",
                    "enum": ["ended", "cancelled", "lost", "unknown"],
                    "description": "`ended`: the attempt has another outcome; `cancelled`: the task was cancelled; `lost`: the lease ended; `unknown`: the caller holds no such lease.",
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
        ErrorKind::ExecutorNotFound => (false, json!({"hint": text("What the operator can do.")})),
        ErrorKind::MethodNotFound => (
            true,
            json!({"method": {"description": "As it was called."}}),
        ),
        ErrorKind::ParseError
        | ErrorKind::InvalidRequest
        | ErrorKind::InvalidParams
        | ErrorKind::TaskNotFound
        | ErrorKind::WebhookNotFound
        | ErrorKind::InvalidTransition
        | ErrorKind::AlreadyExecuting
        | ErrorKind::InvalidParent
        | ErrorKind::InvalidDependency
        | ErrorKind::InvalidTree => return reference_to_data(),
    };
    let names: Vec<&String> = members
        .as_object()
        .map(|m| m.keys().collect())
        .unwrap_or_default();
    let mut more = json!({"type": "object", "properties": members});
    if required {
        more["required"] = json!(names);
    }
    json!({"allOf": [reference_to_data(), more]})
}

fn reference_to_data() -> Value {
    json!({"$ref": "#/components/schemas/ErrorData"})
}
