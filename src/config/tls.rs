//! Whether the server speaks TLS, and with which certificate.

use crate::tls::Files;
use clap::Args;
use std::path::PathBuf;

/// Settings of TLS: both or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct TlsConfig {
    /// Certificate of this server, then those of the authorities between it and a root (PEM): https instead of http. Read again on SIGHUP, and each minute
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

    /// Certificate authorities (PEM) of clients: only clients with a certificate that one of them has signed may connect. It does not say who calls: credentials do. Read at the start
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
