//! All connections to the database are in use.

use crate::faults::{COMMANDS, clients};
use futures_util::future::join_all;
use serde_json::{Value, json};
use taskledger_testkit::cluster::{Cluster, Load};
use taskledger_testkit::server::{Api, Folder};

const NODES: usize = 2;
/// Answers that begin and are not read on: more than there are connections for reading.
const SLOW_READERS: usize = 8;
/// Children of the root of the flow that they read: more than sockets hold.
const CHILDREN: usize = 12_000;

/// Two for reading: one of the log, one of the read models.
const FEW: [&str; 4] = [
    "--database-connections",
    "2",
    "--database-acquire-timeout",
    "1",
];

async fn large_flow(api: &Api) -> Value {
    let mut tasks = vec![json!({"id": "root", "name": "large.root"})];
    let names = (0..CHILDREN).map(|n| format!("large.{n} {}", "x".repeat(200)));
    tasks.extend(names.map(|name| json!({"name": name, "parent_id": "root"})));
    let create = json!({"tasks": tasks});
    answered(api, "tasks.create", create, Some("large")).await["id"].take()
}

/// The result of a call that may be refused while connections are rare.
async fn answered(api: &Api, method: &str, params: Value, key: Option<&str>) -> Value {
    api.eventually(method, async || {
        api.try_call(method, params.clone(), key).await.ok()
    })
    .await
}

/// An answer that has begun, if it has.
async fn begun(api: &Api, root: &Value) -> Option<reqwest::Response> {
    let params = json!({"task_id": root});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.tree", "params": params});
    let request = api
        .http
        .post(&api.url)
        .header("content-type", "application/json");
    let answer = request.body(call.to_string()).send().await.ok()?;
    // Short ones are refusals.
    answer.content_length().is_none().then_some(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_of_long_answers_do_not_stop_the_work() {
    let cluster = Cluster::start(Folder::with_database().await, NODES, &FEW).await;
    let apis = cluster.apis();
    let root = large_flow(&apis[0]).await;
    answered(&apis[0], "tasks.list", json!({"limit": 1}), None).await;
    let load = Load::start(clients(), &apis);
    load.more(&apis[0], COMMANDS).await;
    let slow = apis[0]
        .eventually("somebody reads slowly", async || {
            let asked = (0..SLOW_READERS).map(|n| begun(&apis[n % NODES], &root));
            let slow: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
            (!slow.is_empty()).then_some(slow)
        })
        .await;
    load.more(&apis[0], COMMANDS).await;
    println!("{} answers were held up", slow.len());
    drop(slow);
    load.more(&apis[0], COMMANDS).await;
    let clients = load.stop().await;
    cluster.check(&clients).await;
}
