//! The certificate of a server or a client, from two files, which may be replaced while connections are open; and the
//! authorities whose client certificates a server demands.
//!
//! Owns: which certificate is shown now. Each handshake takes the present one; connections that are open
//! keep theirs. Files that cannot be used change nothing: the certificate before is shown on.

use super::pem;
use super::validity::Validity;
use crate::secret_file;
use chrono::{DateTime, SecondsFormat, Utc};
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore, ServerConfig, SignatureScheme};
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Bytes of each of the files: a hundred times what a chain of a few certificates has.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// What may be agreed on within TLS, the preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The files of a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The certificate of the server, then those of the authorities between it and a root, in PEM.
    pub certificate: PathBuf,
    /// The private key of the first of them, in PEM.
    pub key: PathBuf,
}

/// The files cannot be used; whoever runs the server mends them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There are no certificates in the file.
    #[error(
        "the certificate file `{path}` cannot be used: {reason}; expected PEM, blocks of `-----BEGIN \
         CERTIFICATE-----`, that of the server first"
    )]
    Certificate {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The authorities of clients cannot be used.
    #[error(
        "the file `{path}` with the authorities of clients cannot be used: {reason}; expected PEM, blocks of \
         `-----BEGIN CERTIFICATE-----`"
    )]
    Clients {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is no key in the file.
    #[error(
        "the key file `{path}` cannot be used: {reason}; expected PEM, one block of `-----BEGIN PRIVATE \
         KEY-----` (also `RSA` or `EC PRIVATE KEY`), not encrypted"
    )]
    Key {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What is wrong; no part of the key.
        reason: String,
    },
    /// The key is not read: there is no such file, or it is no secret.
    #[error("cannot use the key file: {0}")]
    KeyFile(#[source] secret_file::Error),
    /// Certificate and key do not belong together.
    #[error(
        "the key in `{}` does not belong to the first certificate in `{}`; expected files of one issue",
        .0.key.display(),
        .0.certificate.display()
    )]
    Mismatch(Files),
    /// The certificate is not valid now.
    #[error(
        "the certificate in `{path}` is valid from {} until {} only; expected one that is valid now",
        shown(*.from),
        shown(*.until)
    )]
    NotValid {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// Not valid before.
        from: DateTime<Utc>,
        /// Not valid afterwards.
        until: DateTime<Utc>,
    },
}

fn shown(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The result of looking at the files again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloaded {
    /// Nothing: the files hold what is shown already.
    Same,
    /// New handshakes get another certificate.
    Replaced,
}

/// When the files were read, the last time with each outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// They could be used, whether or not they held another certificate. At the start at the latest.
    pub usable: DateTime<Utc>,
    /// They could not, and the certificate before is shown on; `None`: that has not happened.
    pub failed: Option<DateTime<Utc>>,
}

/// The present certificate of a server.
pub struct Certificates {
    files: Files,
    current: RwLock<Arc<Current>>,
    reads: Mutex<Reads>,
    /// Who judges the certificates of clients; `None`: none is asked for.
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

struct Current {
    certified: Arc<CertifiedKey>,
    validity: Validity,
}

impl fmt::Debug for Certificates {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("files", &self.files)
            .field("expires_at", &self.expires_at())
            .finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads both files.
    ///
    /// # Errors
    /// [`Error`].
    pub fn load(files: Files, now: DateTime<Utc>) -> Result<Arc<Self>, Error> {
        Self::judging(files, None, now)
    }

