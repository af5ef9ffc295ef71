//! Blocks of JSON are taken by a server as they stand: tasks are created; what an answer shows is marked `answer`.
//! (Those of the reference of methods come from the OpenRPC document, whose examples `tests/doors/openrpc` calls.)

use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::pages::pages;
use taskledger_testkit::server::{Api, Folder, Server};

/// Where the blocks are.
const PAGES: [&str; 5] = [
    "README.md",
    "docs/quickstart.md",
    "docs/guides",
    "docs/operating",
    "docs/reference",
];
/// The page whose examples are called elsewhere.
const GENERATED: &str = "docs/reference/api.md";
/// What there are at least.
const BLOCKS_MIN: usize = 12;

/// The parameters with which tasks of a page are created: one that depends on others of the page has them beside it.
fn creation(shown: &Value) -> Value {
    if shown.is_array() {
        return json!({ "tasks": shown });
    }
    if shown.get("tasks").is_some() || shown.get("dependencies").is_none() {
        return shown.clone();
    }
    let mut last = shown.clone();
    last["parent_id"] = json!("all");
    let fetch = json!({"id": "fetch", "name": "fetch", "parent_id": "all", "schemas": {"method": "echo_executor"}});
    json!({"tasks": [{"id": "all", "name": "all"}, fetch, last]})
}

/// A worker asks this of a person.
async fn asks(api: &Api, request: &Value) {
    let task = json!({"name": "ask", "schemas": {"type": "remote", "method": "ask"}});
    api.call("tasks.execute", json!({ "tasks": [task] })).await;
    let claim = json!({"methods": ["ask"], "worker": "w", "lease_seconds": 60, "wait_seconds": 20});
    let claim = &api.call("tasks.claim", claim).await["claims"][0];
    let (task, lease) = (&claim["task"]["id"], &claim["lease"]["token"]);
    let suspend = json!({"task_id": task, "lease": lease, "request": request});
    api.call("tasks.suspend", suspend).await;
}

#[tokio::test]
async fn the_json_of_the_pages_is_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--allow-command", "tar"]).await;
    let mut count = 0;
    for page in pages(root, &PAGES) {
        for block in page.blocks() {
            let is_answer = block.notes.iter().any(|note| note == "answer");
            if block.language != "json" || is_answer || page.name == GENERATED {
                continue;
            }
            println!("{}:{}", page.name, block.line);
            let shown: Value = serde_json::from_str(&block.text).unwrap();
            // The messages of sockets, which `tests/doors/work/guide.rs` sends.
            if shown.get("jsonrpc").is_some() {
                continue;
            }
            match shown.get("question") {
                Some(_) => asks(&server.api, &shown).await,
                None => {
                    server.api.call("tasks.create", creation(&shown)).await;
                }
            }
            count += 1;
        }
    }
    assert!(count >= BLOCKS_MIN, "{count}");
    server.stop().await;
}

#[tokio::test]
async fn the_error_of_the_reference_is_what_the_server_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = pages(root, &["docs/reference/errors.md"]).remove(0);
    let mut blocks = page.blocks().into_iter();
    let shown = blocks.find(|block| block.language == "json").unwrap();
    let shown: Value = serde_json::from_str(&shown.text).unwrap();
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.list", "params": {"limit": 5000}});
    let (_, told) = server.api.post(call.to_string()).await.unwrap();
    assert_eq!(told, shown);
    server.stop().await;
}
