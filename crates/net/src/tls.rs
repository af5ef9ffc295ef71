//! TLS settings: the authorities that this program trusts as a client, the certificate that it shows as a server, and
//! the encryption that it accepts.
//!
//! The library brings no cryptography of its own choice, so every client of this program is made here or
//! with the configuration from here. There is no way to switch verification off.

mod certificates;
mod pem;
mod validity;

pub use certificates::{Certificates, Error, Files, Reloaded};
pub use pem::authorities;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::sync::{Arc, LazyLock};

/// A certificate of an authority.
pub type Authority = CertificateDer<'static>;

/// The authorities of the system, read once: there are more than a hundred of them.
static OF_THE_SYSTEM: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    let (taken, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if taken == 0 {
        tracing::warn!("the system names no certificate authorities");
    }
    roots
});

/// TLS 1.2 and 1.3 with the authorities of the system and these.
///
/// # Errors
/// One of the certificates cannot be an authority.
pub fn config<'a>(
    more: impl IntoIterator<Item = CertificateDer<'a>>,
) -> Result<ClientConfig, rustls::Error> {
    config_showing(more, None)
}

/// As [`config`], with a certificate that is shown to servers which ask for one.
///
/// # Errors
/// One of the certificates cannot be an authority.
pub fn config_showing<'a>(
    more: impl IntoIterator<Item = CertificateDer<'a>>,
    shown: Option<Arc<Certificates>>,
) -> Result<ClientConfig, rustls::Error> {
    let mut roots = OF_THE_SYSTEM.clone();
    for authority in more {
        roots.add(authority.into_owned())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_root_certificates(roots);
    Ok(match shown {
        Some(shown) => config.with_client_cert_resolver(shown),
        None => config.with_no_client_auth(),
    })
}

/// A client that is built on: for calls to servers that whoever runs this program has named. Calls to
/// addresses that callers name go through `egress`.
///
/// # Panics
/// Never: the cryptography that is built in speaks both versions.
pub fn client() -> reqwest::ClientBuilder {
    client_trusting([]).expect("the provider speaks TLS 1.2 and 1.3")
}

/// As [`client`], with these authorities beside those of the system.
///
/// # Errors
/// One of the certificates cannot be an authority.
pub fn client_trusting<'a>(
    more: impl IntoIterator<Item = CertificateDer<'a>>,
) -> Result<reqwest::ClientBuilder, rustls::Error> {
    client_showing(more, None)
}

/// As [`client_trusting`], with a certificate that is shown to servers which ask for one.
///
/// # Errors
/// One of the certificates cannot be an authority.
pub fn client_showing<'a>(
    more: impl IntoIterator<Item = CertificateDer<'a>>,
    shown: Option<Arc<Certificates>>,
) -> Result<reqwest::ClientBuilder, rustls::Error> {
    let config = config_showing(more, shown)?;
    Ok(reqwest::Client::builder().tls_backend_preconfigured(config))
}

/// What TLS says is wrong with a connection, if it is TLS that has failed: most often a certificate that is
/// not trusted. Found among the causes of the error of a request.
#[must_use]
pub fn fault<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    /// What an error of the system was made of, which it does not give as its cause.
    fn inner<'a>(
        error: &'a (dyn std::error::Error + 'static),
    ) -> Option<&'a (dyn std::error::Error + 'static)> {
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        inner.map(|inner| inner as _)
    }
    let next =
        |error: &&'a (dyn std::error::Error + 'static)| inner(*error).or_else(|| error.source());
    std::iter::successors(Some(error), next).find_map(|cause| cause.downcast_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_found_however_deep_it_lies() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] io::Error);
        let broken = || rustls::Error::DecryptError;
        let once = io::Error::other(broken());
        assert_eq!(fault(&once), Some(&broken()));
        let twice = Outer(io::Error::other(io::Error::other(broken())));
        assert_eq!(fault(&twice), Some(&broken()));
        assert_eq!(fault(&Outer(io::Error::other("else"))), None);
        assert_eq!(fault(&broken()), Some(&broken()));
    }
}
