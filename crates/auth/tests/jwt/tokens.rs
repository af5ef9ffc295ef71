//! The check of one token against known keys.

use crate::issuing::{
    AUDIENCE, ISSUER, NOW, NOW_MS, Signer, changed, claims, claims_with, encoded, grant, issuer,
    keys, options, set,
};
use serde_json::{Value, json};
use taskledger_auth::jwt::{
    Algorithm, Denied, Issuer, IssuerOptions, Keys, KeysRefused, LEEWAY_SECONDS, TOKEN_BYTES_MAX,
    Verified, is_jwt,
};
use taskledger_auth::{Caller, Scope, Scopes};

const KID: &str = "k1";

/// What becomes of these claims, with a good signature.
fn judged(options: IssuerOptions, claims: &Value) -> Result<Verified, Denied> {
    let signer = Signer::new(Algorithm::EdDsa);
    let token = signer.token(&signer.header(KID), claims);
    issuer(options).verify(&token, &keys(&[signer.jwk(KID)]), NOW_MS)
}

fn refused(changes: Value) -> Denied {
    judged(options(), &claims_with(changes)).unwrap_err()
}

/// What becomes of a good token with another header.
fn with_header(changes: Value) -> Result<Verified, Denied> {
    let signer = Signer::new(Algorithm::EdDsa);
    let token = signer.token(&changed(signer.header(KID), changes), &claims());
    issuer(options()).verify(&token, &keys(&[signer.jwk(KID)]), NOW_MS)
}

#[test]
fn a_token_of_each_algorithm_names_its_caller() {
    for algorithm in Algorithm::ALL {
        let signer = Signer::new(algorithm);
        let token = signer.token(&signer.header(KID), &claims());
        let verified = issuer(options()).verify(&token, &keys(&[signer.jwk(KID)]), NOW_MS);
        let caller = verified.unwrap().into_caller();
        let scopes = Scopes::of([Scope::TasksRead, Scope::TasksWrite]);
        let name = taskledger_auth::Name::new("ann").unwrap();
        let end = (NOW + 300 + LEEWAY_SECONDS) * 1000;
        let expected = Caller::user(&name, scopes).by("jwt:t-1".into(), Some(end));
        assert_eq!(caller, expected, "{algorithm}");
    }
}

#[test]
fn a_changed_token_is_refused() {
    let signer = Signer::new(Algorithm::Es256);
    let token = signer.token(&signer.header(KID), &claims());
    let keys = keys(&[signer.jwk(KID)]);
    let parts: Vec<&str> = token.split('.').collect();
    let more = encoded(claims_with(json!({"sub": "root"})).to_string());
    for changed in [
        format!("{}.{more}.{}", parts[0], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}.{}", parts[0], parts[1], encoded([0; 64])),
    ] {
        let verdict = issuer(options()).verify(&changed, &keys, NOW_MS);
        assert_eq!(verdict, Err(Denied::BadSignature));
    }
}

#[test]
fn an_algorithm_that_is_not_the_keys_is_refused() {
    let rsa = Signer::new(Algorithm::Rs256);
    let published = keys(&[rsa.jwk(KID)]);
    let verdict = |token: &str| issuer(options()).verify(token, &published, NOW_MS);
    // The public key taken for a shared secret: whoever could do that would be let in.
    for alg in ["none", "None", "HS256", "HS512", "RS512", "ES384", ""] {
        let token = rsa.token(&json!({"typ": "JWT", "alg": alg, "kid": KID}), &claims());
        assert_eq!(verdict(&token), Err(Denied::WrongAlgorithm), "{alg}");
        let unsigned = format!("{}.", token.rsplit_once('.').unwrap().0);
        assert_eq!(verdict(&unsigned), Err(Denied::WrongAlgorithm), "{alg}");
    }
    // A good signature in an algorithm that the key is not for.
    let pss = Signer::new(Algorithm::Ps256);
    let token = pss.token(&pss.header(KID), &claims());
    assert_eq!(verdict(&token), Err(Denied::WrongAlgorithm));
    let token = pss.token(&rsa.header(KID), &claims());
    assert_eq!(verdict(&token), Err(Denied::BadSignature));
    let ed = Signer::new(Algorithm::EdDsa);
    let token = ed.token(&ed.header(KID), &claims());
    assert_eq!(verdict(&token), Err(Denied::WrongAlgorithm));
}

