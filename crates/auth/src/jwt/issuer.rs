//! The settings of trusted issuers, and what their tokens allow.

use super::claimed::Claimed;
use super::claims::{self, Verified};
use super::keys::Keys;
use super::{Algorithm, Denied};
use crate::{Name, Scopes};
use jsonwebtoken::errors::ErrorKind;
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;
use url::{Host, Url};

/// Issuers of one server.
pub const ISSUERS_MAX: usize = 4;
/// The claim that names the user unless settings name another.
const SUBJECT: &str = "sub";

/// The settings of an issuer, before they are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerOptions {
    /// Its URL, exactly as its tokens have it in `iss`.
    pub url: String,
    /// What this server is called in `aud`; one of them must be there.
    pub audiences: Vec<String>,
    /// The claim whose text names the user.
    pub user_claim: String,
    /// What stands before it in the name of the user here.
    pub user_prefix: String,
    /// What tokens allow. Without any they allow nothing.
    pub grants: Vec<Grant>,
    /// Algorithms that are accepted, where its keys have them.
    pub algorithms: Vec<Algorithm>,
    /// `http` to this machine is accepted, for tests and development.
    pub loopback_http: bool,
    /// Tokens that are bound to a key (`cnf`) are accepted without a proof that their sender has it.
    pub accepts_bound: bool,
}

impl IssuerOptions {
    /// An issuer for one audience, whose tokens allow nothing yet.
    #[must_use]
    pub fn new(url: &str, audience: &str) -> Self {
        Self {
            url: url.to_owned(),
            audiences: vec![audience.to_owned()],
            user_claim: SUBJECT.to_owned(),
            user_prefix: String::new(),
            grants: Vec::new(),
            algorithms: Algorithm::ALL.to_vec(),
            loopback_http: false,
            accepts_bound: false,
        }
    }
}

/// A value of a claim, and what it allows. Read from `CLAIM:VALUE=scope scope`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The claim: its name, or names with dots between for a claim within another.
    pub claim: String,
    /// What it must be or, if it is a list, contain.
    pub value: String,
    /// What it allows.
    pub scopes: Scopes,
}

/// A text that is no grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGrant {
    /// It has another form.
    #[error("expected `CLAIM:VALUE=SCOPES`, for example `groups:ledger=tasks:read tasks:write`")]
    Form,
    /// It names no scope.
    #[error("there is no scope after `=`; expected for example `tasks:read tasks:write`")]
    NoScope,
    /// A scope does not exist.
    #[error(transparent)]
    Scope(#[from] crate::UnknownScope),
}

impl FromStr for Grant {
    type Err = InvalidGrant;

    fn from_str(text: &str) -> Result<Self, InvalidGrant> {
        // Values may hold `=` and `:`, claims may be URLs, scopes hold no `=`.
        let (front, scopes) = text.rsplit_once('=').ok_or(InvalidGrant::Form)?;
        let mut schemes = ["https://", "http://"].into_iter();
        let scheme = schemes.find(|scheme| front.starts_with(scheme));
        let skipped = scheme.map_or(0, str::len);
        let colon = front[skipped..].find(':').ok_or(InvalidGrant::Form)?;
        let (claim, value) = front.split_at(skipped + colon);
        let value = &value[1..];
        if claim.len() == skipped || value.is_empty() || claim.trim() != claim {
            return Err(InvalidGrant::Form);
        }
        let scopes: Scopes = scopes.parse()?;
        if scopes == Scopes::NONE {
            return Err(InvalidGrant::NoScope);
        }
        Ok(Self {
            claim: claim.to_owned(),
            value: value.to_owned(),
            scopes,
        })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}={}", self.claim, self.value, self.scopes)
    }
}

/// Settings that cannot be; the operator can mend them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIssuer {
    /// There are too many.
    #[error("{count} issuers are given, at most {ISSUERS_MAX} are supported")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// The URL is none that an issuer can have.
    #[error(
        "`{url}` cannot be an issuer, expected an https URL without user name, query or fragment, \
         exactly as tokens have it in `iss`"
    )]
    Url {
        /// What was given.
        url: String,
    },
    /// It is given twice.
    #[error("issuer `{url}` is given twice")]
    Twice {
        /// URL of the issuer.
        url: String,
    },
    /// Tokens made for others would be accepted.
    #[error(
        "issuer `{url}` has no audience, expected what its tokens for this server have in `aud`"
    )]
    NoAudience {
        /// URL of the issuer.
        url: String,
    },
    /// The user claim is empty.
    #[error("issuer `{url}` has an empty user claim, expected for example `sub`")]
    NoUserClaim {
        /// URL of the issuer.
        url: String,
    },
    /// No algorithm is allowed.
    #[error("issuer `{url}` has no algorithm, expected for example `RS256`")]
    NoAlgorithm {
        /// URL of the issuer.
        url: String,
    },
    /// No name can begin so.
    #[error("no name of a user can begin with `{prefix}`: {reason}")]
    Prefix {
        /// What was given.
        prefix: String,
        /// The rule for names that the prefix breaks.
        reason: crate::InvalidName,
    },
    /// Users of two issuers could have one name.
    #[error(
        "users of `{first}` and `{second}` could have one name, expected different prefixes, neither of \
         which is the beginning of the other, or one issuer without"
    )]
    NamesMeet {
        /// One issuer.
        first: String,
        /// The other.
        second: String,
    },
}

