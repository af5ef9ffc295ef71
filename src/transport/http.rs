//! The HTTP server: HTTP/1.1 and HTTP/2 on one port, over TLS if there is a certificate.
//!
//! Owns: the listener, the connections, the limits on both, the routes. May not touch: methods and
//! their meaning, which it gets as a [`Dispatcher`]. Bytes come in from sockets, go through
//! `router`, and leave as answers. The accept loop is our own, so that connections can be
//! limited, timed out and drained.

mod a2a;
mod admin;
mod agent_card;
mod body;
mod broker_monitor;
mod call_context;
mod cards;
mod connection;
mod credentials;
mod door;
mod early_turn;
mod forwarded;
mod frames;
mod grpc;
mod health;
mod hosts;
mod inside;
mod json;
mod metered;
mod options;
mod origins;
mod pacing;
mod peers;
mod published;
mod refusal;
mod route;
mod router;
mod scrape;
mod sending;
mod sockets;
mod stream_place;
mod streams;
mod tls;
mod turns;
mod welcome;

pub use admin::{Admin, Shows};
pub use agent_card::AgentCard;
pub use health::Readiness;
pub use hosts::host;
pub use inside::{Inside, Scraped};
pub use options::{BrokerOptions, CONNECTIONS_MAX, MESSAGE_BYTES_DEFAULT, Options, STREAMS_MAX};
pub use origins::origin;
pub use peers::Peers;
pub use route::Route;

use crate::clock::SharedClock;
use crate::tls::Certificates;
use crate::transport::jsonrpc::Dispatcher;
use chrono::{DateTime, Utc};
use connection::{Connections, Place, Timeouts};
use door::Door;
use forwarded::TrustedProxies;
use hosts::Hosts;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The server cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on `{listen}`: {hint}")]
pub struct BindError {
    listen: String,
    hint: String,
    #[source]
    source: io::Error,
}

impl BindError {
    fn new(listen: &str, source: io::Error) -> Self {
        Self::of(listen, "--listen", source)
    }

    /// An address that was given with `flag`.
    fn of(listen: &str, flag: &str, source: io::Error) -> Self {
        let in_use = format!("another program listens there; choose another address with `{flag}`");
        let hint = if source.kind() == io::ErrorKind::AddrInUse {
            &*in_use
        } else if source.kind() == io::ErrorKind::AddrNotAvailable {
            "this machine has no such address"
        } else if source.kind() == io::ErrorKind::PermissionDenied {
            "not permitted; ports below 1024 need privileges"
        } else {
            "the address must be `host:port`, for example `127.0.0.1:8000`"
        };
        Self {
            listen: listen.to_owned(),
            hint: hint.to_owned(),
            source,
        }
    }
}

/// Takes addresses for a moment, all together, each with the option that names it, and gives them back.
///
/// # Errors
/// [`BindError`]: one of them cannot be had.
pub async fn can_listen<'a>(
    addresses: impl IntoIterator<Item = (&'a str, &'static str)>,
) -> Result<(), BindError> {
    let mut taken = Vec::new();
    for (listen, flag) in addresses {
        let listener = TcpListener::bind(listen).await;
        taken.push(listener.map_err(|error| BindError::of(listen, flag, error))?);
    }
    Ok(())
}

/// A bound server that does not accept yet.
pub struct Service<C> {
    listener: TcpListener,
    /// For agents only, and under which names it is asked.
    of_agents: Option<(TcpListener, Arc<Hosts>)>,
    door: Arc<Door<C>>,
    options: Options,
    /// Where calls go, for everybody to know.
    public_url: Option<String>,
}

/// A handle to a running server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    /// Where it listens.
    pub local_addr: SocketAddr,
    /// The same as a URL, without a `/` at the end.
    pub url: String,
    /// Where agents are listened to beside it.
    pub broker_addr: Option<SocketAddr>,
    connections: TaskTracker,
    tls: Option<Arc<Certificates>>,
}

impl Handle {
    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// When the certificate ends that is shown now; `None`: connections are not encrypted.
    #[must_use]
    pub fn certificate_expires_at(&self) -> Option<DateTime<Utc>> {
        self.tls.as_ref().map(|shown| shown.expires_at())
    }
}

