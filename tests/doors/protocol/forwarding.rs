//! Calls whose flow belongs to another node, and the door for calls of other nodes.

use crate::protocol::fake::{Fake, methods};
use crate::protocol::harness::Server;
use axum::body::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger::application::ownership::Node;
use taskledger::clock::SystemClock;
use taskledger::transport::http::Options;
use taskledger::transport::jsonrpc::forwarding::{Forward, PATH, SEARCH_MAX, Sent};
use taskledger::transport::jsonrpc::{Dispatcher, Origin};

/// Another node that does what the test says, then takes nothing.
#[derive(Debug, Default)]
struct Other {
    answers: Mutex<VecDeque<Sent>>,
    sent: Mutex<Vec<Bytes>>,
}

impl Forward for Other {
    fn send<'a>(&'a self, _: &'a Node, body: Bytes, _: Duration) -> BoxFuture<'a, Sent> {
        self.sent.lock().unwrap().push(body);
        let next = self.answers.lock().unwrap().pop_front();
        Box::pin(async { next.unwrap_or(Sent::NotTaken) })
    }
    fn admits(&self, authorization: &[u8]) -> bool {
        authorization == b"Bearer secret"
    }
}

impl Other {
    fn answering(answers: impl IntoIterator<Item = Sent>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            sent: Mutex::default(),
        })
    }

    fn sent(&self) -> usize {
        self.sent.lock().unwrap().len()
    }
}

fn answered(answer: Value) -> Sent {
    Sent::Answered(answer.to_string().into_bytes())
}

/// A fake whose flow comes here after so many looks.
fn fake(looks: u64) -> Arc<Fake> {
    let fake = Fake::default();
    fake.elsewhere.store(looks, Ordering::Relaxed);
    Arc::new(fake)
}

async fn call(fake: &Arc<Fake>, other: &Arc<Other>, request: Value) -> Value {
    let clock = Arc::new(SystemClock::default());
    let dispatcher = Dispatcher::new(fake.clone(), methods(), clock).with_forward(other.clone());
    let origin = Origin::anonymous(Arc::from("request"));
    let body = request.to_string();
    let answer = dispatcher.answer_bytes(body.as_bytes(), origin, None).await;
    answer.map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
}

fn request(method: &str, key: Option<&str>) -> Value {
    let mut request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": {"n": 1}});
    if let Some(key) = key {
        request["metadata"] = json!({"idempotency_key": key});
    }
    request
}

const NEVER_HERE: u64 = u64::MAX;

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_with_what_the_owner_says() {
    let result = json!({"jsonrpc": "2.0", "result": {"n": 1.50}, "id": 0});
    let other = Other::answering([answered(result)]);
    let answer = call(&fake(NEVER_HERE), &other, request("test.moved", None)).await;
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "result": {"n": 1.5}, "id": 7})
    );

    let error =
        json!({"code": -32001, "message": "Task not found", "data": {"errors": [], "x": 1}});
    let other = Other::answering([answered(json!({"jsonrpc": "2.0", "error": error, "id": 0}))]);
    let answer = call(&fake(NEVER_HERE), &other, request("test.moved", None)).await;
    assert_eq!(answer["error"], error);
}

