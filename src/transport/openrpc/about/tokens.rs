//! Schemas and examples of the methods for tokens and the audit log.

use super::super::schemas::object;
use super::About;
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::schema_parts::date_time;
use crate::transport::openrpc::schema_parts::time_or_null;
use serde_json::{Value, json};
use taskledger_auth::Scope;

/// The token of the examples.
pub(in crate::transport) const TOKEN: &str = "ab23cd45ef67gh2j";

pub(in crate::transport) fn scopes() -> Value {
    let names: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    json!({"type": "array", "items": {"type": "string", "enum": names}})
}

pub(in crate::transport) fn agents() -> Value {
    json!({"type": ["array", "null"], "items": {"type": "string"}, "description": "Further agents of the broker that it may act as; null: none."})
}

pub(in crate::transport) fn methods() -> Value {
    json!({"type": ["array", "null"], "items": {"type": "string"}, "description": "The only methods that a worker may claim with it; null: all."})
}

pub(in crate::transport) fn token() -> Value {
    object(json!({
        "id": {"type": "string", "pattern": "^[a-z2-7]{16}$"},
        "kind": {"type": "string", "enum": ["user", "service"]},
        "name": {"type": "string"},
        "scopes": scopes(),
        "methods": methods(),
        "agents": agents(),
        "note": {"type": "string"},
        "state": {"type": "string", "enum": ["active", "expired", "revoked"]},
        "created_at": date_time(),
        "rotated_at": time_or_null("When its secret was last replaced."),
        "previous_until": time_or_null("The secret before is accepted until then."),
        "expires_at": time_or_null("When it ends; null: never."),
        "revoked_at": time_or_null("When it was revoked."),
        "last_used_at": time_or_null("To the minute, and never before `created_at`."),
    }))
}

pub(in crate::transport) fn with_secret() -> Value {
    let mut token = token();
    token["properties"]["token"] = json!({"type": "string", "description": "What the holder sends as `Authorization: Bearer ...`. Shown now and never again."});
    if let Some(required) = token["required"].as_array_mut() {
        required.push("token".into());
    }
    token
}

/// The token of the examples as it is shown.
pub(in crate::transport) fn shown() -> Value {
    json!({
        "id": TOKEN, "kind": "service", "name": "ci", "scopes": ["tasks:read", "tasks:run"],
        "methods": null, "agents": null, "note": "for the examples", "state": "active", "created_at": TIME,
        "rotated_at": null, "previous_until": null, "expires_at": null, "revoked_at": null,
        "last_used_at": null,
    })
}

pub(in crate::transport) fn changed(members: Value) -> Value {
    let mut token = shown();
    if let (Value::Object(token), Value::Object(members)) = (&mut token, members) {
        token.extend(members);
    }
    token
}

pub(in crate::transport) fn described(
    description: &'static str,
    result: &'static str,
    schema: Value,
    errors: &'static [ErrorKind],
    example: (&'static str, Value, Value),
) -> About {
    About::with_example((result, schema), description, errors, example)
}

/// What stands for a secret in the examples.
pub(in crate::transport) fn secret(id: &str) -> Value {
    json!({"token": format!("tl_{id}_{}", "x".repeat(59))})
}
