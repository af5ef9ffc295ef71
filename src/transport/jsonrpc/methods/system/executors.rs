//! `system.executors`.

use crate::application::Service;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::params::nothing::Params;
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::{About, Example};
use crate::transport::openrpc::schema_parts::{object, with_optional};
use serde_json::json;

pub(super) fn method() -> Method<Service> {
    Method {
        name: "system.executors",
        title: "Executors",
        summary: "List the executors with their schemas and limits",
        tags: &["system"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                Params::read(&call.params)?;
                let executors = answer(&service, service.executors(&call.context))?;
                Ok::<_, RpcError>(replies::executors(&executors))
            })
        },
    }
}

fn about() -> About {
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
