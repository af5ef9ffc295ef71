//! The names of users' secrets, and how long secrets may be.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Characters of the name of a secret.
pub const SECRET_NAME_CHARS_MAX: usize = 128;
/// Bytes of a secret. A shorter one could not be told from ordinary text where it has to be removed from
/// results; a longer one does not fit into a header.
pub const SECRET_BYTES: RangeInclusive<usize> = 8..=8 * 1024;
/// Secrets of one owner.
pub const SECRETS_PER_OWNER_MAX: usize = 1_000;

/// The name of a secret: 1 to [`SECRET_NAME_CHARS_MAX`] ASCII letters, digits, `_`, `-` and `.`, compared
/// exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(Arc<str>);

/// A text that is no name of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a secret, expected {}", SecretName::EXPECTED)]
pub struct InvalidSecretName;

impl SecretName {
    /// What is accepted, for messages.
    pub const EXPECTED: &str = "1 to 128 letters (a-z, A-Z), digits, `_`, `-` and `.`";
    /// The same as a regular expression, for schemas.
    pub const PATTERN: &str = "^[A-Za-z0-9_.-]{1,128}$";

    /// The name with this text.
    ///
    /// # Errors
    /// [`InvalidSecretName`].
    pub fn new(text: &str) -> Result<Self, InvalidSecretName> {
        let fits = (1..=SECRET_NAME_CHARS_MAX).contains(&text.len());
        let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.');
        if fits && text.bytes().all(plain) {
            Ok(Self(Arc::from(text)))
        } else {
            Err(InvalidSecretName)
        }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SecretName {
    type Error = InvalidSecretName;

    fn try_from(text: String) -> Result<Self, InvalidSecretName> {
        Self::new(&text)
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_words() {
        for good in ["a", "GITHUB_TOKEN", "stripe.live-2", &"x".repeat(128)] {
            assert_eq!(SecretName::new(good).expect("a name").as_str(), good);
        }
        for bad in ["", "a b", "a/b", "ä", "a\n", "]", &"x".repeat(129)] {
            assert_eq!(SecretName::new(bad), Err(InvalidSecretName), "{bad:?}");
        }
    }
}
