//! The methods that send what happens to addresses of others.

use super::super::schemas::{at, object, with_optional};
use super::About;
use crate::application::api::webhooks::DeliveryState;
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};

/// The webhook of the examples.
pub(super) const HOOK: &str = "990e8400-e29b-41d4-a716-446655440000";
const URL: &str = "https://receiver.example.com/hook";
const TIME: &str = "2026-01-15T10:30:00.000000Z";
const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDC2FVsBQIhrs=";
const UNKNOWN: &[ErrorKind] = &[ErrorKind::WebhookNotFound];

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn time_or_null(description: &str) -> Value {
    json!({"type": ["string", "null"], "format": "date-time", "description": description})
}

fn text_or_null(description: &str) -> Value {
    json!({"type": ["string", "null"], "description": description})
}

fn breaker() -> Value {
    object(json!({
        "state": {"type": "string", "enum": ["closed", "open", "half_open"], "description": "`open`: sending is paused after failures. `half_open`: the next attempt decides."},
        "failures": {"type": "integer", "minimum": 0, "description": "Failed attempts in a row."},
        "since": time_or_null("When the present pause began."),
        "next_try_at": time_or_null("When it ends."),
    }))
}

fn webhook() -> Value {
    let signing = object(json!({
        "created_at": time(),
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
        "created_at": time(),
        "updated_at": {"type": "string", "format": "date-time", "description": "When it was last updated, enabled or disabled by a call, or given a new secret; what becomes of deliveries does not count."},
    }));
    let disabled = object(json!({
        "reason": {"type": "string", "enum": ["requested", "gone", "failing"]},
        "at": time(),
    }));
    let more = json!({
        "public_key": {"type": "string", "description": "`whpk_...`, with `v1a`: receivers check signatures with it."},
        "disabled": disabled,
        "labels": {"type": "object", "additionalProperties": {"type": ["string", "null"]}, "description": "Only tasks with these labels; absent: with any, or none."},
    });
    with_optional(webhook, more)
}

fn with_secret() -> Value {
    let mut webhook = webhook();
    webhook["properties"]["secret"] = json!({"type": "string", "description": "What signs. Shown now, and by `webhooks.secret`."});
    if let Some(required) = webhook["required"].as_array_mut() {
        required.push("secret".into());
    }
    webhook
}

/// The webhook of the examples as it is shown.
fn hook() -> Value {
    json!({
        "id": HOOK, "url": URL, "description": "for the examples", "events": null, "flow_id": null,
        "user_id": null, "kind": "lasting", "ordering": "task", "schedule": null, "headers": {},
        "signature": "v1", "enabled": true, "failing_since": null, "since": 10,
        "breaker": {"state": "closed", "failures": 0, "since": null, "next_try_at": null},
        "secrets": [{"created_at": TIME, "expires_at": null}],
        "created_at": TIME, "updated_at": TIME,
    })
}

fn changed(members: Value) -> Value {
    let mut hook = hook();
    if let (Value::Object(hook), Value::Object(members)) = (&mut hook, members) {
        hook.extend(members);
    }
    hook
}

fn attempt() -> Value {
    object(json!({
        "number": {"type": "integer", "minimum": 1},
        "at": time(),
        "duration_ms": {"type": "integer", "minimum": 0},
        "status": {"type": ["integer", "null"], "description": "Of the answer, if there was one."},
        "error": text_or_null("What went wrong; null if it was delivered. `owner`: not sent, because the task now belongs to another user."),
        "detail": text_or_null("More about it."),
        "remote": text_or_null("The address it went to."),
        "response": text_or_null("The beginning of the answer."),
        "trigger": {"type": "string", "enum": ["scheduled", "manual", "recovered", "test"], "description": "`manual`: by `webhooks.redeliver`; `recovered`: of a schedule that `webhooks.recover` restarted."},
    }))
}

fn waits_for() -> Value {
    json!({"type": ["string", "null"], "enum": ["earlier_message", "breaker", "enabling", null],
        "description": "What must happen first: an earlier message ends, the breaker lets something through, the webhook is enabled."})
}

const STATES: [DeliveryState; 5] = DeliveryState::ALL;

