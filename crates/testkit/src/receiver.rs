//! A receiver of requests: an HTTP/1.1 server on 127.0.0.1 that records what comes and answers by a script, faults
//! included. Most faults are no HTTP, so it writes bytes itself.

mod script;
mod tls;

pub use script::{Answer, Behaviour, Then};
pub use tls::Tls;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

/// For something that is awaited, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of the head of a request; ours are small.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// GET, POST and so on.
    pub method: String,
    /// Path and query, or what a proxy is told.
    pub path: String,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// Exactly what was sent.
    pub body: Vec<u8>,
    /// When all of it was there.
    pub at: Instant,
    /// Which connection it came on, from 1.
    pub connection: u64,
}

impl Request {
    /// The first header of this name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A receiver. Ends with the value.
pub struct Receiver {
    address: SocketAddr,
    scheme: &'static str,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    script: Mutex<Script>,
    requests: watch::Sender<Vec<Request>>,
    connections: AtomicU64,
    written: AtomicU64,
}

struct Script {
    /// What comes next, before what always holds.
    next: VecDeque<Behaviour>,
    by_path: HashMap<String, Behaviour>,
    always: Behaviour,
}

impl Receiver {
    /// One that speaks plain HTTP and answers 200.
    pub async fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), None).await
    }

    /// One that speaks TLS, or fails to.
    pub async fn start_tls(tls: Tls) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), Some(tls)).await
    }

    /// One at an address of its own.
    pub async fn at(address: SocketAddr, tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(Script {
                next: VecDeque::new(),
                by_path: HashMap::new(),
                always: Answer::status(200).into(),
            }),
            requests: watch::Sender::new(Vec::new()),
            connections: AtomicU64::new(0),
            written: AtomicU64::new(0),
        });
        let scheme = if tls.is_some() { "https" } else { "http" };
        let accepting = tokio::spawn(accept(listener, tls, shared.clone()));
        Self {
            address,
            scheme,
            shared,
            accepting,
        }
    }

    /// The certificate of the authority that signs those of all receivers.
    pub fn ca_pem() -> String {
        crate::certificates::authority_pem()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, with this path.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The same by a name.
    pub fn url_of(&self, host: &str, path: &str) -> String {
        format!("{}://{host}:{}{path}", self.scheme, self.address.port())
    }

    /// Behaves so from now on.
    pub fn answer(&self, behaviour: impl Into<Behaviour>) {
        self.shared.script.lock().unwrap().always = behaviour.into();
    }

    /// Behaves so for each of the next requests, in this order.
    pub fn answers(&self, behaviours: impl IntoIterator<Item = Behaviour>) {
        self.shared.script.lock().unwrap().next.extend(behaviours);
    }

    /// Behaves so for requests to this path.
    pub fn answer_at(&self, path: &str, behaviour: impl Into<Behaviour>) {
        let mut script = self.shared.script.lock().unwrap();
        script.by_path.insert(path.to_owned(), behaviour.into());
    }

    /// What has come.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.borrow().clone()
    }

    /// Waits until so many requests have come.
    pub async fn wait_for(&self, n: usize) -> Vec<Request> {
        let mut seen = self.shared.requests.subscribe();
        let there = seen.wait_for(|requests| requests.len() >= n);
        match tokio::time::timeout(PATIENCE, there).await {
            Ok(requests) => requests.unwrap().clone(),
            Err(_) => panic!("{n} requests did not come: {:?}", self.requests()),
        }
    }

    /// Connections that were accepted.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Bytes of answers that the network took.
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, tls: Option<Tls>, shared: Arc<Shared>) {
    // Dropped with this task, and all connections with it.
    let mut serving = JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            return;
        };
        while serving.try_join_next().is_some() {}
        let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let shared = shared.clone();
        serving.spawn(async move {
            match tls {
                None => shared.serve(socket, number).await,
                Some(tls) => {
                    if let Some(stream) = tls::accept(tls, socket).await {
                        shared.serve(stream, number).await;
                    }
                }
            }
        });
    }
}

/// A connection that can be broken.
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send {
    /// The TCP socket under it.
    fn socket(&self) -> &TcpStream;
}

impl Connection for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Connection for tokio_rustls::server::TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

