//! `tokens.revoke`.

use super::answers::answer;
use super::kinds::Id;
use crate::application::api::HasAccess;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::tokens::{TOKEN, changed, described, token};
use serde_json::json;
use taskledger_auth::TokenId;
use taskledger_domain::Violation;

/// Names a token.
#[derive(Debug, Clone)]
pub struct Params {
    /// Identifies the token; it is not the secret.
    pub id: TokenId,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required("id", Id, "The token: the part between the first two `_`.");
        reader.finish(|| Some(Self { id: id? }))
    }
}

pub(super) fn method<C: HasAccess>() -> Method<C> {
    Method {
        name: "tokens.revoke",
        title: "Revoke Token",
        summary: "End a token with all of its secrets",
        tags: &["token"],
        params: Params::declared(),
        changes: Changes::Tokens,
        about: about(),
        handler: |context, call| {
            boxed(async move {
                let access = context.access();
                let p = Params::read(&call.params)?;
                let revoked = access.revoke_token(&call.context, &p.id).await;
                let revoked = answer(access, revoked)?;
                Ok::<_, RpcError>(replies::token(&revoked))
            })
        },
    }
}

fn about() -> About {
    described(
        "Ends a token with all of its secrets: on this server at once, on others within two seconds. One's own \
         token, or with the scope `admin` any. Revoking it again changes nothing.",
        "token",
        token(),
        &[],
        (
            "one",
            json!({"id": TOKEN}),
            changed(json!({"state": "revoked", "revoked_at": TIME})),
        ),
    )
}
