//! Cards survive JSON; their signatures hold until something of the card is changed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use taskledger_a2a::Wire;
use taskledger_a2a::card::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    OAuthFlow, SecurityRequirement, SecurityScheme,
};
use taskledger_a2a::signing::{CardKey, KeyError, Unverified, key_set, verify};

fn card() -> AgentCard {
    let http = SecurityScheme::Http {
        description: String::new(),
        scheme: "Bearer".to_owned(),
        bearer_format: "JWT".to_owned(),
    };
    let oauth = SecurityScheme::OAuth2 {
        description: "d".to_owned(),
        flow: OAuthFlow::ClientCredentials {
            token_url: "https://issuer/token".to_owned(),
            refresh_url: String::new(),
            scopes: vec![("read".to_owned(), "reads".to_owned())],
        },
        metadata_url: String::new(),
    };
    AgentCard {
        name: "agent".to_owned(),
        description: "does things".to_owned(),
        supported_interfaces: vec![AgentInterface {
            url: "https://agent/a2a".to_owned(),
            protocol_binding: "JSONRPC".to_owned(),
            tenant: None,
            protocol_version: "1.0".to_owned(),
        }],
        provider: Some(AgentProvider {
            url: "https://provider".to_owned(),
            organization: "provider".to_owned(),
        }),
        version: "1".to_owned(),
        documentation_url: None,
        capabilities: AgentCapabilities {
            streaming: true,
            push_notifications: false,
            extensions: vec![AgentExtension {
                uri: "urn:x".to_owned(),
                description: String::new(),
                required: false,
                params: json!({"n": 1e21}).as_object().cloned(),
            }],
            extended_agent_card: false,
        },
        security_schemes: vec![("bearer".to_owned(), http), ("oauth".to_owned(), oauth)],
        security_requirements: vec![SecurityRequirement {
            schemes: vec![("oauth".to_owned(), vec!["read".to_owned()])],
        }],
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["application/json".to_owned()],
        skills: vec![AgentSkill {
            id: "s".to_owned(),
            name: "s".to_owned(),
            description: "s".to_owned(),
            tags: vec!["t".to_owned()],
            examples: vec![],
            input_modes: vec![],
            output_modes: vec![],
            security_requirements: vec![],
        }],
        signatures: vec![],
        icon_url: None,
    }
}

#[test]
fn a_card_survives_json_and_spells_out_its_lists_and_flags() {
    let card = card();
    let written = card.to_json();
    assert_eq!(AgentCard::from_json(written.clone()), Ok(card));
    assert_eq!(written["signatures"], json!([]));
    assert_eq!(written["skills"][0]["examples"], json!([]));
    assert_eq!(written["capabilities"]["pushNotifications"], false);
    assert_eq!(written["capabilities"]["extensions"][0]["required"], false);
}

#[test]
fn what_is_signed_has_no_signatures_and_no_defaults() {
    let signed = card().to_be_signed();
    assert!(signed.get("signatures").is_none());
    assert!(signed["skills"][0].get("examples").is_none());
    assert!(
        signed["capabilities"]["extensions"][0]
            .get("required")
            .is_none()
    );
    assert_eq!(signed["capabilities"]["pushNotifications"], false);
}

#[test]
fn a_signature_holds_until_the_card_is_changed() {
    let (old, new) = (CardKey::from_seed(&[1; 32]), CardKey::from_seed(&[2; 32]));
    let mut card = card();
    assert_eq!(verify(&card, &key_set(&[])), Err(Unverified::NotSigned));
    card.signatures = [&old, &new]
        .map(|key| key.sign(&card, "https://agent/keys"))
        .into();
    // Either key does, so that keys can be replaced one after the other.
    for known in [&[1; 32], &[2; 32]] {
        let read = AgentCard::from_json(card.to_json()).expect("a card");
        assert_eq!(
            verify(&read, &key_set(&[CardKey::from_seed(known)])),
            Ok(())
        );
    }
    let stranger = key_set(&[CardKey::from_seed(&[3; 32])]);
    assert_eq!(verify(&card, &stranger), Err(Unverified::NoneHolds));
    card.supported_interfaces[0].url = "https://evil/a2a".to_owned();
    assert_eq!(
        verify(&card, &key_set(&[old, new])),
        Err(Unverified::NoneHolds)
    );
}

