//! `tokens.create`.

use super::answers::answer;
use super::kinds::{Agents, Id, KIND, Methods, NewNameOf, ScopeList};
use crate::application::api::HasAccess;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader, integer, text};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::tokens::{changed, described, secret, with_secret};
use serde_json::json;
use std::sync::Arc;
use taskledger_auth::Kind;
use taskledger_auth::tokens::{LIFETIME_MAX_S, NOTE_CHARS_MAX, New};
use taskledger_domain::Violation;

/// The token to be made.
#[derive(Debug, Clone)]
pub struct Params(pub New);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = reader.required(
            "name",
            NewNameOf,
            "Whose token it is. A user's flows are those whose root has this `user_id`.",
        );
        let scopes = reader.required(
            "scopes",
            ScopeList,
            "What the token allows. The caller needs each of these scopes too, and `users:any` to give another user a scope of tasks or webhooks.",
        );
        let kind = reader.with_default("kind", KIND, Kind::User, "What the name is the name of.");
        let methods = reader.optional(
            "methods",
            Methods,
            "The only methods that a worker may claim with it; without it all.",
        );
        let lifetime_s = reader.optional(
            "expires_in_seconds",
            integer(1..=LIFETIME_MAX_S),
            "How long it lasts; default: 90 days for a user, no expiry for a service.",
        );
        let note = reader.optional("note", text(NOTE_CHARS_MAX), "For people.");
        let id = reader.optional(
            "id",
            Id,
            "An id of your own, that no token has: then repeating the call makes no second token.",
        );
        let agents = reader.optional(
            "agents",
            Agents,
            "Further agents of the broker that the token may act as. The caller needs `users:any` to name agents that are not its own.",
        );
        reader.finish(|| {
            Some(Self(New {
                kind,
                name: name?,
                scopes: scopes?,
                methods,
                agents,
                lifetime_s,
                note: note.map_or_else(|| Arc::from(""), Arc::from),
                id,
            }))
        })
    }
}

pub(super) fn method<C: HasAccess>() -> Method<C> {
    Method {
        name: "tokens.create",
        title: "Create Token",
        summary: "Make a token, and show its secret once",
        tags: &["token"],
        params: Params::declared(),
        changes: Changes::Tokens,
        about: about(),
        handler: |context, call| {
            boxed(async move {
                let access = context.access();
                let p = Params::read(&call.params)?;
                let created = access.create_token(&call.context, p.0).await;
                let created = answer(access, created)?;
                Ok::<_, RpcError>(replies::created_token(&created))
            })
        },
    }
}

const OTHER: &str = "kl23mn45op67qr2s";

fn about() -> About {
    let ann = json!({"id": OTHER, "kind": "user", "name": "ann", "scopes": ["tasks:read"], "note": "", "expires_at": TIME});
    let mut created = changed(ann);
    created["token"] = secret(OTHER)["token"].take();
    described(
        "Makes a token. Its secret is in the answer and is stored nowhere. Needs the scope `admin`. Callers can only give scopes that they have; a token with which another user reaches tasks or webhooks needs `users:any`.",
        "token",
        with_secret(),
        &[],
        (
            "a user who reads",
            json!({"name": "ann", "scopes": ["tasks:read"], "id": OTHER}),
            created,
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{faults, map};
    use serde_json::json;

    #[test]
    fn everything_is_read() {
        let given = json!({"name": "ci", "scopes": ["worker", "tasks:read"], "kind": "service",
            "methods": ["pdf"], "agents": ["robot"], "expires_in_seconds": 60, "note": "n", "id": "abcdefghij234567"});
        let Params(new) = Params::read(&map(given)).unwrap();
        assert_eq!(new.kind, Kind::Service);
        assert_eq!(new.scopes.to_string(), "tasks:read worker");
        assert_eq!(new.agents.as_deref(), Some(&[Arc::from("robot")][..]));
        assert_eq!(new.lifetime_s, Some(60));
        assert_eq!(new.id.unwrap().to_string(), "abcdefghij234567");
    }

    #[test]
    fn every_fault_is_named() {
        let given = json!({"name": "user:ann", "scopes": ["worker", "root"], "kind": "node",
            "methods": [], "agents": [""], "expires_in_seconds": 0, "note": "", "id": "tl_x"});
        let fields: Vec<_> = faults(Params::read(&map(given)))
            .into_iter()
            .map(|(field, _)| field)
            .collect();
        let expected = [
            "name",
            "scopes",
            "kind",
            "methods",
            "expires_in_seconds",
            "note",
            "id",
            "agents",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_name_that_looks_like_another_one_is_refused() {
        for name in [
            "ann\u{200b}",
            "an\u{ad}n",
            "ann\u{202e}",
            " ann",
            "ann\u{a0}",
        ] {
            let given = json!({"name": name, "scopes": ["worker"]});
            let faults = faults(Params::read(&map(given)));
            assert_eq!(faults.len(), 1, "{name:?}: {faults:?}");
            assert_eq!(faults[0].0, "name", "{name:?}");
        }
        for name in ["ann smith", "é@example.org", "画像"] {
            let given = json!({"name": name, "scopes": ["worker"]});
            Params::read(&map(given)).expect(name);
        }
    }
}
