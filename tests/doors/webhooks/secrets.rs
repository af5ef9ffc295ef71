//! Secrets of endpoints, and what their owners do with the real program.

use crate::webhooks::site::{ALLOWED, Site, verifies};
use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::receiver::{Answer, Receiver};
use taskledger_testkit::server::{Folder, Server};

const SECRET: &str = "whsec_aHVzaC1odXNoLWh1c2gtaHVzaC1odXNoLWh1c2g=";
const SECRET_BYTES: &str = "hush-hush-hush-hush-hush-hush";
const HEADER: &str = "Bearer never-to-be-seen";
/// Kept beside what it opens only where the data folder is all there is.
const KEYS: &str = "secrets.key";

/// Names of files below a folder that hold a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_in_no_answer_no_log_and_no_file() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let arguments = [ALLOWED[0], ALLOWED[1], "--log-level", "trace"];
    let server = Server::start_with(&folder, &arguments).await;
    let headers = json!({"authorization": HEADER});
    let more = json!({"secret": SECRET, "headers": headers, "schedule": [0, 1]});
    let site = Site::with(folder, receiver, server, more).await;
    site.receiver.answers([Answer::status(500).into()]);

    site.execute("hello").await;
    site.delivery("it arrives", |d| d["state"] == "delivered")
        .await;
    let api = &site.server.api;
    let one = json!({"id": site.webhook});
    let mut answers = Vec::new();
    for (method, params) in [
        ("webhooks.get", one.clone()),
        ("webhooks.list", json!({})),
        (
            "webhooks.update",
            json!({"id": site.webhook, "description": "new"}),
        ),
        ("webhooks.test", one.clone()),
        ("webhooks.deliveries", json!({})),
        ("webhooks.disable", one.clone()),
        ("webhooks.enable", one.clone()),
        ("system.health", json!({})),
    ] {
        answers.push(api.call(method, params).await.to_string());
    }
    let refusal = api
        .refusal(
            "webhooks.create",
            json!({"url": "nonsense", "secret": SECRET}),
        )
        .await;
    answers.push(format!("{refusal:?}"));
    let shown = api.call("webhooks.secret", one).await;
    assert_eq!(shown["secret"], SECRET, "who asks for it gets it");

    let request = &site.receiver.requests()[0];
    assert_eq!(request.header("authorization"), Some(HEADER), "it is used");
    assert!(verifies(request, SECRET));
    let data = site.folder.data();
    let during: Vec<_> = [SECRET, SECRET_BYTES, HEADER]
        .map(|text| files_with(&data, text))
        .concat();
    let log = site.server.stop().await;
    assert!(log.contains("webhook"), "the log is read");
    for text in [SECRET, &SECRET[6..], SECRET_BYTES, HEADER] {
        assert!(!log.contains(text), "`{text}` is in the log");
        let telling = answers.iter().find(|answer| answer.contains(text));
        assert_eq!(telling, None, "`{text}`");
        assert_eq!(files_with(&data, text), Vec::<String>::new(), "`{text}`");
    }
    assert_eq!(during, Vec::<String>::new());
    assert!(data.join(KEYS).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_a_rotation_both_secrets_verify_and_without_grace_only_the_new_one() {
    let site = Site::new(json!({})).await;
    let api = &site.server.api;
    let rotated = api
        .call("webhooks.rotate_secret", json!({"id": site.webhook}))
        .await;
    let new = rotated["secret"].as_str().unwrap().to_owned();
    site.execute("during").await;
    let during = site.receiver.wait_for(1).await.remove(0);
    assert!(verifies(&during, &site.secret) && verifies(&during, &new));

    let at_once = json!({"id": site.webhook, "grace_seconds": 0});
    let newest = api.call("webhooks.rotate_secret", at_once).await["secret"].take();
    // A turn that has begun uses what it has read.
    site.delivery("it is recorded", |d| d["state"] == "delivered")
        .await;
    site.execute("after").await;
    let after = site.receiver.wait_for(2).await.remove(1);
    assert!(verifies(&after, newest.as_str().unwrap()));
    assert!(!verifies(&after, &new));
    site.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_endpoint_keeps_its_queue_and_gets_it_when_it_is_enabled() {
    let site = Site::new(json!({})).await;
    let api = &site.server.api;
    let one = json!({"id": site.webhook});
    api.call("webhooks.disable", one.clone()).await;
    let task = site.execute("kept").await;
    api.run_of(&json!(task)).await;
    let kept = site
        .delivery("it is queued", |d| d["state"] == "waiting")
        .await;
    let again = json!({"delivery_id": kept["id"]});
    assert_eq!(
        api.refusal("webhooks.redeliver", again.clone()).await.code,
        -32602
    );
    assert!(site.receiver.requests().is_empty());

    api.call("webhooks.enable", one).await;
    site.told_of(&[task]).await;

    let delivered = site
        .delivery("it arrives", |d| d["state"] == "delivered")
        .await;
    assert_eq!(delivered["attempts"], 1);
    api.call("webhooks.redeliver", again).await;
    let by_hand = site
        .delivery("it was sent by hand", |d| {
            d["log"].as_array().unwrap().len() == 2
        })
        .await;
    assert_eq!(
        (&by_hand["attempts"], &by_hand["log"][1]["trigger"]),
        (&json!(1), &json!("manual"))
    );
    site.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_says_410_is_disabled_and_its_owner_sees_why() {
    let site = Site::new(json!({})).await;
    site.receiver.answer(Answer::status(410));
    site.execute("unwanted").await;
    let one = json!({"id": site.webhook});
    let seen: Value = site
        .server
        .api
        .eventually("it is disabled", async || {
            let webhook = site.server.api.call("webhooks.get", one.clone()).await;
            (webhook["enabled"] == false).then_some(webhook)
        })
        .await;
    assert_eq!(seen["disabled"]["reason"], "gone");
    let delivery = site.deliveries().await.remove(0);
    assert_eq!(
        (&delivery["state"], &delivery["attempts"]),
        (&json!("waiting"), &json!(0))
    );
    assert_eq!(site.receiver.requests().len(), 1);
    let log = site.server.stop().await;
    assert!(log.contains("webhooks are disabled"));
}
