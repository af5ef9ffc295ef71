//! A server that commands call: its address, the headers of each request, and the meaning of answers without a result.
//! Calls and streams use the same.

mod missing;

pub(super) use missing::Named;

use super::ApiError;
use reqwest::header::{
    AUTHORIZATION, COOKIE, HeaderMap, HeaderValue, LOCATION, PROXY_AUTHORIZATION,
};
use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};
use rustls::AlertDescription;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use taskledger_net::tls::{Authority, Certificates};
use url::Host;

/// The variable that holds an access token. No option does: others on the machine can see arguments.
pub(super) const TOKEN_VARIABLE: &str = "TASKLEDGER_TOKEN";
/// What somebody does who has to show credentials.
pub(super) const HOW_TO_SHOW: &str =
    "set TASKLEDGER_TOKEN or TASKLEDGER_TOKEN_FILE, or give --token-file FILE";
/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The code with which a server refuses a body that is too large.
const INVALID_REQUEST: i64 = -32600;

/// Where credentials come from. Messages name it, and never what was there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Credentials {
    /// There are none.
    #[default]
    None,
    /// `TASKLEDGER_TOKEN`.
    Variable,
    /// `--token-file`.
    File(PathBuf),
    /// A header, which this option or variable holds.
    Header(&'static str),
}

impl fmt::Display for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("nobody"),
            Self::Variable => f.write_str(TOKEN_VARIABLE),
            Self::File(path) => write!(f, "`{}`", path.display()),
            Self::Header(of) => f.write_str(of),
        }
    }
}

/// What options give beside the address.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// Sent along with each request; the values are marked as sensitive.
    pub(super) headers: HeaderMap,
    /// The option or the variable that has named those which are not of a token.
    pub(super) headers_of: &'static str,
    /// Where `Authorization` among them comes from.
    pub(super) credentials: Credentials,
    /// Credentials may be sent where others can read them.
    pub(super) unencrypted: bool,
    /// Believed beside those of the system.
    pub(super) authorities: Vec<Authority>,
    /// Shown to a server that asks for a certificate.
    pub(super) certificate: Option<Arc<Certificates>>,
    /// The proxy that requests go through, if there is one.
    pub(super) proxy: Option<Url>,
    /// What has named that proxy.
    pub(super) proxy_of: &'static str,
    /// What has named the server.
    pub(super) named: Named,
    /// The options that say all of this, each behind a blank; none that may be a secret.
    pub(super) options: String,
}

/// A server, and what every request to it carries.
#[derive(Debug, Clone)]
pub(super) struct Target {
    url: Url,
    given: Given,
}

impl Target {
    /// A server to which nothing is shown.
    pub(super) fn plain(url: &str) -> Result<Self, ApiError> {
        Self::new(url, Given::default())
    }

    /// A server at `url`; nothing is sent yet.
    ///
    /// # Errors
    /// [`ApiError::Connection`]: the URL makes no sense, or credentials must not be sent there.
    pub(super) fn new(url: &str, given: Given) -> Result<Self, ApiError> {
        let url = parse_url(url)?;
        let secret = [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE];
        let shows = secret.iter().find(|name| given.headers.contains_key(*name));
        // A proxy elsewhere reads a request over http, also one for this machine.
        let proxy = given.proxy.as_ref().filter(|proxy| !is_loopback(proxy));
        let stays_here = is_loopback(&url) && proxy.is_none();
        if let Some(name) = shows
            && url.scheme() != "https"
            && !stays_here
            && !given.unencrypted
        {
            let from = match (name == AUTHORIZATION, &given.credentials) {
                (true, from @ (Credentials::Variable | Credentials::File(_))) => {
                    format!("the token of {from}")
                }
                _ => format!("`{name}` of {}", given.headers_of),
            };
            let through = proxy
                .map(|_| format!(" through the proxy of {}", given.proxy_of))
                .unwrap_or_default();
            return Err(ApiError::Connection(format!(
                "{from} is not sent to `{url}`{through}: everybody on the way could read it; use an https URL, or \
                 --insecure-token in a network that you trust"
            )));
        }
        Ok(Self { url, given })
    }

    /// The same, which these options name.
    pub(super) fn with_options(mut self, options: &str) -> Self {
        self.given.options = options.to_owned();
        self
    }

    /// The same, which was named so.
    pub(super) fn named(mut self, named: Named) -> Self {
        self.given.named = named;
        self
    }

    /// The address.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// How TLS is spoken with it.
    ///
    /// # Errors
    /// One of the certificates cannot be an authority.
    pub(super) fn tls(&self) -> Result<rustls::ClientConfig, rustls::Error> {
        let authorities = self.given.authorities.iter().cloned();
        taskledger_net::tls::config_showing(authorities, self.given.certificate.clone())
    }

    /// Options that name it, each behind a blank, for commands to paste.
    pub(super) fn options(&self) -> &str {
        &self.given.options
    }