#[test]
fn signatures_that_confuse_are_not_believed() {
    let key = CardKey::from_seed(&[1; 32]);
    let keys = key_set(&[CardKey::from_seed(&[1; 32])]);
    let mut card = card();
    let good = key.sign(&card, "https://agent/keys");
    let header = |change: &dyn Fn(&mut Value)| {
        let bytes = URL_SAFE_NO_PAD.decode(&good.protected).expect("base64url");
        let mut header: Value = serde_json::from_slice(&bytes).expect("JSON");
        change(&mut header);
        URL_SAFE_NO_PAD.encode(header.to_string())
    };
    let none = header(&|it| it["alg"] = json!("none"));
    let hmac = header(&|it| it["alg"] = json!("HS256"));
    let other = header(&|it| it["kid"] = json!("other"));
    let critical = header(&|it| it["crit"] = json!(["b64"]));
    let elsewhere = header(&|it| it["jku"] = json!("https://evil/keys"));
    for protected in [none, hmac, other, critical, elsewhere, "?".to_owned()] {
        let mut bad = good.clone();
        bad.protected = protected;
        card.signatures = vec![bad];
        assert_eq!(verify(&card, &keys), Err(Unverified::NoneHolds));
    }
    let mut unsigned = good.clone();
    unsigned.signature = String::new();
    card.signatures = vec![unsigned];
    assert_eq!(verify(&card, &keys), Err(Unverified::NoneHolds));
    card.signatures = vec![good];
    assert_eq!(verify(&card, &keys), Ok(()));
}

#[test]
fn key_files_are_read_as_openssl_writes_them() {
    // RFC 8410, section 10.3.
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    let key = CardKey::from_pem(pem).expect("an Ed25519 key");
    // Section 10.1 has its public key.
    assert_eq!(
        key.public()["x"],
        "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"
    );
    assert_eq!(CardKey::from_pem("x").err(), Some(KeyError::NoPem));
    let other = pem.replace("MC4CAQAwBQYDK2Vw", "MC4CAQAwBQYDK2Vu");
    assert_eq!(CardKey::from_pem(&other).err(), Some(KeyError::UnknownKind));
    // RFC 5480: the public key of this one is `04 46a9 .. 05a2 .. e1`.
    let key = CardKey::from_pem(P256).expect("a P-256 key");
    let public = key.public();
    assert_eq!(
        (&public["kty"], &public["crv"], &public["alg"]),
        (&json!("EC"), &json!("P-256"), &json!("ES256"))
    );
    assert_eq!(public["x"], "RqlWb3UejlfZyeqwH7LGtQlRdS_rEfLHVNCw078JHQU");
    assert_eq!(public["y"], "oum37L8-8kccJ0-lcsFeaj__Bvc11kWbf4rYBV_T7mE");
    // One on another curve, as openssl writes it.
    let other = P256.replace(
        "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEH",
        "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEG",
    );
    assert_eq!(CardKey::from_pem(&other).err(), Some(KeyError::UnknownKind));
}

#[test]
fn a_card_may_be_signed_with_p_256_and_no_key_is_used_with_the_algorithm_of_another() {
    let keys = [
        CardKey::from_pem(P256).expect("a P-256 key"),
        CardKey::from_seed(&[1; 32]),
    ];
    let mut card = card();
    let signatures = keys
        .each_ref()
        .map(|key| key.sign(&card, "https://agent/keys"));
    let set = key_set(&keys);
    for (key, signature) in keys.iter().zip(&signatures) {
        card.signatures = vec![signature.clone()];
        let read = AgentCard::from_json(card.to_json()).expect("a card");
        assert_eq!(verify(&read, &set), Ok(()));
        // The same name for a key of the other kind, and the other algorithm in the header.
        let mut swapped = set.clone();
        for known in swapped["keys"].as_array_mut().expect("keys") {
            if known["kid"] == key.id() {
                known["kid"] = json!("other");
            } else {
                known["kid"] = json!(key.id());
            }
        }
        assert_eq!(verify(&read, &swapped), Err(Unverified::NoneHolds));
        let mut changed = read.clone();
        changed.name.push('!');
        assert_eq!(verify(&changed, &set), Err(Unverified::NoneHolds));
    }
}

/// As `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` writes it.
const P256: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgTaNn9weSYfO30Wz9
FO12eJlSguCkgP7b2MTPzi06tWShRANCAARGqVZvdR6OV9nJ6rAfssa1CVF1L+sR
8sdU0LDTvwkdBaLpt+y/PvJHHCdPpXLBXmo//wb3NdZFm3+K2AVf0+5h
-----END PRIVATE KEY-----
";
