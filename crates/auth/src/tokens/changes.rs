//! Making, listing, rotating and revoking tokens.

use super::rules::{AGENTS_MAX, METHODS_MAX, NOTE_CHARS_MAX, Refusal};
use super::{Tokens, rules};
use crate::audit::{Action, By, Entry, Origin};
use crate::caller::{Caller, Kind};
use crate::name::Name;
use crate::scopes::{Scope, Scopes};
use crate::store::{self, Error, NewToken, Owner, TOKENS_MAX, TokenRow};
use crate::token::{Token, TokenId};
use serde_json::json;
use std::sync::Arc;
use taskledger_domain::Timestamp;

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    /// A user or a service.
    pub kind: Kind,
    /// Name of the user or service that calls with this token are made as.
    pub name: Name,
    /// What it allows.
    pub scopes: Scopes,
    /// The methods that a worker may claim with it; `None`: all.
    pub methods: Option<Arc<[Arc<str>]>>,
    /// The agents of the broker for which it speaks beside the owner's name; `None`: no others.
    pub agents: Option<Arc<[Arc<str>]>>,
    /// How many seconds it lasts; `None`: [`super::USER_LIFETIME_S`] for users, without end for services.
    pub lifetime_s: Option<u64>,
    /// Free text for people; may be empty.
    pub note: Arc<str>,
    /// An id that the caller has chosen, so that repeating the order is harmless; `None`: a random one.
    pub id: Option<TokenId>,
}

/// A token with a fresh secret, which is shown this once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// As it is stored.
    pub row: TokenRow,
    /// As its holder needs it.
    pub token: Token,
}

impl Tokens {
    /// Makes a token. Needs [`Scope::Admin`], and every scope that it gives out; a token by which somebody
    /// else reaches flows needs [`Scope::UsersAny`].
    ///
    /// # Errors
    /// [`Error`]: no token was made, or one that nobody can use because its secret was not shown.
    pub async fn create(
        &self,
        caller: &Caller,
        origin: &Origin,
        new: New,
    ) -> Result<Result<Created, Refusal>, Error> {
        let now = self.clock.now();
        let owner = Owner {
            kind: new.kind,
            name: new.name.clone(),
            tenant: caller.tenant().clone(),
        };
        let allowed = allowed(caller, &new).and_then(|()| {
            rules::may_give(
                caller,
                &owner,
                new.scopes,
                (new.methods.as_ref(), new.agents.as_ref()),
            )?;
            rules::ends(new.kind, new.lifetime_s, now)
        });
        let expires_at = match allowed {
            Ok(expires_at) => expires_at,
            Err(refusal) => {
                let change = (Action::TokenCreate, Arc::from(shown(&owner)));
                self.note_refusal(caller, origin, change, refusal);
                return Ok(Err(refusal));
            }
        };
        let token = match &new.id {
            Some(id) => Token::again(id, &*self.clock),
            None => Token::fresh(&*self.clock),
        };
        let stored = NewToken {
            id: token.id().clone(),
            owner,
            scopes: new.scopes,
            methods: new.methods,
            agents: new.agents,
            note: new.note,
            digest: token.digest(),
            expires_at,
        };
        let by = By::call(caller, origin);
        let stored = self.store.order(self.insert(&stored, by, now)).await;
        self.forget();
        Ok(stored?.map(|row| Created { row, token }))
    }

    /// Stores a token with its row of the audit log.
    pub(super) async fn insert(
        &self,
        new: &NewToken,
        by: By,
        now: Timestamp,
    ) -> Result<Result<TokenRow, Refusal>, Error> {
        let mut tx = self.store.change().await?;
        if store::count(&mut tx).await? >= TOKENS_MAX {
            tx.rollback().await?;
            return Ok(Err(Refusal::Full(TOKENS_MAX)));
        }
        if store::hold(&mut tx, &new.id).await?.is_some() {
            tx.rollback().await?;
            return Ok(Err(Refusal::Taken));
        }
        store::insert(&mut tx, new, now).await?;
        let entry = Entry::done(by, Action::TokenCreate, Some(new.id.as_str().clone()));
        let detail = json!({
            "owner": shown(&new.owner),
            "scopes": new.scopes,
            "methods": new.methods,
            "agents": new.agents,
            "expires_at": new.expires_at,
        });
        self.store.append(&mut tx, &entry.with(detail), now).await?;
        let row = store::hold(&mut tx, &new.id).await?;
        tx.commit().await?;
        row.map(Ok)
            .ok_or_else(|| Error::Damaged("a new token is not there".to_owned()))
    }

