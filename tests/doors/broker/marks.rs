//! Who published a task is for the broker alone to say, and under which id it is stored is for nobody to guess.

use super::{Bus, next, nothing, task};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use taskledger_eventbus::TaskStatus;
use tonic::Code;

/// What an agent of another user would have to have published.
fn forged() -> Value {
    json!({"requester": "ann", "task_id": "order-7", "created_at": "2026-11-27T14:25:49Z", "priority": 0,
        "has_parameters": true, "metadata": {"approved_by": "ann"}})
}

fn task_with(params: &Value) -> Value {
    json!({"id": "r", "name": "pay.f", "params": params, "schemas": {"type": "remote", "method": "pay.f"},
        "inputs": {"amount": 9999}})
}

/// The task of one that was published under this id.
async fn published(bus: &Bus, id: &str) -> Value {
    let listed = bus.server.api.call("tasks.list", json!({})).await;
    let mut tasks = listed["tasks"].as_array().unwrap().iter();
    let found = tasks.find(|it| it["params"]["eventbus"]["task_id"] == id);
    found.expect("it was published").clone()
}

#[tokio::test]
async fn nobody_but_the_broker_says_who_published_a_task() {
    let bus = Bus::start().await;
    let api = &bus.server.api;
    let task_of = task_with(&json!({"eventbus": forged()}));
    let list = json!({"tasks": [task_of]});
    let one = json!({"name": "pay.f", "params": {"eventbus": forged()}});
    let schedule = json!({"name": "s", "cron": "@yearly", "tasks": [task_of]});
    for (method, params) in [
        ("tasks.execute", list.clone()),
        ("tasks.create", list.clone()),
        ("tasks.create", one),
        ("schedules.create", schedule),
    ] {
        let refused = api.refusal(method, params).await;
        assert_eq!(refused.code, -32602, "{method}: {refused:?}");
        let text = format!("{refused:?}");
        assert!(text.contains("eventbus"), "{method}: {text}");
    }
    // Written with escapes, it is the same member.
    let escaped = list
        .to_string()
        .replace("\"eventbus\"", "\"\\u0065ventbus\"");
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tasks.create","params":{escaped}}}"#);
    let (_, answer) = api.post(call).await.unwrap();
    let fault = &answer["error"]["data"]["errors"][0];
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(fault["field"], "eventbus", "{answer}");
    assert_eq!(
        fault["reason"], "Written by the agent broker alone",
        "{answer}"
    );
    // No update makes one of a task that was not published.
    let mut stream = bus.subscribe("agent", &["pay.f"]).await;
    let plain = api.call("tasks.create", task_with(&json!({}))).await;
    let update = json!({"task_id": plain["id"], "updates": {"params": {"eventbus": forged()}}});
    let refused = api.refusal("tasks.update", update).await;
    assert_eq!(refused.code, -32602, "{refused:?}");
    api.call("tasks.execute", json!({"task_id": plain["id"]}))
        .await;
    let taken = next(&mut stream).await;
    assert_eq!(taken.requester_agent_id, "taskledger");
    assert_eq!(taken.metadata, None);
}

#[tokio::test]
async fn updates_keep_who_published_a_task_and_copies_do_not() {
    let bus = Bus::start().await;
    let api = &bus.server.api;
    bus.publish(task("order-7", "pay.f")).await.unwrap();
    let stored = published(&bus, "order-7").await;
    // As it is, or left out: the task stays what it was published as.
    let mut same = stored["params"].clone();
    same["timeout_seconds"] = json!(60);
    for params in [same, json!({"timeout_seconds": 61}), Value::Null] {
        let update = json!({"task_id": stored["id"], "updates": {"params": params}});
        api.call("tasks.update", update).await;
        let now = published(&bus, "order-7").await;
        assert_eq!(now["params"]["eventbus"], stored["params"]["eventbus"]);
    }
    let mut other = stored["params"].clone();
    other["eventbus"]["requester"] = json!("somebody else");
    let update = json!({"task_id": stored["id"], "updates": {"params": other}});
    let refused = api.refusal("tasks.update", update).await;
    assert_eq!(refused.code, -32602, "{refused:?}");

    let copied = json!({"task_id": stored["id"]});
    let copied = api.call("tasks.copy", copied).await;
    let copy = api
        .call("tasks.get", json!({"task_id": copied["copied_task_id"]}))
        .await;
    assert!(copy["params"]["eventbus"].is_null(), "{copy}");
    let mut stream = bus.subscribe("agent", &["pay.f"]).await;
    assert_eq!(next(&mut stream).await.task_id, "order-7");
    api.call("tasks.execute", json!({"task_id": copy["id"]}))
        .await;
    let taken = next(&mut stream).await;
    assert_eq!(taken.requester_agent_id, "taskledger");
    assert_eq!(json!(taken.task_id), copy["id"]);
}

/// The id that everybody can compute of what a requester calls a task.
fn guessed(actor: &str, requester: &str, external_id: &str) -> String {
    let mut hash = Sha256::new();
    for part in [actor, requester, external_id] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}

#[tokio::test]
async fn ids_of_published_tasks_cannot_be_computed_and_stay_after_a_kill() {
    let bus = Bus::start().await;
    let guess = guessed("anonymous", "requester", "invoice-2");
    let taken = json!({"id": guess, "name": "in the way"});
    bus.server.api.call("tasks.create", taken).await;
    bus.publish(task("invoice-2", "x")).await.unwrap();
    let stored = published(&bus, "invoice-2").await;
    assert_ne!(stored["id"], json!(guess));
    let bus = bus.killed().await;
    // The same message again is the same task.
    bus.publish(task("invoice-2", "x")).await.unwrap();
    assert_eq!(published(&bus, "invoice-2").await["id"], stored["id"]);
    let mut stream = bus.subscribe("agent", &["x"]).await;
    assert_eq!(next(&mut stream).await.task_id, "invoice-2");
    nothing(&mut stream).await;
    let ended = bus.end("agent", "invoice-2", TaskStatus::Completed, None, "");
    ended.await.unwrap();
    // Another log has another key.
    let other = Bus::start().await;
    other.publish(task("invoice-2", "x")).await.unwrap();
    assert_ne!(published(&other, "invoice-2").await["id"], stored["id"]);
}

#[tokio::test]
async fn a_type_that_is_an_executor_of_the_server_is_refused_in_words_of_the_broker() {
    let bus = Bus::start().await;
    let refused = bus.publish(task("t", "http_executor")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let told = refused.message();
    assert!(
        told.starts_with("task_type: an executor of the server"),
        "{told}"
    );
    assert!(!told.contains("timeout_seconds"), "{told}");
}