#[tokio::test(start_paused = true)]
async fn what_the_owner_does_not_take_is_looked_for_anew() {
    let other = Other::answering([]);
    let fake = fake(3);
    let answer = call(&fake, &other, request("test.move", None)).await;
    assert_eq!(answer["result"], json!("here"));
    assert_eq!((other.sent(), fake.calls().len()), (3, 4));
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_nobody_owns_is_busy_in_the_end() {
    let other = Other::answering([]);
    let begin = tokio::time::Instant::now();
    let answer = call(&fake(NEVER_HERE), &other, request("test.move", None)).await;
    assert_eq!(answer["error"]["code"], -32013);
    assert!(answer["error"]["data"]["retry_after_ms"].is_u64());
    let looked = begin.elapsed();
    assert!(
        looked <= SEARCH_MAX && looked > SEARCH_MAX / 2,
        "{looked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_that_may_have_happened_is_not_sent_twice() {
    let other = Other::answering([Sent::Broken]);
    let answer = call(&fake(1), &other, request("test.move", None)).await;
    assert_eq!(answer["error"]["code"], -32603);
    let reason = answer["error"]["data"]["reason"].as_str().unwrap();
    assert_eq!(
        reason,
        "outcome unknown; retry with the same idempotency key"
    );
    assert_eq!(other.sent(), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_that_nothing_was_changed_after_a_change_broke_off() {
    let other = Other::answering([Sent::Broken]);
    let change = request("test.move", Some("k"));
    let answer = call(&fake(NEVER_HERE), &other, change).await;
    assert_eq!(answer["error"]["code"], -32603);
    let reason = answer["error"]["data"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("outcome unknown"), "{reason}");
    assert!(other.sent() > 1, "it was sent again before");
    // A read changes nothing, whatever became of it.
    let other = Other::answering([Sent::Broken]);
    let answer = call(&fake(NEVER_HERE), &other, request("test.moved", None)).await;
    assert_eq!(answer["error"]["code"], -32013);
}

#[tokio::test(start_paused = true)]
async fn a_change_with_a_key_and_a_read_are_sent_again() {
    for sent in [request("test.move", Some("k")), request("test.moved", None)] {
        let done = answered(json!({"jsonrpc": "2.0", "result": "there", "id": 0}));
        let other = Other::answering([Sent::Broken, done]);
        let answer = call(&fake(NEVER_HERE), &other, sent).await;
        assert_eq!((&answer["result"], other.sent()), (&json!("there"), 2));
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_change_that_may_have_happened_it_is_never_said_that_it_did_not() {
    let error = |code: i64| json!({"code": code, "message": "..", "data": {"errors": []}});
    let answer = |code| answered(json!({"jsonrpc": "2.0", "error": error(code), "id": 0}));
    let later = [
        Other::answering([Sent::Broken]),
        Other::answering([Sent::Broken, Sent::NotTaken, answer(-32013)]),
        Other::answering([Sent::Broken, answer(-32603)]),
    ];
    for other in later {
        let told = call(&fake(NEVER_HERE), &other, request("test.move", Some("k"))).await;
        let reason = told["error"]["data"]["reason"].as_str().unwrap();
        let unknown = "outcome unknown; retry with the same idempotency key";
        assert_eq!((&told["error"]["code"], reason), (&json!(-32603), unknown));
    }
    // A refusal that the rules give stands for both tries: the key was looked for first.
    let other = Other::answering([Sent::Broken, answer(-32006)]);
    let told = call(&fake(NEVER_HERE), &other, request("test.move", Some("k"))).await;
    assert_eq!(told["error"]["code"], -32006);
    // A read changes nothing.
    let other = Other::answering([Sent::Broken]);
    let told = call(&fake(NEVER_HERE), &other, request("test.moved", None)).await;
    assert_eq!(told["error"]["code"], -32013);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_batch_go_their_own_ways() {
    let there = |n: u32| answered(json!({"jsonrpc": "2.0", "result": n, "id": 0}));
    let other = Other::answering([there(1), there(2)]);
    let mut batch = vec![request("test.moved", None); 2];
    batch.insert(1, request("test.echo", None));
    batch.push(json!({"jsonrpc": "2.0", "method": "test.moved"}));
    let answer = call(&fake(NEVER_HERE), &other, Value::Array(batch)).await;
    let results: Vec<_> = answer
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["result"])
        .collect();
    assert_eq!(results, [&json!(1), &json!({"n": 1}), &json!(2)]);
}

async fn server(fake: Fake, forward: Option<Arc<Other>>) -> Server {
    Server::as_node(
        Options::default(),
        fake,
        forward.map(|f| f as Arc<dyn Forward>),
    )
    .await
}

async fn post(server: &Server, authorization: &str, body: &[u8]) -> u16 {
    let headers = [
        ("authorization", authorization),
        ("content-type", "application/json"),
    ];
    let mut client = server.connect().await;
    client.send_with("POST", PATH, &headers, body).await.status
}

#[tokio::test]
async fn a_server_that_is_alone_takes_no_calls_of_nodes() {
    let server = server(Fake::default(), None).await;
    assert_eq!(post(&server, "Bearer secret", b"{}").await, 404);
}

#[tokio::test]
async fn calls_of_nodes_are_taken_from_nodes_only_and_never_sent_on() {
    let other = Other::answering([]);
    let moved = Fake::default();
    moved.elsewhere.store(1, Ordering::Relaxed);
    let server = server(moved, Some(other.clone())).await;
    let cover =
        json!({"principal": "ann", "correlation": "r", "traceparent": null, "wait_ms": 5000});
    let mut cover = cover;
    let body = format!("{cover}\n{}", request("test.move", None)).into_bytes();
    assert_eq!(post(&server, "Bearer other", &body).await, 401);
    assert_eq!(server.fake.calls().len(), 0);
    assert_eq!(post(&server, "Bearer secret", &body).await, 421);
    assert_eq!(post(&server, "Bearer secret", &body).await, 200);
    assert_eq!(server.fake.calls().len(), 2);
    assert_eq!(other.sent(), 0);
    assert_eq!(
        post(&server, "Bearer secret", b"what no node sends").await,
        421
    );
    // However long the sender would wait.
    cover["wait_ms"] = json!(u64::MAX);
    let body = format!("{cover}\n{}", request("test.move", None)).into_bytes();
    assert_eq!(post(&server, "Bearer secret", &body).await, 200);
}
