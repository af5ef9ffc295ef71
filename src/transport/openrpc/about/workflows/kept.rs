//! Schemas and examples of the methods for saved workflow documents.

use super::super::super::schemas::object;
use super::{DOCUMENT, HASH, NAME};
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::schema_parts::{count, number, text, time};
use serde_json::{Value, json};

/// A saved version, and what more of it is told.
pub(in crate::transport) fn saved_version(more: Value) -> Value {
    let mut members = json!({
        "name": text("`info.name` of the document."),
        "version": number("Counts what happened to the name, from 1; deletions count."),
        "info_version": text("`info.version` of the document."),
        "hash": text("SHA-256 of the document as JSON with sorted keys."),
        "bytes": count("Bytes of its text."),
        "saved_at": time("When it was saved."),
        "saved_by": text("The principal."),
    });
    if let (Some(members), Value::Object(more)) = (members.as_object_mut(), more) {
        members.extend(more);
    }
    object(members)
}

pub(in crate::transport) fn shown_version() -> Value {
    json!({
        "name": NAME, "version": 1, "info_version": "1.0.0", "hash": HASH, "bytes": DOCUMENT.len(),
        "saved_at": TIME, "saved_by": "anonymous",
    })
}

/// Members that tell a difference.
pub(in crate::transport) fn differences() -> Value {
    let change = object(json!({
        "path": text("Where in the document."),
        "change": {"type": "string", "enum": ["added", "removed", "changed"]},
        "before": {"type": ["string", "null"], "description": "The old value, shortened; null if there was none."},
        "after": {"type": ["string", "null"], "description": "The new value, shortened; null if there is none."},
        "breaking": {"type": "boolean", "description": "Whether callers, workers or readers of results may break."},
        "reason": {"type": ["string", "null"], "description": "Whom it breaks and how."},
    }));
    json!({
        "changes": {"type": "array", "items": change, "description": "Breaking ones first; at most 1000."},
        "count": count("How many there are in all."),
        "breaking": count("How many of them are breaking."),
    })
}
