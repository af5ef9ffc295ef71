//! The messages of a socket that the guide shows: those of a worker are sent, those of the server are what it sends.

use super::socket::Socket;
use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::pages::pages;
use taskledger_testkit::server::{Api, Folder, Server};

const METHOD: &str = "picture.resize";
/// Members whose values are made anew each time.
const FRESH: [&str; 7] = [
    "expires_at",
    "id",
    "lease",
    "root_task_id",
    "run_id",
    "task_id",
    "token",
];

/// The blocks of JSON of the section, from top to bottom.
fn shown() -> Vec<Value> {
    let mut all = pages(
        Path::new(env!("CARGO_MANIFEST_DIR")),
        &["docs/guides/workers.md"],
    );
    let page = all.remove(0);
    let line_of = |heading: &str| {
        let line = page.text.lines().position(|line| line == heading);
        line.unwrap_or_else(|| panic!("the page has `{heading}`")) + 1
    };
    let section = line_of("### Work over a socket")..line_of("### Output before the end");
    let blocks = page.blocks().into_iter();
    let blocks = blocks.filter(|block| block.language == "json" && section.contains(&block.line));
    blocks
        .map(|block| serde_json::from_str(&block.text).unwrap())
        .collect()
}

/// Whether `real` is what the page shows of it: objects may have more members than are shown.
#[track_caller]
fn assert_shown(shown: &Value, real: &Value) {
    match (shown, real) {
        (Value::Object(shown), Value::Object(members)) => {
            for (name, value) in shown {
                let real_value = members.get(name);
                let real_value = real_value.unwrap_or_else(|| panic!("no `{name}` in {real}"));
                if FRESH.contains(&name.as_str()) && !value.is_object() {
                    assert!(
                        value.is_string() == real_value.is_string(),
                        "{name}: {real}"
                    );
                } else {
                    assert_shown(value, real_value);
                }
            }
        }
        (shown, real) => assert_eq!(shown, real),
    }
}

async fn task(api: &Api) -> String {
    let task = json!({"name": "a picture", "inputs": {"width": 640},
        "schemas": {"type": "remote", "method": METHOD}});
    let started = api.call("tasks.execute", json!({"tasks": [task]})).await;
    started["root_task_id"].as_str().unwrap().to_owned()
}

/// Sends the call that is shown, about a claim; its answer is the one that is shown.
async fn asked(socket: &mut Socket, call: &Value, about: Option<&Value>, answer: &Value) {
    let mut params = call["params"].clone();
    if let Some(claim) = about {
        params = super::held(claim, params);
    }
    let method = call["method"].as_str().unwrap();
    let answered = socket.ask(method, params).await;
    assert_eq!(
        call["id"], answer["id"],
        "an answer is that of the call above"
    );
    assert_shown(&answer["result"], &answered["result"]);
}

#[tokio::test]
async fn the_guide_shows_the_messages_of_a_socket() {
    let shown = shown();
    let [
        work,
        subscribed,
        claim,
        renew,
        renewed,
        complete,
        completed,
        cancel,
        draining,
    ] = &shown[..]
    else {
        panic!("nine messages, got {}", shown.len());
    };
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let mut socket = Socket::open(&server.api.url, None).await;
    asked(&mut socket, work, None, subscribed).await;

    task(api).await;
    let told = socket.told().await;
    assert_shown(&claim["params"], &told);
    let held = told["claim"].clone();
    let of = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    for member in ["context", "lease"] {
        let shown = &claim["params"]["claim"][member];
        assert_eq!(of(shown), of(&held[member]), "all of it is shown");
    }
    asked(&mut socket, renew, Some(&held), renewed).await;
    asked(&mut socket, complete, Some(&held), completed).await;

    let second = task(api).await;
    let held = socket.claim().await;
    api.call("tasks.cancel", json!({"task_id": second})).await;
    let told = socket.told().await;
    assert_shown(&cancel["params"], &told);
    assert_eq!(told["cancel"]["lease"], held["lease"]["token"]);

    let worker = &work["params"]["worker"];
    api.call("workers.drain", json!({"worker": worker})).await;
    assert_shown(&draining["params"], &socket.told().await);
    for message in [claim, cancel, draining] {
        assert_eq!(message["method"], "work");
        assert!(message.get("id").is_none(), "{message}");
    }
    server.stop().await;
}
