//! Signing secrets, in the written forms of Standard Webhooks.
//!
//! Owns: making them, reading the caller's own, and the public half of a pair. The bytes that sign are
//! those behind the prefix, decoded. May not: keep or send anything.

use super::delivery::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::SigningKey;
use std::ops::RangeInclusive;
use std::sync::Arc;
use taskledger_clock::SharedClock;

/// Begins a secret that both sides know (HMAC-SHA256).
pub const SHARED: &str = "whsec_";
/// Begins the private half of a pair (ed25519).
pub const PRIVATE: &str = "whsk_";
/// Begins the public half of a pair.
pub const PUBLIC: &str = "whpk_";
/// Bytes of a caller's own secret.
pub const OWN_BYTES: RangeInclusive<usize> = 24..=64;
/// Bytes of a private key.
const PRIVATE_BYTES: usize = 32;
/// What is accepted as a secret.
pub const EXPECTED: &str =
    "`whsec_` with 24 to 64 bytes in base64, or `whsk_` with 32 bytes in base64";

/// The scheme by which messages are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signature {
    /// `v1`: HMAC-SHA256, by a secret that both sides know.
    #[default]
    Shared,
    /// `v1a`: ed25519; receivers need the public key only.
    Pair,
}

impl Signature {
    /// The name in calls and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "v1",
            Self::Pair => "v1a",
        }
    }

    /// How a secret signs.
    #[must_use]
    pub fn of(secret: &Secret) -> Self {
        if secret.0.starts_with(PRIVATE) {
            Self::Pair
        } else {
            Self::Shared
        }
    }
}

/// A fresh secret.
#[must_use]
pub fn fresh(clock: &SharedClock, signature: Signature) -> Secret {
    let prefix = match signature {
        Signature::Shared => SHARED,
        Signature::Pair => PRIVATE,
    };
    let text = format!("{prefix}{}", BASE64.encode(clock.bytes32()));
    Secret(Arc::from(text))
}

/// A caller's own secret.
///
/// # Errors
/// What is wrong with it; never repeats it.
pub fn own(text: &str) -> Result<Secret, &'static str> {
    let (fits, encoded): (fn(usize) -> bool, _) = if let Some(rest) = text.strip_prefix(SHARED) {
        (|length| OWN_BYTES.contains(&length), rest)
    } else if let Some(rest) = text.strip_prefix(PRIVATE) {
        (|length| length == PRIVATE_BYTES, rest)
    } else {
        return Err("not a secret");
    };
    let bytes = BASE64.decode(encoded).map_err(|_| "not in base64")?;
    if fits(bytes.len()) {
        Ok(Secret(Arc::from(text)))
    } else {
        Err("too short or too long")
    }
}

/// The public half of a pair, which receivers check with; `None` for a secret that both sides know.
#[must_use]
pub fn public(secret: &Secret) -> Option<String> {
    let encoded = secret.0.strip_prefix(PRIVATE)?;
    let bytes = <[u8; PRIVATE_BYTES]>::try_from(BASE64.decode(encoded).ok()?).ok()?;
    let public = SigningKey::from_bytes(&bytes).verifying_key();
    Some(format!("{PUBLIC}{}", BASE64.encode(public.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_clock::SystemClock;

    fn written(prefix: &str, bytes: usize) -> String {
        format!("{prefix}{}", BASE64.encode(vec![7; bytes]))
    }

    #[test]
    fn a_fresh_secret_is_one_that_would_be_accepted() {
        let clock: SharedClock = Arc::new(SystemClock::default());
        for signature in [Signature::Shared, Signature::Pair] {
            let secret = fresh(&clock, signature);
            assert_eq!(own(&secret.0).as_ref(), Ok(&secret));
            assert_eq!(Signature::of(&secret), signature);
            assert_ne!(fresh(&clock, signature), secret);
        }
    }

    #[test]
    fn a_secret_of_ones_own_has_24_to_64_bytes() {
        for good in [
            written(SHARED, 24),
            written(SHARED, 64),
            written(PRIVATE, 32),
        ] {
            assert!(own(&good).is_ok(), "{good}");
        }
        for bad in [
            written(SHARED, 23),
            written(SHARED, 65),
            written(PRIVATE, 31),
            written(PUBLIC, 32),
            "whsec_***".to_owned(),
            "whsec_".to_owned(),
            String::new(),
        ] {
            assert!(own(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_a_pair_has_a_public_half() {
        let pair = own(&written(PRIVATE, 32)).unwrap();
        assert!(public(&pair).unwrap().starts_with(PUBLIC));
        let shared = own(&written(SHARED, 32)).unwrap();
        assert_eq!(public(&shared), None);
    }
}