#[test]
fn a_key_of_another_issuer_is_no_key() {
    let other = "https://other.example";
    let all = Issuer::all(vec![
        options(),
        IssuerOptions {
            user_prefix: "other:".to_owned(),
            ..IssuerOptions::new(other, AUDIENCE)
        },
    ])
    .unwrap();
    let (ours, theirs) = (Signer::new(Algorithm::EdDsa), Signer::new(Algorithm::EdDsa));
    let our_keys = keys(&[ours.jwk(KID)]);
    let token = theirs.token(&theirs.header(KID), &claims());
    assert_eq!(
        all[0].verify(&token, &our_keys, NOW_MS),
        Err(Denied::BadSignature)
    );
    let token = theirs.token(&theirs.header("k2"), &claims());
    assert_eq!(
        all[0].verify(&token, &our_keys, NOW_MS),
        Err(Denied::UnknownKey)
    );
    let token = theirs.token(&theirs.header(KID), &claims_with(json!({"iss": other})));
    assert_eq!(
        all[0].verify(&token, &our_keys, NOW_MS),
        Err(Denied::UnknownIssuer)
    );
}

#[test]
fn keys_that_a_token_brings_are_not_used() {
    let (ours, theirs) = (Signer::new(Algorithm::Es256), Signer::new(Algorithm::Es256));
    let brought = json!({
        "jwk": theirs.jwk(KID), "jku": "https://evil.example/keys", "x5u": "https://evil.example/x",
    });
    let published = keys(&[ours.jwk(KID)]);
    let token = theirs.token(&changed(theirs.header(KID), brought.clone()), &claims());
    let verdict = issuer(options()).verify(&token, &published, NOW_MS);
    assert_eq!(verdict, Err(Denied::BadSignature));
    let token = ours.token(&changed(ours.header(KID), brought), &claims());
    assert!(issuer(options()).verify(&token, &published, NOW_MS).is_ok());
}

#[test]
fn headers_of_other_kinds_of_tokens_are_refused() {
    for (changes, expected) in [
        (json!({"typ": null}), Denied::WrongType),
        (json!({"typ": "dpop+jwt"}), Denied::WrongType),
        (json!({"typ": "logout+jwt"}), Denied::WrongType),
        (json!({"typ": "application/é"}), Denied::WrongType),
        (json!({"typ": 1}), Denied::Malformed),
        (json!({"crit": ["exp"], "exp": 1}), Denied::CriticalHeader),
        (json!({"crit": []}), Denied::CriticalHeader),
        (json!({"kid": "k".repeat(257)}), Denied::UnknownKey),
        (json!({"kid": "../../keys"}), Denied::UnknownKey),
        (json!({"kid": 7}), Denied::Malformed),
        (json!({"alg": null}), Denied::Malformed),
    ] {
        assert_eq!(with_header(changes.clone()), Err(expected), "{changes}");
    }
    for typ in [
        "JWT",
        "jwt",
        "at+jwt",
        "application/at+jwt",
        "Application/AT+JWT",
    ] {
        assert!(with_header(json!({"typ": typ})).is_ok(), "{typ}");
    }
}

#[test]
fn id_tokens_are_refused() {
    for claim in ["nonce", "at_hash", "c_hash"] {
        assert_eq!(refused(json!({claim: "x"})), Denied::WrongType);
    }
}

