//! Tokens, secrets and the audit log as callers see them: no digests, no sealed values.

use std::sync::Arc;
pub use taskledger_auth::DeniedJwt;
use taskledger_auth::store::{AuditFilter, AuditRow, DeniedRow, SecretRow, TokenRow, TokenState};
use taskledger_auth::tokens::Created;
use taskledger_auth::{Kind, Name, Scopes, SecretName, Token, TokenId};
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
    /// For people.
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

/// JWTs of an issuer that are refused before they expire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedView {
    /// `iss` of the tokens.
    pub issuer: Arc<str>,
    /// Which of its tokens.
    pub what: DeniedJwt,
    /// Since when.
    pub denied_at: Timestamp,
}

impl From<DeniedRow> for DeniedView {
    fn from(row: DeniedRow) -> Self {
        Self {
            issuer: row.issuer,
            what: row.what,
            denied_at: row.denied_at,
        }
    }
}

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretView {
    /// Its name.
    pub name: SecretName,
    /// When it was first set.
    pub created_at: Timestamp,
    /// When it was last set.
    pub updated_at: Timestamp,
}

impl From<SecretRow> for SecretView {
    fn from(row: SecretRow) -> Self {
        Self {
            name: row.name,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Which entries of the audit log; `None`: all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditSearch {
    /// By whom: `user:ann`.
    pub principal: Option<Arc<str>>,
    /// What was done.
    pub action: Option<Arc<str>>,
    /// To what.
    pub object: Option<Arc<str>>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
}

impl AuditSearch {
    pub(in crate::application) fn filter(&self) -> AuditFilter {
        AuditFilter {
            principal: self.principal.clone(),
            action: self.action.clone(),
            object: self.object.clone(),
            since: self.since,
            until: self.until,
        }
    }
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number, rising in the order in which entries were made; with gaps.
    pub seq: i64,
    /// When it happened.
    pub at: Timestamp,
    /// Who did it: `user:ann`, `service:ci`, `anonymous`, `server`.
    pub principal: Arc<str>,
    /// The id of the credential.
    pub token: Option<Arc<str>>,
    /// From which address.
    pub address: Option<Arc<str>>,
    /// The id of the call.
    pub request: Option<Arc<str>>,
    /// What was done, one of the names of [`taskledger_auth::Action`].
    pub action: Arc<str>,
    /// To what.
    pub object: Option<Arc<str>>,
    /// How it ended, one of the names of [`taskledger_auth::Outcome`].
    pub outcome: Arc<str>,
    /// More about it, a JSON object.
    pub detail: Option<Arc<str>>,
}

impl From<AuditRow> for AuditEntry {
    fn from(row: AuditRow) -> Self {
        Self {
            seq: row.seq,
            at: row.at,
            principal: row.principal,
            token: row.token,
            address: row.address,
            request: row.request,
            action: row.action,
            object: row.object,
            outcome: row.outcome,
            detail: row.detail,
        }
    }
}

/// Entries of the audit log, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// At most as many as were asked for.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins, if there is one.
    pub next: Option<i64>,
}
