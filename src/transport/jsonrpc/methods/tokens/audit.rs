//! `audit.list`.

use super::answers::answer;
use crate::application::api::{AuditSearch, HasAccess};
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::methods::webhooks::list::{cursor, limit};
use crate::transport::jsonrpc::reader::{Parameters, Reader, TIMESTAMP, choice, text};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::{RpcError, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::tokens::{TOKEN, described};
use crate::transport::openrpc::schema_parts::date_time;
use crate::transport::openrpc::schema_parts::{object, page, text_or_null};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_auth::{Action, Outcome};
use taskledger_domain::Violation;

/// Characters of a principal or an object: more than any has.
const CHARS_MAX: usize = 512;

/// The filter and page of rows.
#[derive(Debug, Clone)]
pub struct Params {
    /// Which rows are shown.
    pub filter: AuditSearch,
    /// Rows in the page, at most.
    pub limit: usize,
    /// `next_cursor` of the previous page.
    pub before: Option<i64>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let words = text(CHARS_MAX);
        let principal = reader.optional(
            "principal",
            words,
            "Only actions of this principal, for example `user:ann`, `service:ci`, `anonymous`, `operator` or `server`.",
        );
        let action = reader.optional(
            "action",
            choice("not an action of the audit log", Action::WORDS),
            "Only this action.",
        );
        let object = reader.optional("object", words, "Only actions on this object.");
        let since = reader.optional("since", TIMESTAMP, "Not before this time.");
        let until = reader.optional("until", TIMESTAMP, "Before this time.");
        let limit = limit(&mut reader, "Entries in the page, at most.");
        let before = cursor(&mut reader);
        reader.finish(|| {
            Some(Self {
                filter: AuditSearch {
                    principal: principal.map(Arc::from),
                    action: action.map(|it| Arc::from(it.as_str())),
                    object: object.map(Arc::from),
                    since,
                    until,
                },
                limit,
                before,
            })
        })
    }
}

pub(super) fn method<C: HasAccess>() -> Method<C> {
    Method {
        name: "audit.list",
        title: "List Audit Log",
        summary: "Show who did what, newest first",
        tags: &["audit"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |context, call| {
            boxed(async move {
                let access = context.access();
                let p = Params::read(&call.params)?;
                let page = access.audit(&call.context, &p.filter, p.before, p.limit);
                let page = answer(access, page.await)?;
                Ok::<_, RpcError>(replies::audit_page(&page))
            })
        },
    }
}

fn entry() -> Value {
    let words = |all: Vec<&'static str>| json!({"type": "string", "examples": all});
    object(json!({
        "seq": {"type": "integer", "minimum": 1},
        "at": date_time(),
        "principal": {"type": "string", "description": "`user:NAME`, `service:NAME`, `anonymous`, `operator` for what was done on the store itself, or `server` for what the server did by itself."},
        "token": text_or_null("The id of the credential."),
        "address": text_or_null("Where the connection came from."),
        "request": text_or_null("The id of the call."),
        "action": words(Action::ALL.iter().map(|action| action.as_str()).collect()),
        "object": text_or_null("What it was done to."),
        "outcome": words(Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect()),
        "detail": {"type": ["object", "null"], "description": "More about it, by action."},
    }))
}

fn about() -> About {
    described(
        "Shows the audit log, newest first: changes of tokens, secrets, schedules, webhooks and declarations, refused changes, failed logins, reads and claims of other users' tasks, and operations of the server. Entries are kept for 400 days. Needs the scope \
         `admin`.",
        "page",
        page("entries", entry()),
        &[],
        (
            "what was done to a token",
            json!({"object": TOKEN}),
            json!({"entries": [{
                "seq": 2, "at": TIME, "principal": "anonymous", "token": null, "address": null,
                "request": "880e8400-e29b-41d4-a716-446655440000", "action": "token.create",
                "object": TOKEN, "outcome": "done",
                "detail": {"owner": "service:ci", "scopes": "tasks:read tasks:run", "methods": null, "agents": null, "expires_at": null},
            }]}),
        ),
    )
}
