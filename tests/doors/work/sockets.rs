//! Work over a socket: claims within a window, what is taken back, drains, and ends.

use super::socket::Socket;
use super::{METHOD, held, not_held, remote, task};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use taskledger_testkit::server::{Folder, Server};

async fn opened(server: &Server, params: Value) -> (Socket, Value) {
    let mut socket = Socket::open(&server.api.url, None).await;
    let mut asked = json!({"methods": [METHOD], "worker": "w"});
    let more = params.as_object().unwrap().clone();
    asked.as_object_mut().unwrap().extend(more);
    let subscription = socket.work(asked).await;
    (socket, subscription)
}

#[tokio::test]
async fn claims_come_by_themselves_within_the_window() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let before = remote(api, Value::Null).await;
    let (mut socket, subscription) = opened(&server, json!({"window": 2})).await;
    let told = socket.told().await;
    assert_eq!(told["subscription"], subscription);
    let first = told["claim"].clone();
    assert_eq!(first["task"]["id"], json!(before));
    assert_eq!(first["lease"]["lease_seconds"], 60);
    for _ in 0..3 {
        remote(api, Value::Null).await;
    }
    let second = socket.claim().await;
    socket.assert_silent().await;
    // Through this socket, and through another door.
    let done = held(&first, json!({"output": {"n": 1}}));
    let completed = socket.call("tasks.complete", done).await;
    assert_eq!(completed["status"], "completed");
    let third = socket.claim().await;
    socket.assert_silent().await;
    api.call("tasks.complete", held(&second, json!({"output": {}})))
        .await;
    let fourth = socket.claim().await;
    let ids: BTreeSet<_> = [&first, &second, &third, &fourth]
        .map(|claim| claim["task"]["id"].to_string())
        .into();
    assert_eq!(ids.len(), 4);
    for claim in [&third, &fourth] {
        let renewed = socket.call("tasks.renew", held(claim, json!({}))).await;
        assert_eq!(renewed["cancel_requested"], false);
        socket.call("tasks.release", held(claim, json!({}))).await;
        // It comes back, because nobody else asks.
        socket.claim().await;
    }
    let listed = api.call("workers.list", json!({})).await;
    let worker = &listed["workers"][0];
    assert_eq!(
        (&worker["connection"], &worker["held"]),
        (&json!("socket"), &json!(2)),
        "{listed}"
    );
    server.stop().await;
}

#[tokio::test]
async fn what_is_taken_back_is_told_at_once_and_makes_room() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let (mut socket, subscription) =
        opened(&server, json!({"window": 1, "lease_seconds": 5})).await;
    // Cancelled, out of time, and lost because nobody renews it.
    let slow = json!({"timeout_seconds": 0.2});
    for (params, reason) in [
        (Value::Null, "cancelled"),
        (slow, "timed_out"),
        (Value::Null, "lost"),
    ] {
        let id = remote(api, params).await;
        let claim = socket.claim().await;
        assert_eq!(claim["task"]["id"], json!(id));
        if reason == "cancelled" {
            api.call("tasks.cancel", json!({"task_id": id})).await;
        }
        let told = socket.told().await;
        let cancel = json!({"task_id": id, "lease": claim["lease"]["token"], "reason": reason});
        assert_eq!(
            told,
            json!({"subscription": subscription, "cancel": cancel})
        );
        let late = held(&claim, json!({"output": {}}));
        assert_eq!(not_held(api, "tasks.complete", late).await, reason);
        if reason == "lost" {
            // Another attempt of it is the next work, as soon as the worker has shown that it is there.
            let begun = Instant::now();
            assert_eq!(socket.claim().await["lease"]["attempt"], 2);
            assert!(begun.elapsed() < Duration::from_secs(10), "{begun:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn who_ends_a_subscription_gets_no_more_and_keeps_what_is_held() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    let (mut socket, subscription) = opened(&server, json!({"window": 5})).await;
    let claim = socket.claim().await;
    let ended = socket
        .call("unsubscribe", json!({"subscription": subscription}))
        .await;
    assert_eq!(ended, json!({"success": true}));
    remote(api, Value::Null).await;
    socket.assert_silent().await;
    socket
        .call("tasks.complete", held(&claim, json!({"output": {}})))
        .await;
    assert_eq!(task(api, &id).await["status"], "completed");
    server.stop().await;
}

#[tokio::test]
async fn a_worker_whose_socket_closes_may_finish_over_another_one() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    let (mut socket, _) = opened(&server, json!({"window": 5})).await;
    let claim = socket.claim().await;
    socket.close().await;
    let listed = async || {
        let listed = api.call("workers.list", json!({})).await;
        listed["workers"][0]["connection"] == "poll"
    };
    // It only holds something.
    api.eventually("it asks no more", async || listed().await.then_some(()))
        .await;
    // Nothing new goes to a socket that is closed.
    remote(api, Value::Null).await;
    let (mut socket, _) = opened(&server, json!({"window": 5})).await;
    let other = socket.claim().await;
    assert_ne!(other["task"]["id"], json!(id));
    socket
        .call("tasks.complete", held(&claim, json!({"output": {}})))
        .await;
    assert_eq!(task(api, &id).await["status"], "completed");
    server.stop().await;
}

#[tokio::test]
async fn a_long_poll_over_a_socket_ends_with_the_socket() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let wanted = json!({"methods": [METHOD], "worker": "gone", "wait_seconds": 30});
    for _ in 0..3 {
        let mut socket = Socket::open(&server.api.url, None).await;
        socket.send("tasks.claim", wanted.clone()).await;
        // Answered behind the claim, which waits then.
        socket.call("system.health", json!({})).await;
        socket.close().await;
        let id = remote(api, Value::Null).await;
        let claim = super::claim(api).await;
        assert_eq!(claim["task"]["id"], json!(id));
        assert_eq!(claim["lease"]["attempt"], 1, "nobody else got it");
        api.call("tasks.complete", held(&claim, json!({"output": {}})))
            .await;
    }
    server.stop().await;
}

