//! Tokens: who owns which, and whether a presented one is valid.
//!
//! Owns: the rules of tokens (who may make, rotate and revoke which; how long they last), the cache in front of
//! the store, and what the server does about them in the background ([`Tokens::keep`]). May not: see protocols.
//! Each change and its row of the audit log are one transaction.

mod cache;
mod changes;
mod denied;
mod first;
mod keeping;
mod rules;

pub use changes::{Created, New};
pub use denied::StoredDenyList;
pub use first::{ADMIN_TOKEN_FILE, AdminTokens, FirstError};
pub use rules::{
    AGENTS_MAX, GRACE_DEFAULT_S, GRACE_MAX_S, LIFETIME_MAX_S, METHODS_MAX, NOTE_CHARS_MAX, Refusal,
    USER_LIFETIME_S,
};

use crate::audit::AuditLog;
use crate::caller::Caller;
use crate::store::{AuthStore, Error, TokenRow};
use crate::token::{Digest, Malformed, Token, TokenId};
use cache::{Accepted, Cache, Shown};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use taskledger_clock::SharedClock;
use taskledger_domain::Timestamp;
use tokio::time::timeout;

/// How long an accepted credential is believed without asking the store.
const ACCEPTED_FOR_MS: u64 = 5_000;
/// How long a refused one is.
const REFUSED_FOR_MS: u64 = 1_000;
/// How long an accepted credential is believed when the store does not answer.
const ACCEPTED_WITHOUT_STORE_MS: u64 = 60_000;
/// How long one look-up may take.
const LOOK_UP_WAIT: Duration = Duration::from_secs(2);
/// After a look-up that failed, the store is left alone for this time.
const LEAVE_ALONE_MS: u64 = 1_000;
/// Look-ups of different credentials at the same time; those of one credential wait for each other.
const LANES: usize = 16;
/// Tokens whose use is noted at the end of a minute.
const USED_MAX: usize = 10_000;
const MINUTE: i64 = 60_000_000;

/// Why a credential is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// No token looks like that.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// There is no such token.
    #[error("the token is not known")]
    Unknown,
    /// It has ended, or its secret was replaced.
    #[error("the token has expired")]
    Expired,
    /// It was revoked.
    #[error("the token was revoked")]
    Revoked,
    /// It cannot be looked up now; the caller may try again.
    #[error("the token cannot be looked up now")]
    Unavailable,
}

/// All tokens of a server. Lasts as long as it.
pub struct Tokens {
    store: Arc<AuthStore>,
    audit: Arc<AuditLog>,
    clock: SharedClock,
    admins: AdminTokens,
    cache: Cache,
    denied: Arc<StoredDenyList>,
    lanes: [tokio::sync::Mutex<()>; LANES],
    /// The store is left alone until then.
    alone_until: AtomicI64,
    /// When tokens were used and it is not noted yet.
    used: Mutex<HashMap<TokenId, Timestamp>>,
    /// The generation of the store that the cache is from; -1: not known.
    generation: AtomicI64,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    /// The tokens of a store, and those of the operator beside it.
    #[must_use]
    pub fn new(
        store: Arc<AuthStore>,
        audit: Arc<AuditLog>,
        clock: SharedClock,
        admins: AdminTokens,
    ) -> Self {
        Self {
            denied: Arc::new(StoredDenyList::new(store.clone(), clock.clone())),
            store,
            audit,
            clock,
            admins,
            cache: Cache::new(),
            lanes: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            alone_until: AtomicI64::new(0),
            used: Mutex::default(),
            generation: AtomicI64::new(-1),
        }
    }

    /// Who shows this credential, if it was accepted lately. Cost: O(1), without a digest and without an allocation.
    #[must_use]
    pub fn remembered(&self, text: &str, now: Timestamp) -> Option<Arc<Caller>> {
        let shown = Shown::of(text)?;
        self.accepted_lately(&shown, now)?.ok()
    }

    /// Who shows this credential. Cost: as [`Self::remembered`] while it is accepted, one hash while it is refused,
    /// else one look-up. A revocation counts at once on the server where it is made, and within two seconds on others.
    ///
    /// # Errors
    /// [`Denial`]; [`Denial::Unavailable`] is the only one that says nothing about the credential.
    pub async fn authenticate(&self, text: &str, now: Timestamp) -> Result<Arc<Caller>, Denial> {
        if let Some(shown) = Shown::of(text)
            && let Some(known) = self.accepted_lately(&shown, now)
        {
            return known;
        }
        let token = Token::parse(text)?;
        if let Some(caller) = self.admins.find(&token) {
            return Ok(caller);
        }
        let shown = Shown::of(text).expect("every token has the same length");
        let key = Digest::of(text);
        if let Some(denial) = self.refused_lately(&key, now) {
            return Err(denial);
        }
        // Whoever comes with the same credential meanwhile waits, and finds the answer in the cache.
        let _lane = self.lanes[usize::from(key.0[0]) % LANES].lock().await;
        if let Some(known) = self.accepted_lately(&shown, now) {
            return known;
        }
        if let Some(denial) = self.refused_lately(&key, now) {
            return Err(denial);
        }
        let (epoch, before) = (self.cache.epoch(), self.cache.accepted(&shown));
        let found = if now.0 < self.alone_until.load(Ordering::Relaxed) {
            None
        } else {
            self.look_up(token.id(), now).await
        };
        let Some(row) = found else {
            return match before {
                Some(accepted) if lasts(&accepted, now) => self.accept(&accepted, now),
                Some(_) | None => Err(Denial::Unavailable),
            };
        };
        match judge(row.as_ref(), &token.digest(), now) {
            Ok(caller) => {
                let accepted = Arc::new(Accepted {
                    id: token.id().clone(),
                    caller,
                    since: now,
                    minute: AtomicI64::new(0),
                });
                self.cache.accept(shown, accepted.clone(), epoch);
                self.accept(&accepted, now)
            }
            Err(denial) => {
                self.cache.refuse(&shown, key, (denial, now), epoch);
                Err(denial)
            }
        }
    }