impl<C: Send + Sync + 'static> Service<C> {
    /// Takes the address. Connections wait until [`Self::run`].
    ///
    /// # Errors
    /// [`BindError`]: the operator chooses another address.
    pub async fn bind(
        options: Options,
        dispatcher: Arc<Dispatcher<C>>,
        inside: impl Into<Inside>,
        clock: SharedClock,
    ) -> Result<(Self, Handle), BindError> {
        let listener = TcpListener::bind(&options.listen)
            .await
            .map_err(|error| BindError::new(&options.listen, error))?;
        let local_addr = listener
            .local_addr()
            .map_err(|error| BindError::new(&options.listen, error))?;
        let of_agents = match &options.broker.listen {
            None => None,
            Some(listen) => {
                let failed = |error| BindError::of(listen, "--broker-listen", error);
                let listener = TcpListener::bind(listen).await.map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                let own = Options {
                    listen: listen.clone(),
                    ..options.clone()
                };
                Some((address, (listener, Arc::new(Hosts::new(&own, address)))))
            }
        };
        let (broker_addr, of_agents) = of_agents.unzip();
        let inside = inside.into();
        let door = Arc::new(Door::new(&options, local_addr, dispatcher, inside, clock));
        let public_url = options.public_url.clone();
        let handle = Handle {
            local_addr,
            url: options.url(local_addr),
            broker_addr,
            connections: door.connections.clone(),
            tls: options.tls.clone(),
        };
        let service = Self {
            listener,
            of_agents,
            door,
            options,
            public_url,
        };
        Ok((service, handle))
    }

    /// Serves until `shutdown` is cancelled; then stops accepting, lets what is under way finish
    /// within the grace, cuts off the rest and returns.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self {
            listener,
            of_agents,
            door,
            options,
            public_url,
        } = self;
        let room = Arc::new(Semaphore::new(options.connections_max));
        if let Some(grpc) = &door.grpc {
            grpc.serves(true).await;
        }
        let tracker = door.connections.clone();
        let is_open = door.authenticate.is_none();
        let connections = |router, hosts| Connections {
            router,
            hosts,
            is_open,
            timeouts: Timeouts {
                header: options.header_timeout,
                idle: options.idle_timeout,
            },
            tls: (options.tls.as_ref()).map(|shown| TlsAcceptor::from(shown.server_config())),
            draining: shutdown.clone(),
            cut: door.cut.clone(),
            proxies: TrustedProxies::new(options.trusted_proxies.clone()),
        };
        let all = router::router(Arc::clone(&door), &options.allowed_origins);
        let mut listeners = vec![(
            listener,
            Arc::new(connections(all, Arc::clone(&door.hosts))),
        )];
        if let Some((listener, hosts)) = of_agents {
            let agents = router::agents(Arc::clone(&door), public_url);
            let agents = connections(agents, hosts);
            listeners.push((listener, Arc::new(agents)));
        }
        let accepting = listeners.into_iter().map(|(listener, connections)| {
            let (room, tracker, shutdown) = (&room, &tracker, &shutdown);
            async move {
                loop {
                    let (stream, permit) = tokio::select! {
                        biased;
                        () = shutdown.cancelled() => break,
                        accepted = accept(&listener, room) => accepted,
                    };
                    let connections = Arc::clone(&connections);
                    tracker.spawn(async move {
                        connections.serve(stream, Place(Arc::new(permit))).await;
                    });
                }
                // Closed at once, so that a successor can listen and callers are refused, not kept waiting.
                drop(listener);
            }
        });
        futures_util::future::join_all(accepting).await;
        if let Some(grpc) = &door.grpc {
            grpc.serves(false).await;
        }
        door.draining.cancel();
        tracker.close();
        door.detached.close();
        let finished = async {
            tracker.wait().await;
            door.detached.wait().await;
        };
        if tokio::time::timeout(options.shutdown_grace, finished)
            .await
            .is_err()
        {
            tracing::warn!(
                connections = tracker.len(),
                "cut off connections that did not finish within the grace"
            );
            door.cut.cancel();
            tracker.wait().await;
            door.detached.wait().await;
        }
    }
}

/// The next connection, once there is room for one.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    /// Milliseconds that a peer may leave what was sent to it untaken: then it is gone, or as good as.
    const UNTAKEN_MS_MAX: u32 = 30_000;
    /// Out of file descriptors or memory: nothing to do but wait for connections to close.
    const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
    let permit = Arc::clone(room)
        .acquire_owned()
        .await
        .expect("the semaphore of connections is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Small answers leave at once. A socket that refuses is about to fail anyway.
                let _ = stream.set_nodelay(true);
                // Nor is it told otherwise that a peer has vanished, or takes nothing any more.
                let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNTAKEN_MS_MAX);
                return (stream, permit);
            }
            Err(error) if is_of_the_connection(&error) => {}
            Err(error) => {
                tracing::error!(error = %error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_the_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}
