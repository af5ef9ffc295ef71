//! Receivers with TLS, good and bad. All certificates are made when a test needs them.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use std::sync::{Arc, LazyLock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
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

type Authority = CertifiedIssuer<'static, KeyPair>;

static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
        .distinguished_name
        .push(DnType::CommonName, "authority of the tests");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
});

/// The certificate of the authority.
pub(super) fn ca_pem() -> String {
    AUTHORITY.pem()
}

fn acceptor(tls: Tls) -> TlsAcceptor {
    let name = match tls {
        Tls::WrongName => "other.example",
        Tls::Good
        | Tls::Expired
        | Tls::SelfSigned
        | Tls::Plaintext
        | Tls::Truncated
        | Tls::Old
        | Tls::Http2Only => "hook.example",
    };
    let mut names = vec![name.to_owned()];
    if tls != Tls::WrongName {
        names.push("127.0.0.1".to_owned());
    }
    let mut params = CertificateParams::new(names).unwrap();
    if tls == Tls::Expired {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = if tls == Tls::SelfSigned {
        params.self_signed(&key).unwrap()
    } else {
        params.signed_by(&key, &AUTHORITY).unwrap()
    };
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
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
