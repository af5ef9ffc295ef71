//! Who may claim what, and whose leases are good.

use super::METHOD;
use super::socket::Socket;
use crate::isolation::world::{World, user, usual};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_auth::{Caller, Name, Scope, Scopes};

async fn remote(world: &World, token: &str, method: &str) -> Value {
    let task = json!({"name": token, "schemas": {"type": "remote", "method": method}});
    let started = world.call(token, "tasks.execute", json!({"tasks": [task]}));
    started.await["root_task_id"].take()
}

async fn claimed(world: &World, token: &str, methods: Value) -> Vec<Value> {
    let wanted = json!({"methods": methods, "max": 10, "worker": "w"});
    let claims = world.call(token, "tasks.claim", wanted).await;
    claims["claims"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_gets_tasks_of_its_own_users_flows_or_of_all_with_the_scope_for_that() {
    let world = World::start().await;
    let of_ann = remote(&world, "ann", METHOD).await;
    assert_eq!(
        claimed(&world, "bob", json!([METHOD])).await,
        Vec::<Value>::new()
    );
    let by_id = json!({"task_id": of_ann});
    let refusal = world.refusal("bob", "tasks.claim", by_id).await;
    assert_eq!(refusal["code"], -32001);
    let claims = claimed(&world, "ann", json!([METHOD])).await;
    assert_eq!(claims[0]["task"]["id"], of_ann);
    assert_eq!(claims[0]["context"]["user_id"], "ann");
    remote(&world, "ann", METHOD).await;
    remote(&world, "bob", METHOD).await;
    assert_eq!(claimed(&world, "chief", json!([METHOD])).await.len(), 2);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_good_only_with_the_principal_that_claimed() {
    let world = World::start().await;
    let task = remote(&world, "ann", METHOD).await;
    let claims = claimed(&world, "ann", json!([METHOD])).await;
    let lease = &claims[0]["lease"]["token"];
    let held = json!({"task_id": task, "lease": lease});
    for token in ["bob", "chief"] {
        for method in ["tasks.renew", "tasks.release"] {
            let refusal = world.refusal(token, method, held.clone()).await;
            assert_eq!(refusal["code"], -31010, "{token}: {refusal}");
            assert_eq!(refusal["data"]["reason"], "unknown", "{token}");
        }
    }
    world.call("ann", "tasks.release", held).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_for_some_methods_claims_no_others() {
    let world = World::start().await;
    let methods: Arc<[Arc<str>]> = [Arc::from(METHOD)].into();
    let narrow = user("ann", usual()).narrowed(Some(methods));
    world.known.put("narrow", narrow);
    let task = remote(&world, "ann", "other").await;
    remote(&world, "ann", METHOD).await;
    let assert_refused = |error: &Value, field: &str| {
        assert_eq!(
            (&error["code"], &error["data"]["field"]),
            (&json!(-32004), &json!(field)),
            "{error}"
        );
    };
    let both = json!({"methods": [METHOD, "other"]});
    assert_refused(
        &world.refusal("narrow", "tasks.claim", both.clone()).await,
        "methods",
    );
    let by_id = json!({"task_id": task});
    assert_refused(
        &world.refusal("narrow", "tasks.claim", by_id).await,
        "task_id",
    );
    let declared = json!({"method": "other"});
    assert_refused(
        &world.refusal("narrow", "workers.declare", declared).await,
        "method",
    );
    let mut socket = Socket::open(world.url(), Some("narrow")).await;
    let answer = socket.ask("work", both).await;
    assert_refused(&answer["error"], "methods");
    assert_eq!(claimed(&world, "narrow", json!([METHOD])).await.len(), 1);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_is_given_and_told_what_concerns_its_user_only() {
    let world = World::start().await;
    // Nothing but work: the stream of ends needs no other scope.
    let worker = |name: &str| user(name, Scopes::of([Scope::Worker]));
    world.known.put("worker", worker("ann"));
    let mut socket = Socket::open(world.url(), Some("worker")).await;
    socket.work(json!({"methods": [METHOD]})).await;
    remote(&world, "bob", METHOD).await;
    let of_ann = remote(&world, "ann", METHOD).await;
    let claim = socket.claim().await;
    assert_eq!(claim["task"]["id"], of_ann);
    world
        .call("ann", "tasks.cancel", json!({"task_id": of_ann}))
        .await;
    assert_eq!(socket.told().await["cancel"]["reason"], "cancelled");
    socket.assert_silent().await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_are_seen_by_their_principal_and_methods_belong_to_whoever_declared_them() {
    let world = World::start().await;
    claimed(&world, "ann", json!([METHOD])).await;
    let names = |listed: &Value| {
        let workers = listed["workers"].as_array().unwrap().iter();
        workers
            .map(|worker| worker["worker"].clone())
            .collect::<Vec<_>>()
    };
    let seen = world.call("ann", "workers.list", json!({})).await;
    assert_eq!(names(&seen), [json!("w")]);
    let seen = world.call("bob", "workers.list", json!({})).await;
    assert_eq!(names(&seen), Vec::<Value>::new());
    let seen = world.call("chief", "workers.list", json!({})).await;
    assert_eq!(names(&seen), [json!("w")]);

    let declared = json!({"method": METHOD});
    let shown = world
        .call("chief", "workers.declare", declared.clone())
        .await;
    assert_eq!(
        (&shown["declared_by"], &shown["owner"]),
        (&json!("user:chief"), &Value::Null)
    );
    let refusal = world.refusal("bob", "workers.undeclare", declared.clone());
    let refusal = refusal.await;
    assert_eq!(
        (&refusal["code"], &refusal["data"]["field"]),
        (&json!(-32602), &json!("method")),
        "{refusal}"
    );
    // Each user may declare it for their own tasks.
    for token in ["ann", "bob"] {
        let shown = world.call(token, "workers.declare", declared.clone()).await;
        let by = format!("user:{token}");
        assert_eq!(
            (&shown["declared_by"], &shown["owner"]),
            (&json!(by), &json!(token))
        );
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_of_methods_are_about_ones_own_tasks_or_all_with_the_scope_for_that() {
    let world = World::start().await;
    for token in ["ann", "ann", "bob"] {
        remote(&world, token, METHOD).await;
    }
    assert_eq!(claimed(&world, "bob", json!([METHOD])).await.len(), 1);
    remote(&world, "bob", METHOD).await;
    // Nobody who could get a task of `ann` asks for the method.
    let listed = world.call("ann", "workers.methods", json!({})).await;
    assert_eq!(listed["methods"], json!([]));
    for (token, running, waiting) in [("bob", 1, 1), ("chief", 1, 3)] {
        let listed = world.call(token, "workers.methods", json!({})).await;
        let shown = &listed["methods"][0];
        assert_eq!(
            (&shown["running"], &shown["waiting"]),
            (&json!(running), &json!(waiting)),
            "{token}"
        );
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_scope_there_is_no_work() {
    let world = World::start().await;
    let name = Name::new("ann").unwrap();
    world
        .known
        .put("none", Caller::user(&name, Scopes::of([Scope::TasksRead])));
    for (method, params) in [
        ("tasks.claim", json!({"methods": [METHOD]})),
        ("workers.declare", json!({"method": METHOD})),
        ("workers.undeclare", json!({"method": METHOD})),
        ("workers.methods", json!({})),
        ("workers.list", json!({})),
        ("workers.drain", json!({"worker": "w"})),
    ] {
        let refusal = world.refusal("none", method, params).await;
        assert_eq!(
            (&refusal["code"], &refusal["data"]["scope"]),
            (&json!(-32004), &json!("worker")),
            "{method}"
        );
    }
    let mut socket = Socket::open(world.url(), Some("none")).await;
    let answer = socket.ask("work", json!({"methods": [METHOD]})).await;
    assert_eq!(answer["error"]["code"], -32004, "{answer}");
    world.close().await;
}
