//! The HTTP client. It sends a request once, follows nothing, and reads no more than it was told to.

use super::address::Target;
use super::classify::{blocked, classify};
use super::error::{BuildError, Class, Error};
use super::guard::{ATTEMPT, Attempt, Guard, NoteDials};
use super::lookup::Lookup;
use super::policy::Policy;
use super::tls;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Client, Proxy, Request, Response, redirect, retry};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Header that tells a receiver of webhooks which requests are the same one.
const REPEATABLE_HEADER: &str = "webhook-id";
/// Bytes of all headers of an answer together: what servers in the wild send, several times over.
const HEADERS_BYTES_MAX: usize = 64 * 1024;
/// Headers of an answer.
const HEADERS_MAX: usize = 256;
/// Connections that are kept for one receiver.
const IDLE_PER_HOST_MAX: usize = 4;
/// A kept connection belongs to an address that was checked this long ago at most.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// How long parts of an attempt may take, within the whole that each request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Looking the name up.
    pub lookup: Duration,
    /// Connecting and agreeing on encryption, after the lookup; the client has one limit for both.
    pub connect: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lookup: Duration::from_secs(2),
            connect: Duration::from_secs(8), // 3 s for the connection, 5 s for TLS
        }
    }
}

/// The parts and settings of a client.
#[derive(Clone)]
pub struct Options {
    /// Which receivers are allowed.
    pub policy: Policy,
    /// Names to addresses.
    pub resolver: Arc<dyn Lookup>,
    /// How long parts of an attempt may take.
    pub limits: Limits,
    /// Certificate authorities (PEM) beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// `User-Agent` of requests that do not bring their own.
    pub user_agent: String,
}

