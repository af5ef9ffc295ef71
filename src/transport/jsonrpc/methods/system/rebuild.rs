//! `system.rebuild`.

use crate::application::Service;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::params::nothing::Params;
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::{About, Example};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;

pub(super) fn method() -> Method<Service> {
    Method {
        name: "system.rebuild",
        title: "Rebuild",
        summary: "Rebuild the read models from the log, while the old ones serve",
        tags: &["system"],
        params: Params::declared(),
        changes: Changes::Server,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                Params::read(&call.params)?;
                let started = service.rebuild_read_models(&call.context).await;
                Ok::<_, RpcError>(replies::rebuild_started(answer(&service, started)?))
            })
        },
    }
}

fn about() -> About {
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
