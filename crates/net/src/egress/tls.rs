//! Whom receivers are believed: the system's authorities, and those of the operator.

use super::BuildError;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::path::Path;

/// HTTP/1.1 over TLS.
pub(super) fn config(ca_file: Option<&Path>) -> Result<ClientConfig, BuildError> {
    let mut config = match ca_file {
        None => crate::tls::config([])?,
        Some(path) => {
            let fail = |reason: String| BuildError::CaFile {
                path: path.to_owned(),
                reason,
            };
            let authorities = authorities(path).map_err(fail)?;
            crate::tls::config(authorities).map_err(|e| fail(e.to_string()))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| e.to_string())?;
    if found.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(found)
}
