//! Access tokens of OIDC issuers, as bearer tokens.

use super::Verifier;
use crate::application::authentication::Denied;
use crate::clock::SharedClock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use taskledger_auth::Caller;
use taskledger_auth::jwt::{self, Issuers};

const MICROS_PER_MILLI: i64 = 1000;

/// Checks tokens of the issuers that are trusted.
#[derive(Debug)]
pub struct IssuerTokens {
    issuers: Issuers,
    clock: SharedClock,
}

impl IssuerTokens {
    /// By these issuers and this clock.
    #[must_use]
    pub const fn new(issuers: Issuers, clock: SharedClock) -> Self {
        Self { issuers, clock }
    }
}

impl Verifier for IssuerTokens {
    fn knows(&self, bearer: &str) -> bool {
        jwt::is_jwt(bearer)
    }

    /// Signatures are checked each time: an issuer's token is not asked for anywhere.
    fn remembered(&self, _bearer: &str) -> Option<Arc<Caller>> {
        None
    }

    fn verify<'a>(&'a self, bearer: &'a str) -> BoxFuture<'a, Result<Arc<Caller>, Denied>> {
        async move {
            let now_ms = self.clock.now().0 / MICROS_PER_MILLI;
            let verdict = self.issuers.verify(bearer, now_ms).await;
            verdict.map(Arc::new).map_err(|reason| {
                tracing::debug!(
                    reason = reason.as_str(),
                    "a token of an issuer is not accepted"
                );
                denied(reason)
            })
        }
        .boxed()
    }
}

/// What callers are told of a refusal.
const fn denied(reason: jwt::Denied) -> Denied {
    match reason {
        jwt::Denied::TooLong | jwt::Denied::Malformed => Denied::Malformed,
        jwt::Denied::Expired => Denied::Expired,
        jwt::Denied::Revoked => Denied::Revoked,
        jwt::Denied::KeysUnavailable | jwt::Denied::DenyListUnavailable => Denied::Unavailable,
        jwt::Denied::WrongAlgorithm
        | jwt::Denied::CriticalHeader
        | jwt::Denied::WrongType
        | jwt::Denied::UnknownIssuer
        | jwt::Denied::UnknownKey
        | jwt::Denied::BadSignature
        | jwt::Denied::NotYetValid
        | jwt::Denied::WrongAudience
        | jwt::Denied::NoUser => Denied::Unknown,
    }
}
