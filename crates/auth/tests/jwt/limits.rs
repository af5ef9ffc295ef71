//! What a token with a valid signature may not say: names of the server's own, a key that it is bound to, times after
//! the year 9999.

use crate::issuing::{NOW_MS, Signer, claims, claims_with, issuer, keys, options};
use serde_json::{Value, json};
use taskledger_auth::jwt::{Algorithm, Denied, IssuerOptions, Verified};

const KID: &str = "k1";

/// The verdict on these claims, with a valid signature.
fn judged(options: IssuerOptions, claims: &Value) -> Result<Verified, Denied> {
    let signer = Signer::new(Algorithm::EdDsa);
    let token = signer.token(&signer.header(KID), claims);
    issuer(options).verify(&token, &keys(&[signer.jwk(KID)]), NOW_MS)
}

fn refused(changes: Value) -> Denied {
    judged(options(), &claims_with(changes)).unwrap_err()
}

#[test]
fn no_user_has_a_name_of_the_servers_own() {
    for name in [
        "anonymous",
        "engine",
        "operator",
        "server",
        "Server",
        "s\u{435}rver",
    ] {
        assert_eq!(refused(json!({"sub": name})), Denied::NoUser, "{name}");
        let prefixed = IssuerOptions {
            user_prefix: "corp:".to_owned(),
            ..options()
        };
        let verified = judged(prefixed, &claims_with(json!({"sub": name}))).unwrap();
        assert_eq!(verified.name.as_str(), format!("corp:{name}"));
    }
    // Nor with a prefix that makes one of a harmless name.
    let prefixed = IssuerOptions {
        user_prefix: "ser".to_owned(),
        ..options()
    };
    let verdict = judged(prefixed, &claims_with(json!({"sub": "ver"})));
    assert_eq!(verdict.unwrap_err(), Denied::NoUser);
}

#[test]
fn a_token_that_is_bound_to_a_key_is_refused_unless_settings_say_otherwise() {
    for bound in [
        json!({"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
        json!({"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}),
        json!({}),
        Value::Null,
    ] {
        let mut claims = claims();
        claims["cnf"] = bound;
        assert_eq!(judged(options(), &claims).unwrap_err(), Denied::Bound);
        let accepting = IssuerOptions {
            accepts_bound: true,
            ..options()
        };
        assert!(judged(accepting, &claims).is_ok());
    }
}

#[test]
fn a_token_never_ends_after_the_year_9999() {
    const LAST: i64 = 253_402_300_799;
    let verified = judged(options(), &claims_with(json!({"exp": LAST}))).unwrap();
    assert_eq!(verified.expires_ms, LAST * 1000 + 999);
    for claim in ["exp", "nbf", "iat"] {
        for beyond in [
            json!(LAST + 1),
            json!(1e300),
            json!(-1),
            json!("1800000300"),
        ] {
            let denied = refused(json!({claim: beyond}));
            assert_eq!(denied, Denied::Malformed, "{claim}");
        }
    }
}