#[tokio::test]
async fn who_renews_over_another_socket_is_told_there_what_is_taken_back() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    let (mut socket, _) = opened(&server, json!({"window": 1})).await;
    let claim = socket.claim().await;
    socket.close().await;
    let (mut socket, subscription) = opened(&server, json!({"window": 1})).await;
    socket.call("tasks.renew", held(&claim, json!({}))).await;
    api.call("tasks.cancel", json!({"task_id": id})).await;
    let cancel = json!({"task_id": id, "lease": claim["lease"]["token"], "reason": "cancelled"});
    assert_eq!(
        socket.told().await,
        json!({"subscription": subscription, "cancel": cancel})
    );
    // It took no room.
    remote(api, Value::Null).await;
    socket.claim().await;
    server.stop().await;
}

#[tokio::test]
async fn a_drained_worker_is_told_so_once() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let (mut socket, subscription) = opened(&server, json!({"window": 5})).await;
    api.call("workers.drain", json!({"worker": "w"})).await;
    let told = socket.told().await;
    assert_eq!(
        told,
        json!({"subscription": subscription, "draining": true})
    );
    remote(api, Value::Null).await;
    socket.assert_silent().await;
    server.stop().await;
}

#[tokio::test]
async fn waits_for_work_stop_no_other_call_of_the_socket() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let (mut socket, _) = opened(&server, json!({})).await;
    let mut polls = Vec::new();
    for n in 0..20 {
        let wanted = json!({"methods": [format!("other-{n}")], "wait_seconds": 60});
        polls.push(socket.send("tasks.claim", wanted).await);
    }
    let health = socket.call("system.health", json!({})).await;
    assert_eq!(health["status"], "ok", "{health}");
    let task = json!({"name": "a", "schemas": {"type": "remote", "method": "other-7"}});
    socket.call("tasks.execute", json!({"tasks": [task]})).await;
    let answer = socket.answer(polls[7]).await;
    assert_eq!(
        answer["result"]["claims"][0]["task"]["name"], "a",
        "{answer}"
    );
    server.stop().await;
}

#[tokio::test]
async fn many_claims_are_done_over_one_socket() {
    const TASKS: usize = 300;
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let tasks: Vec<_> = (0..TASKS)
        .map(|n| {
            json!({"name": format!("{n}"), "parent_id": "all",
                "schemas": {"type": "remote", "method": METHOD}, "inputs": {"n": n}})
        })
        .collect();
    let all = [vec![json!({"id": "all", "name": "all"})], tasks].concat();
    let started = api.call("tasks.execute", json!({"tasks": all})).await;
    let (mut socket, _) = opened(&server, json!({"window": 64})).await;
    let mut calls = Vec::new();
    for _ in 0..TASKS {
        let claim = socket.claim().await;
        let done = held(&claim, json!({"output": {"n": claim["input"]["n"]}}));
        calls.push(socket.send("tasks.complete", done).await);
    }
    for id in calls {
        let answer = socket.answer(id).await;
        assert_eq!(answer["result"]["status"], "completed", "{answer}");
    }
    let root = started["root_task_id"].as_str().unwrap();
    while task(api, root).await["status"] != "completed" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_subscription_is_its_answer() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let mut socket = Socket::open(&server.api.url, None).await;
    for (params, field) in [
        (json!({}), "methods"),
        (json!({"methods": []}), "methods"),
        (json!({"methods": [METHOD], "window": 1001}), "window"),
        (
            json!({"methods": [METHOD], "lease_seconds": 4}),
            "lease_seconds",
        ),
        (json!({"methods": [METHOD], "max": 4}), "max"),
    ] {
        let answer = socket.ask("work", params).await;
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["data"]["field"]),
            (&json!(-32602), &json!(field)),
            "{answer}"
        );
    }
    let refusal = server.api.refusal("work", json!({})).await;
    assert_eq!(refusal.code, -32601);
    let expected = refusal.data["expected"].as_str().unwrap();
    assert!(expected.contains("tasks.claim"), "{expected}");
    server.stop().await;
}
