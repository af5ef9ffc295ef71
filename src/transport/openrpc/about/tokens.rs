//! The methods that say who may do what, and who did.

use super::super::schemas::{object, with_optional};
use super::About;
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};
use taskledger_auth::{Action, Outcome, Scope};

/// The token of the examples.
pub(super) const TOKEN: &str = "ab23cd45ef67gh2j";
const OTHER: &str = "kl23mn45op67qr2s";
const TIME: &str = "2026-01-15T10:30:00.000000Z";

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn time_or_null(description: &str) -> Value {
    json!({"type": ["string", "null"], "format": "date-time", "description": description})
}

fn text_or_null(description: &str) -> Value {
    json!({"type": ["string", "null"], "description": description})
}

fn scopes() -> Value {
    let names: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    json!({"type": "array", "items": {"type": "string", "enum": names}})
}

fn agents() -> Value {
    json!({"type": ["array", "null"], "items": {"type": "string"}, "description": "Further agents of the broker that it may act as; null: none."})
}

fn methods() -> Value {
    json!({"type": ["array", "null"], "items": {"type": "string"}, "description": "The only methods that a worker may claim with it; null: all."})
}

fn token() -> Value {
    object(json!({
        "id": {"type": "string", "pattern": "^[a-z2-7]{16}$"},
        "kind": {"type": "string", "enum": ["user", "service"]},
        "name": {"type": "string"},
        "scopes": scopes(),
        "methods": methods(),
        "agents": agents(),
        "note": {"type": "string"},
        "state": {"type": "string", "enum": ["active", "expired", "revoked"]},
        "created_at": time(),
        "rotated_at": time_or_null("When its secret was last replaced."),
        "previous_until": time_or_null("The secret before is accepted until then."),
        "expires_at": time_or_null("When it ends; null: never."),
        "revoked_at": time_or_null("When it was revoked."),
        "last_used_at": time_or_null("To the minute, and never before `created_at`."),
    }))
}

fn with_secret() -> Value {
    let mut token = token();
    token["properties"]["token"] = json!({"type": "string", "description": "What the holder sends as `Authorization: Bearer ...`. Shown now and never again."});
    if let Some(required) = token["required"].as_array_mut() {
        required.push("token".into());
    }
    token
}

fn page(name: &str, rows: Value) -> Value {
    let page = object(json!({name: {"type": "array", "items": rows}}));
    let more = json!({"next_cursor": {"type": "string", "minLength": 1, "description": "For the next page, when there is one."}});
    with_optional(page, more)
}

fn entry() -> Value {
    let words = |all: Vec<&'static str>| json!({"type": "string", "examples": all});
    object(json!({
        "seq": {"type": "integer", "minimum": 1},
        "at": time(),
        "principal": {"type": "string", "description": "`user:NAME`, `service:NAME`, `anonymous`, `operator` for what was done on the store itself, or `server` for what the server did by itself."},
        "token": text_or_null("The id of the credential."),
        "address": text_or_null("Where the connection came from."),
        "request": text_or_null("The id of the call."),
        "action": words(Action::ALL.iter().map(|action| action.as_str()).collect()),
        "object": text_or_null("What it was done to."),
        "outcome": words(Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect()),
        "detail": {"type": ["object", "null"], "description": "More about it, by action."},
    }))
}

/// The token of the examples as it is shown.
fn shown() -> Value {
    json!({
        "id": TOKEN, "kind": "service", "name": "ci", "scopes": ["tasks:read", "tasks:run"],
        "methods": null, "agents": null, "note": "for the examples", "state": "active", "created_at": TIME,
        "rotated_at": null, "previous_until": null, "expires_at": null, "revoked_at": null,
        "last_used_at": null,
    })
}

