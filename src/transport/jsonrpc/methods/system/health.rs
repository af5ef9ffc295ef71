//! `system.health`.

use crate::application::Service;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::params::nothing::Params;
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::system::number;
use crate::transport::openrpc::about::{About, Example};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;

pub(super) fn method() -> Method<Service> {
    Method {
        name: "system.health",
        title: "Health",
        summary: "Show how the server is",
        tags: &["system"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                Params::read(&call.params)?;
                let health = service.health(&call.context).await;
                Ok::<_, RpcError>(replies::health(&answer(&service, health)?))
            })
        },
    }
}

fn about() -> About {
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
    let zones = object(json!({
        "edition": {"type": "string", "description": "Edition of the time zone database that schedules use, such as `2026a`."},
        "source": {"type": "string", "description": "`bundled`, or the folder that it is read from."},
        "other_editions": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Editions that other servers of the database use: they may compute other times.",
        },
    }));
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
            "time_zones": zones,
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
                "time_zones": {"edition": "2026f", "source": "bundled", "other_editions": []},
                "node": null,
            }),
        }],
    }
}
