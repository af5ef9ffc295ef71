//! One connection, from its first byte to its close.
//!
//! A connection is closed when its first request does not arrive in time (the handshake before it, if
//! there is one, included), when nothing happens on it for a while, when the server drains (after the answers that are
//! under way), and at once when the grace of the shutdown is over.

use super::forwarded::TrustedProxies;
use super::frames::REQUEST_EARNS_BYTES;
use super::hosts::Hosts;
use super::metered::{MeteredSocket, Traffic};
use super::tls::{Socket, handshake};
use axum::Router;
use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

/// Bytes of the header block of a request, and of the read buffer of a connection.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Header lines of a request.
const HEADERS_MAX: usize = 100;
/// Requests at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 256;
/// How often an HTTP/2 peer is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How long an HTTP/2 peer may take to answer that.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that must be written between two looks for an answer to count as being sent: more than
/// the pings of HTTP/2, which keep no connection open.
const SENDING_BYTES_MIN: u64 = 4096;

/// When a connection is given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) header: Duration,
    pub(super) idle: Duration,
}

/// What every connection is served with.
pub(super) struct Connections {
    pub(super) router: Router,
    pub(super) hosts: Arc<Hosts>,
    /// Whether calls need no credentials.
    pub(super) is_open: bool,
    pub(super) timeouts: Timeouts,
    /// Encrypts connections, if they are to be encrypted.
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) draining: CancellationToken,
    pub(super) cut: CancellationToken,
    /// The proxies whose headers about the client's address are trusted.
    pub(super) proxies: TrustedProxies,
}

impl Connections {
    /// Serves one connection to its end.
    pub(super) async fn serve(&self, stream: TcpStream, place: Place) {
        let headers_until = Instant::now() + self.timeouts.header;
        // Tokens of its own, so that connections do not meet at one lock each time they wake up.
        let draining = self.draining.child_token();
        let cut = self.cut.child_token();
        let peer = stream.peer_addr().ok();
        let socket = match &self.tls {
            None => Socket::Plain(stream),
            Some(acceptor) => {
                // Boxed: the connection is larger for ever than its handshake otherwise.
                let agreed = Box::pin(handshake(acceptor, stream, headers_until));
                match draining.run_until_cancelled(agreed).await.flatten() {
                    Some(socket) => socket,
                    // It has asked for nothing yet.
                    None => return,
                }
            }
        };
        let activity = Arc::new(Activity::default());
        let io = MeteredSocket::new(socket, Arc::clone(&activity.traffic));
        let io = TokioIo::new(io);
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            let running = Running::start(&activity);
            let overhead = &activity.traffic.overhead;
            overhead.earn(REQUEST_EARNS_BYTES);
            if request.headers().contains_key(UPGRADE) {
                request.extensions_mut().insert(place.clone());
                request.extensions_mut().insert(Arc::clone(overhead));
            }
            if let Some(peer) = peer {
                let client = self.proxies.client(peer.ip(), request.headers());
                request.extensions_mut().insert(Peer(client));
            }
            let refusal = self.hosts.refusal_of(&request, self.is_open);
            let mut router = self.router.clone();
            async move {
                if let Some(refusal) = refusal {
                    return Ok(refusal);
                }
                let response = router.call(request).await;
                if let Ok(response) = &response
                    && let Some(alive) = response.extensions().get::<KeptAlive>()
                {
                    // A stream may be silent for long; it runs until its body is dropped.
                    let _ = alive.0.set(running);
                }
                response
            }
        });
        let builder = self.builder();
        let mut connection = pin!(builder.serve_connection_with_upgrades(io, service));
        let mut drained = pin!(draining.cancelled());
        let mut cut_off = pin!(cut.cancelled());
        let mut is_draining = false;
        let mut check = pin!(tokio::time::sleep_until(headers_until));
        let mut seen = Seen::default();
        loop {
            tokio::select! {
                biased;
                // How a connection ends is the peer's business; calls have logged what went wrong.
                _ = connection.as_mut() => break,
                () = &mut drained, if !is_draining => {
                    is_draining = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = &mut cut_off => break,
                () = &mut check => {
                    let now = activity.seen();
                    if !now.is_alive_since(seen) {
                        break;
                    }
                    seen = now;
                    check.as_mut().reset(Instant::now() + self.timeouts.idle);
                }
            }
        }
    }

    fn builder(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.timeouts.header.max(self.timeouts.idle))
            .max_buf_size(HEADER_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .keep_alive(true);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(HEADER_BYTES_MAX as u32)
            .max_concurrent_streams(STREAMS_MAX)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        builder
    }
}

/// What has happened on a connection.
#[derive(Debug, Default)]
struct Activity {
    /// Requests begun.
    requests: AtomicU64,
    /// Requests that are being handled.
    running: AtomicUsize,
    /// What was written.
    traffic: Arc<Traffic>,
}

/// [`Activity`] at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    requests: u64,
    bytes: u64,
    running: usize,
}

impl Activity {
    fn seen(&self) -> Seen {
        Seen {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.traffic.written_bytes.load(Ordering::Relaxed),
            running: self.running.load(Ordering::Relaxed),
        }
    }
}

impl Seen {
    /// Whether a request was begun or is running, or an answer is still being sent.
    fn is_alive_since(self, before: Self) -> bool {
        let sending = before.requests > 0 && self.bytes - before.bytes >= SENDING_BYTES_MIN;
        self.running > 0 || self.requests > before.requests || sending
    }
}

/// The client: the other end of a connection, or whom a trusted proxy names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// The place of a connection among all; a socket keeps it when the connection has become one.
#[derive(Debug, Clone)]
pub(super) struct Place(
    #[expect(dead_code, reason = "it is held, not read")] pub(super) Arc<OwnedSemaphorePermit>,
);

/// Goes with a body that is told as things happen: while it lives, so does its connection.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptAlive(Arc<OnceLock<Running>>);

/// A request that is being handled.
#[derive(Debug)]
struct Running(Arc<Activity>);

impl Running {
    fn start(activity: &Arc<Activity>) -> Self {
        activity.requests.fetch_add(1, Ordering::Relaxed);
        activity.running.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::api::work::Claim;
    use crate::application::{Context as CallContext, Service};
    use crate::transport::http::door::Door;
    use axum::body::Body;

    /// Bytes of a connection, of a call on it, and of a claim that waits, beside what hyper holds in buffers: thousands
    /// are open at once.
    const CONNECTION_BYTES_MAX: usize = 8 * 1024;
    const CALL_BYTES_MAX: usize = 3 * 1024;
    const CLAIM_BYTES_MAX: usize = 2 * 1024;

    fn of_connection<'a, F>(_: impl FnOnce(&'a Connections, TcpStream, Place) -> F) -> usize {
        size_of::<F>()
    }

    fn of_call<F>(_: impl FnOnce(Arc<Door<Service>>, axum::http::Request<Body>) -> F) -> usize {
        size_of::<F>()
    }

    fn of_claim<'a, F>(_: impl FnOnce(&'a Service, &'a CallContext, Claim) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_connection_is_small_and_so_is_a_call_that_waits() {
        let (connection, call) = (of_connection(Connections::serve), of_call(Door::call));
        assert!(connection <= CONNECTION_BYTES_MAX, "{connection} bytes");
        assert!(call <= CALL_BYTES_MAX, "{call} bytes");
        let claim = of_claim(Service::claim);
        assert!(claim <= CLAIM_BYTES_MAX, "{claim} bytes");
    }
}
