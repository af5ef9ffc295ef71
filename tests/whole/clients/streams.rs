//! Three independent readers of server-sent events agree with each other and with the history.

use crate::clients::browser::PageServer;
use crate::clients::reader::{Reader, Seen};
use serde_json::{Value, json};
use std::collections::HashSet;
use taskledger_testkit::server::{Api, Folder, Server};

/// The notices of the protocol, and what else may come.
const NAMES: [&str; 10] = [
    "task_status_update",
    "task_progress_update",
    "task_completed",
    "task_failed",
    "task_cancelled",
    "run_completed",
    "run_failed",
    "run_cancelled",
    "reset",
    "message",
];

/// A free port.
const ANYWHERE: &str = "127.0.0.1:0";

/// Characters that break a stream whose data is not encoded.
const AWKWARD: &str = "line\r\nline\rline\n\n: comment\u{2028}\u{feff}\u{0}data: é 🦀 \\\"";

/// A server that pages of `origin` may use. `auth`: whether it wants credentials, and which are shown by its `api`
/// then.
async fn serve(
    folder: &Folder,
    origin: &str,
    listen: &str,
    auth: Auth,
) -> (Server, Option<String>) {
    let mut command = taskledger_testkit::program::command();
    command
        .args(["serve", "--listen", listen, "--allow-origin", origin])
        .args(["--allow-command", "false"])
        .args(folder.storage());
    if auth == Auth::On {
        command.args(["--auth", "on"]);
    }
    let mut server = Server::spawn(command, folder.path()).await;
    let token = (auth == Auth::On).then(|| folder.first_token());
    if let Some(token) = &token {
        server.api = server.api.with_token(token);
    }
    (server, token)
}

/// Whether a server wants credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Auth {
    On,
    Off,
}

/// A workflow with tasks that succeed, wait, report, and fail.
fn workflow() -> Value {
    let task = |id: &str, method: &str, inputs: Value, after: &[&str]| {
        let waits: Vec<Value> = after
            .iter()
            .map(|id| json!({"id": id, "required": false}))
            .collect();
        json!({"id": id, "parent_id": "root", "name": id, "inputs": inputs, "dependencies": waits,
            "schemas": {"method": method}})
    };
    let sleep =
        |id: &str, after: &[&str]| task(id, "sleep_executor", json!({"duration_ms": 400}), after);
    let mut tasks = vec![
        json!({"id": "root", "name": "root"}),
        task("awkward", "echo_executor", json!({ "text": AWKWARD }), &[]),
        task(
            "fails",
            "command_executor",
            json!({"program": "false"}),
            &[],
        ),
    ];
    for k in 0..10 {
        let id = format!("s{k}");
        let before = format!("s{}", k.max(1) - 1);
        let after: &[&str] = if k == 0 { &[] } else { &[&before] };
        tasks.push(sleep(&id, after));
    }
    json!({ "tasks": tasks })
}

/// The notices that a flow's history promises: name, its event's id and part, task, place.
async fn promised(api: &Api, root: &Value) -> Vec<Value> {
    let mut notices = Vec::new();
    let mut ask = json!({"task_id": root, "scope": "flow", "limit": 1000});
    loop {
        let page = api.call("tasks.history", ask.clone()).await;
        for event in page["events"].as_array().unwrap() {
            let ended = format!(
                "run_{}",
                event["data"]["state"].as_str().unwrap_or_default()
            );
            let names: &[&str] = match event["type"].as_str().unwrap() {
                "task_created" | "task_started" | "task_requeued" | "task_deferred" => {
                    &["task_status_update"]
                }
                // The last message of a run is the update.
                "run_ended" => &[&ended, "task_status_update"],
                "task_progressed" => &["task_progress_update"],
                "task_completed" => &["task_status_update", "task_completed"],
                "task_failed" if event["data"]["will_retry"] == true => &["task_status_update"],
                "task_failed" => &["task_status_update", "task_failed"],
                "task_cancelled" => &["task_status_update", "task_cancelled"],
                _ => &[],
            };
            for name in names {
                let id = event["id"].as_str().unwrap();
                let id = if name.ends_with("_update") {
                    id.to_owned()
                } else {
                    format!("{id}-1")
                };
                notices.push(json!([name, id, event["task_id"], event["sequence"]]));
            }
        }
        let Some(cursor) = page.get("next_cursor").filter(|cursor| !cursor.is_null()) else {
            return notices;
        };
        ask["cursor"] = cursor.clone();
    }
}

/// The same of what a client saw.
fn notice(seen: &Seen) -> Value {
    let data = data(seen);
    json!([seen.event, data["id"], data["task_id"], data["sequence"]])
}

fn data(seen: &Seen) -> Value {
    serde_json::from_str(&seen.data).unwrap()
}

