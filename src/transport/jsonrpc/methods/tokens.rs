//! The methods `tokens.*`, `audit.list` and `system.whoami`.

use super::super::dispatch::{Changes, Method};
use super::super::error::RpcError;
use super::super::params::tokens::{create, list, one, rotate};
use super::super::params::{audit, nothing};
use super::super::reader::Parameters;
use super::super::replies;
use super::{answer, boxed};
use crate::application::Service;
use crate::transport::openrpc::about;

pub(super) fn methods() -> Vec<Method<Service>> {
    let mut methods = tokens();
    methods.extend(others());
    methods
}

fn tokens() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "tokens.create",
            title: "Create Token",
            summary: "Make a token, and show its secret once",
            tags: &["token"],
            params: create::Params::questions(),
            changes: Changes::Tokens,
            about: about::tokens::create(),
            handler: |service, call| {
                boxed(async move {
                    let p = create::Params::read(&call.params)?;
                    let created = service.create_token(&call.context, p.0).await;
                    let created = answer(&service, created)?;
                    let now = service.clock().now();
                    Ok::<_, RpcError>(replies::created_token(&created, now))
                })
            },
        },
        Method {
            name: "tokens.list",
            title: "List Tokens",
            summary: "List tokens without their secrets, oldest first",
            tags: &["token"],
            params: list::Params::questions(),
            changes: Changes::Nothing,
            about: about::tokens::list(),
            handler: |service, call| {
                boxed(async move {
                    let p = list::Params::read(&call.params)?;
                    let page = service.tokens(&call.context, p.owner, p.after, p.limit);
                    let page = answer(&service, page.await)?;
                    Ok::<_, RpcError>(replies::token_page(&page, service.clock().now()))
                })
            },
        },
        Method {
            name: "tokens.rotate",
            title: "Rotate Token",
            summary: "Give a token a new secret, beside the old one for a while",
            tags: &["token"],
            params: rotate::Params::questions(),
            changes: Changes::Tokens,
            about: about::tokens::rotate(),
            handler: |service, call| {
                boxed(async move {
                    let p = rotate::Params::read(&call.params)?;
                    let rotated = service.rotate_token(&call.context, &p.id, p.grace_s).await;
                    let rotated = answer(&service, rotated)?;
                    let now = service.clock().now();
                    Ok::<_, RpcError>(replies::created_token(&rotated, now))
                })
            },
        },
        Method {
            name: "tokens.revoke",
            title: "Revoke Token",
            summary: "End a token with all of its secrets",
            tags: &["token"],
            params: one::Params::questions(),
            changes: Changes::Tokens,
            about: about::tokens::revoke(),
            handler: |service, call| {
                boxed(async move {
                    let p = one::Params::read(&call.params)?;
                    let revoked = service.revoke_token(&call.context, &p.id).await;
                    let revoked = answer(&service, revoked)?;
                    Ok::<_, RpcError>(replies::token(&revoked, service.clock().now()))
                })
            },
        },
    ]
}

fn others() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "audit.list",
            title: "List Audit Log",
            summary: "Show who did what, newest first",
            tags: &["audit"],
            params: audit::Params::questions(),
            changes: Changes::Nothing,
            about: about::tokens::audit(),
            handler: |service, call| {
                boxed(async move {
                    let p = audit::Params::read(&call.params)?;
                    let page = service.audit(&call.context, &p.filter, p.before, p.limit);
                    let page = answer(&service, page.await)?;
                    Ok::<_, RpcError>(replies::audit_page(&page))
                })
            },
        },
        Method {
            name: "system.whoami",
            title: "Who Am I",
            summary: "Show who the caller is, and what the credentials allow",
            tags: &["system"],
            params: nothing::Params::questions(),
            changes: Changes::Nothing,
            about: about::tokens::whoami(),
            handler: |service, call| {
                boxed(async move {
                    nothing::Params::read(&call.params)?;
                    let caller = answer(&service, service.whoami(&call.context))?;
                    Ok::<_, RpcError>(replies::whoami(&caller))
                })
            },
        },
    ]
}
