//! `webhooks.rotate_secret`.

use super::answers::told;
use super::kinds::{Id, OwnSecret};
use crate::application::Service;
use crate::application::api::webhooks::{EndpointId, Secret};
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader, integer};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::webhooks::{
    HOOK, SECRET, UNKNOWN, changed, described, with_secret,
};
use serde_json::json;
use taskledger_domain::Violation;

/// Seconds for which the old secret signs too: a day by default, a week at most.
pub const GRACE_SECONDS_DEFAULT: u32 = 24 * 3600;

/// See [`GRACE_SECONDS_DEFAULT`].
pub const GRACE_SECONDS_MAX: u32 = 7 * 24 * 3600;

/// What signs from now on.
#[derive(Debug, Clone)]
pub struct Params {
    /// Identifies the endpoint.
    pub id: EndpointId,
    /// The caller's own secret.
    pub secret: Option<Secret>,
    /// For how long the old one signs too.
    pub grace_seconds: u32,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required("id", Id, "The webhook.");
        let secret = reader.optional(
            "secret",
            OwnSecret,
            "A secret of your own; without it one is made.",
        );
        let grace = reader.with_default(
            "grace_seconds",
            integer(0..=u64::from(GRACE_SECONDS_MAX)),
            u64::from(GRACE_SECONDS_DEFAULT),
            "For how long the old secret signs too.",
        );
        reader.finish(|| {
            Some(Self {
                id: id?,
                secret,
                grace_seconds: u32::try_from(grace).expect("the range fits 32 bits"),
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.rotate_secret",
        title: "Rotate Secret",
        summary: "Replace the secret; the old one stays valid for a while",
        tags: &["webhook"],
        params: Params::declared(),
        changes: Changes::Webhooks,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let rotated =
                    service.rotate_webhook_secret(&call.context, p.id, p.secret, p.grace_seconds);
                told(&service, &call.params, rotated.await)
            })
        },
    }
}

fn about() -> About {
    described(
        "Lets a new secret sign. The old one signs too until the grace is over, and older ones no longer than that. At most \
         five old ones do: one more is refused until the first of them ends.",
        "webhook",
        with_secret(),
        UNKNOWN,
        (
            "an hour",
            json!({"id": HOOK, "grace_seconds": 3600}),
            changed(json!({"secret": SECRET})),
        ),
    )
}
