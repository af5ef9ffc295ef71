//! Tokens that are refused before they expire: the port, and a list in memory.

use async_trait::async_trait;
use std::collections::HashSet;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// What a token can be revoked by. Its signature is valid.
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
    /// Issuer and `sub`.
    subjects: RwLock<HashSet<(String, String)>>,
}

impl DeniedTokens {
    /// Refuses the token with this `jti` from now on.
    pub fn deny_id(&self, issuer: &str, id: &str) {
        add(&self.ids, issuer, id);
    }

    /// Refuses all tokens of this `sub` from now on.
    pub fn deny_subject(&self, issuer: &str, subject: &str) {
        add(&self.subjects, issuer, subject);
    }
}

fn add(list: &RwLock<HashSet<(String, String)>>, issuer: &str, text: &str) {
    let mut list = list.write().unwrap_or_else(PoisonError::into_inner);
    list.insert((issuer.to_owned(), text.to_owned()));
}

fn holds(list: &RwLock<HashSet<(String, String)>>, issuer: &str, text: &str) -> bool {
    let list = list.read().unwrap_or_else(PoisonError::into_inner);
    !list.is_empty() && list.contains(&(issuer.to_owned(), text.to_owned()))
}

#[async_trait]
impl DenyList for DeniedTokens {
    async fn denies(&self, token: &Revocable<'_>) -> Result<bool, DenyListUnavailable> {
        let by_id = token
            .id
            .is_some_and(|id| holds(&self.ids, token.issuer, id));
        Ok(by_id || holds(&self.subjects, token.issuer, token.subject))
    }
}
