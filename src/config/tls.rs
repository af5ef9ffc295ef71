//! Whether the server speaks TLS, and with which certificate.

use crate::tls::Files;
use clap::Args;
use std::path::PathBuf;

/// Settings of TLS: both or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct TlsConfig {
    /// Certificate of this server, followed by intermediate certificates (PEM): serves https instead of http.
    /// Reloaded on SIGHUP and once a minute
    #[arg(
        id = "tls_cert",
        long = "tls-cert",
        value_name = "FILE",
        env = "TASKLEDGER_TLS_CERT",
        requires = "tls_key"
    )]
    pub certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM), readable by its owner only
    #[arg(
        id = "tls_key",
        long = "tls-key",
        value_name = "FILE",
        env = "TASKLEDGER_TLS_KEY",
        requires = "tls_cert"
    )]
    pub key: Option<PathBuf>,

    /// Certificate authorities (PEM) of clients: only clients with a certificate signed by one of them may connect.
    /// Callers still need credentials. Read once at start
    #[arg(
        id = "tls_client_ca",
        long = "tls-client-ca",
        value_name = "FILE",
        env = "TASKLEDGER_TLS_CLIENT_CA",
        requires = "tls_cert"
    )]
    pub client_authorities: Option<PathBuf>,
}

impl TlsConfig {
    /// Where certificate and key are; `None`: the server does not speak TLS.
    #[must_use]
    pub fn files(&self) -> Option<Files> {
        let (certificate, key) = (self.certificate.clone()?, self.key.clone()?);
        Some(Files { certificate, key })
    }
}
