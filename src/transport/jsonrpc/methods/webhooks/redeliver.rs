//! `webhooks.redeliver`.

use super::answers::told;
use crate::application::Service;
use crate::application::context::IDEMPOTENCY_KEY_CHARS_MAX;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader, integer, text};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::webhooks::{UNKNOWN, described};
use crate::transport::openrpc::schema_parts::object;
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::Violation;

/// Which delivery is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Identifies the delivery, as `webhooks.deliveries` lists it.
    pub delivery_id: i64,
    /// Orders with the same key are one.
    pub request_key: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required(
            "delivery_id",
            integer(1..=i64::MAX as u64),
            "The delivery, in any state.",
        );
        let key = reader.optional(
            "request_key",
            text(IDEMPOTENCY_KEY_CHARS_MAX),
            "Calls with the same key send the message once.",
        );
        reader.finish(|| {
            Some(Self {
                delivery_id: i64::try_from(id?).expect("the range fits"),
                request_key: key.map(Arc::from),
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.redeliver",
        title: "Redeliver",
        summary: "Send a message once more, now",
        tags: &["webhook"],
        params: Params::declared(),
        changes: Changes::Webhooks,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let done = service.redeliver(&call.context, p.delivery_id, p.request_key);
                let done = done.await.map(|id| json!({"delivery_id": id}));
                told(&service, &call.params, done)
            })
        },
    }
}

fn of_delivery() -> Value {
    object(json!({"delivery_id": {"type": "integer", "minimum": 1}}))
}

fn about() -> About {
    described(
        "Sends a message once more, now, in whatever state its delivery is: same `webhook-id`, same bytes. Its schedule continues independently.",
        "delivery",
        of_delivery(),
        UNKNOWN,
        (
            "once",
            json!({"delivery_id": 1, "request_key": "again-1"}),
            json!({"delivery_id": 1}),
        ),
    )
}
