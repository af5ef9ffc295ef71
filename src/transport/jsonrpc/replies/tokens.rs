//! The results of `tokens.*`, `audit.list` and `system.whoami`. A secret is in those of `tokens.create` and
//! `tokens.rotate` alone.

use super::raw;
use crate::application::api::{
    AuditEntry, AuditPage, CreatedToken, DeniedView, TokenPage, TokenView,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use taskledger_auth::{Caller, Kind, Scopes};
use taskledger_domain::Timestamp;

pub(in crate::transport::jsonrpc) fn token(view: &TokenView) -> Box<RawValue> {
    raw(&shown(view))
}

/// A token with its secret.
pub(in crate::transport::jsonrpc) fn created_token(created: &CreatedToken) -> Box<RawValue> {
    let mut token = shown(&created.view);
    token.insert("token".to_owned(), json!(created.token.reveal()));
    raw(&token)
}

/// JWTs that are refused from now on.
pub(in crate::transport::jsonrpc) fn denied(row: &DeniedView) -> Box<RawValue> {
    raw(&json!({
        "issuer": row.issuer,
        "claim": row.what.claim(),
        "value": row.what.value(),
        "denied_at": row.denied_at,
    }))
}

/// A page of tokens.
pub(in crate::transport::jsonrpc) fn token_page(page: &TokenPage) -> Box<RawValue> {
    let tokens: Vec<_> = page.tokens.iter().map(shown).collect();
    paged("tokens", json!(tokens), page.next)
}

/// A page of the audit log.
pub(in crate::transport::jsonrpc) fn audit_page(page: &AuditPage) -> Box<RawValue> {
    let entries: Vec<_> = page.entries.iter().map(entry).collect();
    paged("entries", Value::Array(entries), page.next)
}

/// Who calls.
pub(in crate::transport::jsonrpc) fn whoami(caller: &Caller) -> Box<RawValue> {
    let expires_at = caller
        .expires_ms()
        .map(|ms| Timestamp(ms.saturating_mul(1_000)));
    let owner = match caller.kind() {
        Kind::Anonymous => None,
        Kind::User | Kind::Service => Some(caller.owner()),
    };
    raw(&json!({
        "kind": caller.kind().as_str(),
        "principal": caller.actor(),
        "user_id": owner,
        "tenant": caller.tenant(),
        "scopes": names(caller.scopes()),
        "methods": caller.methods(),
        "agents": caller.agents(),
        "credential": caller.credential(),
        "expires_at": expires_at,
    }))
}

fn paged(name: &'static str, rows: Value, next: Option<i64>) -> Box<RawValue> {
    let mut page = Map::from_iter([(name.to_owned(), rows)]);
    if let Some(next) = next {
        page.insert("next_cursor".to_owned(), next.to_string().into());
    }
    raw(&page)
}

fn names(scopes: Scopes) -> Vec<&'static str> {
    scopes.iter().map(|scope| scope.as_str()).collect()
}

fn shown(row: &TokenView) -> Map<String, Value> {
    let token = json!({
        "id": row.id.as_str(),
        "kind": row.kind.as_str(),
        "name": row.name.as_str(),
        "scopes": names(row.scopes),
        "methods": row.methods,
        "agents": row.agents,
        "note": row.note,
        "state": row.state.as_str(),
        "created_at": row.created_at,
        "rotated_at": row.rotated_at,
        "previous_until": row.previous_until,
        "expires_at": row.expires_at,
        "revoked_at": row.revoked_at,
        "last_used_at": row.last_used_at,
    });
    match token {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("it is written as an object")
        }
    }
}

fn entry(row: &AuditEntry) -> Value {
    let detail = row.detail.as_deref();
    let detail: Option<Value> = detail.and_then(|text| serde_json::from_str(text).ok());
    json!({
        "seq": row.seq,
        "at": row.at,
        "principal": row.principal,
        "token": row.token,
        "address": row.address,
        "request": row.request,
        "action": row.action,
        "object": row.object,
        "outcome": row.outcome,
        "detail": detail,
    })
}
