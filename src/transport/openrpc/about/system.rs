//! The methods that show the server.

use super::super::schemas::{object, with_optional};
use super::{About, Example};
use serde_json::{Value, json};

fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

/// `system.health`.
#[must_use]
pub fn health() -> About {
    let check = object(json!({
        "name": {"type": "string"},
        "ok": {"type": "boolean"},
        "detail": {"type": "string"},
    }));
    let rebuild = json!({
        "type": ["object", "null"],
        "description": "Status of the last `system.rebuild`; null if there was none since the start.",
        "required": ["state"],
        "properties": {
            "state": {"type": "string", "enum": ["running", "done", "failed"]},
            "position": number(),
            "of": number(),
            "reason": {"type": "string"},
        },
    });
    let held = object(json!({
        "id": {"type": "string", "format": "uuid"},
        "url": {"type": "string"},
        "partitions": number(),
    }));
    let node = json!({
        "type": ["object", "null"],
        "description": "This server among those that share the log; null when it is alone.",
        "required": ["id", "partitions", "folds_read_models", "alive"],
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "partitions": {"type": "integer", "minimum": 0, "description": "Partitions of flows that it owns, of 256."},
            "folds_read_models": {"type": "boolean"},
            "alive": {"type": "array", "items": held, "description": "All servers that live, this one included."},
        },
    });
    let limit = json!({"type": ["integer", "null"], "minimum": 0, "description": "Null: as many as workers claim."});
    let slots = object(json!({"running": number(), "limit": limit}));
    About {
        description: "Shows whether the parts of the server work, and figures about them.",
        result: "health",
        schema: object(json!({
            "status": {"type": "string", "enum": ["ok", "degraded"]},
            "version": {"type": "string"},
            "time": {"type": "string", "format": "date-time"},
            "checks": {"type": "array", "items": check},
            "log": object(json!({"head": number(), "commits": number()})),
            "projections": object(json!({"checkpoint": number(), "lag": number(), "rebuild": rebuild})),
            "flows": object(json!({"resident": number(), "idle_bytes": number()})),
            "executors": {"type": "object", "additionalProperties": slots},
            "streams": object(json!({"watchers": number()})),
            "webhooks": object(json!({
                "attempts": number(),
                "delivered": number(),
                "failed": number(),
                "dead": number(),
                "open_breakers": number(),
            })),
            "node": node,
        })),
        errors: &[],
        examples: vec![Example {
            name: "a server that works",
            description: "All checks are ok.",
            params: json!({}),
            result: json!({
                "status": "ok", "version": env!("CARGO_PKG_VERSION"),
                "time": "2026-01-15T10:30:00.000000Z",
                "checks": [{"name": "log", "ok": true, "detail": "3 events"}],
                "log": {"head": 3, "commits": 1},
                "projections": {"checkpoint": 3, "lag": 0, "rebuild": null},
                "flows": {"resident": 1, "idle_bytes": 750},
                "executors": {"echo_executor": {"running": 0, "limit": 256}},
                "streams": {"watchers": 0},
                "webhooks": {"attempts": 0, "delivered": 0, "failed": 0, "dead": 0, "open_breakers": 0},
                "node": null,
            }),
        }],
    }
}

/// `system.executors`.
#[must_use]
pub fn executors() -> About {
    let executor = object(json!({
        "name": {"type": "string", "minLength": 1, "description": "What `schemas.method` names."},
        "aliases": {"type": "array", "items": {"type": "string"}},
        "summary": {"type": "string"},
        "idempotent": {"type": "boolean", "description": "Whether an interrupted attempt is simply repeated."},
        "pure": {"type": "boolean", "description": "Whether an attempt needs neither time nor anything outside: then its start and its end are one append."},
        "input_schema": {"type": ["object", "null"], "description": "What it takes as `inputs`, as JSON Schema (draft-07)."},
        "params": {"type": ["array", "null"], "items": {"type": "string"}, "description": "The members of `params` that it reads in addition to `timeout_seconds`, `retry_count`, `retry` and `deadline`; others are refused. Null: it declares none, and all are accepted."},
        "limit": {"type": ["integer", "null"], "minimum": 0, "description": "Attempts at once; null for a method of workers without a limit."},
    }));
    let remote = json!({"remote": {"type": "boolean", "enum": [true], "description": "Workers outside the server run it; `workers.methods` has details."}});
    let executor = with_optional(executor, remote);
    About {
        description: "Lists what can run tasks here.",
        result: "executors",
        schema: object(json!({"executors": {"type": "array", "items": executor}})),
        errors: &[],
        examples: vec![Example {
            name: "all",
            description: "There is nothing to choose.",
            params: json!({}),
            result: json!({"executors": [{
                "name": "echo_executor", "aliases": [], "summary": "Returns its inputs",
                "idempotent": true, "pure": true, "input_schema": null, "params": [], "limit": 256,
            }]}),
        }],
    }
}

/// `system.drain`.
#[must_use]
pub fn drain() -> About {
    About {
        description: "Drains the server that answers: it starts no new attempts, in itself or on workers, until it is called with `drain: false` or restarts. Attempts in progress continue, and their outcomes are recorded. `/readyz` says \
            `draining` meanwhile. A server that was told to stop (SIGTERM) drains until its end: `drain: false` is then -32602. It concerns one server, also where several share a database.",
        result: "draining",
        schema: object(json!({
            "draining": {"type": "boolean", "description": "Whether the server is draining."},
            "was_draining": {"type": "boolean", "description": "Whether that was so before the call."},
            "running": {"type": "integer", "minimum": 0, "description": "Attempts in the server that are under way."},
        })),
        errors: &[],
        examples: vec![Example {
            name: "again",
            description: "The server starts new attempts again.",
            params: json!({"drain": false}),
            result: json!({"draining": false, "was_draining": false, "running": 0}),
        }],
    }
}

/// `system.rebuild`.
#[must_use]
pub fn rebuild() -> About {
    About {
        description: "Rebuilds the read models from the log while the old ones serve, and replaces these when the new ones have caught up. Answers at once; `system.health` shows the status. Only one rebuild runs at a time: a second call is -32013.",
        result: "started",
        schema: object(json!({
            "started": {"type": "boolean", "enum": [true]},
            "position": {"type": "integer", "minimum": 0, "description": "The end of the log now."},
        })),
        errors: &[],
        examples: vec![Example {
            name: "begun",
            description: "The old read models serve until the new ones are ready.",
            params: json!({}),
            result: json!({"started": true, "position": 3}),
        }],
    }
}

/// `rpc.discover`.
#[must_use]
pub fn discover() -> About {
    About {
        description: "Answers with this document.",
        result: "document",
        schema: object(json!({
            "openrpc": {"type": "string", "enum": ["1.3.2"]},
            "info": {"type": "object", "required": ["title", "version"]},
            "methods": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["name", "params"]}},
            "components": {"type": "object"},
        })),
        errors: &[],
        examples: vec![Example {
            name: "this document",
            description: "Shortened to one method.",
            params: json!({}),
            result: json!({
                "openrpc": "1.3.2",
                "info": {"title": "taskledger", "version": env!("CARGO_PKG_VERSION")},
                "methods": [{"name": "rpc.discover", "params": []}],
                "components": {},
            }),
        }],
    }
}
