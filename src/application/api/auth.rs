//! Tokens, secrets and the audit log as callers see them, without digests and sealed values. What the store keeps
//! without either is shown as it is.

use std::sync::Arc;
pub use taskledger_auth::DeniedJwt;
pub use taskledger_auth::store::{
    AuditFilter as AuditSearch, AuditRow as AuditEntry, DeniedRow as DeniedView,
    SecretRow as SecretView,
};
use taskledger_auth::store::{TokenRow, TokenState};
use taskledger_auth::tokens::Created;
use taskledger_auth::{Kind, Name, Scopes, Token, TokenId};
use taskledger_domain::Timestamp;

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView {
    /// Its public name.
    pub id: TokenId,
    /// Whether its owner is a user or a service.
    pub kind: Kind,
    /// The name of its owner.
    pub name: Name,
    /// What it allows.
    pub scopes: Scopes,
    /// The methods that a worker may claim with it; `None`: all.
    pub methods: Option<Arc<[Arc<str>]>>,
    /// The agents of the broker for which it speaks beside the owner's name; `None`: no others.
    pub agents: Option<Arc<[Arc<str>]>>,
    /// Free text for people, set when the token was created.
    pub note: Arc<str>,
    /// Whether it could be used when this was read.
    pub state: TokenState,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its secret was last replaced.
    pub rotated_at: Option<Timestamp>,
    /// Until when the secret before that is accepted; `None`: it is not.
    pub previous_until: Option<Timestamp>,
    /// When it ends; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl TokenView {
    /// What is shown of a row at `now`.
    pub(in crate::application) fn of(row: TokenRow, now: Timestamp) -> Self {
        let state = row.state(now);
        let previous_until = row.previous.map(|(_, until)| until);
        Self {
            id: row.id,
            kind: row.owner.kind,
            name: row.owner.name,
            scopes: row.scopes,
            methods: row.methods,
            agents: row.agents,
            note: row.note,
            state,
            created_at: row.created_at,
            rotated_at: row.rotated_at,
            previous_until: previous_until.filter(|until| *until > now),
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
        }
    }
}

/// A token whose secret was just made.
#[derive(Debug)]
pub struct CreatedToken {
    /// What is shown of it from now on.
    pub view: TokenView,
    /// As its holder needs it.
    pub token: Token,
}

impl CreatedToken {
    pub(in crate::application) fn of(created: Created, now: Timestamp) -> Self {
        Self {
            view: TokenView::of(created.row, now),
            token: created.token,
        }
    }
}

/// Tokens, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenPage {
    /// At most as many as were asked for.
    pub tokens: Vec<TokenView>,
    /// Where the next page begins, if there is one.
    pub next: Option<i64>,
}

/// Entries of the audit log, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// At most as many as were asked for.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins, if there is one.
    pub next: Option<i64>,
}
