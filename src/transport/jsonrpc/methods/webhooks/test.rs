//! `webhooks.test`.

use super::answers::told;
use super::one::Params;
use crate::application::Service;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::webhooks::{
    HOOK, STATES, UNKNOWN, attempt, described, waits_for,
};
use crate::transport::openrpc::schema_parts::{object, time_or_null};
use serde_json::json;

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.test",
        title: "Test Webhook",
        summary: "Send a message that only tests, once, and say what came of it",
        tags: &["webhook"],
        params: Params::declared(),
        changes: Changes::Webhooks,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                told(
                    &service,
                    &call.params,
                    service.test_webhook(&call.context, p.id).await,
                )
            })
        },
    }
}

fn about() -> About {
    described(
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
