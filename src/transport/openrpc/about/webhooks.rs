//! Schemas and examples of the methods for webhooks and deliveries.

use super::super::schemas::{at, object, with_optional};
use super::About;
use crate::application::api::webhooks::DeliveryState;
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::schema_parts::date_time;
use crate::transport::openrpc::schema_parts::{text_or_null, time_or_null};
use serde_json::{Value, json};

/// The webhook of the examples.
pub(in crate::transport) const HOOK: &str = "990e8400-e29b-41d4-a716-446655440000";
pub(in crate::transport) const URL: &str = "https://receiver.example.com/hook";
pub(in crate::transport) const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDC2FVsBQIhrs=";
pub(in crate::transport) const UNKNOWN: &[ErrorKind] = &[ErrorKind::WebhookNotFound];

fn breaker() -> Value {
    object(json!({
        "state": {"type": "string", "enum": ["closed", "open", "half_open"], "description": "`open`: sending is paused after failures. `half_open`: the next attempt decides."},
        "failures": {"type": "integer", "minimum": 0, "description": "Failed attempts in a row."},
        "since": time_or_null("When the present pause began."),
        "next_try_at": time_or_null("When it ends."),
    }))
}

pub(in crate::transport) fn webhook() -> Value {
    let signing = object(json!({
        "created_at": date_time(),
        "expires_at": time_or_null("Signs until then; null: the present secret."),
    }));
    let webhook = object(json!({
        "id": at("TaskId"),
        "url": {"type": "string"},
        "description": {"type": "string"},
        "events": {"type": ["array", "null"], "items": {"type": "string"}, "description": "null: everything about tasks."},
        "flow_id": text_or_null("Only this flow."),
        "user_id": text_or_null("Only flows of this user."),
        "kind": {"type": "string", "enum": ["lasting", "run"], "description": "`run`: the callback of one execution."},
        "ordering": {"type": "string", "enum": ["none", "task", "endpoint"]},
        "schedule": {"type": ["array", "null"], "items": {"type": "integer"}, "description": "null: the server's."},
        "headers": {"type": "object", "additionalProperties": {"type": "string", "enum": ["***"]}},
        "signature": {"type": "string", "enum": ["v1", "v1a"]},
        "enabled": {"type": "boolean"},
        "failing_since": time_or_null("Since when no delivery has succeeded."),
        "breaker": breaker(),
        "secrets": {"type": "array", "items": signing, "description": "How long each secret is valid, the current one first; none: messages are not signed."},
        "since": {"type": "integer", "minimum": 0, "description": "Events above this position are sent."},
        "created_at": date_time(),
        "updated_at": {"type": "string", "format": "date-time", "description": "When it was last updated, enabled or disabled by a call, or given a new secret; what becomes of deliveries does not count."},
    }));
    let disabled = object(json!({
        "reason": {"type": "string", "enum": ["requested", "gone", "failing"]},
        "at": date_time(),
    }));
    let more = json!({
        "public_key": {"type": "string", "description": "`whpk_...`, with `v1a`: receivers check signatures with it."},
        "disabled": disabled,
        "labels": {"type": "object", "additionalProperties": {"type": ["string", "null"]}, "description": "Only tasks with these labels; absent: with any, or none."},
    });
    with_optional(webhook, more)
}

pub(in crate::transport) fn with_secret() -> Value {
    let mut webhook = webhook();
    webhook["properties"]["secret"] = json!({"type": "string", "description": "What signs. Shown now, and by `webhooks.secret`."});
    if let Some(required) = webhook["required"].as_array_mut() {
        required.push("secret".into());
    }
    webhook
}

/// The webhook of the examples as it is shown.
pub(in crate::transport) fn hook() -> Value {
    json!({
        "id": HOOK, "url": URL, "description": "for the examples", "events": null, "flow_id": null,
        "user_id": null, "kind": "lasting", "ordering": "task", "schedule": null, "headers": {},
        "signature": "v1", "enabled": true, "failing_since": null, "since": 10,
        "breaker": {"state": "closed", "failures": 0, "since": null, "next_try_at": null},
        "secrets": [{"created_at": TIME, "expires_at": null}],
        "created_at": TIME, "updated_at": TIME,
    })
}

pub(in crate::transport) fn changed(members: Value) -> Value {
    let mut hook = hook();
    if let (Value::Object(hook), Value::Object(members)) = (&mut hook, members) {
        hook.extend(members);
    }
    hook
}

pub(in crate::transport) fn attempt() -> Value {
    object(json!({
        "number": {"type": "integer", "minimum": 1},
        "at": date_time(),
        "duration_ms": {"type": "integer", "minimum": 0},
        "status": {"type": ["integer", "null"], "description": "Of the answer, if there was one."},
        "error": text_or_null("What went wrong; null if it was delivered. `owner`: not sent, because the task now belongs to another user."),
        "detail": text_or_null("More about it."),
        "remote": text_or_null("The address it went to."),
        "response": text_or_null("The beginning of the answer."),
        "trigger": {"type": "string", "enum": ["scheduled", "manual", "recovered", "test"], "description": "`manual`: by `webhooks.redeliver`; `recovered`: of a schedule that `webhooks.recover` restarted."},
    }))
}

pub(in crate::transport) fn waits_for() -> Value {
    json!({"type": ["string", "null"], "enum": ["earlier_message", "breaker", "enabling", null],
        "description": "What must happen first: an earlier message ends, the breaker lets something through, the webhook is enabled."})
}

pub(in crate::transport) const STATES: [DeliveryState; 5] = DeliveryState::ALL;

pub(in crate::transport) fn described(
    description: &'static str,
    result: &'static str,
    schema: Value,
    errors: &'static [ErrorKind],
    example: (&'static str, Value, Value),
) -> About {
    About::with_example((result, schema), description, errors, example)
}
