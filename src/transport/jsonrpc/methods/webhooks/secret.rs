//! `webhooks.secret`.

use super::answers::told;
use super::one::Params;
use crate::application::Service;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::webhooks::{HOOK, SECRET, UNKNOWN, described};
use crate::transport::openrpc::schema_parts::{at, object, time_or_null, with_optional};
use serde_json::json;

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.secret",
        title: "Show Secret",
        summary: "Show the secrets of a webhook; who asked is logged",
        tags: &["webhook"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let shown = service.webhook_secrets(&call.context, p.id);
                told(&service, &call.params, shown.await)
            })
        },
    }
}

fn about() -> About {
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
    described(
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
