//! The errors of a request: few classes, which reveal nothing of forbidden networks.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The class of a failed attempt. The only thing that is told of a forbidden address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The name has no addresses, or nobody could say.
    Dns,
    /// The address is not allowed.
    BlockedAddress,
    /// No connection.
    Connect,
    /// No agreement on encryption, or a certificate that is not trusted.
    Tls,
    /// The whole attempt took too long.
    Timeout,
    /// An answer that asks to go elsewhere, which is never done. [`crate::egress::Egress::send`]
    /// gives the answer; callers report it with this class.
    Redirect,
    /// More came than the caller takes. As with redirects, for callers to report.
    BodyTooLarge,
    /// What came was not HTTP.
    Protocol,
    /// The connection broke off.
    Reset,
}

impl Class {
    /// Its name in logs and in lists of deliveries.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::BlockedAddress => "blocked_address",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Redirect => "redirect",
            Self::BodyTooLarge => "body_too_large",
            Self::Protocol => "protocol",
            Self::Reset => "reset",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} ({class})")]
pub struct Error {
    /// The kind of failure.
    pub class: Class,
    /// For logs and for the owner of the receiver. Of a forbidden address it says nothing more than
    /// the class.
    pub detail: String,
    /// Where the request went, if that is known for certain.
    pub remote: Option<SocketAddr>,
    /// How long the attempt took.
    pub duration: Duration,
}

/// The client cannot be made; the operator can mend it.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The file with further certificates cannot be read.
    #[error("cannot read certificates from `{path}`: {reason}")]
    CaFile {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No encryption is possible.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The URL of the proxy is none. It is not repeated: it may hold a password.
    #[error("--egress-proxy is not usable, expected http://HOST:PORT or https://HOST:PORT")]
    Proxy,
    /// The proxy speaks another protocol.
    #[error(
        "--egress-proxy: proxies of scheme `{scheme}` are not supported, expected http://HOST:PORT or \
         https://HOST:PORT"
    )]
    ProxyScheme {
        /// One of [`Self::PROXY_SCHEMES_KNOWN`].
        scheme: &'static str,
    },
    /// The proxy, or the name of this program, cannot be used.
    #[error("cannot set up the client for outgoing requests")]
    Client(#[from] reqwest::Error),
    /// The name servers cannot be used.
    #[error("cannot set up the lookup of names: {0}")]
    Lookup(String),
}

impl BuildError {
    /// Schemes of proxies that people use and that are not spoken here. Only these are named in messages:
    /// in what is no URL, anything could be a password.
    pub const PROXY_SCHEMES_KNOWN: [&str; 5] = ["socks5", "socks5h", "socks4", "socks4a", "ftp"];
}