#[test]
fn a_token_is_good_for_its_time_and_a_minute() {
    let second = LEEWAY_SECONDS;
    for (changes, expected) in [
        (json!({"exp": NOW - second + 1}), None),
        (json!({"exp": NOW as f64 + 0.5}), None),
        (json!({"nbf": NOW + second, "iat": null}), None),
        (json!({"exp": NOW - second}), Some(Denied::Expired)),
        (json!({"exp": 0}), Some(Denied::Expired)),
        (json!({"nbf": NOW + second + 1}), Some(Denied::NotYetValid)),
        (json!({"iat": NOW + second + 1}), Some(Denied::NotYetValid)),
        (json!({"exp": null}), Some(Denied::Malformed)),
        (json!({"exp": "1900000000"}), Some(Denied::Malformed)),
        (json!({"exp": -1}), Some(Denied::Malformed)),
        (json!({"exp": 1e300}), Some(Denied::Malformed)),
        (json!({"exp": u64::MAX}), Some(Denied::Malformed)),
        (json!({"nbf": [1]}), Some(Denied::Malformed)),
    ] {
        let verdict = judged(options(), &claims_with(changes.clone()));
        assert_eq!(verdict.err(), expected, "{changes}");
    }
}

#[test]
fn a_token_for_somebody_else_is_refused() {
    for aud in [
        json!("other"),
        json!([]),
        json!(["a", "b"]),
        json!(7),
        json!({"taskledger": 1}),
    ] {
        assert_eq!(
            refused(json!({"aud": aud.clone()})),
            Denied::WrongAudience,
            "{aud}"
        );
    }
    assert_eq!(refused(json!({"aud": null})), Denied::WrongAudience);
    assert!(judged(options(), &claims_with(json!({"aud": ["a", AUDIENCE]}))).is_ok());
    assert_eq!(refused(json!({"iss": [ISSUER]})), Denied::Malformed);
    assert_eq!(
        refused(json!({"iss": format!("{ISSUER}/")})),
        Denied::UnknownIssuer
    );
}

#[test]
fn a_token_without_a_user_is_refused() {
    let long = "x".repeat(256);
    for sub in ["", " ann", "ann\n", "user:ann", "service:ci", &long] {
        assert_eq!(refused(json!({"sub": sub})), Denied::NoUser, "{sub:?}");
    }
    assert_eq!(refused(json!({"sub": null})), Denied::NoUser);
    assert_eq!(refused(json!({"sub": 7})), Denied::NoUser);
}

#[test]
fn another_claim_may_name_the_user() {
    let by = |claim: &str| IssuerOptions {
        user_claim: claim.to_owned(),
        user_prefix: "corp:".to_owned(),
        ..options()
    };
    let named = |claim: &str, changes: Value| {
        let verified = judged(by(claim), &claims_with(changes));
        verified.map(|verified| verified.name.as_str().to_owned())
    };
    let user = json!({"preferred_username": "ann2"});
    assert_eq!(
        named("preferred_username", user),
        Ok("corp:ann2".to_owned())
    );
    assert_eq!(named("preferred_username", json!({})), Err(Denied::NoUser));
    // A subject is needed all the same: it is what can be revoked.
    let user = json!({"preferred_username": "ann2", "sub": null});
    assert_eq!(named("preferred_username", user), Err(Denied::NoUser));
    let mail = json!({"email": "a@b.example"});
    assert_eq!(named("email", mail), Err(Denied::NoUser));
    let mail = json!({"email": "a@b.example", "email_verified": true});
    assert_eq!(named("email", mail), Ok("corp:a@b.example".to_owned()));
}

#[test]
fn users_of_two_issuers_never_have_one_name() {
    let all = Issuer::all(vec![
        options(),
        IssuerOptions {
            user_prefix: "b:".to_owned(),
            ..IssuerOptions::new("https://b.example", AUDIENCE)
        },
    ])
    .unwrap();
    let signer = Signer::new(Algorithm::EdDsa);
    let token = signer.token(&signer.header(KID), &claims_with(json!({"sub": "b:ann"})));
    let verdict = all[0].verify(&token, &keys(&[signer.jwk(KID)]), NOW_MS);
    assert_eq!(verdict, Err(Denied::NoUser));
}

