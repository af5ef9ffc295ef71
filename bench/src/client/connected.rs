//! The connection of a client: bare, or with TLS when the servers are asked for that.

use crate::args::Tls;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use taskledger_net::tls;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// How servers are asked with TLS; absent: they are asked without.
static TLS: OnceLock<Spoken> = OnceLock::new();

struct Spoken {
    connector: TlsConnector,
    arguments: Vec<OsString>,
}

/// From now on servers are started with this certificate, and all clients speak TLS with them.
pub(crate) fn speak_tls(with: Tls<'_>) -> Result<(), String> {
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
pub(super) type Connected = Either<TcpStream, Box<TlsStream<TcpStream>>>;

pub(super) async fn open(address: &str) -> Result<Connected, String> {
    let failed = |error: std::io::Error| format!("{address}: {error}");
    let stream = TcpStream::connect(address).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let Some(Spoken { connector, .. }) = TLS.get() else {
        return Ok(Either::Left(stream));
    };
    let ip = stream.peer_addr().map_err(failed)?.ip();
    let stream = connector.connect(ip.into(), stream).await.map_err(failed)?;
    Ok(Either::Right(Box::new(stream)))
}
