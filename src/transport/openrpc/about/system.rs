//! The description of `rpc.discover`, and schemas of the methods about the server.

use super::super::schemas::object;
use super::{About, Example};
use serde_json::{Value, json};

pub(in crate::transport) fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
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
