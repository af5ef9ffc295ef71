//! Receivers with TLS, good and bad.

use crate::certificates::Pair;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

/// How a receiver speaks TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// As it should, for 127.0.0.1 and `hook.example`, signed by the authority of all receivers.
    Good,
    /// With a certificate that is over.
    Expired,
    /// With a certificate for somebody else.
    WrongName,
    /// With a certificate that nobody signed.
    SelfSigned,
    /// Not at all: it answers in plain HTTP.
    Plaintext,
    /// It breaks off in the middle of the handshake.
    Truncated,
    /// It knows nothing newer than TLS 1.0, and says so.
    Old,
    /// It speaks HTTP/2 only.
    Http2Only,
}

fn acceptor(tls: Tls) -> TlsAcceptor {
    let names = ["hook.example", "127.0.0.1"];
    let pair = match tls {
        Tls::WrongName => Pair::of(&["other.example"]),
        Tls::Expired => Pair::expired(&names),
        Tls::SelfSigned => Pair::self_signed(&names),
        Tls::Good | Tls::Plaintext | Tls::Truncated | Tls::Old | Tls::Http2Only => Pair::of(&names),
    };
    let certificate = CertificateDer::from(pair.der);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.key_der));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let protocol = if tls == Tls::Http2Only {
        "h2"
    } else {
        "http/1.1"
    };
    config.alpn_protocols = vec![protocol.into()];
    TlsAcceptor::from(Arc::new(config))
}

/// The encrypted connection, if there is to be one.
pub(super) async fn accept(tls: Tls, mut socket: TcpStream) -> Option<TlsStream<TcpStream>> {
    let said: &[u8] = match tls {
        Tls::Good | Tls::Expired | Tls::WrongName | Tls::SelfSigned | Tls::Http2Only => {
            return acceptor(tls).accept(socket).await.ok();
        }
        Tls::Plaintext => b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
        // The head of a record of 512 bytes, and two of them.
        Tls::Truncated => b"\x16\x03\x03\x02\x00\x02\x00",
        // A fatal alert (`protocol_version`) in a record of TLS 1.0: what such a server answers.
        Tls::Old => b"\x15\x03\x01\x00\x02\x02\x46",
    };
    let mut hello = [0; 4096];
    _ = socket.read(&mut hello).await;
    _ = socket.write_all(said).await;
    _ = socket.shutdown().await;
    _ = tokio::io::copy(&mut socket, &mut tokio::io::sink()).await;
    None
}
