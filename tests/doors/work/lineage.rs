//! Where inputs of attempts came from, as claims, histories and explanations say.

use super::{METHOD, claim, held};
use serde_json::{Value, json};
use taskledger_testkit::server::{Api, Folder, Server};

/// The lineage as `(input, task, attempt)`.
fn origins(lineage: &Value) -> Vec<(String, Value, u64)> {
    let origins = lineage.as_array().unwrap().iter();
    let mut origins: Vec<_> = origins
        .map(|it| {
            let input = it["input"].as_str().unwrap().to_owned();
            (
                input,
                it["task_id"].clone(),
                it["attempt"].as_u64().unwrap(),
            )
        })
        .collect();
    origins.sort_by(|a, b| a.0.cmp(&b.0));
    origins
}

/// The starts of a task, oldest first.
async fn starts(api: &Api, task: &Value) -> Vec<Value> {
    let query = json!({"task_id": task, "types": ["task_started"], "order": "asc"});
    let page = api.call("tasks.history", query).await;
    page["events"].as_array().unwrap().clone()
}

/// Claims the next task of this method.
async fn next(api: &Api, method: &str) -> Value {
    let wanted = json!({"methods": [method], "worker": "w", "wait_seconds": 30});
    api.call("tasks.claim", wanted).await["claims"][0].take()
}

#[tokio::test]
async fn each_attempt_says_where_its_inputs_came_from_whatever_happened_later() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let flaky = json!({"id": "flaky", "name": "flaky", "parent_id": "root",
        "schemas": {"type": "remote", "method": "flaky"}});
    let mine = json!({"name": "mine", "parent_id": "root",
        "dependencies": [{"id": "fetch"}, {"id": "flaky", "required": false}],
        "inputs": {"url": "x/{{fetch.id}}", "own": 1},
        "schemas": {"type": "remote", "method": METHOD, "templates": true, "wiring": {
            "n": "fetch.id", "late": {"from": "flaky.x", "default": 0},
            "none": {"from": "fetch.none", "required": false}}}});
    let tasks = json!([{"id": "root", "name": "root"}, {"id": "fetch", "name": "fetch", "parent_id": "root",
        "schemas": {"method": "echo_executor"}, "inputs": {"id": 7}}, flaky, mine]);
    let started = api.call("tasks.execute", json!({"tasks": tasks})).await;
    let ids = &started["task_ids"];
    let (fetch, flaky, mine) = (&ids["fetch"], &ids["flaky"], &ids["mine"]);
    let first = next(api, "flaky").await;
    assert!(first.get("lineage").is_none(), "{first}");
    let failed = json!({"error": "e", "retryable": false});
    api.call("tasks.fail", held(&first, failed.clone())).await;

    let first = claim(api).await;
    assert_eq!(
        first["input"],
        json!({"url": "x/7", "own": 1, "n": 7, "late": 0})
    );
    let of_first = vec![
        ("/n".to_owned(), fetch.clone(), 1),
        ("/url".to_owned(), fetch.clone(), 1),
    ];
    assert_eq!(origins(&first["lineage"]), of_first);
    let explained = api.call("tasks.explain", json!({"task_id": mine})).await;
    assert_eq!(explained["lineage"], first["lineage"]);
    assert_eq!(explained["input"], first["input"]);
    api.call("tasks.fail", held(&first, failed)).await;
    assert_eq!(starts(api, mine).await[0]["data"]["input"], first["input"]);

    // The optional result comes after all, and the task is wired otherwise.
    api.call("tasks.retry", json!({"task_id": flaky})).await;
    let second = next(api, "flaky").await;
    api.call("tasks.complete", held(&second, json!({"output": {"x": 9}})))
        .await;
    let stored = |name: &Value, place: &str| format!("{}{place}", name.as_str().unwrap());
    let schemas = json!({"type": "remote", "method": METHOD, "wiring": {
        "m": stored(fetch, "#/id"), "late": {"from": stored(flaky, ".x"), "default": 0}}});
    let updates = json!({"schemas": schemas, "inputs": {}});
    api.call("tasks.update", json!({"task_id": mine, "updates": updates}))
        .await;
    api.call("tasks.retry", json!({"task_id": mine})).await;
    let again = claim(api).await;
    assert_eq!(again["input"], json!({"m": 7, "late": 9}));
    let of_second = vec![
        ("/late".to_owned(), flaky.clone(), 2),
        ("/m".to_owned(), fetch.clone(), 1),
    ];
    assert_eq!(origins(&again["lineage"]), of_second);

    let starts = starts(api, mine).await;
    assert_eq!(origins(&starts[0]["data"]["lineage"]), of_first);
    assert_eq!(starts[1]["data"]["lineage"], again["lineage"]);
    // The task that gave it nothing has a result now: what the first attempt found cannot be told from it.
    assert_eq!(starts[0]["data"].get("input"), None);
    assert_eq!(starts[1]["data"]["input"], again["input"]);
    let explained = api.call("tasks.explain", json!({"task_id": mine})).await;
    assert_eq!(explained["lineage"], again["lineage"]);
    assert_eq!(explained["input"], again["input"]);
    let get = json!({"task_id": mine, "include_input": true});
    let shown = api.call("tasks.get", get).await;
    assert_eq!(
        (&shown["attempt_input"], &shown["lineage"], &shown["inputs"]),
        (&again["input"], &again["lineage"], &json!({}))
    );
    let plain = api.call("tasks.get", json!({"task_id": mine})).await;
    assert_eq!(plain.get("attempt_input"), None);
    let origin = &again["lineage"][0];
    let whole = json!({"task_id": ids["root"], "scope": "flow", "limit": 100, "order": "asc"});
    let whole = api.call("tasks.history", whole).await;
    let events = whole["events"].as_array().unwrap();
    let event = events
        .iter()
        .find(|e| e["id"] == origin["event_id"])
        .unwrap();
    assert_eq!(event["type"], "task_completed");
    assert_eq!(
        (&event["sequence"], &event["task_id"]),
        (&origin["sequence"], &origin["task_id"])
    );
    let literal = events
        .iter()
        .find(|e| e["type"] == "task_started" && e["task_id"] == *fetch);
    assert!(literal.unwrap()["data"].get("lineage").is_none());
    server.stop().await;
}
