//! A checked URL: the client sends requests to nothing else.

use super::nets;
use super::policy::{Policy, Wanted};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use url::{Host, Url};

/// Characters of a URL: what proxies and servers agree on.
pub const URL_CHARS_MAX: usize = 2048;
/// Ports below 1024 that are HTTP; the others are databases, mail and remote shells.
const WELL_KNOWN_PORTS: [u16; 2] = [80, 443];
/// From here on a port can be anybody's.
const FREE_PORTS_FROM: u16 = 1024;

/// Why an address is refused, and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Too long to be stored and shown.
    #[error("the URL has {chars} characters, expected at most {URL_CHARS_MAX}")]
    TooLong {
        /// How many it has.
        chars: usize,
    },
    /// The text is no URL.
    #[error("`{text}` is not a URL ({reason}), expected for example `https://example.com/hook`")]
    NotAUrl {
        /// The text, shortened.
        text: String,
        /// What the parser says.
        reason: url::ParseError,
    },
    /// The scheme is not spoken, or not to this host.
    #[error("scheme `{scheme}` is not allowed here, expected {expected}")]
    Scheme {
        /// The scheme of the refused URL.
        scheme: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// Credentials in a URL end in logs.
    #[error("the URL holds a user name or a password, expected them in a header")]
    UserInfo,
    /// The port is not one of HTTP.
    #[error("port {port} is not allowed, expected 80, 443, or 1024 to 65535")]
    Port {
        /// The port of the refused URL.
        port: u16,
    },
    /// The server would call itself.
    #[error(
        "the address is one that this server listens on (blocked_address), expected that of a receiver"
    )]
    Own,
    /// The host is not allowed; for an address that is written as digits, the class is all that is told.
    #[error(
        "the address is not allowed (blocked_address), expected a public one, or one that the operator allows \
         with --egress-allow-net NET or --egress-allow-host NAME"
    )]
    Blocked,
}

/// A URL that was checked against a policy: its text and, if it is an address in digits, the address.
/// Names are checked again each time they are looked up.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: String,
    literal: Option<IpAddr>,
    port: u16,
}

impl Target {
    /// Reads and checks a URL. The fragment is dropped.
    ///
    /// # Errors
    /// [`AddressError`]: the caller can mend it, unless the operator must allow the receiver.
    pub fn parse(text: &str, policy: &Policy) -> Result<Self, AddressError> {
        let chars = text.chars().count();
        if chars > URL_CHARS_MAX {
            return Err(AddressError::TooLong { chars });
        }
        let mut url = Url::parse(text).map_err(|reason| AddressError::NotAUrl {
            text: shown(text),
            reason,
        })?;
        url.set_fragment(None);
        let chars = url.as_str().len();
        if chars > URL_CHARS_MAX {
            // Other alphabets grow when they are encoded.
            return Err(AddressError::TooLong { chars });
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Scheme {
                scheme: url.scheme().to_owned(),
                expected: "`https`",
            });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::UserInfo);
        }
        let port = url.port_or_known_default().unwrap_or(0);
        if !WELL_KNOWN_PORTS.contains(&port) && port < FREE_PORTS_FROM {
            return Err(AddressError::Port { port });
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) => None,
            None => {
                return Err(AddressError::NotAUrl {
                    text: shown(text),
                    reason: url::ParseError::EmptyHost,
                });
            }
        };
        let host = url.host_str().unwrap_or_default();
        let host = host.strip_suffix('.').unwrap_or(host).to_owned();
        let target = Self {
            url,
            host,
            literal,
            port,
        };
        target.check(policy)?;
        Ok(target)
    }

    /// Checks it again, against a policy that may not be the one of before.
    pub(super) fn check(&self, policy: &Policy) -> Result<(), AddressError> {
        if let Some(address) = self.literal
            && policy.is_own(SocketAddr::new(nets::unmapped(address), self.port))
        {
            return Err(AddressError::Own);
        }
        if self.is_plain() && !policy.may_be_plain(&self.host, self.literal) {
            return Err(AddressError::Scheme {
                scheme: self.url.scheme().to_owned(),
                expected: "`https` (or a receiver to which the operator allows `http`, with --egress-allow-net NET or \
                           --egress-allow-host NAME)",
            });
        }
        let allowed = match self.literal {
            Some(address) => policy.allows(self.wanted(), address),
            None => !policy.denies(&self.host),
        };
        if allowed {
            Ok(())
        } else {
            Err(AddressError::Blocked)
        }
    }

    /// The URL, without a fragment.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// The host: a name in lower case, or an address (IPv6 in brackets).
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, also when the URL does not name it.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address, when the URL has one instead of a name.
    pub(super) const fn literal(&self) -> Option<IpAddr> {
        self.literal
    }

    pub(super) fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted {
            host: &self.host,
            port: self.port,
            plain: self.is_plain(),
        }
    }
}

impl fmt::Display for Target {
    /// Scheme, host and path. The query is left out: it may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.url.origin().ascii_serialization();
        write!(f, "{origin}{}", self.url.path())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// A text that should be a URL, for its author to recognize: without credentials, and without what comes
/// behind a `?`, which may be a key.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    const HIDDEN: &str = "***";
    let (front, rest) = match text.find(['?', '#']) {
        Some(at) => (&text[..at], text[at..].starts_with('?').then_some(HIDDEN)),
        None => (text, None),
    };
    let scheme_end = front.find("://").map_or(0, |at| at + "://".len());
    let (scheme, place) = front.split_at(scheme_end);
    let (user, place) = match place.rsplit_once('@') {
        Some((_, place)) => ("***@", place),
        None => ("", place),
    };
    let query = rest.map_or(String::new(), |hidden| format!("?{hidden}"));
    format!("{scheme}{user}{place}{query}")
}

/// Enough of a text to recognize it by, without what comes behind a `?`.
fn shown(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 80;
    let before_query = text.split(['?', '#']).next().unwrap_or_default();
    // Credentials stand before an `@`; what is no URL may still hold some.
    let safe = before_query
        .rsplit_once('@')
        .map_or(before_query, |(_, rest)| rest);
    safe.chars().take(SHOWN_CHARS_MAX).collect()
}
