//! Calls that begin a run, answered with its stream.

use crate::streams::sse::{Sse, call, post, tasks};
use serde_json::{Value, json};
use taskledger_testkit::server::{Folder, Server};

/// What every stream of a run that completes tells: a status for each start and end, and its end.
fn assert_whole(result: &Value, events: &[crate::streams::sse::Block]) {
    let last = events.last().unwrap().json();
    assert_eq!(last["final"], true);
    assert_eq!(last["run"]["id"], result["run_id"]);
    assert_eq!(last["task_id"], last["root_task_id"]);
    let finals = events.iter().filter(|e| e.json()["final"] == true).count();
    assert_eq!(finals, 1);
    for id in result["task_ids"].as_object().unwrap().values() {
        let of_task: Vec<_> = events
            .iter()
            .map(|e| (e.event.clone().unwrap(), e.json()))
            .filter(|(_, data)| data["task_id"] == *id && data.get("run").is_none())
            .map(|(kind, data)| format!("{kind} {}", data["status"].as_str().unwrap()))
            .collect();
        let update = "task_status_update";
        assert_eq!(
            of_task,
            [
                format!("{update} in_progress"),
                format!("{update} completed"),
                "task_completed completed".to_owned()
            ]
        );
    }
}

#[tokio::test]
async fn a_run_is_told_from_its_start_to_its_end() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let params = json!({"tasks": tasks(5), "use_streaming": true});
    let (result, mut sse) = call(&server.api, "tasks.execute", params).await;
    assert_eq!(result["status"], "started");
    assert_whole(&result, &sse.rest().await);
    // The other way to ask.
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tasks.execute", "params": {"tasks": tasks(1)},
        "metadata": {"stream": true},
    });
    let mut sse = Sse::of(post(&server.api, &body).await);
    let result = sse.block().await.unwrap().json()["result"].take();
    assert_whole(&result, &sse.rest().await);
    server.stop().await;
}

#[tokio::test]
async fn only_tasks_of_the_run_are_told() {
    // given: a flow of two groups
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let leaf = |name: &str| json!({"name": name, "schemas": {"method": "echo_executor"}});
    let tree = json!({"name": "root", "children": [
        {"name": "one", "children": [leaf("a"), leaf("b")]},
        {"name": "two", "children": [leaf("c")]},
    ]});
    let ids = api.call("tasks.create", tree).await["task_ids"].take();
    // when: one of them runs
    let params = json!({"task_id": ids["one"], "use_streaming": true});
    let (result, mut sse) = call(api, "tasks.execute", params).await;
    let events = sse.rest().await;
    // then
    assert_eq!(result["root_task_id"], ids["root"]);
    let told = |name: &str| events.iter().any(|e| e.json()["task_id"] == ids[name]);
    assert!(told("one") && told("a") && told("b") && !told("two") && !told("c"));
    let last = events.last().unwrap().json();
    assert_eq!(
        (&last["task_id"], &last["final"]),
        (&ids["one"], &json!(true))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_stream_stands_alone() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let asks = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.execute", "params": {"tasks": tasks(1), "use_streaming": true}});
    let subscribes = json!({"jsonrpc": "2.0", "id": 2, "method": "tasks.subscribe", "params": {"task_id": "0f8fad5b-d9cb-469f-a165-70867728950e"}});
    let (_, answers) = api
        .post(json!([asks, subscribes]).to_string())
        .await
        .unwrap();
    for answer in answers.as_array().unwrap() {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(
            answer["error"]["data"]["reason"],
            "a stream cannot be part of a batch"
        );
    }
    let mut silent = asks;
    silent.as_object_mut().unwrap().remove("id");
    assert_eq!(post(api, &silent).await.status(), 204);
    let list = api.call("tasks.list", json!({})).await;
    assert_eq!(list["total"], 0, "nothing was carried out");
    server.stop().await;
}

#[tokio::test]
async fn a_wish_that_nobody_would_keep_is_refused() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let ask = async |metadata: Value, configuration: Value| {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tasks.execute", "params": {"tasks": tasks(1), "odd": 1},
            "metadata": metadata, "configuration": configuration,
        });
        let answer: Value = post(api, &body).await.json().await.unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let faults = answer["error"]["data"]["errors"].as_array().unwrap();
        faults.iter().map(|f| f["path"].clone()).collect::<Vec<_>>()
    };
    let odd = json!(["odd"]);
    assert_eq!(
        ask(json!({"stream": "maybe", "x": 1}), json!({"webhook": {}})).await,
        [
            odd.clone(),
            json!(["metadata", "stream"]),
            json!(["configuration", "webhook"])
        ]
    );
    assert_eq!(
        ask(json!({}), json!(7)).await,
        [odd, json!(["configuration"])]
    );
    let list = api.call("tasks.list", json!({})).await;
    assert_eq!(list["total"], 0, "nothing was carried out");
    server.stop().await;
}

#[tokio::test]
async fn a_refusal_is_a_plain_answer() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let unknown = json!([{"name": "a", "schemas": {"method": "no_such"}}]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.execute", "params": {"tasks": unknown, "use_streaming": true}});
    let response = post(&server.api, &body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["error"]["code"], -32003);
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_call_gets_the_first_answer_and_the_whole_stream() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let ask = |streaming: bool| {
        json!({
            "jsonrpc": "2.0", "id": 1, "method": "tasks.execute",
            "params": {"tasks": tasks(2), "use_streaming": streaming},
            "metadata": {"idempotency_key": "k"},
        })
    };
    let mut told = Vec::new();
    for _ in 0..2 {
        let mut sse = Sse::of(post(&server.api, &ask(true)).await);
        let result = sse.block().await.unwrap().json()["result"].take();
        told.push((result, sse.rest().await));
    }
    assert_eq!(told[0], told[1]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_on_another_node_is_told_here() {
    // given: a flow, which one of the nodes owns
    let folder = Folder::with_database().await;
    let nodes = [Server::start(&folder).await, Server::start(&folder).await];
    let tree = json!({"name": "root", "children": [
        {"name": "a", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 50}},
    ]});
    for created_at in 0..2 {
        let ids = nodes[created_at]
            .api
            .call("tasks.create", tree.clone())
            .await["task_ids"]
            .take();
        // when
        let params = json!({"task_id": ids["root"], "use_streaming": true});
        let (result, mut sse) = call(&nodes[1 - created_at].api, "tasks.execute", params).await;
        // then
        let events = sse.rest().await;
        let last = events.last().unwrap().json();
        assert_eq!(last["run"]["id"], result["run_id"]);
        assert!(events.iter().any(|e| e.json()["task_id"] == ids["a"]));
    }
    for node in nodes {
        node.stop().await;
    }
}
