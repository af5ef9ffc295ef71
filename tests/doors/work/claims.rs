//! Claims: by method and by task, at once and after a wait.

use super::{METHOD, claim, held, remote, task};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_testkit::server::{Folder, Server};
use tokio::time::Instant;

#[tokio::test]
async fn a_claim_is_the_start_of_a_task_with_everything_that_its_worker_needs() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, json!({"timeout_seconds": 90})).await;
    let wanted = json!({"methods": ["other", METHOD], "max": 5, "lease_seconds": 30});
    let claimed = api.call("tasks.claim", wanted).await;
    let [claim] = &claimed["claims"].as_array().unwrap()[..] else {
        panic!("{claimed}");
    };
    assert!(claimed["draining"].is_null());
    let mut shown = task(api, &id).await;
    shown.as_object_mut().unwrap().remove("run");
    assert_eq!(claim["task"], shown);
    assert_eq!(claim["task"]["status"], "in_progress");
    assert_eq!(claim["input"], json!({"page": 1}));
    let context = &claim["context"];
    assert_eq!(
        (&context["root_task_id"], &context["timeout_seconds"]),
        (&json!(id), &json!(90))
    );
    assert!(context["run_id"].is_string(), "{context}");
    assert_eq!(
        (&context["user_id"], &context["deadline"]),
        (&Value::Null, &Value::Null)
    );
    let lease = &claim["lease"];
    assert_eq!(
        (&lease["attempt"], &lease["lease_seconds"]),
        (&json!(1), &json!(30))
    );
    assert!(lease["expires_at"].is_string() && lease["token"].is_string());
    // Nobody else gets it.
    let none = api.call("tasks.claim", json!({"methods": [METHOD]})).await;
    assert_eq!(none, json!({"claims": []}));
    server.stop().await;
}

#[tokio::test]
async fn urgent_and_old_tasks_are_claimed_first() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    for (name, priority) in [("a", 2), ("b", 2), ("c", 0), ("d", 1)] {
        let task = json!({"name": name, "priority": priority,
            "schemas": {"type": "remote", "method": METHOD}});
        api.call("tasks.execute", json!({"tasks": [task]})).await;
    }
    let mut order = Vec::new();
    for max in [1, 2, 5] {
        let wanted = json!({"methods": [METHOD], "max": max});
        let claimed = api.call("tasks.claim", wanted).await;
        let claims = claimed["claims"].as_array().unwrap().clone();
        assert!(claims.len() <= max);
        order.extend(claims.iter().map(|c| c["task"]["name"].clone()));
    }
    assert_eq!(json!(order), json!(["c", "d", "a", "b"]));
    server.stop().await;
}

#[tokio::test]
async fn a_long_poll_is_answered_as_soon_as_there_is_work() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let begun = Instant::now();
    let execute = async {
        // Once somebody asks for it, its method needs no declaration.
        loop {
            let methods = api.call("workers.methods", json!({})).await;
            if methods["methods"][0]["workers"] == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let task = json!({"name": "a", "schemas": {"method": METHOD}});
        let started = api.call("tasks.execute", json!({"tasks": [task]}));
        started.await["root_task_id"].take()
    };
    let (claimed, id) = tokio::join!(claim(api), execute);
    assert_eq!(claimed["task"]["id"], id);
    assert!(begun.elapsed() < Duration::from_secs(25), "it was woken");
    server.stop().await;
}

#[tokio::test]
async fn a_poll_without_work_is_answered_with_nothing_when_its_time_is_over() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let begun = Instant::now();
    let wanted = json!({"methods": [METHOD], "wait_seconds": 0.5});
    let none = server.api.call("tasks.claim", wanted).await;
    assert_eq!(none, json!({"claims": []}));
    assert!(begun.elapsed() >= Duration::from_millis(500));
    server.stop().await;
}

#[tokio::test]
async fn a_poll_may_wait_for_longer_than_other_calls_may_take() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--request-timeout", "1"]).await;
    let begun = Instant::now();
    let wanted = json!({"methods": [METHOD], "wait_seconds": 3});
    let none = server.api.call("tasks.claim", wanted).await;
    assert_eq!(none, json!({"claims": []}));
    assert!(begun.elapsed() >= Duration::from_secs(3));
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_polls() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = server.api.clone();
    let polling = tokio::spawn(async move {
        let wanted = json!({"methods": [METHOD], "wait_seconds": 60});
        api.try_call("tasks.claim", wanted, None).await
    });
    while server.api.call("workers.methods", json!({})).await["methods"] == json!([]) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let begun = Instant::now();
    server.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(8));
    polling.await.unwrap().ok();
}

#[tokio::test]
async fn a_claim_without_an_id_claims_nothing() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    let notification =
        json!({"jsonrpc": "2.0", "method": "tasks.claim", "params": {"methods": [METHOD]}});
    for body in [notification.clone(), json!([notification])] {
        let (status, answer) = api.post(body.to_string()).await.unwrap();
        assert_eq!((status, answer), (204, Value::Null));
    }
    assert_eq!(claim(api).await["task"]["id"], json!(id));
    server.stop().await;
}

