//! The port through which doors turn credentials into callers. What credentials there are is the business of whoever
//! implements [`Authenticate`].

use futures_util::future::BoxFuture;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::Caller;

/// How often the credentials of a stream or socket are looked at again. With the two seconds after which
/// every node knows of a revocation, what they opened ends within five.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Why a request is refused before it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It shows no credentials.
    #[error("no credentials")]
    Missing,
    /// It shows credentials that cannot be read, or several.
    #[error("the credentials cannot be read")]
    Malformed,
    /// Nobody has these credentials. The same for a wrong secret and an unknown token.
    #[error("the credentials are not known")]
    Unknown,
    /// They are over.
    #[error("the credentials have expired")]
    Expired,
    /// They were taken back.
    #[error("the credentials were revoked")]
    Revoked,
    /// Too many came with wrong credentials from that address.
    #[error("too many failed attempts")]
    Limited {
        /// Milliseconds after which a retry is sensible.
        retry_after_ms: u64,
    },
    /// They cannot be checked now.
    #[error("the credentials cannot be checked now")]
    Unavailable,
}

impl Denied {
    /// All words of [`Self::as_str`].
    pub const REASONS: [&'static str; 7] = [
        "missing",
        "malformed",
        "unknown",
        "expired",
        "revoked",
        "limited",
        "unavailable",
    ];

    /// The word for it in metrics and in the audit log, which never changes.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        Self::REASONS[self.number()]
    }

    /// Its place among [`Self::REASONS`].
    #[must_use]
    pub const fn number(&self) -> usize {
        match self {
            Self::Missing => 0,
            Self::Malformed => 1,
            Self::Unknown => 2,
            Self::Expired => 3,
            Self::Revoked => 4,
            Self::Limited { .. } => 5,
            Self::Unavailable => 6,
        }
    }
}

/// Tells whose credentials these are. One per server, for all doors.
pub trait Authenticate: Send + Sync + fmt::Debug + 'static {
    /// The caller who shows this bearer token from this address, if that is known without asking anybody: the way of
    /// nearly every call, without a future. `None` says nothing about the token.
    fn remembered(&self, bearer: &str, from: Option<IpAddr>) -> Option<Arc<Caller>>;

    /// The caller who shows this bearer token, from this address, as far as that is known.
    fn caller<'a>(
        &'a self,
        bearer: Option<&'a str>,
        from: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<Arc<Caller>, Denied>>;
}

/// The credentials of a request that goes on: a stream or a socket. Never shown.
pub struct Session {
    authenticate: Arc<dyn Authenticate>,
    bearer: Arc<str>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session {
    /// The session that was opened with this bearer token.
    #[must_use]
    pub fn of(authenticate: Arc<dyn Authenticate>, bearer: &str) -> Self {
        Self {
            authenticate,
            bearer: Arc::from(bearer),
        }
    }

    /// Waits until the credentials do not hold any more. While they cannot be checked, they hold.
    pub async fn ended(&self) -> Denied {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            match self.authenticate.caller(Some(&self.bearer), None).await {
                Ok(_) | Err(Denied::Unavailable | Denied::Limited { .. }) => {}
                Err(denied) => return denied,
            }
        }
    }
}
