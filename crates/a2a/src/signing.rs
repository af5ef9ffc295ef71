//! Signatures of cards: JWS (RFC 7515) with Ed25519 (RFC 8037) over the canonical card.
//!
//! A key file is what `openssl genpkey -algorithm ed25519` writes. Several keys sign side by side, so that one can be
//! replaced while clients still know the other.

use crate::card::{AgentCard, AgentCardSignature};
use crate::jcs::canonical;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde_json::{Value, json};
use std::fmt;

/// The algorithm, as RFC 8037 names it. No other is written, none is accepted.
const ALG: &str = "EdDSA";
/// What stands before the 32 bytes of an Ed25519 key in PKCS #8: RFC 8410.
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// Signatures of a card that are looked at.
const SIGNATURES_MAX: usize = 16;

/// A key that signs cards.
pub struct CardKey {
    id: String,
    key: SigningKey,
}

impl fmt::Debug for CardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A key file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is no PEM file with a private key.
    #[error("no private key in PEM; `openssl genpkey -algorithm ed25519` makes one")]
    NoPem,
    /// It has a key of another kind.
    #[error("not an Ed25519 key; `openssl genpkey -algorithm ed25519` makes one")]
    NotEd25519,
}

impl CardKey {
    /// Reads a private key in PEM.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let body = pem
            .split_once(BEGIN)
            .and_then(|(_, rest)| rest.split_once(END));
        let (body, _) = body.ok_or(KeyError::NoPem)?;
        let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let der = STANDARD.decode(body).map_err(|_| KeyError::NoPem)?;
        let seed = der
            .strip_prefix(&PKCS8_PREFIX)
            .ok_or(KeyError::NotEd25519)?;
        let seed: [u8; 32] = seed.try_into().map_err(|_| KeyError::NotEd25519)?;
        Ok(Self::from_seed(&seed))
    }

    /// A key of 32 secret bytes.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        let public = key.verifying_key().to_bytes();
        // The public key names itself: no two have the same id, and nobody has to choose one.
        let id = URL_SAFE_NO_PAD.encode(public).chars().take(16).collect();
        Self { id, key }
    }

    /// Its name in headers.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What clients check signatures with: RFC 7517.
    #[must_use]
    pub fn public(&self) -> Value {
        json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "alg": ALG,
            "use": "sig",
            "kid": self.id,
            "x": URL_SAFE_NO_PAD.encode(self.key.verifying_key().to_bytes()),
        })
    }

    /// Signs a card. `keys_url`: where the public key is published.
    #[must_use]
    pub fn sign(&self, card: &AgentCard, keys_url: &str) -> AgentCardSignature {
        let header = json!({"alg": ALG, "typ": "JOSE", "kid": self.id, "jku": keys_url});
        let protected = URL_SAFE_NO_PAD.encode(canonical(&header));
        let signature = self.key.sign(&signed_bytes(&protected, card));
        AgentCardSignature {
            protected,
            signature: URL_SAFE_NO_PAD.encode(signature.to_bytes()),
            header: None,
        }
    }
}

/// The public keys of these: RFC 7517.
#[must_use]
pub fn key_set(keys: &[CardKey]) -> Value {
    json!({"keys": keys.iter().map(CardKey::public).collect::<Vec<_>>()})
}

/// Why no signature of a card holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    /// It has none.
    #[error("the card is not signed")]
    NotSigned,
    /// None is by a key that is known, or the card was changed.
    #[error("no signature of the card holds")]
    NoneHolds,
}

/// Checks that one signature at least is by a known key and fits the card. Only keys that the caller knows count:
/// an address in a header is never called, an algorithm in a header never chosen.
///
/// # Errors
/// [`Unverified`].
pub fn verify(card: &AgentCard, keys: &Value) -> Result<(), Unverified> {
    if card.signatures.is_empty() {
        return Err(Unverified::NotSigned);
    }
    let mut signatures = card.signatures.iter().take(SIGNATURES_MAX);
    let holds = signatures.any(|signature| holds(card, signature, keys).is_some());
    holds.then_some(()).ok_or(Unverified::NoneHolds)
}

fn holds(card: &AgentCard, given: &AgentCardSignature, keys: &Value) -> Option<()> {
    let header = URL_SAFE_NO_PAD.decode(&given.protected).ok()?;
    let header: Value = serde_json::from_slice(&header).ok()?;
    // `crit` names what must be understood; nothing of that kind is.
    if header.get("alg")? != ALG || header.get("crit").is_some() {
        return None;
    }
    let id = header.get("kid")?.as_str()?;
    let known = keys.get("keys")?.as_array()?;
    let key = known
        .iter()
        .find(|key| key.get("kid").and_then(Value::as_str) == Some(id))?;
    if key.get("kty")? != "OKP" || key.get("crv")? != "Ed25519" {
        return None;
    }
    let public = URL_SAFE_NO_PAD.decode(key.get("x")?.as_str()?).ok()?;
    let public = VerifyingKey::from_bytes(&public.try_into().ok()?).ok()?;
    let signature = URL_SAFE_NO_PAD.decode(&given.signature).ok()?;
    let signature = Signature::from_slice(&signature).ok()?;
    let signed = signed_bytes(&given.protected, card);
    public.verify_strict(&signed, &signature).ok()
}

fn signed_bytes(protected: &str, card: &AgentCard) -> Vec<u8> {
    let payload = URL_SAFE_NO_PAD.encode(canonical(&card.to_be_signed()));
    format!("{protected}.{payload}").into_bytes()
}
