//! `tokens.list`.

use super::answers::answer;
use super::kinds::{KIND, NameOf};
use crate::application::api::HasAccess;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::methods::webhooks::list::{cursor, limit};
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::tokens::{described, shown, token};
use crate::transport::openrpc::schema_parts::page;
use serde_json::json;
use taskledger_auth::{Kind, Name};
use taskledger_domain::Violation;

/// The filter of tokens.
#[derive(Debug, Clone)]
pub struct Params {
    /// The owner; `None`: all that the caller may see.
    pub owner: Option<(Kind, Name)>,
    /// Tokens in the page, at most.
    pub limit: usize,
    /// `next_cursor` of the previous page.
    pub after: i64,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = reader.optional("name", NameOf, "Only tokens of this user or service.");
        let kind = reader.with_default("kind", KIND, Kind::User, "What the name is the name of.");
        let limit = limit(&mut reader, "Tokens in the page, at most.");
        let after = cursor(&mut reader);
        reader.finish(|| {
            Some(Self {
                owner: name.map(|name| (kind, name)),
                limit,
                after: after.unwrap_or(0),
            })
        })
    }
}

pub(super) fn method<C: HasAccess>() -> Method<C> {
    Method {
        name: "tokens.list",
        title: "List Tokens",
        summary: "List tokens without their secrets, oldest first",
        tags: &["token"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |context, call| {
            boxed(async move {
                let access = context.access();
                let p = Params::read(&call.params)?;
                let page = access.tokens(&call.context, p.owner, p.after, p.limit);
                let page = answer(access, page.await)?;
                Ok::<_, RpcError>(replies::token_page(&page))
            })
        },
    }
}

fn about() -> About {
    described(
        "Lists tokens, oldest first, without their secrets: with the scope `admin` those of everybody, else \
         one's own. Ended ones are shown for 400 days.",
        "page",
        page("tokens", token()),
        &[],
        (
            "all of one service",
            json!({"name": "ci", "kind": "service"}),
            json!({"tokens": [shown()]}),
        ),
    )
}
