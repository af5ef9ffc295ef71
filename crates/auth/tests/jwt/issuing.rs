//! An issuer for tests: keys of every kind, the key set that it publishes, and tokens. It signs by itself, without the
//! library that the server checks with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};
use taskledger_auth::jwt::{Algorithm, Grant, Issuer, IssuerOptions, Keys};

/// The issuer that is trusted.
pub(crate) const ISSUER: &str = "https://login.example";
/// What the server is called in `aud`.
pub(crate) const AUDIENCE: &str = "taskledger";
/// When the tests take place, in seconds since 1970.
pub(crate) const NOW: i64 = 1_800_000_000;
/// The same in milliseconds.
pub(crate) const NOW_MS: i64 = NOW * 1000;

/// An RSA key of 2048 bits for tests, in PKCS #8; the library for signatures makes none.
const RSA: &[u8] = include_bytes!("rsa.pk8");

/// A key pair.
pub(crate) enum Signer {
    Rsa(RsaKeyPair, Algorithm),
    P256(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    /// A fresh pair; with RSA always the same one.
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        let random = SystemRandom::new();
        match algorithm {
            Algorithm::Rs256 | Algorithm::Ps256 => {
                Self::Rsa(RsaKeyPair::from_pkcs8(RSA).unwrap(), algorithm)
            }
            Algorithm::Es256 => {
                let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
                Self::P256(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap())
            }
            Algorithm::EdDsa => {
                let made = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Self::Ed(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
            }
        }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa(_, algorithm) => *algorithm,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed(_) => Algorithm::EdDsa,
        }
    }

    /// The public half, as issuers publish it.
    pub(crate) fn jwk(&self, kid: &str) -> Value {
        let mut jwk = match self {
            Self::Rsa(pair, _) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                let (n, e) = (public.n, public.e);
                json!({"kty": "RSA", "n": encoded(n), "e": encoded(e)})
            }
            Self::P256(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = (encoded(&point[1..33]), encoded(&point[33..]));
                json!({"kty": "EC", "crv": "P-256", "x": x, "y": y})
            }
            Self::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key())})
            }
        };
        jwk["kid"] = kid.into();
        jwk["alg"] = self.algorithm().as_str().into();
        jwk["use"] = "sig".into();
        jwk
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair, algorithm) => {
                let padding: &dyn ring::signature::RsaEncoding = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    Algorithm::Rs256 | Algorithm::Es256 | Algorithm::EdDsa => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Self::P256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// A token with this header and these claims.
    pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
        let message = format!(
            "{}.{}",
            encoded(header.to_string()),
            encoded(claims.to_string())
        );
        let signature = encoded(self.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    /// The header that an issuer writes.
    pub(crate) fn header(&self, kid: &str) -> Value {
        json!({"typ": "at+jwt", "alg": self.algorithm().as_str(), "kid": kid})
    }
}

pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The claims of a token that is accepted.
pub(crate) fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "jti": "t-1",
        "iat": NOW - 10, "nbf": NOW - 10, "exp": NOW + 300, "groups": ["ledger", "other"],
    })
}

/// The claims with changes; `null` takes one away.
pub(crate) fn claims_with(changes: Value) -> Value {
    changed(claims(), changes)
}

/// An object with changes; `null` takes a member away.
pub(crate) fn changed(mut object: Value, changes: Value) -> Value {
    let members = object.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    object
}

/// What the tests trust: members of `ledger` may read and write.
pub(crate) fn options() -> IssuerOptions {
    IssuerOptions {
        grants: vec![grant("groups:ledger=tasks:read tasks:write")],
        ..IssuerOptions::new(ISSUER, AUDIENCE)
    }
}

pub(crate) fn grant(text: &str) -> Grant {
    text.parse().unwrap()
}

pub(crate) fn issuer(options: IssuerOptions) -> Issuer {
    Issuer::all(vec![options]).unwrap().remove(0)
}

/// A key set of these.
pub(crate) fn set(jwks: &[Value]) -> Vec<u8> {
    json!({"keys": jwks}).to_string().into_bytes()
}

pub(crate) fn keys(jwks: &[Value]) -> Keys {
    Keys::parse(&set(jwks), &Algorithm::ALL).unwrap()
}
