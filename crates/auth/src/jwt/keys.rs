//! The keys of one issuer, from its JWK set (RFC 7517).
//!
//! Each key has exactly one algorithm, which settings and the key decide. Keys that are of no use here are
//! left out; keys that must not be published (secrets) are left out with a warning.

use super::claimed::Claimed;
use super::{Algorithm, Denied};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{DecodingKey, Validation};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Bytes of a key set, and of the document that names it.
pub(super) const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// Keys of a set; issuers publish two or three.
pub(super) const KEYS_MAX: usize = 32;
/// Bytes of an RSA modulus that are accepted: 2048 to 8192 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
/// Bytes of an RSA exponent; larger ones only make checks slow.
const EXPONENT_BYTES_MAX: usize = 4;
/// Bytes of a coordinate on P-256, and of an Ed25519 key.
const COORDINATE_BYTES: usize = 32;
/// First byte of a point that is not compressed.
const UNCOMPRESSED: u8 = 4;

/// Why a document is no usable key set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeysRefused {
    /// It is too long.
    #[error("the key set has more than {DOCUMENT_BYTES_MAX} bytes")]
    TooLong,
    /// It is no JWK set.
    #[error("the document is not a JWK set")]
    Malformed,
    /// It has too many keys.
    #[error("the key set has more than {KEYS_MAX} keys")]
    TooMany,
    /// None of its keys can be used.
    #[error("the key set has no key that can be used")]
    Empty,
}

/// Why one key is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unused {
    /// It is for something else, or of a kind that is not spoken here.
    Other,
    /// It is, or holds, a secret.
    Secret,
}

#[derive(Deserialize)]
struct Set<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    /// The private part of any key pair.
    d: Option<IgnoredAny>,
}

/// A key and the one way to use it.
#[derive(Debug)]
pub(super) struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    /// What the library checks with.
    pub(super) decoding: DecodingKey,
    /// Exactly the key's algorithm. Claims are checked by `claims`, with the server's clock.
    pub(super) validation: Validation,
}

/// The keys of one issuer.
#[derive(Debug)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// Reads a JWK set, of which keys for these algorithms are used.
    ///
    /// # Errors
    /// [`KeysRefused`]: whoever publishes the set can mend it.
    pub fn parse(document: &[u8], allowed: &[Algorithm]) -> Result<Self, KeysRefused> {
        super::crypto::install();
        if document.len() > DOCUMENT_BYTES_MAX {
            return Err(KeysRefused::TooLong);
        }
        let set: Set<'_> = serde_json::from_slice(document).map_err(|_| KeysRefused::Malformed)?;
        if set.keys.len() > KEYS_MAX {
            return Err(KeysRefused::TooMany);
        }
        let mut keys = Vec::new();
        for jwk in set.keys {
            let Ok(jwk) = serde_json::from_str::<Jwk>(jwk.get()) else {
                continue;
            };
            match usable(jwk, allowed) {
                Ok(key) => keys.push(key),
                Err(Unused::Other) => {}
                Err(Unused::Secret) => {
                    tracing::warn!(
                        "an issuer publishes a secret as one of its keys; it is not used"
                    );
                }
            }
        }
        if keys.is_empty() {
            return Err(KeysRefused::Empty);
        }
        Ok(Self(keys))
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// The keys that may have signed a token: those that it names and that have its algorithm. One that
    /// names no key is only accepted where there is one candidate. Cost: O(keys).
    pub(super) fn candidates(&self, claimed: &Claimed) -> Result<Vec<&Key>, Denied> {
        let fits = |key: &&Key| key.algorithm == claimed.algorithm;
        let Some(id) = &claimed.key_id else {
            let fitting: Vec<_> = self.0.iter().filter(fits).collect();
            return match fitting.len() {
                1 => Ok(fitting),
                0 => Err(Denied::WrongAlgorithm),
                _ => Err(Denied::UnknownKey),
            };
        };
        let named = |key: &&Key| key.id.as_ref() == Some(id);
        let named: Vec<_> = self.0.iter().filter(named).collect();
        if named.is_empty() {
            return Err(Denied::UnknownKey);
        }
        let fitting: Vec<_> = named.into_iter().filter(fits).collect();
        if fitting.is_empty() {
            return Err(Denied::WrongAlgorithm);
        }
        Ok(fitting)
    }
}

fn usable(jwk: Jwk, allowed: &[Algorithm]) -> Result<Key, Unused> {
    if jwk.kty == "oct" || jwk.d.is_some() {
        return Err(Unused::Secret);
    }
    if jwk.usage.as_ref().is_some_and(|usage| usage != "sig") {
        return Err(Unused::Other);
    }
    let verifies = |ops: &Vec<String>| ops.iter().any(|op| op == "verify");
    if !jwk.key_ops.as_ref().is_none_or(verifies) {
        return Err(Unused::Other);
    }
    let algorithm = algorithm_of(&jwk, allowed).ok_or(Unused::Other)?;
    let decoding = match algorithm {
        Algorithm::Rs256 | Algorithm::Ps256 => rsa(&jwk),
        Algorithm::Es256 => p256(&jwk),
        Algorithm::EdDsa => coordinate(jwk.x.as_deref()).map(|x| DecodingKey::from_ed_der(&x)),
    };
    let mut validation = Validation::new(algorithm.for_library());
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    Ok(Key {
        id: jwk.kid,
        algorithm,
        decoding: decoding.ok_or(Unused::Other)?,
        validation,
    })
}

/// The algorithm of a key: the one that it names, or the one that keys of its kind have. An RSA key that
/// names none is for RS256, unless settings allow only PS256.
fn algorithm_of(jwk: &Jwk, allowed: &[Algorithm]) -> Option<Algorithm> {
    let of_kind: &[Algorithm] = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => &[Algorithm::Rs256, Algorithm::Ps256],
        ("EC", Some("P-256")) => &[Algorithm::Es256],
        ("OKP", Some("Ed25519")) => &[Algorithm::EdDsa],
        _ => &[],
    };
    let named = |algorithm: &Algorithm| match jwk.alg.as_deref() {
        None => true,
        // The name that RFC 9864 gives to EdDSA with this curve.
        Some("Ed25519") => *algorithm == Algorithm::EdDsa,
        Some(name) => name == algorithm.as_str(),
    };
    let mut fitting = of_kind.iter().filter(|algorithm| named(algorithm));
    fitting
        .find(|algorithm| allowed.contains(algorithm))
        .copied()
}

fn rsa(jwk: &Jwk) -> Option<DecodingKey> {
    let number = |text: Option<&str>| {
        let bytes = URL_SAFE_NO_PAD.decode(text?).ok()?;
        let first = bytes.iter().position(|byte| *byte != 0)?;
        Some(bytes[first..].to_vec())
    };
    let (n, e) = (number(jwk.n.as_deref())?, number(jwk.e.as_deref())?);
    let fits = MODULUS_BYTES.contains(&n.len()) && e.len() <= EXPONENT_BYTES_MAX;
    fits.then(|| DecodingKey::from_rsa_raw_components(&n, &e))
}

fn p256(jwk: &Jwk) -> Option<DecodingKey> {
    let (x, y) = (coordinate(jwk.x.as_deref())?, coordinate(jwk.y.as_deref())?);
    let point = [&[UNCOMPRESSED], x.as_slice(), &y].concat();
    Some(DecodingKey::from_ec_der(&point))
}

fn coordinate(text: Option<&str>) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text?).ok()?;
    (bytes.len() == COORDINATE_BYTES).then_some(bytes)
}
