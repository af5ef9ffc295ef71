//! The reasons why a token is refused.

/// Why a token is refused. Holds nothing of the token: it goes to logs and to strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Denied {
    /// It is longer than [`super::TOKEN_BYTES_MAX`].
    #[error("the token is too long")]
    TooLong,
    /// It is no JWT, or a claim has a form that it must not have.
    #[error("the token is malformed")]
    Malformed,
    /// `alg` is none of those spoken here, or not that of the key.
    #[error("the token's algorithm is not accepted")]
    WrongAlgorithm,
    /// It demands an extension (`crit`); none is understood.
    #[error("the token demands an extension that is not supported")]
    CriticalHeader,
    /// It is no access token: `typ` is another one, or it is an ID token.
    #[error("the token is not an access token")]
    WrongType,
    /// It is bound to a key (`cnf`), and no proof of the key is checked.
    #[error("the token is bound to a key, and proofs of keys are not supported")]
    Bound,
    /// Its issuer is not trusted.
    #[error("the token's issuer is not trusted")]
    UnknownIssuer,
    /// The issuer has no such key.
    #[error("the token's key is not known")]
    UnknownKey,
    /// The signature does not fit.
    #[error("the token's signature is not valid")]
    BadSignature,
    /// Its time is over.
    #[error("the token is expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// It was made for somebody else.
    #[error("the token is meant for another audience")]
    WrongAudience,
    /// It names no user, or none that can be one here.
    #[error("the token names no user that is accepted")]
    NoUser,
    /// It, or its subject, is on the deny list.
    #[error("the token is revoked")]
    Revoked,
    /// The issuer's keys could not be fetched for too long.
    #[error("the keys of the token's issuer are unavailable")]
    KeysUnavailable,
    /// The deny list cannot be asked.
    #[error("the list of revoked tokens is unavailable")]
    DenyListUnavailable,
}

impl Denied {
    /// Whether the token could be good, and the server cannot say now.
    #[must_use]
    pub const fn is_unavailable(self) -> bool {
        matches!(self, Self::KeysUnavailable | Self::DenyListUnavailable)
    }

    /// A name for logs, metrics and the audit log, which never changes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::WrongAlgorithm => "wrong_algorithm",
            Self::CriticalHeader => "critical_header",
            Self::WrongType => "wrong_type",
            Self::Bound => "bound",
            Self::UnknownIssuer => "unknown_issuer",
            Self::UnknownKey => "unknown_key",
            Self::BadSignature => "bad_signature",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::WrongAudience => "wrong_audience",
            Self::NoUser => "no_user",
            Self::Revoked => "revoked",
            Self::KeysUnavailable => "keys_unavailable",
            Self::DenyListUnavailable => "deny_list_unavailable",
        }
    }
}
