//! Bearer tokens that are access tokens of OIDC issuers.

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
            // The issuer has written its own time into the token.
            let now_ms = self.clock.wall().0 / MICROS_PER_MILLI;
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
        | jwt::Denied::Bound
        | jwt::Denied::UnknownIssuer
        | jwt::Denied::UnknownKey
        | jwt::Denied::BadSignature
        | jwt::Denied::NotYetValid
        | jwt::Denied::WrongAudience
        | jwt::Denied::NoUser => Denied::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use bytes::Bytes;
    use ed25519_dalek::{Signer as _, SigningKey};
    use serde_json::json;
    use std::sync::Mutex;
    use taskledger_auth::jwt::{DeniedTokens, Documents, FetchError, Issuer, IssuerOptions};
    use taskledger_clock::{Machine, Reading, SteadyClock};
    use url::Url;

    const ISSUER: &str = "https://login.example";
    const BEGIN_S: i64 = 1_767_225_600;
    const HOUR_S: i64 = 3_600;

    /// A machine whose time the test sets, in seconds.
    #[derive(Debug, Clone)]
    struct Set(Arc<Mutex<i64>>);

    impl Machine for Set {
        fn read(&self) -> Reading {
            Reading {
                wall_us: *self.0.lock().expect("no test panics here") * 1_000_000,
                running_us: 0,
            }
        }

        fn slept_us(&self) -> i64 {
            0
        }
    }

    /// An issuer in memory.
    #[derive(Debug)]
    struct Site(SigningKey);

    #[async_trait]
    impl Documents for Site {
        async fn get(&self, url: &Url) -> Result<Bytes, FetchError> {
            let document = if url.path() == "/keys" {
                let x = encoded(self.0.verifying_key().as_bytes());
                json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "a", "alg": "EdDSA", "use": "sig"}]})
            } else {
                json!({"issuer": ISSUER, "jwks_uri": format!("{ISSUER}/keys")})
            };
            Ok(document.to_string().into())
        }
    }

    impl Site {
        /// A token that is good from then on, for five minutes.
        fn token(&self, issued_s: i64) -> String {
            let header = json!({"typ": "at+jwt", "alg": "EdDSA", "kid": "a"});
            let claims = json!({"iss": ISSUER, "aud": "taskledger", "sub": "ann",
                "iat": issued_s, "nbf": issued_s, "exp": issued_s + 300});
            let message = format!(
                "{}.{}",
                encoded(header.to_string()),
                encoded(claims.to_string())
            );
            let signature = encoded(self.0.sign(message.as_bytes()).to_bytes());
            format!("{message}.{signature}")
        }
    }

    fn encoded(bytes: impl AsRef<[u8]>) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    #[tokio::test]
    async fn tokens_are_judged_by_the_time_of_the_machine_when_it_has_jumped() {
        let site = Arc::new(Site(SigningKey::from_bytes(&[7; 32])));
        let documents: Arc<dyn Documents> = site.clone();
        let options = IssuerOptions::new(ISSUER, "taskledger");
        let trusted = Issuer::all(vec![options]).expect("an issuer");
        let issuers = Issuers::start(trusted, &documents, Arc::new(DeniedTokens::default()));
        let machine = Set(Arc::new(Mutex::new(BEGIN_S)));
        let clock: SharedClock = Arc::new(SteadyClock::of(machine.clone()));
        let begin = clock.now();
        let tokens = IssuerTokens::new(issuers, clock.clone());
        for jump_s in [0, HOUR_S, -HOUR_S] {
            *machine.0.lock().expect("no test panics here") = BEGIN_S + jump_s;
            assert_eq!(clock.now(), begin, "no time has passed");
            let mut verdicts = Vec::new();
            for issued_s in [0, -HOUR_S, HOUR_S] {
                let token = site.token(BEGIN_S + jump_s + issued_s);
                verdicts.push(tokens.verify(&token).await.map(|_| ()));
            }
            let expected = [Ok(()), Err(Denied::Expired), Err(Denied::Unknown)];
            assert_eq!(verdicts, expected, "after {jump_s} s");
        }
    }
}
