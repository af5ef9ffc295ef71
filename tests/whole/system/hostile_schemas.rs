//! Input schemas that try to cost more than their size promises, or to reach out of the server.

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use serde_json::{Value, json};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use taskledger_domain::testing::hostile::attacks;
use taskledger_testkit::server::{Folder, NoResult, Server};

fn task(schema: &Value, inputs: &Value) -> Value {
    json!({"name": "a", "inputs": inputs, "schemas": {"method": "echo_executor", "input_schema": schema}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_while_a_hostile_schema_is_checked_and_its_author_is_told_what_is_wrong()
{
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let stored = server.api.call("tasks.create", json!({"name": "b"})).await;
    let id = &stored["id"];
    for attack in attacks() {
        let (created, read) = tokio::join!(
            server
                .api
                .try_call("tasks.create", task(&attack.schema, &attack.inputs), None),
            server
                .api
                .try_call("tasks.get", json!({"task_id": id}), None),
        );
        assert_eq!(&read.unwrap()["id"], id, "{}", attack.name);
        let refusal = match created {
            Ok(_) => {
                assert!(attack.ends.is_empty(), "{} is accepted", attack.name);
                continue;
            }
            Err(NoResult::Refused(refusal)) => refusal,
            Err(NoResult::Broken) => panic!("{}: no answer", attack.name),
        };
        // What is nested too deeply is no JSON for the door, what is too large no payload.
        assert!(
            [-32602, -32700].contains(&refusal.code),
            "{}: {refusal:?}",
            attack.name
        );
        let first = &refusal.data["errors"][0];
        for member in ["field", "reason", "expected"] {
            let told = first[member].as_str().is_some_and(|text| !text.is_empty());
            assert!(told, "{}: {refusal:?}", attack.name);
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_in_a_schema_opens_no_connection_and_no_file() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    // A good schema beside the data folder, and somebody who sees it opened.
    let bait = folder.path().join("bait.json");
    std::fs::write(&bait, r#"{"type": "object"}"#).unwrap();
    let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, &bait, WatchFlags::ALL_EVENTS).unwrap();
    let bait = bait.to_str().unwrap();
    let references = [
        format!("http://127.0.0.1:{port}/schema.json"),
        format!("http://localhost:{port}/schema.json#/definitions/a"),
        format!("https://localhost:{port}/schema.json"),
        format!("//127.0.0.1:{port}/schema.json"),
        format!("file://{bait}"),
        format!("file://localhost{bait}"),
        bait.to_owned(),
        "bait.json".to_owned(),
        "../bait.json".to_owned(),
    ];
    for text in &references {
        for schema in [
            json!({"$ref": text}),
            json!({"properties": {"a": {"$ref": text}}}),
            json!({"$schema": text}),
            json!({"$id": text, "properties": {"a": {"$ref": "other.json"}}}),
            json!({"properties": {"a": {"$id": text, "allOf": [{"$ref": "#/definitions/a"}]}}}),
        ] {
            let refusal = server
                .api
                .refusal("tasks.create", task(&schema, &json!({"a": 1})))
                .await;
            assert_eq!(refusal.code, -32602, "{schema}");
        }
        // What nobody reads is not followed either.
        let unread =
            json!({"x": {"$ref": text}, "default": {"$ref": text}, "examples": [{"$ref": text}]});
        server
            .api
            .call("tasks.create", task(&unread, &json!({})))
            .await;
    }
    let connection = listener.accept();
    assert!(
        connection.is_err(),
        "the server has connected: {connection:?}"
    );
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let seen = Reader::new(&watch, &mut buffer)
        .next()
        .map(|event| event.events());
    assert!(seen.is_err(), "the file was looked at: {seen:?}");
    // Both would have noticed.
    std::fs::read(bait).unwrap();
    let seen = Reader::new(&watch, &mut buffer)
        .next()
        .map(|event| event.events());
    assert!(seen.is_ok());
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert!(listener.accept().is_ok());
    server.stop().await;
}
