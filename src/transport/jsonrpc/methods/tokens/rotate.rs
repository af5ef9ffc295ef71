//! `tokens.rotate`.

use super::answers::answer;
use super::kinds::Id;
use crate::application::api::HasAccess;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader, integer};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::tokens::{TOKEN, changed, described, secret, with_secret};
use serde_json::json;
use taskledger_auth::TokenId;
use taskledger_auth::tokens::{GRACE_DEFAULT_S, GRACE_MAX_S};
use taskledger_domain::Violation;

/// Which token gets a new secret.
#[derive(Debug, Clone)]
pub struct Params {
    /// Identifies the token; it stays the same.
    pub id: TokenId,
    /// For how many seconds the old secret is accepted too.
    pub grace_s: u64,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required("id", Id, "The token: the part between the first two `_`.");
        let grace_s = reader.with_default(
            "grace_seconds",
            integer(0..=GRACE_MAX_S),
            GRACE_DEFAULT_S,
            "For how long the old secret is accepted too.",
        );
        reader.finish(|| Some(Self { id: id?, grace_s }))
    }
}

pub(super) fn method<C: HasAccess>() -> Method<C> {
    Method {
        name: "tokens.rotate",
        title: "Rotate Token",
        summary: "Give a token a new secret; the old one stays valid for a while",
        tags: &["token"],
        params: Params::declared(),
        changes: Changes::Tokens,
        about: about(),
        handler: |context, call| {
            boxed(async move {
                let access = context.access();
                let p = Params::read(&call.params)?;
                let rotated = access.rotate_token(&call.context, &p.id, p.grace_s).await;
                let rotated = answer(access, rotated)?;
                Ok::<_, RpcError>(replies::created_token(&rotated))
            })
        },
    }
}

fn about() -> About {
    let mut rotated = changed(json!({"rotated_at": TIME, "previous_until": TIME}));
    rotated["token"] = secret(TOKEN)["token"].take();
    described(
        "Gives a token a new secret, which is in the answer, and lets it last as long again as it was made to. \
         The old secret is accepted until the grace is over; one before that is not. One's own token, or with \
         the scope `admin` any whose scopes the caller has.",
        "token",
        with_secret(),
        &[],
        (
            "an hour",
            json!({"id": TOKEN, "grace_seconds": 3600}),
            rotated,
        ),
    )
}
