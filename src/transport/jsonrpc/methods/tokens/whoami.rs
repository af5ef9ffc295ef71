//! `system.whoami`.

use super::answers::answer;
use crate::application::api::HasAccess;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::params::nothing::Params;
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::tokens::{agents, described, methods, scopes};
use crate::transport::openrpc::schema_parts::{object, text_or_null, time_or_null};
use serde_json::json;
use taskledger_auth::Scope;

pub(super) fn method<C: HasAccess>() -> Method<C> {
    Method {
        name: "system.whoami",
        title: "Who Am I",
        summary: "Show who the caller is, and what the credentials allow",
        tags: &["system"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |context, call| {
            boxed(async move {
                let access = context.access();
                Params::read(&call.params)?;
                let caller = answer(access, access.whoami(&call.context))?;
                Ok::<_, RpcError>(replies::whoami(&caller))
            })
        },
    }
}

fn about() -> About {
    let all: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    described(
        "Shows who the caller is, what the credentials allow and when they end.",
        "caller",
        object(json!({
            "kind": {"type": "string", "enum": ["anonymous", "user", "service"]},
            "principal": {"type": "string", "description": "As the history and the audit log name the caller."},
            "user_id": text_or_null("The `user_id` of flows that belong to the caller."),
            "tenant": {"type": "string"},
            "scopes": scopes(),
            "methods": methods(),
            "agents": agents(),
            "credential": text_or_null("The id of the token."),
            "expires_at": time_or_null("When the credentials end; null: never."),
        })),
        &[],
        (
            "without authentication",
            json!({}),
            json!({
                "kind": "anonymous", "principal": "anonymous", "user_id": null, "tenant": "main",
                "scopes": all, "methods": null, "agents": null, "credential": null, "expires_at": null,
            }),
        ),
    )
}
