//! `tokens.deny`.

use super::answers::answer;
use crate::application::api::HasAccess;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Choice, Parameters, Reader, choice, text};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::tokens::described;
use crate::transport::openrpc::schema_parts::date_time;
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
use std::sync::Arc;
use taskledger_auth::DeniedJwt;
use taskledger_domain::Violation;

/// Characters of an issuer or a claim: more than those of tokens that are accepted have.
const CHARS_MAX: usize = 1024;

/// The JWTs to deny.
#[derive(Debug, Clone)]
pub struct Params {
    /// Who issued them.
    pub issuer: Arc<str>,
    /// One of them, or all of a subject.
    pub what: DeniedJwt,
}

/// The claim by which tokens are refused.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Claim {
    Id,
    Subject,
}

const CLAIM: Choice<Claim> = choice(
    "neither `jti` nor `sub`",
    &[("jti", Claim::Id), ("sub", Claim::Subject)],
);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let words = text(CHARS_MAX);
        let issuer = reader.required(
            "issuer",
            words,
            "`iss` of the tokens, exactly as they have it.",
        );
        let claim = reader.required(
            "claim",
            CLAIM,
            "`jti`: one token. `sub`: all tokens of a subject that were issued up to now.",
        );
        let value = reader.required("value", words, "The value of the claim.");
        reader.finish(|| {
            let value = Arc::from(value?);
            Some(Self {
                issuer: Arc::from(issuer?),
                what: match claim? {
                    Claim::Id => DeniedJwt::Id(value),
                    Claim::Subject => DeniedJwt::Subject(value),
                },
            })
        })
    }
}

pub(super) fn method<C: HasAccess>() -> Method<C> {
    Method {
        name: "tokens.deny",
        title: "Deny JWTs",
        summary: "Refuse access tokens of an OIDC issuer before they expire",
        tags: &["token"],
        params: Params::declared(),
        changes: Changes::Tokens,
        about: about(),
        handler: |context, call| {
            boxed(async move {
                let access = context.access();
                let p = Params::read(&call.params)?;
                let denied = access.deny_jwt(&call.context, p.issuer, p.what).await;
                Ok::<_, RpcError>(replies::denied(&answer(access, denied)?))
            })
        },
    }
}

fn about() -> About {
    let (issuer, ann) = ("https://login.example.com", "ann");
    described(
        "Refuses access tokens of an OIDC issuer before they expire: on this server at once, on others within two \
         seconds, for 400 days. By `sub` it refuses those that were issued up to a minute from now, so that the user can \
         sign in again if the issuer lets him. An issuer that is not configured is refused, with those that are. Needs \
         the scope `admin`.",
        "denied",
        object(json!({
            "issuer": {"type": "string"},
            "claim": {"type": "string", "enum": ["jti", "sub"]},
            "value": {"type": "string"},
            "denied_at": date_time(),
        })),
        &[],
        (
            "all tokens of a user",
            json!({"issuer": issuer, "claim": "sub", "value": ann}),
            json!({"issuer": issuer, "claim": "sub", "value": ann, "denied_at": TIME}),
        ),
    )
}
