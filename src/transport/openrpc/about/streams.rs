//! Schemas and examples of the methods that begin a stream.

use super::super::schemas::at;
use serde_json::{Value, json};

/// What a cursor looks like.
pub(in crate::transport) const CURSOR: &str = "AQAAAAAAAAADAAAAAAAAAAMC3q2-7wAA";

pub(in crate::transport) fn cursor() -> Value {
    json!({"type": "string", "minLength": 1, "description": "The cursor before the first event, for `tasks.resubscribe`, `Last-Event-ID` and `last_event_id`."})
}

pub(in crate::transport) fn shown() -> Value {
    json!({"task": at("Task"), "run": at("Run")})
}
