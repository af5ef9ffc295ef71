//! Settings of the HTTP server.

use crate::tls::Certificates;
use crate::transport::a2a::Options as A2aOptions;
use ipnet::IpNet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Streams at once, unless set otherwise: what 2 cores tell of a busy log within a second.
pub const STREAMS_MAX: usize = 10_000;

/// Connections at once, unless set otherwise: all streams, and as many for calls as many programs
/// keep open.
pub const CONNECTIONS_MAX: usize = 12_288;

/// Bytes of a message of the agent broker, unless set otherwise: as the public broker takes them.
pub const MESSAGE_BYTES_DEFAULT: u32 = 4 * 1024 * 1024;

/// Settings for agents of the broker.
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    /// `host:port` of a listener of its own, beside that of all calls.
    pub listen: Option<String>,
    /// Bytes of a message.
    pub message_bytes_max: usize,
    /// How long a task without a deadline waits for an agent; `None`: for ever.
    pub ttl: Option<Duration>,
}

impl Default for BrokerOptions {
    fn default() -> Self {
        Self {
            listen: None,
            message_bytes_max: MESSAGE_BYTES_DEFAULT as usize,
            ttl: None,
        }
    }
}

/// Settings of the HTTP server.
#[derive(Debug, Clone)]
pub struct Options {
    /// `host:port`; port 0 takes a free one.
    pub listen: String,
    /// The certificate to show: `https` and nothing else. Without one, `http`.
    pub tls: Option<Arc<Certificates>>,
    /// The address that the agent card gives; without it, the one that is listened on.
    pub public_url: Option<String>,
    /// How Agent2Agent is served.
    pub a2a: A2aOptions,
    /// Whether `GET /metrics` is answered here too.
    pub metrics: bool,
    /// Connections at once. More wait in the system's queue until one closes: each costs a file
    /// descriptor and some 10 KiB.
    pub connections_max: usize,
    /// Requests at once, over all connections, detached ones included. More are answered `Busy`.
    pub requests_max: usize,
    /// Streams at once, over all connections: event streams and sockets. More are answered 429. Each
    /// costs its connection and some 10 KiB; what it has not taken yet stays in the log.
    pub streams_max: usize,
    /// Origins of browser pages that may use the server, as [`origin`](super::origin) writes them.
    pub allowed_origins: Vec<String>,
    /// Names under which the server is asked besides its own, as [`host`](super::host) writes them; `*`: any.
    pub allowed_hosts: Vec<String>,
    /// Networks of reverse proxies that are believed from which address a request comes.
    pub trusted_proxies: Vec<IpNet>,
    /// Bytes of an HTTP request body.
    pub body_bytes_max: usize,
    /// Bytes of request bodies in hand at once, from their first byte to the answer, over all
    /// requests. More are answered 503.
    pub receiving_bytes_max: usize,
    /// Bytes of answers in memory at once, over all connections, until their clients have taken them; the
    /// first 64 KiB of each do not count. Reads that find no room are answered `Busy`.
    pub answers_bytes_max: usize,
    /// From the opening of a connection to the last header of its first request, the handshake of TLS
    /// included; later ones have
    /// the idle time-out. Keeps slow senders from holding connections.
    pub header_timeout: Duration,
    /// From the end of a request's headers to its answer, the receiving of the body included.
    pub request_timeout: Duration,
    /// A connection on which no request runs and no answer is being sent is closed after this, or
    /// at the latest after twice as long.
    pub idle_timeout: Duration,
    /// What requests that are under way get to finish once the server is told to stop.
    pub shutdown_grace: Duration,
    /// The agent broker.
    pub broker: BrokerOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8000".to_owned(),
            tls: None,
            public_url: None,
            a2a: A2aOptions::default(),
            metrics: false,
            connections_max: CONNECTIONS_MAX,
            requests_max: 8192,
            streams_max: STREAMS_MAX,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            body_bytes_max: taskledger_domain::limits::REQUEST_BODY_BYTES_MAX,
            receiving_bytes_max: 256 * 1024 * 1024,
            answers_bytes_max: 256 * 1024 * 1024,
            header_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            shutdown_grace: Duration::from_secs(10),
            broker: BrokerOptions::default(),
        }
    }
}

impl Options {
    /// Where a server that listens at `local` is reached, without a `/` at the end.
    #[must_use]
    pub fn url(&self, local: SocketAddr) -> String {
        format!("{}://{local}", self.scheme())
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}
