//! What receivers that are not ours find in our requests.

use crate::webhooks::sending::Sending;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use standardwebhooks::Webhook;
use taskledger_domain::Timestamp;
use taskledger_testkit::receiver::{Answer, Receiver, Request};

const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA=";
const OTHER: &str = "whsec_b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyb3Q=";

fn headers(request: &Request) -> HeaderMap {
    let named = |(name, value): &(String, String)| {
        let name: HeaderName = name.parse().unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    };
    request.headers.iter().map(named).collect()
}

fn verifies(request: &Request, secret: &str) -> bool {
    let webhook = Webhook::new(secret).unwrap();
    webhook.verify(&request.body, &headers(request)).is_ok()
}

/// Sends a message under these keys; how it came.
async fn received(keys: &[&str], body: &'static [u8]) -> Request {
    let receiver = Receiver::start().await;
    let sending = Sending::start();
    let endpoint = sending.endpoint(&receiver.url("/hook"), keys);
    let message = sending.message(endpoint, body);
    sending.tried(message, 1).await;
    receiver.requests().remove(0)
}

#[tokio::test]
async fn a_receiver_with_the_secret_can_verify_a_request_and_nobody_else() {
    let request = received(&[NEW], b"{\"a\":1}").await;
    assert_eq!((&*request.method, &*request.path), ("POST", "/hook"));
    assert!(verifies(&request, NEW));
    assert!(!verifies(&request, OTHER));
    let mut changed = request.clone();
    changed.body.push(b' ');
    assert!(!verifies(&changed, NEW));
}

#[tokio::test]
async fn the_bytes_that_are_signed_are_those_that_arrive() {
    // What a parser and a printer would not give back.
    let body =
        "{\"b\":1.0,\"a\":12345678901234567890123,\"a\":1e400,\"\\u00e9\":\"é\\/ \u{1F600}\"}\n";
    let request = received(&[NEW], body.as_bytes()).await;
    assert_eq!(request.body, body.as_bytes());
    assert!(verifies(&request, NEW));
}

#[tokio::test]
async fn during_a_rotation_both_secrets_verify_and_the_old_one_ends() {
    let receiver = Receiver::start().await;
    let sending = Sending::start();
    let endpoint = sending.endpoint(&receiver.url("/hook"), &[NEW, OLD]);
    let message = sending.message(endpoint, b"{}");
    sending.tried(message, 1).await;
    let during = &receiver.requests()[0];
    assert!(verifies(during, NEW) && verifies(during, OLD));
    let signatures: Vec<_> = during
        .header("webhook-signature")
        .unwrap()
        .split(' ')
        .collect();
    assert_eq!(signatures.len(), 2);
    let mut first = during.clone();
    let header = first
        .headers
        .iter_mut()
        .find(|(name, _)| name == "webhook-signature");
    header.unwrap().1 = signatures[0].to_owned();
    assert!(
        verifies(&first, NEW) && !verifies(&first, OLD),
        "the newest comes first"
    );

    // Its time is over.
    sending
        .store
        .change(endpoint, |e| e.keys[1].expires_at = Some(Timestamp(1)));
    let message = sending.message(endpoint, b"{}");
    sending.tried(message, 1).await;
    let after = &receiver.requests()[1];
    assert!(verifies(after, NEW) && !verifies(after, OLD));
}

#[tokio::test]
async fn each_attempt_has_a_signature_of_its_own_that_is_good() {
    let receiver = Receiver::start().await;
    receiver.answers([Answer::status(500).into()]);
    let sending = Sending::start();
    let endpoint = sending.endpoint(&receiver.url("/hook"), &[NEW]);
    sending
        .store
        .change(endpoint, |e| e.schedule = Some([0, 2].into()));
    let message = sending.message(endpoint, b"{}");
    sending.tried(message, 2).await;

    let requests = receiver.requests();
    let header = |n: usize, name| requests[n].header(name).unwrap().to_owned();
    assert_eq!(header(0, "webhook-id"), header(1, "webhook-id"));
    assert_ne!(
        header(0, "webhook-timestamp"),
        header(1, "webhook-timestamp")
    );
    assert_ne!(
        header(0, "webhook-signature"),
        header(1, "webhook-signature")
    );
    assert!(verifies(&requests[0], NEW) && verifies(&requests[1], NEW));
}