impl Shared {
    /// Until the client goes, or a behaviour ends the connection.
    async fn serve<C: Connection>(&self, mut stream: C, connection: u64) {
        if let Some(behaviour) = self.unread() {
            let Behaviour::Unread(then) = behaviour else {
                return;
            };
            _ = self.end(stream, then).await;
            return;
        }
        let mut buffered = Vec::new();
        while let Some(begun) = read_head(&mut stream, &mut buffered, connection).await {
            if let Some((bytes, then)) = self.mid_request() {
                // As much of the body as is asked for, no more.
                let mut part = vec![0; bytes.saturating_sub(buffered.len())];
                _ = stream.read_exact(&mut part).await;
                self.record(begun.0);
                _ = self.end(stream, then).await;
                return;
            }
            let Some(request) = read_body(&mut stream, &mut buffered, begun).await else {
                return;
            };
            let behaviour = self.next(&request.path);
            self.record(request);
            match self.behave(stream, behaviour).await {
                Some(open) => stream = open,
                None => return,
            }
        }
    }

    fn record(&self, request: Request) {
        self.requests.send_modify(|all| all.push(request));
    }

    /// What to do with a connection before anything was read.
    fn unread(&self) -> Option<Behaviour> {
        let mut script = self.script.lock().unwrap();
        let is = |b: Option<&Behaviour>| matches!(b, Some(Behaviour::Unread(_)));
        if is(script.next.front()) {
            script.next.pop_front()
        } else {
            let always = script.always.clone();
            (script.next.is_empty() && is(Some(&always))).then_some(always)
        }
    }

    /// What to do with a request of which only the head was read.
    fn mid_request(&self) -> Option<(usize, Then)> {
        let mut script = self.script.lock().unwrap();
        let part = |behaviour: &Behaviour| {
            if let &Behaviour::MidRequest { bytes, then } = behaviour {
                Some((bytes, then))
            } else {
                None
            }
        };
        match script.next.front().map(part) {
            None => part(&script.always),
            Some(None) => None,
            Some(found) => {
                script.next.pop_front();
                found
            }
        }
    }

    fn next(&self, path: &str) -> Behaviour {
        let mut script = self.script.lock().unwrap();
        if let Some(behaviour) = script.by_path.get(path) {
            return behaviour.clone();
        }
        let next = script.next.pop_front();
        next.unwrap_or_else(|| script.always.clone())
    }

    /// The connection, if it can take another request.
    async fn behave<C: Connection>(&self, mut stream: C, behaviour: Behaviour) -> Option<C> {
        match behaviour {
            Behaviour::Answer(answer) => {
                self.write(&mut stream, &answer.bytes()).await?;
                Some(stream)
            }
            Behaviour::Delayed(delay, answer) => {
                tokio::time::sleep(delay).await;
                self.write(&mut stream, &answer.bytes()).await?;
                Some(stream)
            }
            Behaviour::Raw(bytes, then) => {
                self.write(&mut stream, &bytes).await?;
                self.end(stream, then).await
            }
            Behaviour::Endless { head, piece, pause } => {
                self.write(&mut stream, &head).await?;
                loop {
                    tokio::time::sleep(pause).await;
                    self.write(&mut stream, &piece).await?;
                }
            }
            Behaviour::Unread(then) | Behaviour::MidRequest { then, .. } => {
                self.end(stream, then).await
            }
        }
    }

    async fn write<C: Connection>(&self, stream: &mut C, bytes: &[u8]) -> Option<()> {
        stream.write_all(bytes).await.ok()?;
        stream.flush().await.ok()?;
        self.written
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Some(())
    }

    async fn end<C: Connection>(&self, mut stream: C, then: Then) -> Option<C> {
        match then {
            Then::Keep => return Some(stream),
            Then::Close => _ = stream.shutdown().await,
            Then::Reset => _ = stream.socket().set_zero_linger(),
            Then::Hang => std::future::pending().await,
            Then::HalfClose => {
                _ = stream.shutdown().await;
                // Open in the other direction until the client goes.
                _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
            }
        }
        None
    }
}

/// A request without its body, and the length of that.
type Begun = (Request, usize);

async fn read_head<C: Connection>(
    stream: &mut C,
    buffered: &mut Vec<u8>,
    connection: u64,
) -> Option<Begun> {
    let end = loop {
        if let Some(at) = buffered.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        if buffered.len() > HEAD_BYTES_MAX || stream.read_buf(buffered).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&buffered[..end]).into_owned();
    buffered.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let request = Request {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        headers: lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect(),
        body: Vec::new(),
        at: Instant::now(),
        connection,
    };
    let length = request.header("content-length");
    let length = length.map_or(0, |text| text.parse().unwrap());
    Some((request, length))
}

async fn read_body<C: Connection>(
    stream: &mut C,
    buffered: &mut Vec<u8>,
    (mut request, length): Begun,
) -> Option<Request> {
    while buffered.len() < length {
        if stream.read_buf(buffered).await.ok()? == 0 {
            return None;
        }
    }
    request.body = buffered.drain(..length).collect();
    request.at = Instant::now();
    Some(request)
}
