//! Tokens that are refused before they expire: the port, and a list in memory.

use async_trait::async_trait;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// The claims by which a token can be revoked. Its signature is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revocable<'a> {
    /// Who issued it; ids and subjects of two issuers are different things.
    pub issuer: &'a str,
    /// `jti`, if it has one.
    pub id: Option<&'a str>,
    /// `sub`.
    pub subject: &'a str,
    /// `iat`, in milliseconds since 1970: for lists that refuse what a subject got before some time.
    pub issued_ms: Option<i64>,
    /// When it ends by itself, in milliseconds since 1970.
    pub expires_ms: i64,
}

/// The list cannot be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the deny list cannot be read")]
pub struct DenyListUnavailable;

/// Tokens and subjects that are refused. Asked for each token whose signature is valid, so answers should
/// come from memory.
#[async_trait]
pub trait DenyList: fmt::Debug + Send + Sync {
    /// Whether the token is refused.
    ///
    /// # Errors
    /// [`DenyListUnavailable`]: the token is not accepted, and its holder is asked to try again.
    async fn denies(&self, token: &Revocable<'_>) -> Result<bool, DenyListUnavailable>;
}

/// A deny list in memory. An empty one refuses nothing.
#[derive(Debug, Default)]
pub struct DeniedTokens {
    /// Issuer and `jti`.
    ids: RwLock<HashSet<(String, String)>>,
    /// Issuer and `sub`, with the time until which tokens were issued that are refused, in milliseconds.
    subjects: RwLock<HashMap<(String, String), i64>>,
}

impl DeniedTokens {
    /// Refuses the token with this `jti` from now on.
    pub fn deny_id(&self, issuer: &str, id: &str) {
        let mut ids = self.ids.write().unwrap_or_else(PoisonError::into_inner);
        ids.insert((issuer.to_owned(), id.to_owned()));
    }

    /// Refuses the tokens of this `sub` that were issued until then (milliseconds since 1970), or that do not say
    /// when they were issued.
    pub fn deny_subject(&self, issuer: &str, subject: &str, until_ms: i64) {
        let subjects = self.subjects.write();
        let mut subjects = subjects.unwrap_or_else(PoisonError::into_inner);
        subjects.insert((issuer.to_owned(), subject.to_owned()), until_ms);
    }

    fn denies_id(&self, issuer: &str, id: &str) -> bool {
        let ids = self.ids.read().unwrap_or_else(PoisonError::into_inner);
        !ids.is_empty() && ids.contains(&(issuer.to_owned(), id.to_owned()))
    }

    fn denies_subject(&self, token: &Revocable<'_>) -> bool {
        let subjects = self.subjects.read().unwrap_or_else(PoisonError::into_inner);
        if subjects.is_empty() {
            return false;
        }
        let until = subjects.get(&(token.issuer.to_owned(), token.subject.to_owned()));
        until.is_some_and(|until| token.issued_ms.is_none_or(|issued| issued <= *until))
    }
}

#[async_trait]
impl DenyList for DeniedTokens {
    async fn denies(&self, token: &Revocable<'_>) -> Result<bool, DenyListUnavailable> {
        let by_id = token.id.is_some_and(|id| self.denies_id(token.issuer, id));
        Ok(by_id || self.denies_subject(token))
    }
}