/// An issuer whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    options: IssuerOptions,
    /// Prefixes of other issuers: names of this one do not begin with them.
    reserved: Vec<String>,
}

impl Issuer {
    /// The issuers of a server.
    ///
    /// # Errors
    /// [`InvalidIssuer`].
    pub fn all(options: Vec<IssuerOptions>) -> Result<Vec<Self>, InvalidIssuer> {
        if options.len() > ISSUERS_MAX {
            let count = options.len();
            return Err(InvalidIssuer::TooMany { count });
        }
        for (n, one) in options.iter().enumerate() {
            check(one)?;
            for other in &options[..n] {
                check_pair(other, one)?;
            }
        }
        let prefixes: Vec<_> = options.iter().map(|o| o.user_prefix.clone()).collect();
        let issuer = |options: IssuerOptions| {
            let others = prefixes.iter().filter(|p| **p != options.user_prefix);
            let reserved = others
                .filter(|prefix| !prefix.is_empty())
                .cloned()
                .collect();
            Self { options, reserved }
        };
        Ok(options.into_iter().map(issuer).collect())
    }

    /// Its URL, as in `iss`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.options.url
    }

    /// What was told of it.
    #[must_use]
    pub const fn options(&self) -> &IssuerOptions {
        &self.options
    }

    /// Judges a token by these keys, at `now_ms` (milliseconds since 1970). Asks nobody: deny lists are the
    /// business of [`super::Issuers`].
    ///
    /// # Errors
    /// [`Denied`].
    pub fn verify(&self, token: &str, keys: &Keys, now_ms: i64) -> Result<Verified, Denied> {
        let claimed = Claimed::read(token)?;
        if claimed.issuer != self.options.url {
            return Err(Denied::UnknownIssuer);
        }
        self.judge(token, &claimed, keys, now_ms)
    }

    pub(super) fn judge(
        &self,
        token: &str,
        claimed: &Claimed,
        keys: &Keys,
        now_ms: i64,
    ) -> Result<Verified, Denied> {
        let mut refusal = Denied::UnknownKey;
        for key in keys.candidates(claimed)? {
            let decoded =
                jsonwebtoken::decode::<Map<String, Value>>(token, &key.decoding, &key.validation);
            match decoded {
                Ok(decoded) => return claims::believe(self, token, decoded.claims, now_ms),
                Err(error) => refusal = denied(error.kind()),
            }
        }
        Err(refusal)
    }

    /// The name of a user whom the issuer calls so; `None` if no user may have it.
    pub(super) fn name(&self, text: &str) -> Option<Name> {
        let name = format!("{}{text}", self.options.user_prefix);
        if text.is_empty() || self.reserved.iter().any(|other| name.starts_with(other)) {
            return None;
        }
        Name::new(&name).ok().filter(|name| !name.is_reserved())
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library adds kinds, and each other one says that the token is not right"
)]
fn denied(kind: &ErrorKind) -> Denied {
    match kind {
        ErrorKind::InvalidSignature => Denied::BadSignature,
        ErrorKind::InvalidAlgorithm => Denied::WrongAlgorithm,
        _ => Denied::Malformed,
    }
}

fn check(options: &IssuerOptions) -> Result<(), InvalidIssuer> {
    let url = || options.url.clone();
    let parsed = Url::parse(&options.url).ok();
    let fits =
        |parsed: Url| parsed.query().is_none() && can_be_called(&parsed, options.loopback_http);
    if !parsed.is_some_and(fits) {
        return Err(InvalidIssuer::Url {
            url: shown(&options.url),
        });
    }
    if options.audiences.is_empty() || options.audiences.iter().any(String::is_empty) {
        return Err(InvalidIssuer::NoAudience { url: url() });
    }
    if options.user_claim.is_empty() {
        return Err(InvalidIssuer::NoUserClaim { url: url() });
    }
    if options.algorithms.is_empty() {
        return Err(InvalidIssuer::NoAlgorithm { url: url() });
    }
    let prefix = &options.user_prefix;
    Name::new(&format!("{prefix}x")).map_err(|reason| InvalidIssuer::Prefix {
        prefix: prefix.clone(),
        reason,
    })?;
    Ok(())
}

fn check_pair(first: &IssuerOptions, second: &IssuerOptions) -> Result<(), InvalidIssuer> {
    if first.url == second.url {
        let url = first.url.clone();
        return Err(InvalidIssuer::Twice { url });
    }
    let (a, b) = (&first.user_prefix, &second.user_prefix);
    let one_is_bare = a.is_empty() != b.is_empty();
    if !one_is_bare && (a.starts_with(b.as_str()) || b.starts_with(a.as_str())) {
        let (first, second) = (first.url.clone(), second.url.clone());
        return Err(InvalidIssuer::NamesMeet { first, second });
    }
    Ok(())
}

/// Whether keys may come from there: `https`, or `http` on this machine where that is allowed.
pub(super) fn can_be_called(url: &Url, loopback_http: bool) -> bool {
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    let on_this_machine = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => return false,
    };
    let scheme = url.scheme();
    plain && (scheme == "https" || (scheme == "http" && loopback_http && on_this_machine))
}

/// A URL that is refused may hold a password.
fn shown(url: &str) -> String {
    taskledger_net::egress::without_secrets(url)
}
