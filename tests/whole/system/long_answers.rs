//! Answers that are sent while they are read.

use serde_json::{Value, json};
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(
    a_large_tree_arrives_whole_alone_and_in_a_batch,
    readers_that_leave_in_the_middle_leave_nothing_behind,
);

/// Children of the root: dozens of pieces.
const CHILDREN: usize = 6_000;

async fn large_flow(server: &Server) -> Value {
    let mut tasks = vec![json!({"id": "root", "name": "root"})];
    tasks.extend((0..CHILDREN).map(|n| json!({"name": format!("task {n}"), "parent_id": "root"})));
    let made = server.api.call("tasks.create", json!({"tasks": tasks}));
    made.await["id"].take()
}

fn request(method: &str, params: &Value, id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

async fn a_large_tree_arrives_whole_alone_and_in_a_batch(folder: Folder) {
    let server = Server::start(&folder).await;
    let root = large_flow(&server).await;
    let (of_root, below) = (json!({"task_id": root}), json!({"parent_id": root}));
    server.api.caught_up().await;
    let response = server
        .api
        .http
        .post(&server.api.url)
        .header("content-type", "application/json")
        .body(request("tasks.tree", &of_root, 1).to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(
        response.headers()["transfer-encoding"],
        "chunked",
        "nobody had to know its length"
    );
    assert_eq!(response.headers()["content-type"], "application/json");
    let alone: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(alone["id"], 1);
    let children = alone["result"]["children"].as_array().unwrap();
    for (n, child) in children.iter().enumerate() {
        assert_eq!(child["task"]["name"], format!("task {n}"));
    }
    assert_eq!(children.len(), CHILDREN);
    let batch = json!([
        request("tasks.children", &below, 2),
        request("tasks.tree", &of_root, 3)
    ]);
    let (status, answers) = server.api.post(batch.to_string()).await.unwrap();
    assert_eq!(status, 200);
    assert_eq!(answers[1]["result"], alone["result"]);
    for (n, child) in children.iter().enumerate() {
        assert_eq!(answers[0]["result"]["children"][n], child["task"]);
    }
    server.stop().await;
}

async fn readers_that_leave_in_the_middle_leave_nothing_behind(folder: Folder) {
    let server = Server::start(&folder).await;
    let root = large_flow(&server).await;
    server.api.caught_up().await;
    for _ in 0..8 {
        let body = request("tasks.tree", &json!({"task_id": root}), 1).to_string();
        server
            .api
            .eventually("an answer begins", async || {
                let mut response = server
                    .api
                    .http
                    .post(&server.api.url)
                    .header("content-type", "application/json")
                    .body(body.clone())
                    .send()
                    .await
                    .unwrap();
                let first = response.chunk().await.unwrap().unwrap();
                // Until those who left are noticed, their places are taken.
                first
                    .starts_with(br#"{"jsonrpc":"2.0","result""#)
                    .then_some(())
            })
            .await;
    }
    let whole = server
        .api
        .call("tasks.tree", json!({"task_id": root}))
        .await;
    assert_eq!(whole["children"].as_array().map(Vec::len), Some(CHILDREN));
    server.stop().await;
}
