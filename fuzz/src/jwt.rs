//! Bytes as a token, as a key set, and as what a trusted issuer might sign.
//!
//! A token that the issuer did not sign is refused. Whatever it signs (the bytes, as claims or as a line of
//! header and the claims) is refused or names a caller within bounds, with no more than the table allows.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey};
use std::sync::OnceLock;
use taskledger_auth::Scopes;
use taskledger_auth::jwt::{Algorithm, Issuer, IssuerOptions, Keys, Verified};

const ISSUER: &str = "https://login.example";
const NOW_MS: i64 = 1_800_000_000_000;
/// The key of the issuer; a stranger's could be any other.
const SEED: [u8; 32] = [7; 32];
const HEADER: &str = r#"{"alg":"EdDSA","typ":"at+jwt","kid":"k"}"#;
/// Keys of a set that are used.
const KEYS_MAX: usize = 32;
/// Characters of a credential: `jwt:` and an id.
const CREDENTIAL_CHARS_MAX: usize = 132;

/// Judges `bytes`.
///
/// # Panics
/// When a claim does not hold.
pub fn run(bytes: &[u8]) {
    let (issuer, keys) = trusted();
    if let Ok(text) = std::str::from_utf8(bytes) {
        let verdict = issuer.verify(text, keys, NOW_MS);
        assert!(verdict.is_err(), "the issuer did not sign this");
    }
    if let Ok(keys) = Keys::parse(bytes, &Algorithm::ALL) {
        assert!((1..=KEYS_MAX).contains(&keys.count()));
        _ = issuer.verify(&signed(HEADER.as_bytes(), b"{}"), &keys, NOW_MS);
    }
    believed(&signed(HEADER.as_bytes(), bytes));
    if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        believed(&signed(&bytes[..end], &bytes[end + 1..]));
    }
}

fn believed(token: &str) {
    let (issuer, keys) = trusted();
    let verdict = issuer.verify(token, keys, NOW_MS);
    assert_eq!(
        verdict,
        issuer.verify(token, keys, NOW_MS),
        "the same token says the same"
    );
    let Ok(Verified {
        name,
        scopes,
        expires_ms,
        credential,
        ..
    }) = verdict
    else {
        return;
    };
    assert!(expires_ms > NOW_MS);
    assert!(name.as_str().starts_with("corp:") && name.as_str() != "corp:");
    let granted: Scopes = "tasks:read worker".parse().expect("scopes");
    assert!(granted.includes(scopes), "{scopes}");
    assert!(credential.chars().count() <= CREDENTIAL_CHARS_MAX);
    assert!(
        credential.chars().all(|c| c.is_ascii_graphic()),
        "{credential:?}"
    );
}

fn signed(header: &[u8], claims: &[u8]) -> String {
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature = SigningKey::from_bytes(&SEED).sign(message.as_bytes());
    format!("{message}.{}", encode(&signature.to_bytes()))
}

fn trusted() -> &'static (Issuer, Keys) {
    static TRUSTED: OnceLock<(Issuer, Keys)> = OnceLock::new();
    TRUSTED.get_or_init(|| {
        let grant = |text: &str| text.parse().expect("a grant");
        let options = IssuerOptions {
            user_prefix: "corp:".to_owned(),
            grants: vec![
                grant("groups:ledger=tasks:read"),
                grant("scope:work=worker"),
            ],
            ..IssuerOptions::new(ISSUER, "taskledger")
        };
        let issuer = Issuer::all(vec![options])
            .expect("the settings fit")
            .remove(0);
        let public = SigningKey::from_bytes(&SEED).verifying_key();
        let x = URL_SAFE_NO_PAD.encode(public.as_bytes());
        let set = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"k","x":"{x}"}}]}}"#);
        let keys = Keys::parse(set.as_bytes(), &Algorithm::ALL).expect("a key set");
        (issuer, keys)
    })
}
