//! TLS before the door: handshakes, renewal while calls are under way, and peers that begin a handshake
//! and do not end it (AU-12).

use crate::protocol::fake::Fake;
use crate::protocol::harness::{Client, Server};
use axum::body::Body;
use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::pki_types::ServerName;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use taskledger::tls::{Certificates, Reloaded};
use taskledger::transport::http::Options;
use taskledger_testkit::certificates::{self, Files, LOCAL, Pair};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The longest wait for what must happen in the end, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Handshakes that are begun and not ended.
const STALLED: usize = 2_000;
/// Of those that are begun at the same time: the system keeps so many waiting for a server that accepts them.
const AT_ONCE: usize = 100;
/// Files that the test needs: two for each connection, as the server is in the same process, and some others.
const FILES: u64 = 2 * STALLED as u64 + 500;
/// For a server to end that has nothing left to do: half of what a handshake may take.
const END_WITHIN: Duration = Duration::from_secs(5);
/// The beginning of a handshake: the head of a record of 512 bytes, and two of them.
const HALF_A_HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00";

fn now() -> DateTime<Utc> {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

/// A server that shows the certificate in files.
struct Encrypted {
    files: Files,
    shown: Arc<Certificates>,
    server: Server,
}

impl Encrypted {
    async fn start(options: Options) -> Self {
        let files = Files::new();
        let of_server = taskledger::tls::Files {
            certificate: files.certificate(),
            key: files.key(),
        };
        let shown = Certificates::load(of_server, now()).unwrap();
        let options = Options {
            tls: Some(shown.clone()),
            ..options
        };
        let server = Server::with(options, Fake::default()).await;
        Self {
            files,
            shown,
            server,
        }
    }

    async fn connect(&self, protocol: &str) -> Caller {
        Caller::connect(self.server.addr(), protocol).await
    }
}

async fn encrypted(address: SocketAddr, protocol: &str) -> TlsStream<TcpStream> {
    let mut config = taskledger::tls::config([certificates::authority_der()]).unwrap();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    connector.connect(name, stream).await.unwrap()
}

enum Sender {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

/// A client on one connection.
struct Caller {
    sender: Sender,
    /// What the server has agreed to.
    protocol: Vec<u8>,
    /// What the server has shown.
    certificate: Vec<u8>,
}

impl Caller {
    async fn connect(address: SocketAddr, protocol: &str) -> Self {
        let stream = encrypted(address, protocol).await;
        let (_, session) = stream.get_ref();
        let agreed = session.alpn_protocol().unwrap().to_vec();
        let certificate = session.peer_certificates().unwrap()[0].to_vec();
        let io = TokioIo::new(stream);
        let sender = if protocol == "h2" {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            Sender::Two(sender)
        } else {
            let (sender, connection) = http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            Sender::One(sender)
        };
        Self {
            sender,
            protocol: agreed,
            certificate,
        }
    }

    async fn get(&mut self, path: &str) -> Value {
        let request = Request::get(path).header("host", "localhost");
        self.send(request.body(Body::empty()).unwrap()).await
    }

    async fn call(&mut self, method: &str, n: usize) -> Value {
        let body = format!(
            r#"{{"jsonrpc":"2.0","method":"test.{method}","params":{{"n":{n}}},"id":{n}}}"#
        );
        let uri = match self.sender {
            Sender::One(_) => "/",
            Sender::Two(_) => "https://localhost/",
        };
        let request = Request::post(uri)
            .header("host", "localhost")
            .header("content-type", "application/json");
        self.send(request.body(Body::from(body)).unwrap()).await
    }

    async fn send(&mut self, request: Request<Body>) -> Value {
        let response: Response<_> = match &mut self.sender {
            Sender::One(sender) => sender.send_request(request).await.unwrap(),
            Sender::Two(sender) => sender.send_request(request).await.unwrap(),
        };
        assert_eq!(response.status(), 200);
        let body = axum::body::to_bytes(Body::new(response.into_body()), usize::MAX).await;
        serde_json::from_slice(&body.unwrap()).unwrap()
    }
}

#[tokio::test]
async fn calls_are_answered_over_tls_in_both_versions_of_http() {
    let server = Encrypted::start(Options::default()).await;
    for protocol in ["http/1.1", "h2"] {
        let mut caller = server.connect(protocol).await;
        assert_eq!(caller.protocol, protocol.as_bytes());
        for n in 0..3 {
            assert_eq!(caller.call("echo", n).await["result"]["n"], n);
        }
    }
}

#[tokio::test]
async fn the_server_gives_its_address_as_https() {
    let server = Encrypted::start(Options::default()).await;
    let url = format!("https://{}", server.server.addr());
    assert_eq!(server.server.handle.url, url);
    let mut caller = server.connect("http/1.1").await;
    assert_eq!(caller.get("/.well-known/agent-card").await["url"], url);
    let expires = server.server.handle.certificate_expires_at();
    assert_eq!(expires, Some("2100-01-01T00:00:00Z".parse().unwrap()));
    let plain = Server::start().await;
    assert_eq!(plain.handle.certificate_expires_at(), None);
}

#[tokio::test]
async fn who_does_not_encrypt_is_not_answered() {
    let server = Encrypted::start(Options::default()).await;
    let mut plain = server.server.connect().await;
    plain
        .send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    let said = plain.closed().await;
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    assert_eq!(server.connect("h2").await.call("echo", 1).await["id"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_while_certificates_are_renewed() {
    /// Certificates, one after the other.
    const RENEWALS: usize = 8;
    /// Calls between two of them.
    const CALLS: usize = 50;
    let server = Encrypted::start(Options::default()).await;
    let (over, answered) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
    let address = server.server.addr();
    let load = (0..4).map(|client| {
        let (over, answered) = (over.clone(), answered.clone());
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let protocol = if client % 2 == 0 { "h2" } else { "http/1.1" };
                let mut caller = Caller::connect(address, protocol).await;
                for n in 0..5 {
                    assert_eq!(caller.call("echo", n).await["result"]["n"], n);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    });
    let load: Vec<_> = load.collect();
    let mut held = server.connect("h2").await;
    let before = held.certificate.clone();
    let held = tokio::spawn(async move { held.call("hold", 7).await });
    server.server.fake.waiting.acquire().await.unwrap().forget();
    let mut shown = vec![before];
    for _ in 0..RENEWALS {
        let reached = answered.load(Ordering::Relaxed) + CALLS;
        let pair = Pair::of(&LOCAL);
        server.files.write(&pair);
        assert_eq!(server.shown.reload(now()).unwrap(), Reloaded::Replaced);
        let mut fresh = server.connect("http/1.1").await;
        assert_eq!(fresh.certificate, pair.der, "new connections see it");
        assert!(!shown.contains(&pair.der));
        shown.push(pair.der);
        assert_eq!(fresh.call("echo", 1).await["id"], 1);
        let more = async {
            while answered.load(Ordering::Relaxed) < reached {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, more).await.expect("calls are answered");
    }
    over.store(true, Ordering::Relaxed);
    for client in load {
        client.await.expect("every call was answered");
    }
    server.server.fake.gate.add_permits(1);
    assert_eq!(held.await.unwrap()["result"], "held");
}

#[tokio::test]
async fn a_pair_that_cannot_be_used_leaves_the_one_before() {
    let server = Encrypted::start(Options::default()).await;
    let before = server.connect("h2").await.certificate;
    let expired = Pair::expired(&LOCAL);
    server.files.write(&expired);
    assert!(server.shown.reload(now()).is_err());
    let half = server.files.certificate();
    server.files.replace(half, &expired.certificate[..100]);
    assert!(server.shown.reload(now()).is_err());
    assert_eq!(server.connect("h2").await.certificate, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_that_stall_keep_nobody_else_waiting() {
    let files = getrlimit(Resource::Nofile);
    let current = files.current.map(|current| current.max(FILES));
    let maximum = files.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("so many files may be open");
    let server = Encrypted::start(Options::default()).await;
    let stalled = (0..STALLED).map(async |n| {
        let mut client = server.server.connect().await;
        client.send(&HALF_A_HELLO[..n % HALF_A_HELLO.len()]).await;
        client
    });
    let stalled = stream::iter(stalled).buffer_unordered(AT_ONCE);
    let stalled: Vec<Client> = stalled.collect().await;
    assert_eq!(stalled.len(), STALLED);
    for protocol in ["http/1.1", "h2"] {
        let mut caller = server.connect(protocol).await;
        let answer = timeout(Options::default().header_timeout, caller.call("echo", 1));
        assert_eq!(answer.await.expect("an answer in time")["id"], 1);
    }
    drop(stalled);
}

#[tokio::test]
async fn a_handshake_that_stalls_is_given_up_with_the_deadline_of_headers() {
    let options = Options {
        header_timeout: Duration::from_millis(250),
        ..Options::default()
    };
    let server = Encrypted::start(options).await;
    let stalled = [0, 3, HALF_A_HELLO.len()].map(async |bytes| {
        let mut client = server.server.connect().await;
        client.send(&HALF_A_HELLO[..bytes]).await;
        client.closed().await
    });
    let closed = timeout(PATIENCE, join_all(stalled)).await.unwrap();
    assert!(closed.iter().all(Vec::is_empty));
    // After the handshake what is left of the time is for the headers.
    let mut silent = encrypted(server.server.addr(), "http/1.1").await;
    let mut bytes = Vec::new();
    let closed = tokio::io::AsyncReadExt::read_to_end(&mut silent, &mut bytes);
    let _ = timeout(PATIENCE, closed).await.expect("it is closed");
    assert!(bytes.is_empty());
}

#[tokio::test]
async fn a_handshake_holds_a_place_among_the_connections() {
    let options = Options {
        connections_max: 2,
        header_timeout: Duration::from_millis(500),
        ..Options::default()
    };
    let server = Encrypted::start(options).await;
    let stalled = [server.server.connect().await, server.server.connect().await];
    while server.server.handle.connections() < 2 {
        tokio::task::yield_now().await;
    }
    let waits = server.connect("h2");
    let mut caller = timeout(PATIENCE, waits)
        .await
        .expect("the places are free again");
    assert_eq!(caller.call("echo", 1).await["id"], 1);
    drop(stalled);
}

#[tokio::test]
async fn a_handshake_that_stalls_does_not_delay_the_end_of_the_server() {
    let server = Encrypted::start(Options::default()).await;
    let stalled = server.server.connect().await;
    while server.server.handle.connections() < 1 {
        tokio::task::yield_now().await;
    }
    server.server.stop.cancel();
    let ended = timeout(END_WITHIN, server.server.running).await;
    ended.expect("it ends at once").unwrap();
    drop(stalled);
}
