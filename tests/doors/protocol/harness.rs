//! A server on a free port and two small clients: raw HTTP/1.1, and HTTP/2 without TLS.

use crate::protocol::fake::{Fake, methods};
use axum::body::{Body, Bytes};
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use taskledger::clock::SystemClock;
use taskledger::transport::http::{Handle, Inside, Options, Peers, Service};
use taskledger::transport::jsonrpc::Dispatcher;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The servers of the tests answer with at most so much.
pub(crate) const ANSWER_BYTES_MAX: usize = 8_000_000;

/// A running server. Ends with the test.
pub(crate) struct Server {
    pub(crate) fake: Arc<Fake>,
    pub(crate) handle: Handle,
    pub(crate) stop: CancellationToken,
    pub(crate) running: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Options::default(), Fake::default()).await
    }

    pub(crate) async fn with(options: Options, fake: Fake) -> Self {
        Self::as_node(options, fake, None).await
    }

    /// The same as one of several, if somebody takes the calls of others.
    pub(crate) async fn as_node(
        options: Options,
        fake: Fake,
        peers: Option<Arc<dyn Peers>>,
    ) -> Self {
        let options = Options {
            listen: "127.0.0.1:0".to_owned(),
            ..options
        };
        let fake = Arc::new(fake);
        let clock = Arc::new(SystemClock::default());
        let dispatcher = Dispatcher::new(Arc::clone(&fake), methods(), clock.clone())
            .with_answer_bytes_max(ANSWER_BYTES_MAX);
        let dispatcher = Arc::new(dispatcher);
        let inside = Inside {
            readiness: fake.clone(),
            authenticate: None,
            peers,
            metrics: None,
            broker: None,
        };
        let (service, handle) = Service::bind(options, dispatcher, inside, clock)
            .await
            .unwrap();
        let stop = CancellationToken::new();
        let running = tokio::spawn(service.run(stop.clone()));
        Self {
            fake,
            handle,
            stop,
            running,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.handle.local_addr
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.addr()).await
    }

    /// The answer to one body on a fresh connection.
    pub(crate) async fn post(&self, body: impl AsRef<[u8]>) -> Answer {
        self.connect().await.post("/", body).await
    }

    /// The JSON of the answer to one body; its status must be 200.
    pub(crate) async fn call(&self, body: impl AsRef<[u8]>) -> Value {
        self.post(body).await.ok()
    }
}

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        self.json()
    }

    /// The code of the error in the body.
    pub(crate) fn code(&self) -> Option<i64> {
        self.json()["error"]["code"].as_i64()
    }
}

/// HTTP/1.1, byte by byte.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// The same as a client at the address `from`, which is one of this machine.
    pub(crate) async fn connect_from(from: IpAddr, addr: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let stream = socket.connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn post(&mut self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.send(request(path, "", body)).await;
        self.read().await
    }

    /// The answer to a request with these headers and no others than it needs.
    pub(crate) async fn send_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let length = body.len();
        let lines: String = (headers.iter())
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{lines}content-length: {length}\r\n\r\n"
        );
        self.send([head.as_bytes(), body].concat()).await;
        self.read().await
    }

    /// The next answer.
    pub(crate) async fn read(&mut self) -> Answer {
        self.try_read()
            .await
            .expect("the server closed the connection")
    }

    /// The next answer; `None` when the connection ends before it.
    pub(crate) async fn try_read(&mut self) -> Option<Answer> {
        let head_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                break at;
            }
            self.more().await?;
        };
        let head = String::from_utf8(self.buffer.drain(..head_end + 4).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, value)| value.parse().unwrap());
        while self.buffer.len() < length {
            self.more().await?;
        }
        let body = String::from_utf8(self.buffer.drain(..length).collect()).unwrap();
        Some(Answer {
            status,
            headers,
            body,
        })
    }

    /// Waits until the server closes the connection; whatever it still sends is returned.
    pub(crate) async fn closed(&mut self) -> Vec<u8> {
        while self.more().await.is_some() {}
        std::mem::take(&mut self.buffer)
    }

    async fn more(&mut self) -> Option<()> {
        self.buffer.reserve(64 * 1024);
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(()),
        }
    }
}

/// The bytes of a `POST` of JSON with `extra` header lines.
pub(crate) fn request(path: &str, extra: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{extra}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// HTTP/2 with prior knowledge.
#[derive(Clone)]
pub(crate) struct Http2(hyper::client::conn::http2::SendRequest<Body>);

impl Http2 {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    pub(crate) async fn post(&mut self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        let headers = [("content-type", "application/json")];
        self.send_with("POST", path, &headers, body.as_ref()).await
    }

    /// The answer to a request with these headers and no others.
    pub(crate) async fn send_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Body::from(Bytes::copy_from_slice(body)))
            .unwrap();
        let (head, body) = self.0.send_request(request).await.unwrap().into_parts();
        let body = axum::body::to_bytes(Body::new(body), usize::MAX)
            .await
            .unwrap();
        Answer {
            status: head.status.as_u16(),
            headers: head
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
                .collect(),
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }
}
