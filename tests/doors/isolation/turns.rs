//! Large messages of one caller are read in turn at every door. His small ones, and all of others, are served
//! meanwhile.

use super::world::{Callers, World, user, usual};
use crate::a2a::binding::all_as;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskledger::application::api::Turn;
use taskledger_a2a::Operation;
use taskledger_eventbus::{EventBusClient, PublishTaskRequest, TaskMessage};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tonic::Request;
use tonic::transport::Endpoint;

/// Bytes of a message that waits for its turn, and of one that does not.
const LARGE_BYTES: usize = 32 * 1024;
const SMALL_BYTES: usize = 100;
/// For each of which a socket is sent a task.
const TASK_BYTES: usize = 1024;
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a message with a text of so many bytes with somebody's credentials, and awaits its result.
type Sending = Box<dyn Fn(&'static str, usize) -> BoxFuture<'static, ()>>;

/// A task with a text of so many bytes.
fn task(bytes: usize) -> Value {
    json!({"name": "a", "schemas": {"method": "echo_executor"}, "inputs": {"text": "x".repeat(bytes)}})
}

/// `tasks.create` over POST.
fn over_post(world: &Callers) -> Sending {
    let at = Arc::new(world.at(0));
    Box::new(move |who, bytes| {
        let at = at.clone();
        async move { _ = at.call(who, "tasks.create", task(bytes)).await }.boxed()
    })
}

/// `tasks.create` on a socket of its own. A message has 64 KiB at most and is read at once; large is a call with many
/// tasks.
fn over_sockets(world: &Callers) -> Sending {
    let url = format!("{}/ws", world.url().replace("http", "ws"));
    Box::new(move |who, bytes| {
        let mut request = url.as_str().into_client_request().unwrap();
        let bearer = format!("Bearer {who}").parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        async move {
            let (mut socket, _) = connect_async(request).await.unwrap();
            let call = |bytes: usize| {
                let root = json!({"id": "root", "name": "root"});
                let child = || {
                    let mut child = task(SMALL_BYTES);
                    child["parent_id"] = json!("root");
                    child
                };
                let children = (1..bytes.div_ceil(TASK_BYTES)).map(|_| child());
                let tasks: Vec<_> = std::iter::once(root).chain(children).collect();
                let call =
                    json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.create", "params": {"tasks": tasks}});
                Message::text(call.to_string())
            };
            socket.send(call(bytes)).await.unwrap();
            loop {
                if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
                    let answer: Value = serde_json::from_str(&text).unwrap();
                    assert!(answer["error"].is_null(), "{answer}");
                    return;
                }
            }
        }
        .boxed()
    })
}

/// `SendMessage` over one of the bindings of Agent2Agent.
fn over_a2a(world: &Callers, binding: usize) -> Sending {
    let url = world.url().to_owned();
    Box::new(move |who, bytes| {
        let url = url.clone();
        async move {
            let parts = json!([{"data": {"tasks": [task(bytes)]}}]);
            let message =
                json!({"messageId": format!("{who}-{bytes}"), "role": "ROLE_USER", "parts": parts});
            let mut binding = all_as(&url, Some(who)).await.remove(binding);
            let sent = binding.ask(Operation::SendMessage, json!({"message": message}));
            sent.await.unwrap();
        }
        .boxed()
    })
}

/// `PublishTask` of the broker.
fn over_the_broker(world: &Callers) -> Sending {
    let url = world.url().to_owned();
    Box::new(move |who, bytes| {
        let url = url.clone();
        async move {
            let channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
            let text = prost_types::Value {
                kind: Some(prost_types::value::Kind::StringValue("x".repeat(bytes))),
            };
            let task = TaskMessage {
                task_id: format!("{who}-{bytes}"),
                task_type: "a".to_owned(),
                parameters: Some(prost_types::Struct {
                    fields: [("text".to_owned(), text)].into(),
                }),
                requester_agent_id: who.to_owned(),
                created_at: Some(prost_types::Timestamp {
                    seconds: 1_767_225_600,
                    nanos: 0,
                }),
                ..TaskMessage::default()
            };
            let mut request = Request::new(PublishTaskRequest { task: Some(task) });
            let bearer = format!("Bearer {who}").parse().unwrap();
            request.metadata_mut().insert("authorization", bearer);
            let published = EventBusClient::new(channel).publish_task(request).await;
            published.unwrap();
        }
        .boxed()
    })
}

/// The caller whose turns are taken.
const WAITS: &str = "ann";

/// All turns of a caller, as if its large calls were under way. The first comes when the call before has ended.
async fn all_turns(world: &World) -> Vec<Turn> {
    let (service, caller) = (world.server.service(), user(WAITS, usual()));
    let later = Instant::now() + PATIENCE;
    let next = || service.turn_to_read(&caller, LARGE_BYTES, later);
    let first = next().await.unwrap().expect("it is large");
    let further = std::iter::from_fn(|| next().now_or_never());
    let further = further.map(|turn| turn.unwrap().expect("it is large"));
    std::iter::once(first).chain(further).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_of_one_caller_wait_for_their_turn_at_every_door() {
    let world = World::start().await;
    let mut doors = vec![
        ("POST", over_post(&world)),
        ("socket", over_sockets(&world)),
        ("broker", over_the_broker(&world)),
    ];
    let bindings = all_as(world.url(), Some(WAITS)).await;
    for (at, binding) in bindings.iter().enumerate() {
        doors.push((binding.name(), over_a2a(&world, at)));
    }
    for (door, send) in doors {
        let turns = all_turns(&world).await;
        let large = tokio::spawn(send(WAITS, LARGE_BYTES));
        let others = async {
            for _ in 0..3 {
                send("bob", LARGE_BYTES).await;
                send(WAITS, SMALL_BYTES).await;
            }
        };
        timeout(PATIENCE, others).await.expect(door);
        assert!(!large.is_finished(), "{door}: it was read out of turn");
        drop(turns);
        timeout(PATIENCE, large).await.expect(door).unwrap();
    }
    world.close().await;
}