/// Waits until all clients have seen the end of the run of `root`.
async fn seen_to_the_end(api: &Api, readers: &[&Reader], root: &Value) {
    for reader in readers {
        let ends =
            |seen: &Seen| seen.data.contains(r#""final":true"#) && data(seen)["task_id"] == *root;
        let what = format!("{} sees the end of {root}", reader.name);
        api.eventually(&what, async || {
            reader
                .notes
                .look(|told| told.events.iter().any(ends))
                .then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn three_clients_of_others_see_the_same_events_once_each_although_the_server_is_killed() {
    three_clients_see_the_same(Auth::Off).await;
}

#[tokio::test]
async fn three_clients_of_others_with_a_token_see_the_same_events_once_each_although_the_server_is_killed()
 {
    three_clients_see_the_same(Auth::On).await;
}

async fn three_clients_see_the_same(auth: Auth) {
    // Given clients of three makers on one stream, one of them a page of another origin.
    let (folder, pages) = (Folder::new(), PageServer::start().await);
    let (server, token) = serve(&folder, &pages.origin, ANYWHERE, auth).await;
    let token = token.as_deref();
    let url = format!("{}events?from=beginning", server.api.url);
    let browser = pages.browse(&url, &NAMES, token);
    let (node, python) = (
        Reader::node(&url, &NAMES, token),
        Reader::python(&url, token),
    );
    let readers = [&browser.reader, &node, &python];
    for reader in readers {
        let what = format!("{} is connected", reader.name);
        let connected = async || (reader.notes.look(|told| told.openings) > 0).then_some(());
        server.api.eventually(&what, connected).await;
    }

    // When a workflow runs, and the server is killed and started again in its middle,
    let run = server.api.call("tasks.execute", workflow()).await;
    let root = run["root_task_id"].clone();
    for reader in readers {
        let what = format!("{} sees the middle of the run", reader.name);
        let middle = |seen: &&Seen| seen.event == "task_completed";
        let enough = async || {
            let completed = reader
                .notes
                .look(|told| told.events.iter().filter(middle).count());
            (completed >= 3).then_some(())
        };
        server.api.eventually(&what, enough).await;
    }
    let api = server.api.clone();
    server.kill().await;
    for reader in readers {
        let what = format!("{} has lost the server", reader.name);
        let lost = async || (!reader.notes.look(|told| told.breaks.is_empty())).then_some(());
        api.eventually(&what, lost).await;
    }
    let address = api.url.trim_start_matches("http://").trim_end_matches('/');
    let (again, _) = serve(&folder, &pages.origin, address, auth).await;
    seen_to_the_end(&again.api, &readers, &root).await;

    // and another one, which is cancelled, after it,
    let other = again.api.call("tasks.execute", workflow()).await["root_task_id"].clone();
    again
        .api
        .call("tasks.cancel", json!({"task_id": other}))
        .await;
    seen_to_the_end(&again.api, &readers, &other).await;

    // Then each has connected again by itself and was never told to start over,
    for reader in readers {
        reader.notes.look(|told| {
            assert!(told.openings >= 2, "{}: {told:?}", reader.name);
            let strange = |seen: &&Seen| seen.event == "reset" || seen.event == "message";
            assert_eq!(told.events.iter().find(strange), None, "{}", reader.name);
        });
    }
    // they agree in every byte,
    let events = node.notes.look(|told| told.events.clone());
    for reader in readers {
        reader
            .notes
            .look(|told| assert_eq!(told.events, events, "{}", reader.name));
    }
    let ids: HashSet<&str> = events.iter().map(|seen| seen.id.as_str()).collect();
    assert_eq!(ids.len(), events.len(), "no id names two events");
    // and what they saw of each flow is its history, each once and in order.
    for root in [&root, &other] {
        let of_flow = events
            .iter()
            .filter(|seen| data(seen)["root_task_id"] == *root);
        let seen: Vec<Value> = of_flow.map(notice).collect();
        assert_eq!(seen, promised(&again.api, root).await, "flow {root}");
    }
    let echoed = |seen: &&Seen| data(seen)["result"]["text"] == AWKWARD;
    assert!(
        events.iter().any(|seen| echoed(&seen)),
        "the awkward text arrives as it was"
    );
    for name in &NAMES[..5] {
        assert!(
            events.iter().any(|seen| seen.event == *name),
            "there is a {name}"
        );
    }
    again.stop().await;
}

#[tokio::test]
async fn a_page_of_an_origin_that_is_not_allowed_reads_nothing() {
    // Given a server that allows another origin than that of the page, and events to read.
    let (folder, pages) = (Folder::new(), PageServer::start().await);
    let (server, _) = serve(&folder, "http://elsewhere.example", ANYWHERE, Auth::Off).await;
    server
        .api
        .call("tasks.create", json!({"name": "private"}))
        .await;

    // When the page tries to read them.
    let url = format!("{}events?from=beginning", server.api.url);
    let browser = pages.browse(&url, &NAMES, None);
    let broken = async || {
        let notes = &browser.reader.notes;
        notes.look(|told| told.breaks.first().cloned())
    };
    let how = server.api.eventually("the browser gives up", broken).await;

    // Then the browser keeps the answer from it, and does not try again.
    assert_eq!(how, "for good");
    browser
        .reader
        .notes
        .look(|told| assert_eq!((told.openings, told.events.len()), (0, 0)));
    server.stop().await;
}
