//! Signatures of cards: JWS (RFC 7515) with Ed25519 (RFC 8037) or ECDSA on P-256 (ES256, RFC 7518) over the canonical
//! card.
//!
//! A key file is what `openssl genpkey` writes for one of the two. Several keys sign side by side, so that one can be
//! replaced while clients still know the other, or clients that know one algorithm only find a signature.

use crate::card::{AgentCard, AgentCardSignature};
use crate::jcs::canonical;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use std::fmt;

/// The algorithms, as RFC 8037 and RFC 7518 name them. No other is written, none is accepted.
const ED25519: &str = "EdDSA";
const ES256: &str = "ES256";
/// What stands before the 32 bytes of an Ed25519 key in PKCS #8: RFC 8410.
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// Signatures of a card that are looked at.
const SIGNATURES_MAX: usize = 16;
/// Characters of the id of a key.
const ID_CHARS: usize = 16;
/// Begins a point of a curve that is not compressed: SEC 1, 2.3.3.
const UNCOMPRESSED: u8 = 4;
/// Bytes of a coordinate on P-256.
const COORDINATE_BYTES: usize = 32;

/// A key that signs cards.
pub struct CardKey {
    id: String,
    secret: Secret,
}

/// The secret part of a key.
#[allow(clippy::large_enum_variant)] // a handful of keys
enum Secret {
    Ed25519(SigningKey),
    P256(EcdsaKeyPair),
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
    #[error(
        "neither an Ed25519 nor a P-256 key; `openssl genpkey -algorithm ed25519` makes one, and so does `openssl \
         genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`"
    )]
    UnknownKind,
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
        match der.strip_prefix(&PKCS8_PREFIX) {
            Some(seed) => {
                let seed: [u8; 32] = seed.try_into().map_err(|_| KeyError::UnknownKind)?;
                Ok(Self::from_seed(&seed))
            }
            None => Self::p256(&der),
        }
    }

    /// An Ed25519 key of 32 secret bytes.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        Self {
            id: id_of(&key.verifying_key().to_bytes()),
            secret: Secret::Ed25519(key),
        }
    }

    fn p256(der: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random);
        let key = key.map_err(|_| KeyError::UnknownKind)?;
        Ok(Self {
            // Points of a curve begin alike.
            id: id_of(digest(&SHA256, key.public_key().as_ref()).as_ref()),
            secret: Secret::P256(key),
        })
    }

    /// Its name in headers.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    const fn algorithm(&self) -> &'static str {
        match &self.secret {
            Secret::Ed25519(_) => ED25519,
            Secret::P256(_) => ES256,
        }
    }

    /// What clients check signatures with: RFC 7517.
    #[must_use]
    pub fn public(&self) -> Value {
        let mut public = json!({"alg": self.algorithm(), "use": "sig", "kid": self.id});
        let mut members = |list: &[(&str, String)]| {
            for (name, value) in list {
                public[*name] = Value::from(&**value);
            }
        };
        let encoded = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.secret {
            Secret::Ed25519(key) => members(&[
                ("kty", "OKP".to_owned()),
                ("crv", "Ed25519".to_owned()),
                ("x", encoded(&key.verifying_key().to_bytes())),
            ]),
            Secret::P256(key) => {
                let point = key.public_key().as_ref();
                let (x, y) = point[1..].split_at(COORDINATE_BYTES);
                members(&[
                    ("kty", "EC".to_owned()),
                    ("crv", "P-256".to_owned()),
                    ("x", encoded(x)),
                    ("y", encoded(y)),
                ]);
            }
        }
        public
    }

    /// Signs a card. `keys_url`: where the public key is published.
    ///
    /// # Panics
    /// The system has no random numbers, which ES256 needs.
    #[must_use]
    pub fn sign(&self, card: &AgentCard, keys_url: &str) -> AgentCardSignature {
        let algorithm = self.algorithm();
        let header = json!({"alg": algorithm, "typ": "JOSE", "kid": self.id, "jku": keys_url});
        let protected = URL_SAFE_NO_PAD.encode(canonical(&header));
        let signed = signed_bytes(&protected, card);
        let signature = match &self.secret {
            Secret::Ed25519(key) => URL_SAFE_NO_PAD.encode(key.sign(&signed).to_bytes()),
            Secret::P256(key) => {
                let signature = key.sign(&SystemRandom::new(), &signed);
                let signature = signature.expect("the system has random numbers");
                URL_SAFE_NO_PAD.encode(signature)
            }
        };
        AgentCardSignature {
            protected,
            signature,
            header: None,
        }
    }
}

/// The public key names itself: no two have the same id, and an operator does not have to choose one.
fn id_of(public: &[u8]) -> String {
    let encoded = URL_SAFE_NO_PAD.encode(public);
    encoded.chars().take(ID_CHARS).collect()
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
    if header.get("crit").is_some() {
        return None;
    }
    let id = header.get("kid")?.as_str()?;
    let known = keys.get("keys")?.as_array()?;
    let key = known
        .iter()
        .find(|key| key.get("kid").and_then(Value::as_str) == Some(id))?;
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
    let signature = URL_SAFE_NO_PAD.decode(&given.signature).ok()?;
    let signed = signed_bytes(&given.protected, card);
    // The kind of the known key decides; the header must agree.
    match (text("kty")?, text("crv")?, header.get("alg")?.as_str()?) {
        ("OKP", "Ed25519", ED25519) => {
            let public = VerifyingKey::from_bytes(&bytes("x")?.try_into().ok()?).ok()?;
            let signature = Signature::from_slice(&signature).ok()?;
            public.verify_strict(&signed, &signature).ok()
        }
        ("EC", "P-256", ES256) => {
            let coordinate = |name: &str| bytes(name).filter(|it| it.len() == COORDINATE_BYTES);
            let (x, y) = (coordinate("x")?, coordinate("y")?);
            let point = [&[UNCOMPRESSED][..], &x, &y].concat();
            let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
            public.verify(&signed, &signature).ok()
        }
        _ => None,
    }
}

fn signed_bytes(protected: &str, card: &AgentCard) -> Vec<u8> {
    let payload = URL_SAFE_NO_PAD.encode(canonical(&card.to_be_signed()));
    format!("{protected}.{payload}").into_bytes()
}