#[test]
fn scopes_come_from_the_table_alone() {
    let table = |grants: &[&str]| IssuerOptions {
        grants: grants.iter().map(|text| grant(text)).collect(),
        ..options()
    };
    let scopes = |grants: &[&str], changes: Value| {
        let verified = judged(table(grants), &claims_with(changes));
        verified.unwrap().scopes.to_string()
    };
    assert_eq!(
        scopes(&[], json!({"scope": "admin", "scopes": "admin"})),
        ""
    );
    let roles = json!({"realm_access": {"roles": ["ops"]}, "https://a.example/roles": "ops"});
    let by_path = ["realm_access.roles:ops=admin"];
    assert_eq!(scopes(&by_path, roles.clone()), "admin");
    let by_url = ["https://a.example/roles:ops=metrics"];
    assert_eq!(scopes(&by_url, roles), "metrics");
    let words = [
        "scope:ledger.read=tasks:read",
        "scope:ledger.run=tasks:run worker",
    ];
    let all = json!({"scope": "openid ledger.run ledger.read"});
    assert_eq!(scopes(&words, all), "tasks:read tasks:run worker");
    assert_eq!(scopes(&words, json!({"scope": "ledger"})), "");
    // Only lists of words are taken apart.
    assert_eq!(scopes(&["groups:a=admin"], json!({"groups": "a b"})), "");
    assert_eq!(
        scopes(&["groups:a=admin"], json!({"groups": [["a"], {"a": 1}, 1]})),
        ""
    );
}

#[test]
fn a_credential_is_shown_by_its_id_or_digest() {
    let shown = |changes: Value| judged(options(), &claims_with(changes)).unwrap().credential;
    assert_eq!(shown(json!({"jti": "0a-B"})), "jwt:0a-B");
    for jti in [
        json!(null),
        json!(""),
        json!("a b"),
        json!("x\n"),
        json!("x".repeat(129)),
    ] {
        let shown = shown(json!({"jti": jti}));
        let digest = shown.strip_prefix("jwt:").unwrap();
        let is_hex = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(digest.len() == 16 && is_hex, "{shown}");
    }
    assert_eq!(refused(json!({"jti": 7})), Denied::Malformed);
}

#[test]
fn what_is_no_token_is_refused() {
    let none = keys(&[Signer::new(Algorithm::EdDsa).jwk(KID)]);
    let issuer = issuer(options());
    let deep = encoded("[".repeat(5000));
    for text in [
        "",
        ".",
        "..",
        "...",
        "a.b",
        "a.b.c",
        "e30.e30.",
        "é.é.é",
        &format!("{deep}.e30."),
    ] {
        assert_eq!(
            issuer.verify(text, &none, NOW_MS),
            Err(Denied::Malformed),
            "{text}"
        );
    }
    assert!(is_jwt("a.b.c") && !is_jwt("tl_abc") && !is_jwt("a.b"));
    let long = "x".repeat(TOKEN_BYTES_MAX + 1);
    assert_eq!(issuer.verify(&long, &none, NOW_MS), Err(Denied::TooLong));
}

#[test]
fn a_member_that_is_there_twice_is_refused() {
    let signer = Signer::new(Algorithm::EdDsa);
    let published = keys(&[signer.jwk(KID)]);
    let header = signer.header(KID).to_string();
    let twice = header.replacen('{', "{\"alg\":\"none\",", 1);
    let token = signer.token(&signer.header(KID), &claims());
    let rest = token.split_once('.').unwrap().1;
    let token = format!("{}.{rest}", encoded(twice));
    let verdict = issuer(options()).verify(&token, &published, NOW_MS);
    assert_eq!(verdict, Err(Denied::Malformed));
}

#[test]
fn a_token_that_names_no_key_needs_a_single_candidate() {
    let (one, other) = (Signer::new(Algorithm::EdDsa), Signer::new(Algorithm::EdDsa));
    let rsa = Signer::new(Algorithm::Rs256);
    let header = changed(one.header(KID), json!({"kid": null}));
    let token = one.token(&header, &claims());
    let verdict = |jwks: &[Value]| {
        let verdict = issuer(options()).verify(&token, &keys(jwks), NOW_MS);
        verdict.map(|verified| verified.subject)
    };
    assert_eq!(verdict(&[one.jwk("a"), rsa.jwk("b")]), Ok("ann".to_owned()));
    assert_eq!(
        verdict(&[one.jwk("a"), other.jwk("b")]),
        Err(Denied::UnknownKey)
    );
    assert_eq!(verdict(&[rsa.jwk("b")]), Err(Denied::WrongAlgorithm));
}

