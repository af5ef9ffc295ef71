//! Credentials at the doors: which are taken, what is answered without, and what ends with them.

use super::world::{World, user, usual};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_auth::{Scope, Scopes};
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Within which a stream ends whose credentials were revoked, on a slow machine.
const ENDED_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_of_a_stranger_is_answered_under_its_id_with_401() {
    let world = World::start().await;
    let call = |id| json!({"jsonrpc": "2.0", "id": id, "method": "tasks.list"});
    let notification = json!({"jsonrpc": "2.0", "method": "tasks.list"});
    let batch = json!([call(1), notification, call(2)]);
    let sent = world.client.post(world.url()).json(&batch).send().await;
    let response = sent.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(
        response.headers()["www-authenticate"],
        r#"Bearer realm="taskledger""#
    );
    let answers: Value = response.json().await.unwrap();
    let ids: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["id"])
        .collect();
    assert_eq!(ids, [&json!(1), &json!(2)]);
    assert!(
        answers
            .as_array()
            .unwrap()
            .iter()
            .all(|a| a["error"]["code"] == -32004)
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_body_of_a_stranger_is_read_up_to_a_limit() {
    let world = World::start().await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tasks.create",
        "params": {"name": "x".repeat(100_000)}});
    let sent = world.client.post(world.url()).json(&call).send().await;
    let response = sent.unwrap();
    assert_eq!(response.status(), 401);
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["id"], Value::Null, "the body was not read");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_credentials_and_those_in_a_url_are_refused() {
    let world = World::start().await;
    let health = json!({"jsonrpc": "2.0", "id": 1, "method": "system.health"});
    let post = |url: &str| world.client.post(url).json(&health);
    let twice = post(world.url()).bearer_auth("ann").bearer_auth("bob");
    assert_eq!(world.send(twice).await.0, 401);
    let in_url = format!("{}/?access_token=ann", world.url());
    assert_eq!(world.send(post(&in_url).bearer_auth("ann")).await.0, 401);
    assert_eq!(
        world.send(post(world.url()).bearer_auth("ann")).await.0,
        200
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_and_the_agent_card_need_no_credentials_and_the_rest_does() {
    let world = World::start().await;
    for (path, status) in [
        ("/livez", 200),
        ("/readyz", 200),
        ("/.well-known/agent-card.json", 200),
        ("/openrpc.json", 401),
        ("/events", 401),
    ] {
        let request = world.client.get(format!("{}{path}", world.url()));
        assert_eq!(world.send(request).await.0, status, "{path}");
    }
    let verbose = format!("{}/readyz?verbose", world.url());
    let (_, stranger) = world.send(world.client.get(&verbose)).await;
    let (_, chief) = world
        .send(world.client.get(&verbose).bearer_auth("chief"))
        .await;
    assert!(
        !stranger.contains("checks") && chief.contains("checks"),
        "{stranger} {chief}"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_scope_is_an_answer_and_not_a_status_but_for_streams() {
    let world = World::start().await;
    world
        .known
        .put("writer", user("ann", Scopes::of([Scope::TasksWrite])));
    let (status, text) = world.ask(Some("writer"), "tasks.list", &json!({})).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200);
    assert_eq!(answer["error"]["code"], -32004);
    assert_eq!(answer["error"]["data"]["scope"], "tasks:read");
    let events = world.client.get(format!("{}/events", world.url()));
    let (status, _) = world.send(events.bearer_auth("writer")).await;
    assert_eq!(status, 403);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_stream_ends_with_its_credentials() {
    let world = World::start().await;
    world.known.put("guest", user("guest", usual()));
    let request = world.client.get(format!("{}/events", world.url()));
    let mut response = request.bearer_auth("guest").send().await.unwrap();
    assert_eq!(response.status(), 200);
    world.known.revoke("guest");
    let ended = async { while response.chunk().await.unwrap().is_some() {} };
    timeout(ENDED_WITHIN, ended).await.unwrap();
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_is_closed_with_its_credentials() {
    let world = World::start().await;
    world.known.put("guest", user("guest", usual()));
    let url = format!("{}/ws", world.url().replace("http", "ws"));
    let without = connect_async(url.as_str()).await;
    assert!(matches!(without, Err(Error::Http(answer)) if answer.status() == 401));
    let mut request = url.into_client_request().unwrap();
    let bearer = "Bearer guest".parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let (mut socket, _) = connect_async(request).await.unwrap();
    let create =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.create", "params": {"name": "x"}});
    socket
        .send(Message::text(create.to_string()))
        .await
        .unwrap();
    let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let id = answer["result"]["id"].clone();
    let seen = world
        .call("chief", "tasks.get", json!({"task_id": id}))
        .await;
    assert_eq!(seen["user_id"], "guest");
    world.known.revoke("guest");
    let closed = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(frame))) => break frame,
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    let frame = timeout(ENDED_WITHIN, closed).await.unwrap().unwrap();
    assert_eq!(u16::from(frame.code), 4401);
    world.close().await;
}
