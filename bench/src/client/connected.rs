//! The connection of a client: bare, or with TLS when the servers are asked for that.

use crate::args::Tls;
use std::ffi::OsString;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use taskledger_net::tls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, Result};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How servers are asked with TLS; absent: they are asked without.
static TLS: OnceLock<Spoken> = OnceLock::new();

struct Spoken {
    connector: TlsConnector,
    arguments: Vec<OsString>,
}

/// From now on servers are started with this certificate, and all clients speak TLS with them.
pub(crate) fn speak_tls(with: Tls<'_>) -> std::result::Result<(), String> {
    let named = |error: String| format!("{}: {error}", with.authority.display());
    let authorities = tls::authorities(with.authority).map_err(named)?;
    let config = tls::config(authorities).map_err(|e| named(e.to_string()))?;
    let spoken = Spoken {
        connector: Arc::new(config).into(),
        arguments: vec![
            "--tls-cert".into(),
            with.certificate.into(),
            "--tls-key".into(),
            with.key.into(),
        ],
    };
    TLS.set(spoken).map_err(|_| "asked for twice".to_owned())
}

/// What servers are started with so that they speak it.
pub(crate) fn server_arguments() -> &'static [OsString] {
    TLS.get().map_or(&[], |spoken| spoken.arguments.as_slice())
}

/// A connection to a server.
pub(super) enum Connected {
    Bare(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

pub(super) async fn open(address: &str) -> std::result::Result<Connected, String> {
    let failed = |error: std::io::Error| format!("{address}: {error}");
    let stream = TcpStream::connect(address).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let Some(Spoken { connector, .. }) = TLS.get() else {
        return Ok(Connected::Bare(stream));
    };
    let ip = stream.peer_addr().map_err(failed)?.ip();
    let stream = connector.connect(ip.into(), stream).await.map_err(failed)?;
    Ok(Connected::Tls(Box::new(stream)))
}

impl AsyncRead for Connected {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Bare(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Connected {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        match self.get_mut() {
            Self::Bare(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Bare(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Bare(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