fn delivery() -> Value {
    object(json!({
        "id": {"type": "integer", "minimum": 1},
        "endpoint_id": text_or_null("The webhook, also when it was deleted."),
        "webhook_id": {"type": "string", "description": "What receivers know repetitions by."},
        "type": {"type": "string"},
        "task_id": text_or_null("The task that it is about."),
        "state": {"type": "string", "enum": STATES},
        "attempts": {"type": "integer", "minimum": 0, "description": "Of the schedule."},
        "next_at": time_or_null("Not before this time is the next attempt; null when none follows, or `waits_for` says more."),
        "waits_for": waits_for(),
        "created_at": time(),
        "ended_at": time_or_null("When it ended."),
        "log": {"type": "array", "items": attempt()},
    }))
}

fn page(name: &str, rows: Value) -> Value {
    let page = object(json!({name: {"type": "array", "items": rows}}));
    let more = json!({"next_cursor": {"type": "string", "minLength": 1, "description": "For the next page, when there is one."}});
    with_optional(page, more)
}

fn of_delivery() -> Value {
    object(json!({"delivery_id": {"type": "integer", "minimum": 1}}))
}

fn about(
    description: &'static str,
    result: &'static str,
    schema: Value,
    errors: &'static [ErrorKind],
    example: (&'static str, Value, Value),
) -> About {
    About::with_example((result, schema), description, errors, example)
}

/// `webhooks.create`.
#[must_use]
pub fn create() -> About {
    about(
        "Sends everything that happens from now on, as far as the filters want it, by signed POST \
         requests (Standard Webhooks) until each has arrived or its schedule is over. The secret is \
         in the answer. `http` is for receivers that the operator allows: an address is looked at now, a \
         name with each attempt, since its addresses may change.",
        "webhook",
        with_secret(),
        &[ErrorKind::QuotaExceeded],
        (
            "what fails",
            json!({"url": URL, "events": ["task_failed"], "user_id": "user-123", "headers": {"authorization": "Bearer token"}}),
            changed(json!({
                "id": "aa0e8400-e29b-41d4-a716-446655440000", "description": "", "events": ["task_failed"],
                "user_id": "user-123", "headers": {"authorization": "***"}, "secret": SECRET,
            })),
        ),
    )
}

/// `webhooks.get`.
#[must_use]
pub fn get() -> About {
    about(
        "Shows a webhook without its secrets.",
        "webhook",
        webhook(),
        UNKNOWN,
        ("one", json!({"id": HOOK}), hook()),
    )
}

/// `webhooks.list`.
#[must_use]
pub fn list() -> About {
    about(
        "Lists webhooks, oldest first; callbacks of single executions are not among them.",
        "page",
        page("webhooks", webhook()),
        &[],
        ("all", json!({"limit": 10}), json!({"webhooks": [hook()]})),
    )
}

/// `webhooks.update`.
#[must_use]
pub fn update() -> About {
    about(
        "Changes only the given members. Events before the change are sent with the old settings.",
        "webhook",
        webhook(),
        UNKNOWN,
        (
            "only failures",
            json!({"id": HOOK, "events": ["task_failed"]}),
            changed(json!({"events": ["task_failed"]})),
        ),
    )
}

/// `webhooks.delete`.
#[must_use]
pub fn delete() -> About {
    about(
        "Deletes a webhook and its secrets. What waits for it is cancelled.",
        "deleted",
        object(json!({
            "success": {"type": "boolean", "enum": [true]},
            "cancelled": {"type": "integer", "minimum": 0, "description": "Deliveries that were waiting."},
        })),
        UNKNOWN,
        (
            "one",
            json!({"id": HOOK}),
            json!({"success": true, "cancelled": 1}),
        ),
    )
}

/// `webhooks.enable`.
#[must_use]
pub fn enable() -> About {
    about(
        "Sends to a webhook again that was disabled: first what was kept for it.",
        "webhook",
        webhook(),
        UNKNOWN,
        ("one that is enabled", json!({"id": HOOK}), hook()),
    )
}

/// `webhooks.disable`.
#[must_use]
pub fn disable() -> About {
    about(
        "Disables a webhook; its messages are kept for 30 days.",
        "webhook",
        webhook(),
        UNKNOWN,
        (
            "one",
            json!({"id": HOOK}),
            changed(json!({"enabled": false, "disabled": {"reason": "requested", "at": TIME}})),
        ),
    )
}

/// `webhooks.rotate_secret`.
#[must_use]
pub fn rotate_secret() -> About {
    about(
        "Lets a new secret sign. The old one signs too until the grace is over, and older ones no longer than that. At most \
         five old ones do: one more is refused until the first of them ends.",
        "webhook",
        with_secret(),
        UNKNOWN,
        (
            "an hour",
            json!({"id": HOOK, "grace_seconds": 3600}),
            changed(json!({"secret": SECRET})),
        ),
    )
}

/// `webhooks.secret`.
#[must_use]
pub fn secret() -> About {
    let old = object(json!({
        "secret": {"type": "string"},
        "expires_at": time_or_null("Signs until then."),
    }));
    let shown = object(json!({
        "id": at("TaskId"),
        "secret": {"type": "string"},
        "old": {"type": "array", "items": old, "description": "Old secrets that are still valid."},
    }));
    let more = json!({"public_key": {"type": "string"}});
    about(
        "Shows what signs. Who has asked is written to the log of the server.",
        "secrets",
        with_optional(shown, more),
        UNKNOWN,
        (
            "one",
            json!({"id": HOOK}),
            json!({"id": HOOK, "secret": SECRET, "old": []}),
        ),
    )
}

/// `webhooks.test`.
#[must_use]
pub fn test() -> About {
    about(
        "Sends a message `webhook.test` to a webhook at once, whatever its filters, without retries. Waits for the result for 20 seconds at most. If the breaker is open, `attempt` is null, and `webhooks.deliveries` shows the result later.",
        "test",
        object(json!({
            "delivery_id": {"type": "integer", "minimum": 1},
            "state": {"type": "string", "enum": STATES, "description": "`dead`: it has failed."},
            "waits_for": waits_for(),
            "next_at": time_or_null("When it will be sent, if it was not."),
            "attempt": {"anyOf": [attempt(), {"type": "null"}]},
        })),
        UNKNOWN,
        (
            "one that arrives",
            json!({"id": HOOK}),
            json!({"delivery_id": 2, "state": "delivered", "waits_for": null, "next_at": null, "attempt": {
                "number": 1, "at": TIME, "duration_ms": 31, "status": 204, "error": null, "detail": null,
                "remote": "192.0.2.1:443", "response": null, "trigger": "test",
            }}),
        ),
    )
}

/// `webhooks.deliveries`.
#[must_use]
pub fn deliveries() -> About {
    about(
        "Shows what was sent and what waits, newest first, with every attempt. Kept for 30 days, and at \
         most 10,000 of each webhook.",
        "page",
        page("deliveries", delivery()),
        UNKNOWN,
        (
            "of one webhook",
            json!({"id": HOOK, "limit": 10}),
            json!({"deliveries": [{
                "id": 1, "endpoint_id": HOOK, "webhook_id": "bb0e8400-e29b-41d4-a716-446655440000",
                "type": "webhook.test", "task_id": null, "state": "waiting", "attempts": 0,
                "next_at": TIME, "waits_for": null, "created_at": TIME, "ended_at": null, "log": [],
            }]}),
        ),
    )
}

/// `webhooks.redeliver`.
#[must_use]
pub fn redeliver() -> About {
    about(
        "Sends a message once more, now, in whatever state its delivery is: same `webhook-id`, same bytes. Its schedule continues independently.",
        "delivery",
        of_delivery(),
        UNKNOWN,
        (
            "once",
            json!({"delivery_id": 1, "request_key": "again-1"}),
            json!({"delivery_id": 1}),
        ),
    )
}

/// `webhooks.recover`.
#[must_use]
pub fn recover() -> About {
    about(
        "Restarts the schedule of deliveries of a webhook, in their order: of those that were given up, or of all in a period. Tests are not among them.",
        "recovered",
        object(json!({"recovered": {"type": "integer", "minimum": 0}})),
        UNKNOWN,
        (
            "none was given up",
            json!({"id": HOOK, "since": "2026-01-15T10:00:00Z"}),
            json!({"recovered": 0}),
        ),
    )
}
