//! Authentication, the same for all doors: the kinds of credentials, and how each is checked.
//!
//! Knows the forms of credentials and who checks each; may not touch tasks, the log or a protocol.

mod issuers;
mod tokens;

pub use issuers::IssuerTokens;
pub use tokens::{Audited, TokenVerifier};

use crate::application::authentication::{Authenticate, Denied};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_auth::Caller;

/// Bytes of a bearer token: longer ones are not looked at.
const BEARER_BYTES_MAX: usize = 8 * 1024;

/// Checks bearer tokens of one form.
pub trait Verifier: Send + Sync + fmt::Debug + 'static {
    /// Whether a text has this form. Cost: at most O(length).
    fn knows(&self, bearer: &str) -> bool;

    /// The caller that a token belongs to, if that is known without asking anybody.
    fn remembered(&self, bearer: &str) -> Option<Arc<Caller>>;

    /// Finds the caller that a token belongs to.
    fn verify<'a>(&'a self, bearer: &'a str) -> BoxFuture<'a, Result<Arc<Caller>, Denied>>;
}

/// Slows down whoever guesses.
pub trait Failures: Send + Sync + fmt::Debug + 'static {
    /// Whether credentials from this address are looked at.
    ///
    /// # Errors
    /// Milliseconds after which they are again.
    fn check(&self, from: IpAddr) -> Result<(), u64>;

    /// Wrong ones came from there.
    fn failed(&self, from: IpAddr, why: Denied);

    /// One that held once came from there, which nobody guesses: it does not slow down others of the address.
    fn ended(&self, _from: IpAddr, _why: Denied, _bearer: &str) {}
}

/// Authentication that is on.
#[derive(Debug)]
pub struct Authenticator {
    verifiers: Vec<Arc<dyn Verifier>>,
    failures: Option<Arc<dyn Failures>>,
}

impl Authenticator {
    /// By these verifiers: the first that knows the form of a token checks it.
    #[must_use]
    pub fn new(verifiers: Vec<Arc<dyn Verifier>>, failures: Option<Arc<dyn Failures>>) -> Self {
        Self {
            verifiers,
            failures,
        }
    }

    async fn authenticated(
        &self,
        bearer: Option<&str>,
        from: Option<IpAddr>,
    ) -> Result<Arc<Caller>, Denied> {
        if let (Some(failures), Some(from)) = (&self.failures, from) {
            let allowed = failures.check(from);
            allowed.map_err(|retry_after_ms| Denied::Limited { retry_after_ms })?;
        }
        let verified = self.verified(bearer).await;
        if let (Some(failures), Some(from), Err(denied)) = (&self.failures, from, &verified) {
            match denied {
                Denied::Malformed | Denied::Unknown => failures.failed(from, *denied),
                // Nobody guesses who shows nothing, or what held once: such clients must not keep others of
                // their address out.
                Denied::Expired | Denied::Revoked => {
                    failures.ended(from, *denied, bearer.unwrap_or_default());
                }
                Denied::Missing | Denied::Limited { .. } | Denied::Unavailable => {}
            }
        }
        verified
    }

    async fn verified(&self, bearer: Option<&str>) -> Result<Arc<Caller>, Denied> {
        let bearer = bearer.ok_or(Denied::Missing)?;
        if bearer.len() > BEARER_BYTES_MAX {
            return Err(Denied::Malformed);
        }
        let knows = |verifier: &&Arc<dyn Verifier>| verifier.knows(bearer);
        match self.verifiers.iter().find(knows) {
            Some(verifier) => verifier.verify(bearer).await,
            None => Err(Denied::Unknown),
        }
    }
}

impl Authenticate for Authenticator {
    fn remembered(&self, bearer: &str, from: Option<IpAddr>) -> Option<Arc<Caller>> {
        if let (Some(failures), Some(from)) = (&self.failures, from)
            && failures.check(from).is_err()
        {
            return None;
        }
        let verifier = self.verifiers.iter().find(|it| it.knows(bearer))?;
        verifier.remembered(bearer)
    }

    fn caller<'a>(
        &'a self,
        bearer: Option<&'a str>,
        from: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Arc<Caller>, Denied>> {
        self.authenticated(bearer, from).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use taskledger_auth::{Name, Scopes};

    #[derive(Debug)]
    struct Ann;

    impl Verifier for Ann {
        fn knows(&self, bearer: &str) -> bool {
            bearer.starts_with("ann")
        }

        fn remembered(&self, bearer: &str) -> Option<Arc<Caller>> {
            let name = Name::new("annie").expect("a name");
            (bearer == "annie").then(|| Arc::new(Caller::user(&name, Scopes::NONE)))
        }

        fn verify<'a>(&'a self, bearer: &'a str) -> BoxFuture<'a, Result<Arc<Caller>, Denied>> {
            let name = Name::new("ann").expect("a name");
            let ann = Arc::new(Caller::user(&name, Scopes::NONE));
            let known = (bearer == "ann").then_some(ann);
            futures_util::future::ready(known.ok_or(Denied::Unknown)).boxed()
        }
    }

    #[derive(Debug, Default)]
    struct Counted(Mutex<Vec<Denied>>);

    impl Failures for Counted {
        fn check(&self, _from: IpAddr) -> Result<(), u64> {
            let failed = self.0.lock().expect("no code panics with it").len();
            if failed < 2 { Ok(()) } else { Err(7) }
        }

        fn failed(&self, _from: IpAddr, why: Denied) {
            self.0.lock().expect("no code panics with it").push(why);
        }
    }

    #[tokio::test]
    async fn whoever_guesses_is_slowed_down_and_whoever_shows_nothing_is_not() {
        let counted = Arc::new(Counted::default());
        let authenticator = Authenticator::new(vec![Arc::new(Ann)], Some(counted));
        let from = Some(IpAddr::from([127, 0, 0, 1]));
        let long = "x".repeat(BEARER_BYTES_MAX + 1);
        let mut outcomes = Vec::new();
        for bearer in [None, Some("ann"), Some("anna"), Some(&*long), Some("ann")] {
            let caller = authenticator.caller(bearer, from).await;
            outcomes.push(caller.map(|caller| caller.actor().to_string()));
        }
        assert_eq!(
            outcomes,
            [
                Err(Denied::Missing),
                Ok("user:ann".to_owned()),
                Err(Denied::Unknown),
                Err(Denied::Malformed),
                Err(Denied::Limited { retry_after_ms: 7 }),
            ]
        );
    }

    #[test]
    fn whoever_is_remembered_needs_no_check_unless_too_many_failed_there() {
        let counted = Arc::new(Counted::default());
        let authenticator = Authenticator::new(vec![Arc::new(Ann)], Some(counted.clone()));
        let here = IpAddr::from([127, 0, 0, 1]);
        let from = Some(here);
        assert!(authenticator.remembered("annie", from).is_some());
        assert!(authenticator.remembered("ann", from).is_none());
        assert!(authenticator.remembered("bob", from).is_none());
        for _ in 0..2 {
            counted.failed(here, Denied::Unknown);
        }
        assert!(authenticator.remembered("annie", from).is_none());
        assert!(authenticator.remembered("annie", None).is_some());
    }
}
