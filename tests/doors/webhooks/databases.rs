//! Webhooks of servers whose data is on PostgreSQL, with the real program.

use crate::webhooks::site::{ALLOWED, Site, verifies};
use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions, Row};
use taskledger_testkit::receiver::{Answer, Receiver};
use taskledger_testkit::server::{Folder, Server};

const SECRET: &str = "whsec_aHVzaC1odXNoLWh1c2gtaHVzaC1odXNoLWh1c2g=";
const SECRET_BYTES: &str = "hush-hush-hush-hush-hush-hush";
const HEADER: &str = "Bearer never-to-be-seen";

/// Every row of every table, as text; bytes are hexadecimal.
async fn dump(folder: &Folder) -> String {
    let mut db = folder.options().unwrap().connect().await.unwrap();
    let tables = sqlx::query(
        "SELECT table_schema || '.' || table_name FROM information_schema.tables
         WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')",
    );
    let mut all = String::new();
    for table in tables.fetch_all(&mut db).await.unwrap() {
        let table: String = table.get(0);
        let sql = format!("SELECT coalesce(string_agg(t::TEXT, E'\n'), '') FROM {table} AS t");
        let rows: String = sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(&mut db)
            .await
            .unwrap();
        all.push_str(&format!("{table}\n{rows}\n"));
    }
    all
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_in_no_answer_no_log_and_no_dump_of_the_database() {
    let (folder, receiver) = (Folder::with_database().await, Receiver::start().await);
    let mut arguments = crate::webhooks::site::arguments(&folder);
    arguments.extend(["--log-level", "trace"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
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
        ("webhooks.test", one.clone()),
        ("webhooks.deliveries", json!({})),
        ("webhooks.rotate_secret", one),
        ("system.health", json!({})),
    ] {
        answers.push(api.call(method, params).await.to_string());
    }
    let refused = api.refusal(
        "webhooks.create",
        json!({"url": site.receiver.url("/other"), "secret": SECRET}),
    );
    answers.push(format!("{:?}", refused.await));

    let request = &site.receiver.requests()[0];
    assert_eq!(request.header("authorization"), Some(HEADER), "it is used");
    assert!(verifies(request, SECRET));
    let dump = dump(&site.folder).await;
    assert!(
        dump.contains("taskledger_webhooks.endpoint_keys\n("),
        "{dump}"
    );
    assert!(dump.contains(site.webhook.as_str().unwrap().split('-').next().unwrap()));
    let log = site.server.stop().await;
    for text in [SECRET, &SECRET[6..], SECRET_BYTES, HEADER] {
        assert!(!log.contains(text), "`{text}` is in the log");
        let telling = answers.iter().find(|answer| answer.contains(text));
        assert_eq!(telling, None, "`{text}`");
        assert!(!dump.contains(text), "`{text}` is in the database");
        assert!(!dump.contains(&hex(text)), "`{text}` is in the database");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_file_nothing_secret_is_kept_and_everything_else_works() {
    let (folder, receiver) = (Folder::with_database().await, Receiver::start().await);
    let server = Server::start_with(&folder, &ALLOWED).await;
    let url = receiver.url("/hook");
    let task =
        json!({"name": "say", "schemas": {"method": "echo_executor"}, "inputs": {"text": "x"}});

    let refused = server
        .api
        .refusal("webhooks.create", json!({"url": url}))
        .await;
    assert_eq!(refused.code, -32602);
    let expected = refused.data["expected"].as_str().unwrap();
    assert!(expected.contains("--secrets-key-file"), "{expected}");

    // Without secret and headers there is nothing to keep.
    let called = |config: serde_json::Value| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.execute", "params": {"tasks": [task]},
            "configuration": {"push_notification_config": config}});
        server.api.post(call.to_string())
    };
    let (_, answer) = called(json!({"url": url, "headers": {"a": "b"}}))
        .await
        .unwrap();
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let (_, answer) = called(json!({"url": url})).await.unwrap();
    assert!(answer["result"]["root_task_id"].is_string(), "{answer}");
    let told = receiver.wait_for(3).await;
    assert_eq!(told[0].header("webhook-signature"), None, "nothing signs");
    assert!(told[0].header("webhook-id").is_some());
    server.stop().await;
}
