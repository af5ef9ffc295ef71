//! `webhooks.delete`.

use super::answers::told;
use super::one::Params;
use crate::application::Service;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::webhooks::{HOOK, UNKNOWN, described};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.delete",
        title: "Delete Webhook",
        summary: "Delete a webhook and what waits for it",
        tags: &["webhook"],
        params: Params::declared(),
        changes: Changes::Webhooks,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let cancelled = service.delete_webhook(&call.context, p.id).await;
                let done = cancelled.map(|n| json!({"success": true, "cancelled": n}));
                told(&service, &call.params, done)
            })
        },
    }
}

fn about() -> About {
    described(
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
