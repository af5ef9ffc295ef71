//! Workers outside the server, through JSON-RPC over HTTP and a WebSocket, with the real program: claims, leases,
//! outcomes, what a socket is told, and who may do what.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod callers;
mod claims;
mod documents;
mod guide;
mod lineage;
mod nodes;
mod outcomes;
mod plans;
mod refusals;
mod saved;
mod schedules;
mod siblings;
mod socket;
mod sockets;
mod suspensions;
mod timers;
mod values;

use serde_json::{Value, json};
use taskledger_testkit::server::Api;

/// What the tasks of these tests name, unless a test has one of its own.
const METHOD: &str = "print";

/// Starts a task that a worker must do; its id.
async fn remote(api: &Api, params: Value) -> String {
    let task = json!({"name": "remote", "inputs": {"page": 1},
        "schemas": {"type": "remote", "method": METHOD}, "params": params});
    let started = api.call("tasks.execute", json!({"tasks": [task]})).await;
    started["root_task_id"].as_str().unwrap().to_owned()
}

/// Claims the next task of [`METHOD`], and waits for it.
async fn claim(api: &Api) -> Value {
    let wanted = json!({"methods": [METHOD], "worker": "w", "wait_seconds": 30});
    let mut found = api.call("tasks.claim", wanted).await;
    assert_eq!(found["claims"].as_array().unwrap().len(), 1, "{found}");
    found["claims"][0].take()
}

/// What is said of a claim: its task and its lease, and more.
fn held(claim: &Value, more: Value) -> Value {
    let mut params = more;
    params["task_id"] = claim["task"]["id"].clone();
    params["lease"] = claim["lease"]["token"].clone();
    params
}

/// A call under a lease that is not held: why not.
async fn not_held(api: &Api, method: &str, params: Value) -> String {
    let refusal = api.refusal(method, params.clone()).await;
    assert_eq!(refusal.code, -31010, "{method} {params}: {refusal:?}");
    assert_eq!(refusal.data["task_id"], params["task_id"]);
    refusal.data["reason"].as_str().unwrap().to_owned()
}

/// The task as it is.
async fn task(api: &Api, id: &str) -> Value {
    api.call("tasks.get", json!({"task_id": id})).await
}
