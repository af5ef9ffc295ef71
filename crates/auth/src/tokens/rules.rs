//! The rules of tokens: pure, on rows and callers.

use crate::caller::{Caller, Kind};
use crate::scopes::{Scope, Scopes};
use crate::store::{Owner, TokenRow};
use std::sync::Arc;
use taskledger_domain::Timestamp;

/// How long a user's token lasts unless something else is said: 90 days.
pub const USER_LIFETIME_S: u64 = 90 * 24 * 3_600;
/// How long a token can be made to last: ten years, which are 3653 days.
pub const LIFETIME_MAX_S: u64 = 3_653 * 24 * 3_600;
/// How long the old secret is accepted after a rotation unless something else is said.
pub const GRACE_DEFAULT_S: u64 = 24 * 3_600;
/// How long it can be.
pub const GRACE_MAX_S: u64 = 7 * 24 * 3_600;
/// Unicode scalar values of a note.
pub const NOTE_CHARS_MAX: usize = 1_000;
/// Methods to which a token can be narrowed.
pub const METHODS_MAX: usize = 100;
/// Agents of the broker that a token can name.
pub const AGENTS_MAX: usize = 100;

/// Scopes by which one reaches flows: for a token of somebody else, flows of others.
const OF_FLOWS: [Scope; 6] = [
    Scope::TasksRead,
    Scope::TasksWrite,
    Scope::TasksRun,
    Scope::Worker,
    Scope::Webhooks,
    Scope::ExecLocal,
];

/// Why a token is not made, rotated or revoked; the caller can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// The caller may not do it without this scope.
    #[error("it needs the scope `{0}`")]
    Scope(Scope),
    /// The caller is narrowed to some methods, and the token would not be.
    #[error("a credential that is narrowed to some methods cannot give out others")]
    Methods,
    /// The token would speak for agents of the broker for which the caller does not.
    #[error("a credential cannot give out agents for which it does not speak itself")]
    Agents,
    /// There is no such token, or it is somebody else's.
    #[error("there is no token with this id")]
    Unknown,
    /// It has ended and cannot get a new secret.
    #[error("the token has ended: make a new one")]
    Ended,
    /// There is, or was, a token with the id that was chosen.
    #[error("there is a token with this id")]
    Taken,
    /// It would last too long, or not at all.
    #[error("a token lasts between 1 and {LIFETIME_MAX_S} seconds, which are 3653 days")]
    Lifetime,
    /// The old secret would be accepted too long.
    #[error("the old secret is accepted for at most {GRACE_MAX_S} seconds")]
    Grace,
    /// The note is too long.
    #[error("a note has at most {NOTE_CHARS_MAX} characters")]
    Note,
    /// It is narrowed to no method or to too many.
    #[error("a token is narrowed to between 1 and {METHODS_MAX} methods")]
    NarrowedTo,
    /// It is narrowed to methods, which says nothing but of the scope that it lacks.
    #[error("methods narrow the scope `worker`, which the token does not have")]
    NoWorker,
    /// It names no agent or too many.
    #[error("a token names between 1 and {AGENTS_MAX} agents")]
    Named,
    /// Its holder would have a name by which the server calls itself.
    #[error(
        "`anonymous`, `engine`, `operator`, `server` and names that look like them are the server's own"
    )]
    Reserved,
    /// It would allow nothing.
    #[error("a token needs at least one scope")]
    Nothing,
    /// There are as many as there may be.
    #[error(
        "there are {0} tokens, and no more can be stored: revoke some and wait until they are removed"
    )]
    Full(i64),
    /// As many JWTs are refused as there may be.
    #[error(
        "{0} JWTs are refused, and no more can be stored: remove their issuer from the settings instead"
    )]
    DeniedFull(i64),
}

/// Names that a token has, if it has any.
type Names<'a> = Option<&'a Arc<[Arc<str>]>>;

/// Whether a caller may give out a token of `owner` that allows this.
pub(super) fn may_give(
    caller: &Caller,
    owner: &Owner,
    scopes: Scopes,
    (methods, agents): (Names<'_>, Names<'_>),
) -> Result<(), Refusal> {
    if let Some(lacking) = scopes.iter().find(|scope| !caller.may(*scope)) {
        return Err(Refusal::Scope(lacking));
    }
    let of_others = Owner::of(caller).as_ref() != Some(owner);
    if of_others && !caller.may(Scope::UsersAny) && OF_FLOWS.iter().any(|scope| scopes.has(*scope))
    {
        return Err(Refusal::Scope(Scope::UsersAny));
    }
    // For its own name its owner speaks without being told.
    let is_own = |agent: &Arc<str>| caller.speaks_for(agent) || **agent == *owner.name.as_str();
    if !agents.is_none_or(|agents| agents.iter().all(is_own)) {
        return Err(Refusal::Agents);
    }
    match (caller.methods(), methods) {
        (Some(own), Some(given)) if given.iter().all(|method| own.contains(method)) => Ok(()),
        (Some(_), _) if scopes.has(Scope::Worker) => Err(Refusal::Methods),
        (Some(_) | None, _) => Ok(()),
    }
}

/// Whether a caller may know of a token, and act on it.
pub(super) fn reaches(caller: &Caller, row: &TokenRow) -> bool {
    let own = || Owner::of(caller).as_ref() == Some(&row.owner);
    row.owner.tenant == *caller.tenant() && (caller.may(Scope::Admin) || own())
}

/// When a token of such an owner ends that is made to last so long; `None`: as is usual for its kind.
pub(super) fn ends(
    kind: Kind,
    lifetime_s: Option<u64>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Refusal> {
    let usual = match kind {
        Kind::User => Some(USER_LIFETIME_S),
        Kind::Service | Kind::Anonymous => None,
    };
    match lifetime_s.or(usual) {
        None => Ok(None),
        Some(seconds @ 1..=LIFETIME_MAX_S) => Ok(Some(now.plus_ms(seconds * 1_000))),
        Some(_) => Err(Refusal::Lifetime),
    }
}

/// When it ends after it was rotated: it lasts as long again as it was made to.
pub(super) fn ends_again(row: &TokenRow, now: Timestamp) -> Option<Timestamp> {
    let since = row.rotated_at.unwrap_or(row.created_at);
    let lasts_ms = row.expires_at?.ms_since(since);
    Some(now.plus_ms(lasts_ms))
}

/// Until when the old secret is accepted. Without a grace that is now: whoever shows it later hears that it has
/// expired.
pub(super) fn grace(
    row: &TokenRow,
    seconds: Option<u64>,
    now: Timestamp,
) -> Result<Timestamp, Refusal> {
    let seconds = seconds.unwrap_or(GRACE_DEFAULT_S);
    if seconds > GRACE_MAX_S {
        return Err(Refusal::Grace);
    }
    let until = now.plus_ms(seconds * 1_000);
    Ok(row.expires_at.map_or(until, |ends| ends.min(until)))
}

/// Whether it can still be used.
pub(super) fn is_open(row: &TokenRow, now: Timestamp) -> bool {
    row.revoked_at.is_none() && row.expires_at.is_none_or(|ends| ends > now)
}