    /// Tokens with a number above `after`, the oldest first, at most `limit`, ended ones included. With
    /// [`Scope::Admin`] those of everybody or of `owner`, else the caller's own.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(
        &self,
        caller: &Caller,
        owner: Option<&Owner>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<TokenRow>, Error> {
        if caller.may(Scope::Admin) {
            return self.store.tokens(owner, after, limit).await;
        }
        match Owner::of(caller) {
            Some(own) if owner.is_none_or(|owner| *owner == own) => {
                self.store.tokens(Some(&own), after, limit).await
            }
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// Gives a token a new secret and lets it last as long again; the old secret is accepted for `grace_s`
    /// seconds more ([`rules::GRACE_DEFAULT_S`]). One's own, or with [`Scope::Admin`] any; in both cases the
    /// caller needs every scope of the token, because he gets its secret.
    ///
    /// # Errors
    /// [`Error`]: the old secret is accepted as before, or for its grace.
    pub async fn rotate(
        &self,
        caller: &Caller,
        origin: &Origin,
        id: &TokenId,
        grace_s: Option<u64>,
    ) -> Result<Result<Created, Refusal>, Error> {
        let now = self.clock.now();
        let token = Token::again(id, &*self.clock);
        let work = async {
            let mut tx = self.store.change().await?;
            let held = store::hold(&mut tx, id).await?;
            let (held, until) = match may_rotate(caller, held, grace_s, now) {
                Ok(allowed) => allowed,
                Err(refusal) => {
                    tx.rollback().await?;
                    return Ok(Err(refusal));
                }
            };
            let expires_at = rules::ends_again(&held, now);
            store::rotate(&mut tx, &held, token.digest(), until, expires_at, now).await?;
            let by = By::call(caller, origin);
            let entry = Entry::done(by, Action::TokenRotate, Some(id.as_str().clone()));
            let detail = json!({
                "owner": shown(&held.owner),
                "previous_until": until,
                "expires_at": expires_at,
            });
            self.store.append(&mut tx, &entry.with(detail), now).await?;
            let row = store::hold(&mut tx, id).await?;
            tx.commit().await?;
            row.map(Ok)
                .ok_or_else(|| Error::Damaged("a rotated token is not there".to_owned()))
        };
        let changed = self.store.order(work).await;
        self.forget_unless_refused(&changed);
        match changed? {
            Ok(row) => Ok(Ok(Created { row, token })),
            Err(refusal) => {
                let change = (Action::TokenRotate, id.as_str().clone());
                self.note_refusal(caller, origin, change, refusal);
                Ok(Err(refusal))
            }
        }
    }

    /// Ends a token with all of its secrets. One's own, or with [`Scope::Admin`] any. Revoking it again
    /// changes nothing.
    ///
    /// # Errors
    /// [`Error`]: ask again; it may be revoked.
    pub async fn revoke(
        &self,
        caller: &Caller,
        origin: &Origin,
        id: &TokenId,
    ) -> Result<Result<TokenRow, Refusal>, Error> {
        let now = self.clock.now();
        let work = async {
            let mut tx = self.store.change().await?;
            let held = store::hold(&mut tx, id).await?;
            let Some(mut held) = held.filter(|row| rules::reaches(caller, row)) else {
                tx.rollback().await?;
                return Ok(Err(Refusal::Unknown));
            };
            if held.revoked_at.is_some() {
                tx.rollback().await?;
                return Ok(Ok(held));
            }
            store::revoke(&mut tx, held.no, now).await?;
            held.revoked_at = Some(now);
            let by = By::call(caller, origin);
            let entry = Entry::done(by, Action::TokenRevoke, Some(id.as_str().clone()));
            let detail = json!({"owner": shown(&held.owner)});
            self.store.append(&mut tx, &entry.with(detail), now).await?;
            tx.commit().await?;
            Ok(Ok(held))
        };
        let changed = self.store.order(work).await;
        self.forget_unless_refused(&changed);
        let changed = changed?;
        if let Err(refusal) = &changed {
            let change = (Action::TokenRevoke, id.as_str().clone());
            self.note_refusal(caller, origin, change, *refusal);
        }
        Ok(changed)
    }

    /// Forgets what is known, unless nothing was changed for certain: else callers could slow down all others
    /// with orders that are refused.
    /// Has the audit log count a refusal.
    fn note_refusal(
        &self,
        caller: &Caller,
        origin: &Origin,
        (action, object): (Action, Arc<str>),
        refusal: Refusal,
    ) {
        let change = (action, Some(object));
        if let Refusal::Scope(scope) = refusal {
            self.audit.denied_for(caller, origin, change, scope);
        } else {
            let rule = refusal.to_string();
            self.audit.denied_by(caller, origin, change, &rule);
        }
    }

    fn forget_unless_refused<T>(&self, changed: &Result<Result<T, Refusal>, Error>) {
        if !matches!(changed, Ok(Err(_))) {
            self.forget();
        }
    }
}

/// What concerns the order alone.
fn allowed(caller: &Caller, new: &New) -> Result<(), Refusal> {
    if !caller.may(Scope::Admin) {
        return Err(Refusal::Scope(Scope::Admin));
    }
    if new.name.is_reserved() {
        return Err(Refusal::Reserved);
    }
    if new.scopes == Scopes::NONE {
        return Err(Refusal::Nothing);
    }
    if new.note.chars().count() > NOTE_CHARS_MAX {
        return Err(Refusal::Note);
    }
    match &new.methods {
        Some(methods) if !(1..=METHODS_MAX).contains(&methods.len()) => {
            return Err(Refusal::NarrowedTo);
        }
        Some(_) if !new.scopes.has(Scope::Worker) => return Err(Refusal::NoWorker),
        Some(_) | None => {}
    }
    match &new.agents {
        Some(agents) if !(1..=AGENTS_MAX).contains(&agents.len()) => Err(Refusal::Named),
        Some(_) | None => Ok(()),
    }
}

/// The token, and until when its old secret is accepted.
fn may_rotate(
    caller: &Caller,
    held: Option<TokenRow>,
    grace_s: Option<u64>,
    now: Timestamp,
) -> Result<(TokenRow, Timestamp), Refusal> {
    let held = held.filter(|row| rules::reaches(caller, row));
    let held = held.ok_or(Refusal::Unknown)?;
    if !rules::is_open(&held, now) {
        return Err(Refusal::Ended);
    }
    let names = (held.methods.as_ref(), held.agents.as_ref());
    rules::may_give(caller, &held.owner, held.scopes, names)?;
    let until = rules::grace(&held, grace_s, now)?;
    Ok((held, until))
}

/// `user:ann`.
fn shown(owner: &Owner) -> String {
    format!("{}:{}", owner.kind.as_str(), owner.name)
}