    /// What is known without the store of a credential that it has accepted, if that is fresh enough.
    fn accepted_lately(
        &self,
        shown: &Shown,
        now: Timestamp,
    ) -> Option<Result<Arc<Caller>, Denial>> {
        let accepted = self.cache.accepted(shown)?;
        let is_fresh = now.ms_since(accepted.since) < ACCEPTED_FOR_MS;
        is_fresh.then(|| self.accept(&accepted, now))
    }

    /// The same of one that it has refused.
    fn refused_lately(&self, key: &Digest, now: Timestamp) -> Option<Denial> {
        let (denial, since) = self.cache.refused(key)?;
        (now.ms_since(since) < REFUSED_FOR_MS).then_some(denial)
    }

    /// Lets a caller in whose credential the store knows, unless it has ended since.
    fn accept(&self, accepted: &Accepted, now: Timestamp) -> Result<Arc<Caller>, Denial> {
        ended(&accepted.caller, now)?;
        let minute = now.0 / MINUTE;
        if accepted.minute.load(Ordering::Relaxed) != minute
            && accepted.minute.swap(minute, Ordering::Relaxed) != minute
        {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            if used.len() < USED_MAX || used.contains_key(&accepted.id) {
                used.insert(accepted.id.clone(), Timestamp(minute * MINUTE));
            }
        }
        Ok(accepted.caller.clone())
    }

    /// The row of a token; `None`: the store does not answer.
    async fn look_up(&self, id: &TokenId, now: Timestamp) -> Option<Option<TokenRow>> {
        let late = |_| Error::Late;
        let answer = timeout(LOOK_UP_WAIT, self.store.token(id)).await;
        match answer.map_err(late).and_then(|answer| answer) {
            Ok(row) => Some(row),
            Err(error) => {
                let until = now.plus_ms(LEAVE_ALONE_MS).0;
                // Once for all who ask while it is left alone.
                if self.alone_until.fetch_max(until, Ordering::Relaxed) <= now.0 {
                    tracing::warn!(%error, "tokens cannot be looked up");
                }
                None
            }
        }
    }

    /// Forgets what it knows: something has changed.
    fn forget(&self) {
        self.cache.clear();
    }

    /// Forgets credentials that it would not believe any more.
    fn forget_old(&self, now: Timestamp) {
        let lasting_us = i64::try_from(ACCEPTED_WITHOUT_STORE_MS * 1000).unwrap_or(i64::MAX);
        let since = now.0.saturating_sub(lasting_us);
        self.cache.forget_before(Timestamp(since));
    }

    /// The audit log beside the tokens.
    #[must_use]
    pub const fn audit(&self) -> &Arc<AuditLog> {
        &self.audit
    }

    /// Where they are stored.
    #[must_use]
    pub const fn store(&self) -> &Arc<AuthStore> {
        &self.store
    }
}

/// Whether an accepted credential may be believed without the store.
fn lasts(accepted: &Accepted, now: Timestamp) -> bool {
    now.ms_since(accepted.since) < ACCEPTED_WITHOUT_STORE_MS
}

fn ended(caller: &Caller, now: Timestamp) -> Result<(), Denial> {
    match caller.expires_ms() {
        Some(expires_ms) if now.0 / 1000 >= expires_ms => Err(Denial::Expired),
        Some(_) | None => Ok(()),
    }
}

/// What follows from a row for somebody who shows a secret with this digest. Whoever shows another secret
/// hears nothing of the token.
fn judge(row: Option<&TokenRow>, shown: &Digest, now: Timestamp) -> Result<Arc<Caller>, Denial> {
    let row = row.ok_or(Denial::Unknown)?;
    let replaced = match &row.previous {
        _ if row.digest.matches(shown) => None,
        Some((previous, until)) if previous.matches(shown) => Some(*until),
        Some(_) | None => return Err(Denial::Unknown),
    };
    if row.revoked_at.is_some() {
        return Err(Denial::Revoked);
    }
    let ends = [row.expires_at, replaced].into_iter().flatten().min();
    if ends.is_some_and(|ends| ends <= now) {
        return Err(Denial::Expired);
    }
    let caller = Caller::described(
        &format!("{}:{}", row.owner.kind.as_str(), row.owner.name),
        &row.owner.tenant,
        row.scopes,
        row.methods.clone(),
        Some(row.id.as_str().clone()),
        ends.map(|ends| ends.0 / 1000),
    );
    let caller = caller.map(|caller| caller.with_agents(row.agents.clone()));
    caller.map(Arc::new).ok_or(Denial::Unknown)
}
