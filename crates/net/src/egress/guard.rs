//! The guard between a name and a connection: it looks the name up once and drops forbidden addresses, and the
//! connector dials what is left. A name that changes its address afterwards changes nothing.

use super::lookup::{Lookup, LookupError};
use super::policy::{Policy, Wanted};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tower::{Layer, Service};

/// Addresses of one name that are tried; the rest of a long answer is not dialled.
const ADDRESSES_MAX: usize = 8;

/// What one request is about, and what is learned of where it goes.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) plain: bool,
    candidates: Mutex<Vec<SocketAddr>>,
    dialled: AtomicBool,
}

impl Attempt {
    pub(super) fn new(wanted: Wanted<'_>) -> Self {
        Self {
            host: wanted.host.to_owned(),
            port: wanted.port,
            plain: wanted.plain,
            candidates: Mutex::default(),
            dialled: AtomicBool::new(false),
        }
    }

    pub(super) fn learn(&self, addresses: Vec<SocketAddr>) {
        *self
            .candidates
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = addresses;
    }

    /// Whether a connection was made for it, so that it did not go through a kept one.
    pub(super) fn dialled(&self) -> bool {
        self.dialled.load(Ordering::Relaxed)
    }

    /// The address that was dialled, when there was only one.
    pub(super) fn remote(&self) -> Option<SocketAddr> {
        let candidates = self
            .candidates
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match candidates.as_slice() {
            [one] => Some(*one),
            [] | [_, _, ..] => None,
        }
    }
}

tokio::task_local! {
    /// The request for which a connection is made. The connector is first polled by the request's own
    /// task, so the rules see port and scheme, which a resolver is not told.
    pub(super) static ATTEMPT: Arc<Attempt>;
}

/// Notes in the attempt that a connection is made for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoteDials;

impl<S> Layer<S> for NoteDials {
    type Service = Noting<S>;

    fn layer(&self, connector: S) -> Noting<S> {
        Noting(connector)
    }
}

/// A connector that notes.
#[derive(Debug, Clone)]
pub(super) struct Noting<S>(S);

impl<S: Service<R>, R> Service<R> for Noting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, to: R) -> S::Future {
        // Outside of an attempt there is nobody to tell.
        _ = ATTEMPT.try_with(|attempt| attempt.dialled.store(true, Ordering::Relaxed));
        self.0.call(to)
    }
}

/// Why no address may be dialled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("the address is not allowed")]
    Blocked,
    #[error(transparent)]
    Lookup(#[from] LookupError),
}

/// The resolver of the client.
pub(super) struct Guard {
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) policy: Arc<Policy>,
    pub(super) timeout: Duration,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let attempt = ATTEMPT.try_with(Clone::clone);
        let (lookup, policy, timeout) = (self.lookup.clone(), self.policy.clone(), self.timeout);
        Box::pin(async move {
            // A connection that no request asked for cannot be judged.
            let attempt = attempt.map_err(|_| Refused::Blocked)?;
            let name = name.as_str();
            let found = tokio::time::timeout(timeout, lookup.lookup(name))
                .await
                .unwrap_or(Err(LookupError::Timeout))
                .map_err(Refused::from)?;
            let proxy = policy.proxy.as_ref();
            let is_proxy = proxy.is_some_and(|proxy| proxy.host_str() == Some(name));
            let wanted = Wanted {
                host: &attempt.host,
                port: attempt.port,
                plain: attempt.plain,
            };
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| is_proxy || policy.allows(wanted, *address))
                .take(ADDRESSES_MAX)
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if allowed.is_empty() {
                return Err(Refused::Blocked.into());
            }
            if !is_proxy {
                let with_port = |a: &SocketAddr| SocketAddr::new(a.ip(), attempt.port);
                attempt.learn(allowed.iter().map(with_port).collect());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
