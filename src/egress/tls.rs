//! Whom the server trusts: the system's authorities, and those of the operator. There is no way to
//! switch verification off.

use super::BuildError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// TLS 1.2 and 1.3, HTTP/1.1.
pub(super) fn config(ca_file: Option<&Path>) -> Result<ClientConfig, BuildError> {
    let mut roots = RootCertStore::empty();
    let of_the_system = rustls_native_certs::load_native_certs();
    let (taken, _) = roots.add_parsable_certificates(of_the_system.certs);
    if let Some(path) = ca_file {
        add(&mut roots, path)?;
    } else if taken == 0 {
        tracing::warn!("the system names no certificate authorities; no https receiver is trusted");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), BuildError> {
    let fail = |reason: String| BuildError::CaFile {
        path: path.to_owned(),
        reason,
    };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|e| fail(e.to_string()))?;
    let mut any = false;
    for certificate in certificates {
        let certificate = certificate.map_err(|e| fail(e.to_string()))?;
        roots.add(certificate).map_err(|e| fail(e.to_string()))?;
        any = true;
    }
    if any {
        Ok(())
    } else {
        Err(fail("there is no certificate in it".to_owned()))
    }
}
