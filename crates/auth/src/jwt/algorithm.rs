//! The algorithms that issuers may sign with.

use std::fmt;
use std::str::FromStr;

/// An algorithm with a public key. There is none with a shared secret, and no `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSA, PKCS #1 v1.5, SHA-256; keys of 2048 to 8192 bits.
    Rs256,
    /// RSA, PSS, SHA-256; keys of 2048 to 8192 bits.
    Ps256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

/// A text that names no algorithm that is spoken here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of `RS256`, `PS256`, `ES256`, `EdDSA`")]
pub struct UnknownAlgorithm;

impl Algorithm {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Rs256, Self::Ps256, Self::Es256, Self::EdDsa];

    /// Its name in headers and keys.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// What the library calls it.
    pub(super) const fn for_library(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Ps256 => jsonwebtoken::Algorithm::PS256,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == text);
        found.ok_or(UnknownAlgorithm)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
