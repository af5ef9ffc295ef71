//! The methods `tokens.*`, `audit.list` and `system.whoami`.

use super::super::dispatch::{Changes, Method};
use super::super::error::RpcError;
use super::super::params::tokens::{create, deny, list, one, rotate};
use super::super::params::{audit, nothing};
use super::super::reader::Parameters;
use super::super::{refusals, replies};
use super::boxed;
use crate::application::api::Error;
use crate::application::api::{Access, HasAccess};
use crate::transport::openrpc::about;

/// For whatever has these use cases.
pub(super) fn methods<C: HasAccess>() -> Vec<Method<C>> {
    let mut methods = tokens();
    methods.extend(others());
    methods
}

fn tokens<C: HasAccess>() -> Vec<Method<C>> {
    vec![
        Method {
            name: "tokens.create",
            title: "Create Token",
            summary: "Make a token, and show its secret once",
            tags: &["token"],
            params: create::Params::declared(),
            changes: Changes::Tokens,
            about: about::tokens::create(),
            handler: |context, call| {
                boxed(async move {
                    let access = context.access();
                    let p = create::Params::read(&call.params)?;
                    let created = access.create_token(&call.context, p.0).await;
                    let created = answer(access, created)?;
                    Ok::<_, RpcError>(replies::created_token(&created))
                })
            },
        },
        Method {
            name: "tokens.list",
            title: "List Tokens",
            summary: "List tokens without their secrets, oldest first",
            tags: &["token"],
            params: list::Params::declared(),
            changes: Changes::Nothing,
            about: about::tokens::list(),
            handler: |context, call| {
                boxed(async move {
                    let access = context.access();
                    let p = list::Params::read(&call.params)?;
                    let page = access.tokens(&call.context, p.owner, p.after, p.limit);
                    let page = answer(access, page.await)?;
                    Ok::<_, RpcError>(replies::token_page(&page))
                })
            },
        },
        Method {
            name: "tokens.rotate",
            title: "Rotate Token",
            summary: "Give a token a new secret; the old one stays valid for a while",
            tags: &["token"],
            params: rotate::Params::declared(),
            changes: Changes::Tokens,
            about: about::tokens::rotate(),
            handler: |context, call| {
                boxed(async move {
                    let access = context.access();
                    let p = rotate::Params::read(&call.params)?;
                    let rotated = access.rotate_token(&call.context, &p.id, p.grace_s).await;
                    let rotated = answer(access, rotated)?;
                    Ok::<_, RpcError>(replies::created_token(&rotated))
                })
            },
        },
        Method {
            name: "tokens.revoke",
            title: "Revoke Token",
            summary: "End a token with all of its secrets",
            tags: &["token"],
            params: one::Params::declared(),
            changes: Changes::Tokens,
            about: about::tokens::revoke(),
            handler: |context, call| {
                boxed(async move {
                    let access = context.access();
                    let p = one::Params::read(&call.params)?;
                    let revoked = access.revoke_token(&call.context, &p.id).await;
                    let revoked = answer(access, revoked)?;
                    Ok::<_, RpcError>(replies::token(&revoked))
                })
            },
        },
        Method {
            name: "tokens.deny",
            title: "Deny JWTs",
            summary: "Refuse access tokens of an OIDC issuer before they expire",
            tags: &["token"],
            params: deny::Params::declared(),
            changes: Changes::Tokens,
            about: about::tokens::deny(),
            handler: |context, call| {
                boxed(async move {
                    let access = context.access();
                    let p = deny::Params::read(&call.params)?;
                    let denied = access.deny_jwt(&call.context, p.issuer, p.what).await;
                    Ok::<_, RpcError>(replies::denied(&answer(access, denied)?))
                })
            },
        },
    ]
}

fn others<C: HasAccess>() -> Vec<Method<C>> {
    vec![
        Method {
            name: "audit.list",
            title: "List Audit Log",
            summary: "Show who did what, newest first",
            tags: &["audit"],
            params: audit::Params::declared(),
            changes: Changes::Nothing,
            about: about::tokens::audit(),
            handler: |context, call| {
                boxed(async move {
                    let access = context.access();
                    let p = audit::Params::read(&call.params)?;
                    let page = access.audit(&call.context, &p.filter, p.before, p.limit);
                    let page = answer(access, page.await)?;
                    Ok::<_, RpcError>(replies::audit_page(&page))
                })
            },
        },
        Method {
            name: "system.whoami",
            title: "Who Am I",
            summary: "Show who the caller is, and what the credentials allow",
            tags: &["system"],
            params: nothing::Params::declared(),
            changes: Changes::Nothing,
            about: about::tokens::whoami(),
            handler: |context, call| {
                boxed(async move {
                    let access = context.access();
                    nothing::Params::read(&call.params)?;
                    let caller = answer(access, access.whoami(&call.context))?;
                    Ok::<_, RpcError>(replies::whoami(&caller))
                })
            },
        },
    ]
}

fn answer<T>(access: &Access, answer: Result<T, Error>) -> Result<T, RpcError> {
    answer.map_err(|error| refusals::told(&**access.clock(), error))
}
