//! Bearer tokens issued by this server, and failed logins in the audit log.

use super::{Failures, Verifier};
use crate::application::authentication::Denied;
use crate::clock::SharedClock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_auth::{AuditLog, Caller, Denial, PREFIX, Token, Tokens};

/// Checks tokens that this server, or one that shares its database, has made.
#[derive(Debug)]
pub struct TokenVerifier {
    tokens: Arc<Tokens>,
    clock: SharedClock,
}

impl TokenVerifier {
    /// A verifier of these tokens.
    #[must_use]
    pub const fn new(tokens: Arc<Tokens>, clock: SharedClock) -> Self {
        Self { tokens, clock }
    }
}

impl Verifier for TokenVerifier {
    fn knows(&self, bearer: &str) -> bool {
        bearer.starts_with(PREFIX)
    }

    fn remembered(&self, bearer: &str) -> Option<Arc<Caller>> {
        self.tokens.remembered(bearer, self.clock.now())
    }

    fn verify<'a>(&'a self, bearer: &'a str) -> BoxFuture<'a, Result<Arc<Caller>, Denied>> {
        async move {
            let found = self.tokens.authenticate(bearer, self.clock.now()).await;
            found.map_err(|denial| match denial {
                Denial::Malformed(_) => Denied::Malformed,
                Denial::Unknown => Denied::Unknown,
                Denial::Expired => Denied::Expired,
                Denial::Revoked => Denied::Revoked,
                Denial::Unavailable => Denied::Unavailable,
            })
        }
        .boxed()
    }
}

/// Counts failed logins for the audit log, by address and reason, and asks somebody else how many there may be.
#[derive(Debug)]
pub struct Audited {
    log: Arc<AuditLog>,
    limits: Option<Arc<dyn Failures>>,
}

impl Audited {
    /// Failures in this log, within these limits.
    #[must_use]
    pub const fn new(log: Arc<AuditLog>, limits: Option<Arc<dyn Failures>>) -> Self {
        Self { log, limits }
    }
}

impl Failures for Audited {
    fn check(&self, from: IpAddr) -> Result<(), u64> {
        match &self.limits {
            Some(limits) => limits.check(from),
            None => Ok(()),
        }
    }

    fn failed(&self, from: IpAddr, why: Denied) {
        self.log.login_failed(from, why.as_str(), None);
        if let Some(limits) = &self.limits {
            limits.failed(from, why);
        }
    }

    fn ended(&self, from: IpAddr, why: Denied, bearer: &str) {
        // Access tokens of issuers have none.
        let token = Token::parse(bearer).ok().map(|token| token.id().clone());
        self.log.login_failed(from, why.as_str(), token);
    }
}