impl Options {
    /// With the usual limits, and this program's name.
    #[must_use]
    pub fn new(policy: Policy, resolver: Arc<dyn Lookup>) -> Self {
        Self {
            policy,
            resolver,
            limits: Limits::default(),
            ca_file: None,
            user_agent: concat!("taskledger/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// One request.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The checked URL that it is sent to.
    pub target: Target,
    /// The HTTP method.
    pub method: Method,
    /// Headers; `Host` and `Content-Length` are the client's.
    pub headers: HeaderMap,
    /// The body, sent as it is.
    pub body: Bytes,
    /// Of the whole attempt, the answer's body included.
    pub timeout: Duration,
    /// Bytes of the answer's body that are read.
    pub response_bytes_max: usize,
}

/// The response.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The status, whichever it is. A redirect is not followed.
    pub status: StatusCode,
    /// The headers as they were received.
    pub headers: HeaderMap,
    /// The body as it was sent: nothing is decompressed.
    pub body: Bytes,
    /// More came than was read; the connection was closed.
    pub truncated: bool,
    /// The body broke off after the headers.
    pub cut: bool,
    /// Who answered; unknown behind a proxy.
    pub remote: Option<SocketAddr>,
    /// How long it took.
    pub duration: Duration,
}

/// The client of every outgoing request. Cheap to share; one for each server.
pub struct Egress {
    policy: Arc<Policy>,
    /// Keeps connections.
    keeping: Client,
    /// Makes a connection for each request: for those that must not be sent twice, and for the second
    /// try of those that may.
    fresh: Client,
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Egress {
    /// Makes the client. Sends nothing.
    ///
    /// # Errors
    /// [`BuildError`]: certificates, proxy or name servers cannot be used.
    pub fn new(options: Options) -> Result<Self, BuildError> {
        let policy = Arc::new(options.policy);
        let guard = Arc::new(Guard {
            lookup: options.resolver,
            policy: policy.clone(),
            timeout: options.limits.lookup,
        });
        let tls = tls::config(options.ca_file.as_deref())?;
        let client = |idle_max: usize| {
            let builder = Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .dns_resolver(guard.clone())
                .connector_layer(NoteDials)
                .redirect(redirect::Policy::none())
                .retry(retry::never())
                .no_proxy() // a proxy from the environment would walk around the guard
                .referer(false)
                .http1_only()
                .http1_max_headers(HEADERS_MAX)
                .user_agent(&options.user_agent)
                .connect_timeout(options.limits.lookup + options.limits.connect)
                .pool_max_idle_per_host(idle_max)
                .pool_idle_timeout(IDLE_MAX);
            match &policy.proxy {
                Some(proxy) => builder.proxy(Proxy::all(proxy.clone())?),
                None => builder,
            }
            .build()
        };
        let (keeping, fresh) = (client(IDLE_PER_HOST_MAX)?, client(0)?);
        Ok(Self {
            policy,
            keeping,
            fresh,
        })
    }

    /// Which receivers are allowed.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Sends a request and waits for the head of the answer, for at most its `timeout`; the body is read piece by
    /// piece. Nothing is sent twice.
    ///
    /// # Errors
    /// [`Error`]: no answer came, or it was none.
    pub async fn open(&self, request: Outgoing) -> Result<Opened, Error> {
        let start = Instant::now();
        let attempt = Arc::new(Attempt::new(request.target.wanted()));
        let fail = |(class, detail): (Class, String)| Error {
            class,
            detail,
            remote: attempt.remote(),
            duration: start.elapsed(),
        };
        let allowed = request.target.check(&self.policy);
        allowed.map_err(|_| fail(blocked()))?;
        let answered = ATTEMPT.scope(attempt.clone(), self.fresh.execute(made(&request)));
        match timeout_at(start + request.timeout, answered).await {
            Ok(Ok(response)) if headers_bytes(&response) > HEADERS_BYTES_MAX => {
                Err(fail(too_many_headers()))
            }
            Ok(Ok(response)) => Ok(Opened(response)),
            Ok(Err(error)) => Err(fail(classify(&error))),
            Err(_) => {
                let ms = request.timeout.as_millis();
                let detail = format!("no answer came within {ms} ms");
                Err(fail((Class::Timeout, detail)))
            }
        }
    }

    /// Sends a request and reads the answer, once. A kept connection that turns out to be dead is
    /// replaced, for requests that may arrive twice: those that are so by their method, and webhooks.
    /// Others get a connection of their own.
    ///
    /// # Errors
    /// [`Error`]: no answer came, or it was none. An answer with any status is no error.
    pub async fn send(&self, request: Outgoing) -> Result<Incoming, Error> {
        let start = Instant::now();
        let attempt = Arc::new(Attempt::new(request.target.wanted()));
        let fail = |(class, detail): (Class, String)| Error {
            class,
            detail,
            remote: attempt.remote(),
            duration: start.elapsed(),
        };
        // It may have been stored under another policy.
        request
            .target
            .check(&self.policy)
            .map_err(|_| fail(blocked()))?;
        if let Some(address) = request.target.literal()
            && self.policy.proxy.is_none()
        {
            attempt.learn(vec![SocketAddr::new(address, request.target.port())]);
        }
        let whole = self.exchange(&request, &attempt);
        let ended = timeout_at(
            start + request.timeout,
            ATTEMPT.scope(attempt.clone(), whole),
        )
        .await;
        match ended {
            Ok(Ok(incoming)) => Ok(Incoming {
                duration: start.elapsed(),
                ..incoming
            }),
            Ok(Err(failed)) => Err(fail(failed)),
            Err(_) => {
                let ms = request.timeout.as_millis();
                Err(fail((
                    Class::Timeout,
                    format!("the attempt took longer than {ms} ms"),
                )))
            }
        }
    }

    async fn exchange(
        &self,
        request: &Outgoing,
        attempt: &Attempt,
    ) -> Result<Incoming, (Class, String)> {
        let repeatable = is_repeatable(request);
        let first = if repeatable {
            &self.keeping
        } else {
            &self.fresh
        };
        let answered = match first.execute(made(request)).await {
            // What broke off on a connection of its own has failed; a kept one may have died of age.
            Err(error) if repeatable && !attempt.dialled() && died(&error) => {
                self.fresh.execute(made(request)).await
            }
            answered => answered,
        };
        match answered {
            Ok(response) => self.read(response, request.response_bytes_max).await,
            Err(error) => Err(classify(&error)),
        }
    }

    async fn read(
        &self,
        mut response: Response,
        bytes_max: usize,
    ) -> Result<Incoming, (Class, String)> {
        if headers_bytes(&response) > HEADERS_BYTES_MAX {
            return Err(too_many_headers());
        }
        let mut body = Vec::new();
        let (mut truncated, mut cut) = (false, false);
        while !truncated {
            match response.chunk().await {
                Ok(None) => break,
                Ok(Some(chunk)) => {
                    let room = bytes_max - body.len();
                    truncated = chunk.len() > room;
                    body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                }
                Err(_) => {
                    cut = true;
                    break;
                }
            }
        }
        let remote = match self.policy.proxy {
            Some(_) => None,
            None => response.remote_addr(),
        };
        Ok(Incoming {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body: body.into(),
            truncated,
            cut,
            remote,
            duration: Duration::ZERO,
        })
    }
}

/// An answer whose body is still to come; dropping it closes the connection.
#[derive(Debug)]
pub struct Opened(Response);

impl Opened {
    /// The status, whichever it is. A redirect is not followed.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// The headers of the answer as they were received.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The next piece of the body as it was sent, as large as it came; `None` at the end.
    ///
    /// # Errors
    /// What went wrong, and in words: it broke off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, (Class, String)> {
        self.0.chunk().await.map_err(|error| classify(&error))
    }
}

fn headers_bytes(response: &Response) -> usize {
    let headers = response.headers().iter();
    headers
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum()
}

fn too_many_headers() -> (Class, String) {
    let detail = format!("the headers have more than {HEADERS_BYTES_MAX} bytes");
    (Class::Protocol, detail)
}

/// Whether a request does no harm when it arrives twice.
fn is_repeatable(request: &Outgoing) -> bool {
    request.method.is_idempotent() || request.headers.contains_key(REPEATABLE_HEADER)
}

fn made(request: &Outgoing) -> Request {
    let mut made = Request::new(request.method.clone(), request.target.url().clone());
    *made.headers_mut() = request.headers.clone();
    *made.body_mut() = Some(request.body.clone().into());
    made
}

/// Whether the connection ended before there was an answer.
fn died(error: &reqwest::Error) -> bool {
    !error.is_connect() && classify(error).0 == Class::Reset
}
