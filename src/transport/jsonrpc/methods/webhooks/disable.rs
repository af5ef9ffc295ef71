//! `webhooks.disable`.

use super::answers::told;
use super::one::Params;
use crate::application::Service;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::webhooks::{HOOK, UNKNOWN, changed, described, webhook};
use serde_json::json;

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.disable",
        title: "Disable Webhook",
        summary: "Disable a webhook, and keep its messages",
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
                    service.disable_webhook(&call.context, p.id).await,
                )
            })
        },
    }
}

fn about() -> About {
    described(
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
