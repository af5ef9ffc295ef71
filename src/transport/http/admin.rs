//! A separate listener for operators: metrics and probes, no calls.
//!
//! Whoever reaches it may read it without credentials: the operator chooses an address that only
//! monitoring reaches. It goes on while the listener of calls drains, so that the end of a server can be
//! watched.

use super::connection::{Connections, Place, Timeouts};
use super::forwarded::TrustedProxies;
use super::health::Probe;
use super::hosts::Hosts;
use super::inside::Scraped;
use super::scrape;
use super::{BindError, Inside, Options, accept, broker_monitor, refusal, router};
use crate::application::Context;
use crate::clock::SharedClock;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{Method, Uri};
use axum::routing::{MethodRouter, get};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use taskledger_domain::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once: some scrapers and probes. More wait until one closes.
const CONNECTIONS_MAX: usize = 64;

/// A bound listener that does not accept yet.
pub struct Admin {
    listener: TcpListener,
    options: Options,
    shows: Shows,
    shared: Arc<Shared>,
    local_addr: SocketAddr,
}

pub(super) struct Shared {
    pub(super) probe: Probe,
    pub(super) metrics: Option<Arc<dyn Scraped>>,
    pub(super) draining: CancellationToken,
    pub(super) clock: SharedClock,
    pub(super) started: Timestamp,
    /// Where agents of the broker are served.
    pub(super) of_agents: SocketAddr,
}

/// The contents of a listener for monitoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// Health and metrics of the server.
    Server,
    /// The agent broker, as monitoring of the public one asks for it.
    Broker,
}

impl Shows {
    const fn flag(self) -> &'static str {
        match self {
            Self::Server => "--admin-listen",
            Self::Broker => "--broker-metrics-listen",
        }
    }
}

impl Admin {
    /// Takes the address `options.listen`; of the other options the time-outs and the names count. Agents of
    /// the broker are served at `served`. Probes say that the server drains once `draining` is cancelled.
    ///
    /// # Errors
    /// [`BindError`]: the operator chooses another address.
    pub async fn bind(
        (options, shows): (Options, Shows),
        inside: impl Into<Inside>,
        (served, clock): (SocketAddr, SharedClock),
        draining: CancellationToken,
    ) -> Result<Self, BindError> {
        let failed = |error| BindError::of(&options.listen, shows.flag(), error);
        let listener = TcpListener::bind(&options.listen).await.map_err(failed)?;
        let local_addr = listener.local_addr().map_err(failed)?;
        let inside = inside.into();
        let shared = Shared {
            probe: Probe::new(inside.readiness),
            metrics: inside.metrics,
            draining,
            started: clock.now(),
            clock,
            of_agents: served,
        };
        Ok(Self {
            listener,
            shared: Arc::new(shared),
            options,
            shows,
            local_addr,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `stop` is cancelled. Scrapes that are under way end with it.
    pub async fn run(self, stop: CancellationToken) {
        let router = match self.shows {
            Shows::Server => routes(self.shared),
            Shows::Broker => broker_monitor::routes(self.shared),
        };
        let connections = Arc::new(Connections {
            router,
            hosts: Arc::new(Hosts::new(&self.options, self.local_addr)),
            is_open: true,
            timeouts: Timeouts {
                header: self.options.header_timeout,
                idle: self.options.idle_timeout,
            },
            tls: None,
            draining: stop.clone(),
            cut: stop.clone(),
            proxies: TrustedProxies::default(),
        });
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let tracker = TaskTracker::new();
        loop {
            let (stream, permit) = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = accept(&self.listener, &room) => accepted,
            };
            let connections = Arc::clone(&connections);
            tracker.spawn(async move {
                connections.serve(stream, Place(Arc::new(permit))).await;
            });
        }
        tracker.close();
        tracker.wait().await;
    }
}

fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(scrape::PATH, only_reads(get(metrics)))
        .route("/livez", only_reads(get(router::alive)))
        .route("/readyz", only_reads(get(ready)))
        .route("/healthz", only_reads(get(ready)))
        .fallback(|uri: Uri| async move {
            refusal::nothing_at(uri.path(), "GET /metrics, /livez, /readyz, /healthz")
        })
        .with_state(shared)
}

/// A route that answers other methods than GET and HEAD with 405.
pub(super) fn only_reads(route: MethodRouter<Arc<Shared>>) -> MethodRouter<Arc<Shared>> {
    route.fallback(|method: Method| async move {
        refusal::method_not_allowed(method.as_str(), "GET, HEAD")
    })
}

/// Whoever reaches this listener.
pub(super) fn operator() -> Context {
    static REQUEST: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("admin listener"));
    Context::anonymous(REQUEST.clone())
}

async fn metrics(State(shared): State<Arc<Shared>>) -> axum::response::Response {
    match &shared.metrics {
        Some(scraped) => scrape::answer(&**scraped, &operator()).await,
        None => refusal::nothing_at(scrape::PATH, "GET /livez, /readyz, /healthz"),
    }
}

async fn ready(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
) -> axum::response::Response {
    router::readiness(&shared.probe, shared.draining.is_cancelled(), query).await
}