#[tokio::test]
async fn a_worker_that_hangs_up_while_it_waits_is_there_no_more() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let listed = async || {
        let listed = api.call("workers.list", json!({})).await;
        listed["workers"].as_array().unwrap().len()
    };
    let wanted = json!({"methods": [METHOD], "worker": "w", "wait_seconds": 60});
    let waits = tokio::spawn({
        let api = api.clone();
        async move { api.try_call("tasks.claim", wanted, None).await }
    });
    api.eventually("it is there", async || (listed().await == 1).then_some(()))
        .await;
    waits.abort();
    api.eventually("it is gone", async || (listed().await == 0).then_some(()))
        .await;
    let id = remote(api, Value::Null).await;
    let explained = api.call("tasks.explain", json!({"task_id": id})).await;
    let reason = &explained["reasons"][0];
    assert_eq!(
        (&reason["code"], &reason["workers"]),
        (&json!("waits_for_worker"), &json!(0))
    );
    let message = reason["message"].as_str().unwrap();
    assert!(message.contains("the last one asked"), "{message}");
    server.stop().await;
}

#[tokio::test]
async fn one_task_is_claimed_by_its_id_if_it_can_be() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    let by_id = json!({"task_id": id});
    let claimed = api.call("tasks.claim", by_id.clone()).await;
    assert_eq!(claimed["claims"][0]["task"]["id"], json!(id));
    assert_eq!(api.refusal("tasks.claim", by_id).await.code, -32006);
    for (task, code) in [
        (
            json!({"name": "not run", "schemas": {"type": "remote", "method": METHOD}}),
            -32006,
        ),
        (
            json!({"name": "near", "schemas": {"method": "echo_executor"}}),
            -32006,
        ),
    ] {
        let created = api.call("tasks.create", task).await;
        let refusal = api
            .refusal("tasks.claim", json!({"task_id": created["id"]}))
            .await;
        assert_eq!(refusal.code, code);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_declared_method_gives_its_defaults_and_is_replaced_by_declaring_it_again() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let declared = json!({"method": METHOD, "description": "Prints.", "limit": 1,
        "defaults": {"timeout_seconds": 30, "retry_count": 2}});
    let shown = api.call("workers.declare", declared).await;
    assert_eq!(
        (&shown["declared"], &shown["declared_by"], &shown["limit"]),
        (&json!(true), &json!("anonymous"), &json!(1))
    );
    for _ in 0..2 {
        let task = json!({"name": "a", "schemas": {"method": METHOD}});
        api.call("tasks.execute", json!({"tasks": [task]})).await;
    }
    let first = claim(api).await;
    assert_eq!(first["context"]["timeout_seconds"], 30);
    // No second attempt beside the first one.
    let none = api.call("tasks.claim", json!({"methods": [METHOD]})).await;
    assert_eq!(none["claims"], json!([]));
    let again = json!({"method": METHOD, "limit": 2});
    let shown = api.call("workers.declare", again).await;
    assert!(
        shown["description"].is_null() && shown["limit"] == 2,
        "{shown}"
    );
    claim(api).await;
    let done = held(&first, json!({"output": {}}));
    api.call("tasks.complete", done).await;
    let removed = api
        .call("workers.undeclare", json!({"method": METHOD}))
        .await;
    assert_eq!(removed, json!({"method": METHOD, "removed": true}));
    let removed = api
        .call("workers.undeclare", json!({"method": METHOD}))
        .await;
    assert_eq!(removed["removed"], false);
    let refusal = api
        .refusal("workers.declare", json!({"method": "echo_executor"}))
        .await;
    assert_eq!(
        (refusal.code, &refusal.data["field"]),
        (-32602, &json!("method"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_drained_worker_gets_no_more_work_until_it_is_let_in_again() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    remote(api, Value::Null).await;
    claim(api).await;
    let drained = api.call("workers.drain", json!({"worker": "w"})).await;
    assert_eq!(
        drained,
        json!({"worker": "w", "draining": true, "held": 1, "present": true})
    );
    remote(api, Value::Null).await;
    let wanted = json!({"methods": [METHOD], "worker": "w", "wait_seconds": 20});
    let none = api.call("tasks.claim", wanted).await;
    assert_eq!(none, json!({"claims": [], "draining": true}));
    let listed = api.call("workers.list", json!({})).await;
    let worker = &listed["workers"][0];
    assert_eq!(
        (&worker["worker"], &worker["draining"], &worker["held"]),
        (&json!("w"), &json!(true), &json!(1)),
        "{listed}"
    );
    assert_eq!(worker["connection"], "poll");
    assert_eq!(worker["tasks"].as_array().unwrap().len(), 1);
    let back = json!({"worker": "w", "drain": false});
    assert_eq!(api.call("workers.drain", back).await["draining"], false);
    claim(api).await;
    server.stop().await;
}

#[tokio::test]
async fn what_one_claim_is_told_is_bounded_and_the_rest_stays_for_others() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    const COUNT: usize = 40;
    let mut tasks = vec![
        json!({"name": "r"}),
        json!({"name": "large", "parent_id": "r", "schemas": {"method": "echo_executor"},
            "inputs": {"text": "x".repeat(900_000)}}),
    ];
    tasks.extend((0..COUNT).map(|i| {
        json!({"name": format!("t{i}"), "parent_id": "r", "dependencies": [{"id": "large"}],
            "schemas": {"type": "remote", "method": "read", "wiring": {"text": "large.text"}}})
    }));
    api.call("tasks.execute", json!({"tasks": tasks})).await;
    let wanted = json!({"methods": ["read"], "max": 100, "wait_seconds": 20});
    let mut told = 0;
    while told < COUNT {
        let found = api.call("tasks.claim", wanted.clone()).await;
        let claims = found["claims"].as_array().unwrap().len();
        assert!(
            claims > 0 && claims < 20,
            "{claims} of {COUNT} in one answer"
        );
        told += claims;
    }
    server.stop().await;
}
