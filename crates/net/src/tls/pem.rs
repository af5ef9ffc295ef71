//! Parses PEM files, and reports their faults without quoting them.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{Error, PemObject as _};
use std::path::Path;

/// All certificates in a text; at least one.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    taken(found)
}

/// The certificates of authorities in a file; at least one.
///
/// # Errors
/// What is wrong with the file, which the text does not name.
pub fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    taken(found)
}

fn taken(
    found: Result<Vec<CertificateDer<'static>>, Error>,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = found.map_err(|error| reason(&error, "certificate"))?;
    if found.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(found)
}

/// Why no `what` was read. The library's own text may repeat lines.
pub(super) fn reason(error: &Error, what: &str) -> String {
    match error {
        Error::Io(error) => error.to_string(),
        Error::NoItemsFound => format!("there is no {what} in it"),
        Error::MissingSectionEnd { .. } => "a block has no end: the file is not whole".to_owned(),
        Error::Base64Decode(_) => "a block is not base64".to_owned(),
        // The library may learn to tell more, and repeats lines.
        Error::IllegalSectionStart { .. } | Error::SectionTooLarge | _ => {
            "it is not PEM".to_owned()
        }
    }
}