    /// As [`Self::load`]; a server with these takes connections only of clients with a certificate that one of the
    /// authorities in a file has signed. That file is read here and not again.
    ///
    /// # Errors
    /// [`Error`].
    pub fn load_with_clients(
        files: Files,
        authorities: &Path,
        now: DateTime<Utc>,
    ) -> Result<Arc<Self>, Error> {
        let fail = |reason: String| Error::Clients {
            path: authorities.to_owned(),
            reason,
        };
        let mut roots = RootCertStore::empty();
        for authority in pem::authorities(authorities).map_err(fail)? {
            roots
                .add(authority)
                .map_err(|error| fail(error.to_string()))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().map_err(|error| fail(error.to_string()))?;
        Self::judging(files, Some(verifier), now)
    }

    fn judging(
        files: Files,
        clients: Option<Arc<dyn ClientCertVerifier>>,
        now: DateTime<Utc>,
    ) -> Result<Arc<Self>, Error> {
        let current = Arc::new(Current::read(&files, now)?);
        Ok(Arc::new(Self {
            files,
            current: RwLock::new(current),
            reads: Mutex::new(Reads {
                usable: now,
                failed: None,
            }),
            clients,
        }))
    }

    /// Whether clients have to show a certificate.
    #[must_use]
    pub fn asks_clients(&self) -> bool {
        self.clients.is_some()
    }

    /// Reads both files again. Blocks as long as the disk takes.
    ///
    /// # Errors
    /// [`Error`]: the certificate before is shown on.
    pub fn reload(&self, now: DateTime<Utc>) -> Result<Reloaded, Error> {
        let read = Current::read(&self.files, now);
        {
            let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
            match &read {
                Ok(_) => reads.usable = now,
                Err(_) => reads.failed = Some(now),
            }
        }
        let read = read?;
        // The same certificate has the same key.
        if read.certified.cert == self.current().certified.cert {
            return Ok(Reloaded::Same);
        }
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(read);
        Ok(Reloaded::Replaced)
    }

    /// When the present certificate ends.
    #[must_use]
    pub fn expires_at(&self) -> DateTime<Utc> {
        self.current().validity.until
    }

    /// When the files were read.
    #[must_use]
    pub fn reads(&self) -> Reads {
        *self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a server that shows these certificates speaks TLS: 1.2 and 1.3, HTTP/2 preferred.
    ///
    /// # Panics
    /// Never: the cryptography that is built in speaks both versions.
    #[must_use]
    pub fn server_config(self: &Arc<Self>) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .expect("the provider speaks TLS 1.2 and 1.3");
        let config = match &self.clients {
            Some(verifier) => config.with_client_cert_verifier(verifier.clone()),
            None => config.with_no_client_auth(),
        };
        let mut config = config.with_cert_resolver(self.clone());
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Arc::new(config)
    }

    fn current(&self) -> Arc<Current> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current().certified))
    }
}

impl ResolvesClientCert for Certificates {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current().certified))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl Current {
    fn read(files: &Files, now: DateTime<Utc>) -> Result<Self, Error> {
        let (chain, validity) = certificates(&files.certificate)?;
        let key = key(&files.key)?;
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(|error| {
            if error == InconsistentKeys::KeyMismatch.into() {
                return Error::Mismatch(files.clone());
            }
            Error::Key {
                path: files.key.clone(),
                reason: error.to_string(),
            }
        })?;
        if !validity.contains(now) {
            return Err(Error::NotValid {
                path: files.certificate.clone(),
                from: validity.from,
                until: validity.until,
            });
        }
        Ok(Self {
            certified: Arc::new(certified),
            validity,
        })
    }
}

/// The chain in a file, and how long its first certificate is valid.
fn certificates(path: &Path) -> Result<(Vec<CertificateDer<'static>>, Validity), Error> {
    let fail = |reason: String| Error::Certificate {
        path: path.to_owned(),
        reason,
    };
    let mut bytes = Vec::new();
    let mut file = File::open(path)
        .map_err(|error| fail(error.to_string()))?
        .take(FILE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes)
        .map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fail(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    let chain = pem::certificates(&bytes).map_err(fail)?;
    let valid = chain.iter().map(|certificate| Validity::of(certificate));
    let valid: Option<Vec<Validity>> = valid.collect();
    // One that stands further back may be over: clients may not need it.
    let first = valid.and_then(|valid| valid.first().copied());
    let first = first.ok_or_else(|| fail("a block holds no certificate".to_owned()))?;
    Ok((chain, first))
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let bytes = secret_file::read(path, FILE_BYTES_MAX).map_err(Error::KeyFile)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| Error::Key {
        path: path.to_owned(),
        reason: if is_encrypted(&bytes) {
            "its key is encrypted".to_owned()
        } else {
            pem::reason(&error, "private key")
        },
    })
}

fn is_encrypted(pem: &[u8]) -> bool {
    const MARK: &[u8] = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";
    pem.windows(MARK.len()).any(|window| window == MARK)
}

#[cfg(test)]
mod tests;
