//! Access tokens of OIDC issuers: JWTs, checked against the keys that their issuer publishes.
//!
//! Owns: which issuers are trusted and what their tokens allow ([`Issuer`]), their keys ([`Keys`]) and how
//! these are fetched and kept ([`Issuers`]). What a token may be is decided by settings and by published
//! keys, never by the token: its header chooses among trusted keys and nothing else. May not touch: how a
//! token arrives, and how a refusal is answered.
//!
//! Data flows from the text of the token (`claimed`) to one issuer, to one of its keys (`keys`, `crypto`), to
//! claims that are believed (`claims`), to a [`Caller`].

mod algorithm;
mod claimed;
mod claims;
mod crypto;
mod denied;
mod deny_list;
mod discovery;
mod issuer;
mod key_ring;
mod keys;

pub use algorithm::Algorithm;
pub use claimed::TOKEN_BYTES_MAX;
pub use claims::{LEEWAY_SECONDS, Verified};
pub use denied::Denied;
pub use deny_list::{DeniedTokens, DenyList, DenyListUnavailable, Revocable};
pub use discovery::{Documents, FetchError, GuardedDocuments};
pub use issuer::{Grant, ISSUERS_MAX, InvalidGrant, InvalidIssuer, Issuer, IssuerOptions};
pub use keys::{Keys, KeysRefused};

use crate::Caller;
use claimed::Claimed;
use key_ring::KeyRing;
use std::sync::Arc;

/// Whether a credential has the form of a JWT, so that [`Issuers::verify`] should judge it. Cost: O(length).
#[must_use]
pub fn is_jwt(credential: &str) -> bool {
    credential.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Whether a text is a JWT in compact serialization, as far as it shows: three parts in base64url of which the first is
/// a JSON object, the signature possibly empty. Names with two dots are none. Cost: O(length).
#[must_use]
pub fn is_compact(text: &str) -> bool {
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'='))
    };
    let mut parts = text.trim().split('.');
    let header = parts.next().unwrap_or_default();
    // `{"` and what is left of a third byte.
    is_jwt(text) && header.starts_with("ey") && is_part(header) && parts.all(is_part)
}

/// The issuers that are trusted, with their present keys. Keys are refreshed in the background until the
/// value is dropped.
#[derive(Debug)]
pub struct Issuers {
    rings: Vec<KeyRing>,
    deny_list: Arc<dyn DenyList>,
}

impl Issuers {
    /// Trusts these issuers, and begins to fetch their keys. An issuer that cannot be reached is tried again;
    /// until then its tokens are refused with [`Denied::KeysUnavailable`].
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn start(
        issuers: Vec<Issuer>,
        documents: &Arc<dyn Documents>,
        deny_list: Arc<dyn DenyList>,
    ) -> Self {
        let ring = |issuer| KeyRing::start(issuer, documents.clone());
        Self {
            rings: issuers.into_iter().map(ring).collect(),
            deny_list,
        }
    }

    /// Whether no issuer is trusted: every token is refused.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }

    /// Who calls with this token, at `now_ms` (milliseconds since 1970).
    ///
    /// The caller's credential is `jwt:` and the token's `jti`, or the beginning of its SHA-256; it ends
    /// [`LEEWAY_SECONDS`] after `exp`. Without a grant that fits, the caller has no scopes.
    ///
    /// Cost: one check of a signature (tens of microseconds). A key that is not known makes the issuer be
    /// asked again, at most every 10 s, and such a call waits up to 3 s for it. Dropping the future is safe.
    ///
    /// # Errors
    /// [`Denied`]. If [`Denied::is_unavailable`], the token may be good: the caller should try again later.
    pub async fn verify(&self, token: &str, now_ms: i64) -> Result<Caller, Denied> {
        let claimed = Claimed::read(token)?;
        let of_issuer = |ring: &&KeyRing| ring.issuer().url() == claimed.issuer;
        let ring = self.rings.iter().find(of_issuer);
        let ring = ring.ok_or(Denied::UnknownIssuer)?;
        let mut judged = ring.verify(token, &claimed, now_ms);
        let may_be_outdated = match judged {
            Err(Denied::UnknownKey | Denied::KeysUnavailable) => true,
            // It names no key: the one that there was may have been replaced.
            Err(Denied::BadSignature) => claimed.key_id.is_none(),
            Ok(_) | Err(_) => false,
        };
        if may_be_outdated {
            ring.ask().await;
            judged = ring.verify(token, &claimed, now_ms);
        }
        let verified = judged?;
        let revocable = Revocable {
            issuer: ring.issuer().url(),
            id: verified.id.as_deref(),
            subject: &verified.subject,
            issued_ms: verified.issued_ms,
            expires_ms: verified.expires_ms,
        };
        match self.deny_list.denies(&revocable).await {
            Ok(false) => Ok(verified.into_caller()),
            Ok(true) => Err(Denied::Revoked),
            Err(DenyListUnavailable) => Err(Denied::DenyListUnavailable),
        }
    }
}
