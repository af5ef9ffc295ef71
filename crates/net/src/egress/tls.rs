//! The certificate authorities that are trusted for receivers: the system's, and those of the operator.

use super::BuildError;
use rustls::ClientConfig;
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
            let authorities = crate::tls::authorities(path).map_err(fail)?;
            crate::tls::config(authorities).map_err(|e| fail(e.to_string()))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