    /// What is sent along with each request.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.given.headers
    }

    /// What sends requests; an answer may take so long, or for ever. Redirections are not followed: what is
    /// sent along is for this server.
    ///
    /// # Errors
    /// [`ApiError::Connection`]: there is no TLS on this machine.
    pub(super) fn client(&self, timeout: Option<Duration>) -> Result<reqwest::Client, ApiError> {
        let authorities = self.given.authorities.iter().cloned();
        let certificate = self.given.certificate.clone();
        let mut client = taskledger_net::tls::client_showing(authorities, certificate)
            .map_err(|error| ApiError::Connection(error.to_string()))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .redirect(Policy::none())
            .default_headers(self.given.headers.clone());
        // Otherwise those that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name; what stays on this machine passes none.
        if self.given.proxy.is_some() || is_loopback(&self.url) {
            client = client.no_proxy();
        }
        if let Some(proxy) = &self.given.proxy {
            let proxy = reqwest::Proxy::all(proxy.clone());
            let unusable = |error: reqwest::Error| {
                ApiError::Connection(format!("--proxy is not usable: {}", reason(&error)))
            };
            client = client.proxy(proxy.map_err(unusable)?);
        }
        if let Some(timeout) = timeout {
            client = client.timeout(timeout);
        }
        client
            .build()
            .map_err(|error| ApiError::Connection(reason(&error)))
    }

    /// The message that the server does not answer, with the reason.
    pub(super) fn unreachable(&self, reason: &str) -> String {
        format!("cannot reach {}: {reason}", self.url)
    }

    /// The same for a request that has failed, with what may help.
    pub(super) fn broken(&self, error: &reqwest::Error) -> String {
        let fault = taskledger_net::tls::fault(error);
        let spoken = |proxy: &missing::Proxy| proxy.is_tls() && fault.is_some();
        // TLS is spoken with the proxy alone when the server is one of `http`.
        let of_proxy = |proxy: &missing::Proxy| {
            is_refused(error) || spoken(proxy) && self.url.scheme() == "http"
        };
        let proxy = self.proxy();
        if let (Some(rustls::Error::InvalidMessage(_)), Some(proxy)) =
            (fault, proxy.as_ref().filter(|proxy| spoken(proxy)))
        {
            return proxy.is_not_tls(&self.url);
        }
        let text = match proxy.filter(of_proxy) {
            Some(proxy) => proxy.broken(&self.url, &reason(error)),
            None => self.unreachable(&reason(error)),
        };
        match fault {
            Some(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)) => {
                format!("{text}; `--ca-file` names an authority that is not one of the system's")
            }
            Some(rustls::Error::AlertReceived(
                AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
            )) => {
                format!("{text}; it asks for a certificate: give --client-cert and --client-key")
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                format!("{text}; perhaps the server uses `http`")
            }
            fault => super::unfit_certificate::told(text, fault),
        }
    }

    /// What may help where nobody answers, on a line of its own behind what was said; empty for other errors.
    pub(super) fn advice(&self, error: &reqwest::Error) -> String {
        match is_refused(error) && self.proxy().is_none() {
            true => format!("\n  {}", self.given.named.advice()),
            false => String::new(),
        }
    }

    /// What an answer means in whose body `error` was found instead of a result.
    pub(super) fn no_result(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        error: ApiError,
    ) -> ApiError {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return self.denied(status, &error);
        }
        if status.is_redirection() {
            let to = headers.get(LOCATION).map(HeaderValue::to_str);
            let to = to.and_then(Result::ok).unwrap_or("elsewhere");
            return ApiError::Protocol(format!(
                "{} answered {status} and points to `{to}`, which is not followed; give the URL itself",
                self.url
            ));
        }
        match error {
            // A proxy; the server itself says so in the protocol, with this code.
            ApiError::Protocol(_) if status == StatusCode::PAYLOAD_TOO_LARGE => ApiError::Refused {
                code: INVALID_REQUEST,
                message: format!("{} answered {status}", self.url),
                data: Value::Null,
            },
            ApiError::Protocol(_) => ApiError::Protocol(format!(
                "{} answered {status}, but not in the protocol of a taskledger server",
                self.url
            )),
            error @ (ApiError::Denied { .. }
            | ApiError::Refused { .. }
            | ApiError::Connection(_)) => error,
        }
    }

    fn denied(&self, status: StatusCode, error: &ApiError) -> ApiError {
        let (url, from) = (&self.url, &self.given.credentials);
        let forbidden = status == StatusCode::FORBIDDEN;
        let mut text = match (from, forbidden) {
            (Credentials::None, false) => {
                format!("{url} asks who is calling ({status}): {HOW_TO_SHOW}")
            }
            (Credentials::None, true) => {
                format!("{url} does not permit this ({status}): {HOW_TO_SHOW}")
            }
            (_, false) => format!(
                "{url} does not take the credentials of {from} ({status}): they are unknown, revoked or \
                 expired; {HOW_TO_SHOW}"
            ),
            (_, true) => format!(
                "{url} does not permit this to the credentials of {from} ({status}): others are needed, \
                 with the scope for it"
            ),
        };
        if let ApiError::Refused { .. } = error {
            text = format!("{text}\n  the server says: {error}");
        }
        ApiError::Denied {
            status: status.as_u16(),
            text,
        }
    }
}

/// A URL of a server.
pub(super) fn parse_url(url: &str) -> Result<Url, ApiError> {
    let parsed = Url::parse(url)
        .map_err(|error| ApiError::Connection(format!("`{url}` is not a URL: {error}")))?;
    if (parsed.username(), parsed.password()) != ("", None) {
        let text = "the URL of a server holds credentials, which others on this machine can see; expected \
                    none";
        return Err(ApiError::Connection(format!("{text}: {HOW_TO_SHOW}")));
    }
    if !matches!(parsed.scheme(), "http" | "https") {
        let text = format!("cannot talk to `{url}`: expected `http://` or `https://`");
        return Err(ApiError::Connection(text));
    }
    Ok(parsed)
}

/// Whether requests do not leave this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

/// Whether there was no connection at all: neither to the server nor to a proxy, or the proxy has none to the server.
fn is_refused(error: &reqwest::Error) -> bool {
    error.is_connect() && taskledger_net::tls::fault(error).is_none()
}

/// The innermost cause, which is the one that says something.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
