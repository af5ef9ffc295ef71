//! `webhooks`: what people do with endpoints, on the command line.

use serde_json::{Value, json};
use standardwebhooks::Webhook;
use std::collections::HashMap;
use std::time::Duration;
use taskledger_testkit::program::{Ended, run, run_with};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

taskledger_testkit::on_both_backends!(a_webhook_is_made_tried_changed_and_deleted);

/// For a message to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_of_another_library_is_checked_by_hand() {
    let folder = Folder::new();
    let file = folder.path().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let file = file.to_str().unwrap();
    let (timestamp, body) = (1_649_367_553, r#"{"type":"task_failed"}"#);
    let signer = Webhook::new(SECRET).unwrap();
    let signature = signer.sign("msg_1", timestamp, body.as_bytes()).unwrap();
    let verify = async |id: &str, body: &str| {
        let timestamp = timestamp.to_string();
        let arguments = [
            "webhooks",
            "verify",
            "--secret-file",
            file,
            "--id",
            id,
            "--timestamp",
            &timestamp,
            "--signature",
            &signature,
        ];
        run_with(arguments, folder.path(), body).await
    };

    let good = verify("msg_1", body).await.done();
    assert!(good.starts_with("the signature is good\n"), "{good}");
    assert!(good.contains("old: a receiver should refuse it"), "{good}");
    for bad in [verify("msg_2", body).await, verify("msg_1", "{}").await] {
        assert_eq!(bad.code, Some(1), "{bad:?}");
        assert!(bad.out.contains("NOT good"), "{bad:?}");
    }
}

/// A request as it came: headers in lower case, and the body.
struct Received {
    headers: HashMap<String, String>,
    body: String,
}

/// Takes one message and says that it has arrived.
async fn receive(listener: &TcpListener) -> Received {
    let (mut socket, _) = timeout(PATIENCE, listener.accept())
        .await
        .expect("a message comes")
        .unwrap();
    let (mut read, mut part) = (Vec::new(), [0; 4096]);
    let (head, body) = loop {
        let count = socket.read(&mut part).await.unwrap();
        assert!(count > 0, "the message is whole");
        read.extend_from_slice(&part[..count]);
        let text = String::from_utf8(read.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && head
                .to_lowercase()
                .contains(&format!("content-length: {}", body.len()))
        {
            break (head.to_owned(), body.to_owned());
        }
    };
    let answer = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    socket.write_all(answer.as_bytes()).await.unwrap();
    let lines = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "));
    Received {
        headers: lines
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect(),
        body,
    }
}

async fn a_webhook_is_made_tried_changed_and_deleted(folder: Folder) {
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let secret = file("secret", format!("{SECRET}\n"));
    let headers = file("headers", "x-tenant: seven\n".to_owned());
    let key = file(
        "key",
        "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\n".to_owned(),
    );
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let allowed = [
        "--egress-allow-net",
        "127.0.0.0/8",
        "--secrets-key-file",
        &key,
    ];
    let server = Server::start_with(&folder, &allowed).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("http://{}/hook", listener.local_addr().unwrap());
    let url = server.api.url.as_str();
    let webhooks = async |arguments: &[&str]| -> Ended {
        run([&["webhooks"], arguments, &["--url", url]].concat()).await
    };
    let as_json = async |arguments: &[&str]| -> Value {
        let said = webhooks(&[arguments, &["--json"]].concat()).await.done();
        serde_json::from_str(&said).unwrap()
    };

    let made = [
        "create",
        &to,
        "--secret-file",
        &secret,
        "--header-file",
        &headers,
    ];
    let made = webhooks(&made).await.done();
    assert!(made.contains(&format!("{SECRET}\nKeep it")), "{made}");
    let list = as_json(&["list"]).await;
    let id = list["webhooks"][0]["id"].as_str().unwrap();
    assert!(!list.to_string().contains(SECRET), "shown once: {list}");
    assert!(!list.to_string().contains("seven"), "never shown: {list}");
    assert!(webhooks(&["list"]).await.done().contains("enabled"));

    let test = ["test", id];
    let (test, received) = tokio::join!(as_json(&test), receive(&listener));
    assert_eq!(test["attempt"]["trigger"], "test");
    assert_eq!(received.headers["x-tenant"], "seven");
    let checked = run_with(
        [
            "webhooks",
            "verify",
            "--secret-file",
            &secret,
            "--id",
            &received.headers["webhook-id"],
            "--timestamp",
            &received.headers["webhook-timestamp"],
            "--signature",
            &received.headers["webhook-signature"],
        ],
        folder.path(),
        &received.body,
    );
    assert_eq!(checked.await.done(), "the signature is good\n");
    let delivery = server
        .api
        .eventually("the delivery is recorded", async || {
            let deliveries = as_json(&["deliveries", id, "--state", "delivered"]).await;
            deliveries["deliveries"].get(0).cloned()
        })
        .await;
    assert_eq!(delivery["id"], test["delivery_id"]);
    let number = delivery["id"].to_string();
    let again = as_json(&["redeliver", &number]).await;
    assert_eq!(again["delivery_id"], test["delivery_id"]);
    let repeated = receive(&listener).await;
    assert_eq!(repeated.body, received.body);
    assert_eq!(
        repeated.headers["webhook-id"],
        received.headers["webhook-id"]
    );

    let refuse = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 4096]).await.unwrap();
        let answer = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        socket.write_all(answer.as_bytes()).await.unwrap();
    };
    let test = ["test", id];
    let (failed, ()) = tokio::join!(webhooks(&test), refuse);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.out.contains("it has failed: 400"), "{failed:?}");

    webhooks(&["disable", id]).await.done();
    assert!(
        webhooks(&["list"])
            .await
            .done()
            .contains("disabled (requested)")
    );
    let refused = webhooks(&["test", id]).await.refused(2);
    assert!(refused.contains("the webhook is disabled"), "{refused}");
    webhooks(&["enable", id]).await.done();
    let changed = as_json(&[
        "update",
        id,
        "--events",
        "task_failed",
        "--clear",
        "headers",
    ])
    .await;
    assert_eq!(
        (&changed["events"], &changed["headers"]),
        (&json!(["task_failed"]), &json!({}))
    );
    let rotated = as_json(&["rotate-secret", id, "--grace", "60"]).await;
    let secrets = webhooks(&["secret", id]).await.done();
    assert!(
        secrets.contains(rotated["secret"].as_str().unwrap()),
        "{secrets}"
    );
    assert!(secrets.contains(SECRET), "for a minute more: {secrets}");
    assert!(
        webhooks(&["delete", id])
            .await
            .done()
            .starts_with("deleted; ")
    );
    let unknown = webhooks(&["get", id]).await.refused(2);
    assert!(unknown.contains("Webhook not found (-32014)"), "{unknown}");
    let kept = [
        "create",
        &to,
        "--secret-file",
        &secret,
        "--header-file",
        &headers,
    ];
    webhooks(&kept).await.done();
    server.stop().await;

    let old = std::fs::read_to_string(&key).unwrap();
    std::fs::write(
        &key,
        format!("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n{old}"),
    )
    .unwrap();
    let reseal = ["webhooks", "reseal", "--secrets-key-file", &key].map(str::to_owned);
    let reseal = async || {
        run(reseal.iter().cloned().chain(folder.storage()))
            .await
            .done()
    };
    assert_eq!(
        reseal().await,
        "2 values are kept under the first key now\n"
    );
    assert_eq!(
        reseal().await,
        "0 values are kept under the first key now\n"
    );
}