#[test]
fn keys_are_used_for_what_they_are_published_for() {
    let (rsa, ec) = (Signer::new(Algorithm::Rs256), Signer::new(Algorithm::Es256));
    let used = |jwk: Value, allowed: &[Algorithm]| Keys::parse(&set(&[jwk]), allowed).map(|_| ());
    let all = &Algorithm::ALL;
    for changes in [
        json!({"use": "enc"}),
        json!({"key_ops": ["sign"]}),
        json!({"alg": "RS512"}),
        json!({"alg": "HS256"}),
        json!({"alg": "RSA-OAEP"}),
        json!({"n": encoded([0xff; 128])}),
        json!({"n": encoded([0xff; 1025])}),
        json!({"e": encoded([1, 0, 0, 0, 1])}),
        json!({"e": ""}),
        json!({"n": "not base64!"}),
        json!({"d": "secret"}),
        json!({"kty": "oct", "k": encoded([7; 32])}),
        json!({"kid": 7}),
    ] {
        let verdict = used(changed(rsa.jwk(KID), changes.clone()), all);
        assert_eq!(verdict, Err(KeysRefused::Empty), "{changes}");
    }
    for changes in [
        json!({"crv": "P-384"}),
        json!({"x": encoded([1; 31])}),
        json!({"y": null}),
    ] {
        let verdict = used(changed(ec.jwk(KID), changes.clone()), all);
        assert_eq!(verdict, Err(KeysRefused::Empty), "{changes}");
    }
    assert_eq!(
        used(ec.jwk(KID), &[Algorithm::Rs256]),
        Err(KeysRefused::Empty)
    );
    let bare = json!({"alg": null, "use": null, "kid": null});
    assert_eq!(used(changed(ec.jwk(KID), bare), all), Ok(()));
}

#[test]
fn an_rsa_key_that_names_no_algorithm_is_for_the_usual_one() {
    let bare = |signer: &Signer| changed(signer.jwk(KID), json!({"alg": null}));
    let (rs, ps) = (Signer::new(Algorithm::Rs256), Signer::new(Algorithm::Ps256));
    let verdict = |signer: &Signer, allowed: &[Algorithm]| {
        let keys = Keys::parse(&set(&[bare(signer)]), allowed).unwrap();
        let token = signer.token(&signer.header(KID), &claims());
        issuer(options()).verify(&token, &keys, NOW_MS).err()
    };
    assert_eq!(verdict(&rs, &Algorithm::ALL), None);
    assert_eq!(verdict(&ps, &Algorithm::ALL), Some(Denied::WrongAlgorithm));
    assert_eq!(verdict(&ps, &[Algorithm::Ps256]), None);
}

#[test]
fn key_sets_are_bounded() {
    let jwk = Signer::new(Algorithm::EdDsa).jwk(KID);
    let parse = |document: &[u8]| Keys::parse(document, &Algorithm::ALL).map(|keys| keys.count());
    assert_eq!(parse(&set(&vec![jwk.clone(); 32])), Ok(32));
    assert_eq!(
        parse(&set(&vec![jwk.clone(); 33])),
        Err(KeysRefused::TooMany)
    );
    let padded = [set(&[jwk]), vec![b' '; 256 * 1024]].concat();
    assert_eq!(parse(&padded), Err(KeysRefused::TooLong));
    for bad in ["", "[]", "{}", "{\"keys\": {}}", "\"keys\""] {
        assert_eq!(parse(bad.as_bytes()), Err(KeysRefused::Malformed), "{bad}");
    }
    assert_eq!(
        parse(br#"{"keys": [1, null, {}, "x"]}"#),
        Err(KeysRefused::Empty)
    );
}
