//! The headers of a request: the version of the protocol, and the extensions that a client uses.

use crate::error::{Error, ErrorKind};

/// The header, or member of a query, with the version.
pub const VERSION: &str = "a2a-version";
/// The header with extensions, in and out.
pub const EXTENSIONS: &str = "a2a-extensions";
/// The versions that are served.
pub const SERVED: &str = "1.0";
/// URIs of extensions that are looked at in one request.
pub const EXTENSIONS_MAX: usize = 32;

/// Whether a version of a request is served: 1.0, with any patch behind.
///
/// # Errors
/// `VersionNotSupported`, which names those that are. No version means 0.3.
pub fn served(version: Option<&str>) -> Result<(), Error> {
    let given = version.map(str::trim).filter(|it| !it.is_empty());
    let patch = given.and_then(|it| it.strip_prefix(SERVED));
    let is_served = patch.is_some_and(|patch| {
        let digits = patch.strip_prefix('.');
        patch.is_empty()
            || digits.is_some_and(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit()))
    });
    if is_served {
        return Ok(());
    }
    let asked = match given {
        Some(given) => format!("version `{}`", given.chars().take(16).collect::<String>()),
        None => "no version (which means 0.3)".to_owned(),
    };
    let message = format!("{asked} is asked for in `A2A-Version`; served is {SERVED}");
    Err(Error::new(ErrorKind::VersionNotSupported, message).with("supportedVersions", SERVED))
}

/// The extensions that a request names.
pub fn announced<'h>(headers: impl Iterator<Item = &'h str>) -> Vec<&'h str> {
    let uris = headers.flat_map(|header| header.split(','));
    let uris = uris.map(str::trim).filter(|uri| !uri.is_empty());
    uris.take(EXTENSIONS_MAX).collect()
}

/// Those of the announced extensions that are known, each once, in the order of the known ones.
///
/// # Errors
/// `ExtensionSupportRequired`: one that is required was not announced.
pub fn activated<'k>(
    announced: &[&str],
    known: &[&'k str],
    required: &[&str],
) -> Result<Vec<&'k str>, Error> {
    let missing = required.iter().find(|uri| !announced.contains(uri));
    if let Some(missing) = missing {
        let message =
            format!("the extension `{missing}` is required; announce it in `A2A-Extensions`");
        let error = Error::new(ErrorKind::ExtensionSupportRequired, message);
        return Err(error.with("extension", *missing));
    }
    let known = known.iter().copied();
    Ok(known.filter(|uri| announced.contains(uri)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_1_0_is_served_whatever_its_patch() {
        for good in ["1.0", "1.0.0", "1.0.17", " 1.0 "] {
            assert_eq!(served(Some(good)), Ok(()), "{good}");
        }
        for bad in [
            None,
            Some(""),
            Some("0.3"),
            Some("1"),
            Some("1.1"),
            Some("1.0."),
            Some("1.0.x"),
            Some("1.00"),
            Some("2.0"),
        ] {
            let refused = served(bad).expect_err("not served");
            assert_eq!(refused.kind, ErrorKind::VersionNotSupported, "{bad:?}");
            assert_eq!(refused.metadata["supportedVersions"], "1.0");
        }
    }

    #[test]
    fn extensions_are_activated_if_known_and_refused_if_a_required_one_is_missing() {
        let given = announced(["urn:a, urn:b,,", "urn:c,urn:a"].into_iter());
        assert_eq!(given, ["urn:a", "urn:b", "urn:c", "urn:a"]);
        let active = activated(&given, &["urn:x", "urn:a"], &["urn:b"]);
        assert_eq!(active, Ok(vec!["urn:a"]));
        let refused = activated(&given, &[], &["urn:z"]).expect_err("required");
        assert_eq!(refused.kind, ErrorKind::ExtensionSupportRequired);
    }
}
