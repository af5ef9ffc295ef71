//! Explains why a server's certificate is not trusted, where the library's message would help nobody.

use rustls::{CertificateError, Error};

/// What `rustls` calls a certificate of an authority that a server shows as its own. It has no variant of its own
/// there.
const OF_AN_AUTHORITY: &str = "CaUsedAsEndEntity";

/// A text about a fault with its reason in plain words, and what certificate is needed.
pub(super) fn told(text: String, fault: Option<&Error>) -> String {
    let Some(fault @ Error::InvalidCertificate(CertificateError::Other(other))) = fault else {
        return text;
    };
    if format!("{:?}", other.0) != OF_AN_AUTHORITY {
        return text;
    }
    let reason = "the server shows the certificate of an authority (CA:TRUE) as its own";
    let text = text.replace(&fault.to_string(), reason);
    format!(
        "{text}; it needs one with CA:FALSE and its name in subjectAltName: of `openssl req -x509`, add \
         `-addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:NAME`, and give that to \
         the server and to --ca-file"
    )
}