fn changed(members: Value) -> Value {
    let mut token = shown();
    if let (Value::Object(token), Value::Object(members)) = (&mut token, members) {
        token.extend(members);
    }
    token
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

/// What stands for a secret in the examples.
fn secret(id: &str) -> Value {
    json!({"token": format!("tl_{id}_{}", "x".repeat(59))})
}

/// `tokens.create`.
#[must_use]
pub fn create() -> About {
    let ann = json!({"id": OTHER, "kind": "user", "name": "ann", "scopes": ["tasks:read"], "note": "", "expires_at": TIME});
    let mut created = changed(ann);
    created["token"] = secret(OTHER)["token"].take();
    about(
        "Makes a token. Its secret is in the answer and is stored nowhere. Needs the scope `admin`. Callers can only give scopes that they have; a token with which another user reaches tasks or webhooks needs `users:any`.",
        "token",
        with_secret(),
        &[],
        (
            "a user who reads",
            json!({"name": "ann", "scopes": ["tasks:read"], "id": OTHER}),
            created,
        ),
    )
}

/// `tokens.list`.
#[must_use]
pub fn list() -> About {
    about(
        "Lists tokens, oldest first, without their secrets: with the scope `admin` those of everybody, else \
         one's own. Ended ones are shown for 400 days.",
        "page",
        page("tokens", token()),
        &[],
        (
            "all of one service",
            json!({"name": "ci", "kind": "service"}),
            json!({"tokens": [shown()]}),
        ),
    )
}

/// `tokens.rotate`.
#[must_use]
pub fn rotate() -> About {
    let mut rotated = changed(json!({"rotated_at": TIME, "previous_until": TIME}));
    rotated["token"] = secret(TOKEN)["token"].take();
    about(
        "Gives a token a new secret, which is in the answer, and lets it last as long again as it was made to. \
         The old secret is accepted until the grace is over; one before that is not. One's own token, or with \
         the scope `admin` any whose scopes the caller has.",
        "token",
        with_secret(),
        &[],
        (
            "an hour",
            json!({"id": TOKEN, "grace_seconds": 3600}),
            rotated,
        ),
    )
}

/// `tokens.revoke`.
#[must_use]
pub fn revoke() -> About {
    about(
        "Ends a token with all of its secrets: on this server at once, on others within two seconds. One's own \
         token, or with the scope `admin` any. Revoking it again changes nothing.",
        "token",
        token(),
        &[],
        (
            "one",
            json!({"id": TOKEN}),
            changed(json!({"state": "revoked", "revoked_at": TIME})),
        ),
    )
}

/// `tokens.deny`.
#[must_use]
pub fn deny() -> About {
    let (issuer, ann) = ("https://login.example.com", "ann");
    about(
        "Refuses access tokens of an OIDC issuer before they expire: on this server at once, on others within two \
         seconds, for 400 days. By `sub` it refuses those that were issued up to a minute from now, so that the user can \
         sign in again if the issuer lets him. An issuer that is not configured is refused, with those that are. Needs \
         the scope `admin`.",
        "denied",
        object(json!({
            "issuer": {"type": "string"},
            "claim": {"type": "string", "enum": ["jti", "sub"]},
            "value": {"type": "string"},
            "denied_at": time(),
        })),
        &[],
        (
            "all tokens of a user",
            json!({"issuer": issuer, "claim": "sub", "value": ann}),
            json!({"issuer": issuer, "claim": "sub", "value": ann, "denied_at": TIME}),
        ),
    )
}

/// `audit.list`.
#[must_use]
pub fn audit() -> About {
    about(
        "Shows the audit log, newest first: changes of tokens, secrets and schedules, failed logins, reads of other users' flows, imports, rebuilds, retention and starts. Entries are kept for 400 days. Needs the scope \
         `admin`.",
        "page",
        page("entries", entry()),
        &[],
        (
            "what was done to a token",
            json!({"object": TOKEN}),
            json!({"entries": [{
                "seq": 2, "at": TIME, "principal": "anonymous", "token": null, "address": null,
                "request": "880e8400-e29b-41d4-a716-446655440000", "action": "token.create",
                "object": TOKEN, "outcome": "done",
                "detail": {"owner": "service:ci", "scopes": "tasks:read tasks:run", "methods": null, "agents": null, "expires_at": null},
            }]}),
        ),
    )
}

/// `system.whoami`.
#[must_use]
pub fn whoami() -> About {
    let all: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    about(
        "Shows who the caller is, what the credentials allow and when they end.",
        "caller",
        object(json!({
            "kind": {"type": "string", "enum": ["anonymous", "user", "service"]},
            "principal": {"type": "string", "description": "As the history and the audit log name the caller."},
            "user_id": text_or_null("The `user_id` of flows that belong to the caller."),
            "tenant": {"type": "string"},
            "scopes": scopes(),
            "methods": methods(),
            "agents": agents(),
            "credential": text_or_null("The id of the token."),
            "expires_at": time_or_null("When the credentials end; null: never."),
        })),
        &[],
        (
            "without authentication",
            json!({}),
            json!({
                "kind": "anonymous", "principal": "anonymous", "user_id": null, "tenant": "main",
                "scopes": all, "methods": null, "agents": null, "credential": null, "expires_at": null,
            }),
        ),
    )
}
