//! An issuer that is called over HTTP, through the guard of outgoing requests.

use crate::issuing::{AUDIENCE, NOW_MS, Signer, claims_with, set};
use serde_json::json;
use std::sync::Arc;
use taskledger_auth::jwt::{
    Algorithm, Denied, DeniedTokens, Documents, GuardedDocuments, Issuer, IssuerOptions, Issuers,
};
use taskledger_net::egress::{Egress, Options, Policy, SystemLookup};
use taskledger_testkit::receiver::{Answer, Behaviour, Receiver};

const DESCRIPTION: &str = "/realm/.well-known/openid-configuration";

/// A receiver that is an issuer with one key.
async fn site(signer: &Signer) -> Receiver {
    let receiver = Receiver::start().await;
    let description = json!({"issuer": receiver.url("/realm"), "jwks_uri": receiver.url("/keys")});
    receiver.answer_at(
        DESCRIPTION,
        Answer::status(200).body(description.to_string()),
    );
    receiver.answer_at("/keys", Answer::status(200).body(set(&[signer.jwk("a")])));
    receiver
}

fn start(receiver: &Receiver, policy: Policy) -> Issuers {
    let resolver = Arc::new(SystemLookup::of_the_system().unwrap());
    let egress = Arc::new(Egress::new(Options::new(policy, resolver)).unwrap());
    let documents: Arc<dyn Documents> = Arc::new(GuardedDocuments(egress));
    let issuer = Issuer::all(vec![IssuerOptions {
        loopback_http: true,
        ..IssuerOptions::new(&receiver.url("/realm"), AUDIENCE)
    }]);
    Issuers::start(
        issuer.unwrap(),
        &documents,
        Arc::new(DeniedTokens::default()),
    )
}

fn loopback_allowed() -> Policy {
    Policy {
        allow_nets: vec!["127.0.0.0/8".parse().unwrap()],
        ..Policy::default()
    }
}

fn token(signer: &Signer, receiver: &Receiver) -> String {
    let claims = claims_with(json!({"iss": receiver.url("/realm")}));
    signer.token(&signer.header("a"), &claims)
}

#[tokio::test]
async fn keys_come_from_where_the_issuer_says() {
    let signer = Signer::new(Algorithm::Rs256);
    let receiver = site(&signer).await;
    let issuers = start(&receiver, loopback_allowed());
    let caller = issuers
        .verify(&token(&signer, &receiver), NOW_MS)
        .await
        .unwrap();
    assert_eq!(&**caller.owner(), "ann");
    let paths: Vec<_> = receiver.requests().into_iter().map(|r| r.path).collect();
    assert_eq!(paths, [DESCRIPTION, "/keys"]);
}

#[tokio::test]
async fn an_address_that_the_guard_refuses_is_not_called() {
    let signer = Signer::new(Algorithm::Rs256);
    let receiver = site(&signer).await;
    let issuers = start(&receiver, Policy::default());
    let verdict = issuers.verify(&token(&signer, &receiver), NOW_MS).await;
    assert_eq!(verdict.err(), Some(Denied::KeysUnavailable));
    assert_eq!(receiver.requests().len(), 0);
}

#[tokio::test]
async fn long_documents_redirects_and_errors_are_no_keys() {
    let signer = Signer::new(Algorithm::EdDsa);
    let elsewhere = site(&signer).await;
    let redirect = Answer::status(302).header("location", &elsewhere.url("/keys"));
    for bad in [
        Behaviour::endless_body(),
        redirect.into(),
        Answer::status(500).into(),
        Answer::status(200).body("<html>").into(),
    ] {
        let receiver = site(&signer).await;
        receiver.answer_at("/keys", bad.clone());
        let issuers = start(&receiver, loopback_allowed());
        let verdict = issuers.verify(&token(&signer, &receiver), NOW_MS).await;
        assert_eq!(verdict.err(), Some(Denied::KeysUnavailable), "{bad:?}");
        assert_eq!(receiver.requests().len(), 2);
    }
    assert_eq!(elsewhere.requests().len(), 0, "no redirect is followed");
}
