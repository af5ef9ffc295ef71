//! `webhooks.get`.

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
        name: "webhooks.get",
        title: "Get Webhook",
        summary: "Show a webhook",
        tags: &["webhook"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                told(
                    &service,
                    &call.params,
                    service.webhook(&call.context, p.id).await,
                )
            })
        },
    }
}

fn about() -> About {
    described(
        "Shows a webhook without its secrets.",
        "webhook",
        webhook(),
        UNKNOWN,
        ("one", json!({"id": HOOK}), hook()),
    )
}
