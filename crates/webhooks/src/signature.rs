//! Signatures as Standard Webhooks 1.0.0 has them, which prove to a receiver that a request is ours.
//!
//! The signed text is `id.timestamp.body`, so ids hold no dot. Keys come in their written form; what they
//! are made of is nowhere kept. Pure: the time comes from the caller.

use super::delivery::Key;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer, SigningKey};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use taskledger_domain::Timestamp;

/// How a secret that both sides know begins.
pub const SHARED_PREFIX: &str = "whsec_";
/// How a key begins that only the sender knows.
pub const PRIVATE_PREFIX: &str = "whsk_";

/// A stored key cannot sign. It was checked when it was stored, so something has changed it since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key of the endpoint cannot sign: {0}")]
pub struct UnusableKey(&'static str);

/// The value of `webhook-signature`: one signature for each key that has not expired at `now`, in their
/// order, apart by spaces. Empty without keys. Cost: O(bytes of the body × keys).
///
/// # Errors
/// [`UnusableKey`]: nothing is signed by a part of the keys.
pub fn sign(
    keys: &[Key],
    now: Timestamp,
    id: &str,
    timestamp_seconds: i64,
    body: &[u8],
) -> Result<String, UnusableKey> {
    let live = keys
        .iter()
        .filter(|key| key.expires_at.is_none_or(|at| now < at));
    let mut text = String::new();
    for key in live {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&sign_with(&key.secret.0, id, timestamp_seconds, body)?);
    }
    Ok(text)
}

fn sign_with(
    secret: &str,
    id: &str,
    timestamp_seconds: i64,
    body: &[u8],
) -> Result<String, UnusableKey> {
    let head = format!("{id}.{timestamp_seconds}.");
    if let Some(written) = secret.strip_prefix(SHARED_PREFIX) {
        let mut mac = Hmac::<Sha256>::new_from_slice(&bytes(written)?)
            .map_err(|_| UnusableKey("its length"))?;
        mac.update(head.as_bytes());
        mac.update(body);
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        Ok(format!("v1,{signature}"))
    } else if let Some(written) = secret.strip_prefix(PRIVATE_PREFIX) {
        let signed = [head.as_bytes(), body].concat();
        let signature = private_key(&bytes(written)?)?.sign(&signed);
        Ok(format!("v1a,{}", STANDARD.encode(signature.to_bytes())))
    } else {
        Err(UnusableKey("its prefix"))
    }
}

fn bytes(written: &str) -> Result<Vec<u8>, UnusableKey> {
    match STANDARD.decode(written) {
        Ok(bytes) if bytes.is_empty() => Err(UnusableKey("it is empty")),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(UnusableKey("it is not base64")),
    }
}

/// From 32 bytes, or from 64 that end in the public key.
fn private_key(bytes: &[u8]) -> Result<SigningKey, UnusableKey> {
    if let Ok(seed) = <[u8; 32]>::try_from(bytes) {
        return Ok(SigningKey::from_bytes(&seed));
    }
    let pair = <[u8; 64]>::try_from(bytes).map_err(|_| UnusableKey("its length"))?;
    SigningKey::from_keypair_bytes(&pair).map_err(|_| UnusableKey("its public part"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Secret;
    use std::sync::Arc;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn key(secret: &str, expires_at: Option<Timestamp>) -> Key {
        let secret = Secret(Arc::from(secret));
        Key { secret, expires_at }
    }

    fn shared(byte: u8) -> String {
        format!("{SHARED_PREFIX}{}", STANDARD.encode([byte; 32]))
    }

    #[test]
    fn the_known_answer_of_the_standard_comes_out() {
        let keys = [key("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", None)];
        let body = br#"{"email":"test@example.com","username":"test_user"}"#;
        let id = "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk";

        let signature = sign(&keys, NOW, id, 1_649_367_553, body);

        let expected = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
        assert_eq!(signature.as_deref(), Ok(expected));
    }

    #[test]
    fn a_private_key_signs_what_its_public_key_verifies() {
        let seed = [7; 32];
        let private = SigningKey::from_bytes(&seed);
        let pair = STANDARD.encode(private.to_keypair_bytes());
        for written in [STANDARD.encode(seed), pair] {
            let keys = [key(&format!("{PRIVATE_PREFIX}{written}"), None)];

            let signature = sign(&keys, NOW, "m", 12, b"\0body\xff").expect("the key is good");

            let encoded = signature
                .strip_prefix("v1a,")
                .expect("the version is named");
            let bytes = STANDARD.decode(encoded).expect("base64");
            let parsed = ed25519_dalek::Signature::from_slice(&bytes).expect("64 bytes");
            private
                .verifying_key()
                .verify_strict(b"m.12.\0body\xff", &parsed)
                .expect("the signature is true");
        }
    }

    #[test]
    fn each_key_that_is_not_expired_signs_the_newest_first() {
        let just_over = key(&shared(3), Some(NOW));
        let old = key(&shared(2), Some(Timestamp(NOW.0 + 1)));
        let new = key(&shared(1), None);
        let alone = |key: &Key| sign(std::slice::from_ref(key), NOW, "m", 1, b"x").expect("good");

        let all = sign(&[new.clone(), old.clone(), just_over], NOW, "m", 1, b"x");

        assert_eq!(all, Ok(format!("{} {}", alone(&new), alone(&old))));
    }

    #[test]
    fn nothing_is_signed_when_a_key_is_unusable() {
        let unusable = [
            "whsec_",
            "whsec_*",
            "whsk_AAAA",
            "text",
            "WHSEC_AAAA",
            &format!("{PRIVATE_PREFIX}{}", STANDARD.encode([1; 64])),
        ];
        for secret in unusable {
            let keys = [key(&shared(1), None), key(secret, None)];
            assert!(sign(&keys, NOW, "m", 1, b"").is_err(), "{secret}");
        }
    }

    #[test]
    fn without_keys_there_is_no_signature() {
        assert_eq!(sign(&[], NOW, "m", 1, b"x"), Ok(String::new()));
    }
}
