//! One HTTP/2 connection to a server, for calls over gRPC: with or without TLS, with the client's certificate and
//! token.

use crate::target::Target;
use crate::{ApiError, CliError};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::body::Body;
use tonic::codegen::http::header::HeaderMap;
use tonic::codegen::http::{Request, Response, Uri};
use tower::Service;

/// How long to wait for a connection, the handshakes included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the server is asked whether it is still there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// One connection over HTTP/2, which clones share.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    sender: SendRequest<Body>,
    headers: HeaderMap,
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = futures_util::future::BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        Box::pin(self.sender.send_request(request))
    }
}

/// Connects.
///
/// # Errors
/// [`ApiError::Connection`].
pub(super) async fn open(target: &Target) -> Result<(Connection, Uri), CliError> {
    let failed = |reason: String| CliError::Api(ApiError::Connection(target.unreachable(&reason)));
    let opened = timeout(CONNECT_TIMEOUT, opened(target)).await;
    let opened = opened.map_err(|_| failed(format!("no connection within {CONNECT_TIMEOUT:?}")))?;
    let sender = opened.map_err(|error| failed(error.to_string()))?;
    let origin = target.url().as_str().parse();
    let origin = origin.map_err(|_| failed("its URL is none that gRPC can use".to_owned()))?;
    let headers = target.headers().clone();
    Ok((Connection { sender, headers }, origin))
}

async fn opened(target: &Target) -> Result<SendRequest<Body>, Box<dyn std::error::Error>> {
    let url = target.url();
    let host = url.host_str().ok_or("its URL has no host")?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().ok_or("its URL has no port")?;
    let stream = TcpStream::connect((bare, port)).await?;
    stream.set_nodelay(true)?;
    if url.scheme() != "https" {
        return spoken(stream).await;
    }
    let mut config = target.tls()?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from(bare.to_owned())?;
    let connector = TlsConnector::from(Arc::new(config));
    spoken(connector.connect(name, stream).await?).await
}

async fn spoken<S>(stream: S) -> Result<SendRequest<Body>, Box<dyn std::error::Error>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // Its end is seen by those who wait for answers.
    tokio::spawn(connection);
    Ok(sender)
}
