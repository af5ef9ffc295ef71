//! Arbitrary bytes in the place of a token or a key set.

use crate::issuing::{NOW_MS, Signer, claims, encoded, issuer, keys, options};
use proptest::prelude::*;
use taskledger_auth::jwt::{Algorithm, Keys};

proptest! {
    #[test]
    fn garbage_is_refused_without_a_panic(
        text in ".{0,300}",
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..5),
    ) {
        let published = keys(&[Signer::new(Algorithm::EdDsa).jwk("k")]);
        let parts: Vec<_> = parts.iter().map(encoded).collect();
        for token in [text, parts.join(".")] {
            prop_assert!(issuer(options()).verify(&token, &published, NOW_MS).is_err());
        }
    }

    #[test]
    fn a_token_with_one_other_byte_is_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let signer = Signer::new(Algorithm::EdDsa);
        let published = keys(&[signer.jwk("k")]);
        let token = signer.token(&signer.header("k"), &claims());
        let mut bytes = token.clone().into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        if let Ok(other) = String::from_utf8(bytes) {
            prop_assert!(issuer(options()).verify(&other, &published, NOW_MS).is_err());
        }
    }

    #[test]
    fn a_key_set_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        _ = Keys::parse(&bytes, &Algorithm::ALL);
        _ = Keys::parse(format!("{{\"keys\": [{}]}}", String::from_utf8_lossy(&bytes)).as_bytes(), &Algorithm::ALL);
    }
}
