//! Whether callers must authenticate, and how their credentials are checked.

use super::{Server, StartError};
use crate::application::authentication::{Authenticate, Denied};
use crate::auth::{Audited, Authenticator, Failures, TokenVerifier, Verifier};
use crate::clock::SharedClock;
use crate::config::AuthMode;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_auth::Caller;
use taskledger_auth::jwt::{self, Issuers};

impl Server {
    /// Who tells whose credentials they are; `None`: everybody is let in. `is_reachable`: from other machines.
    /// A server that lets in nobody without credentials and has none makes the first token.
    ///
    /// # Errors
    /// [`StartError`]: whether there are tokens cannot be read, or the first one cannot be made.
    pub async fn authentication(
        &self,
        mode: AuthMode,
        is_reachable: bool,
        issuers: Option<Issuers>,
    ) -> Result<Option<Arc<dyn Authenticate>>, StartError> {
        let is_on = match mode {
            AuthMode::On => true,
            AuthMode::Off => false,
            AuthMode::Auto => is_reachable || issuers.is_some() || self.has_tokens().await?,
        };
        if !is_on {
            if is_reachable {
                tracing::warn!("anybody who reaches this server may do everything: --auth is off");
            }
            return Ok(None);
        }
        if let Some(path) = self.make_first_token().await? {
            let path = path.display().to_string();
            tracing::info!(
                path,
                "the first token is in this file; it may do everything"
            );
        }
        let clock = self.app().clock.clone();
        let of_tokens = TokenVerifier::new(self.tokens().clone(), clock.clone());
        let mut verifiers: Vec<Arc<dyn Verifier>> = vec![Arc::new(of_tokens)];
        if let Some(issuers) = issuers {
            let clock = clock.clone();
            verifiers.push(Arc::new(OfIssuers { issuers, clock }));
        }
        let failures = taskledger_auth::Failures::new();
        let limits = Arc::new(ByAddress { failures, clock });
        let audited = Audited::new(self.tokens().audit().clone(), Some(limits));
        let authenticator = Authenticator::new(verifiers, Some(Arc::new(audited)));
        Ok(Some(Arc::new(authenticator)))
    }
}

/// Access tokens of OIDC issuers.
#[derive(Debug)]
struct OfIssuers {
    issuers: Issuers,
    clock: SharedClock,
}

impl Verifier for OfIssuers {
    /// Header, claims and signature, with dots between them.
    fn knows(&self, bearer: &str) -> bool {
        bearer.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    fn verify<'a>(&'a self, bearer: &'a str) -> BoxFuture<'a, Result<Arc<Caller>, Denied>> {
        async move {
            let now_ms = self.clock.now().0 / 1000;
            let verified = self.issuers.verify(bearer, now_ms).await;
            verified.map(Arc::new).map_err(|denied| match denied {
                denied if denied.is_unavailable() => Denied::Unavailable,
                jwt::Denied::Expired => Denied::Expired,
                jwt::Denied::Revoked => Denied::Revoked,
                jwt::Denied::TooLong | jwt::Denied::Malformed => Denied::Malformed,
                _ => Denied::Unknown,
            })
        }
        .boxed()
    }
}

/// Failures by address.
#[derive(Debug)]
struct ByAddress {
    failures: taskledger_auth::Failures,
    clock: SharedClock,
}

impl Failures for ByAddress {
    fn check(&self, from: IpAddr) -> Result<(), u64> {
        let checked = self.failures.check(from, self.clock.now().0 / 1000);
        checked.map_err(|too_many| too_many.retry_after_ms)
    }

    fn failed(&self, from: IpAddr, _why: Denied) {
        self.failures.failed(from, self.clock.now().0 / 1000);
    }
}
