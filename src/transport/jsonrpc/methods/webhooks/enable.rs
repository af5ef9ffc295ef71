//! `webhooks.enable`.

use super::answers::told;
use super::one::Params;
use crate::application::Service;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::webhooks::{HOOK, UNKNOWN, described, hook, webhook};
use serde_json::json;

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.enable",
        title: "Enable Webhook",
        summary: "Send to a webhook again",
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
                    service.enable_webhook(&call.context, p.id).await,
                )
            })
        },
    }
}

fn about() -> About {
    described(
        "Sends to a webhook again that was disabled: first what was kept for it.",
        "webhook",
        webhook(),
        UNKNOWN,
        ("one that is enabled", json!({"id": HOOK}), hook()),
    )
}
