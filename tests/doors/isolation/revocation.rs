//! What ends at one node when credentials are taken back at another: calls within two seconds, and within
//! five what was opened with them.

use super::world::{Callers, Nodes};
use crate::a2a::binding::all_as;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use taskledger_a2a::Operation;
use taskledger_eventbus::{EventBusClient, SubscribeToTaskResultsRequest, SubscribeToTasksRequest};
use taskledger_testkit::issuer::OidcIssuer;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tonic::transport::Endpoint;

/// Within which every node refuses credentials that were taken back.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);
/// Within which what they opened has ended.
const ENDED_WITHIN: Duration = Duration::from_secs(5);
/// Between two questions whether they are refused.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest wait for what must happen and has no promised time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds that a run and a call for work last if nothing ends them: longer than anything here.
const LONG_S: u64 = 50;
/// The close code of a socket whose credentials do not hold any more.
const CLOSED: u16 = 4401;

/// How long this process was kept from running: what it measures of others cannot be held against them.
struct Stalls {
    micros: Arc<AtomicU64>,
    watching: JoinHandle<()>,
}

impl Stalls {
    fn watch() -> Self {
        let micros = Arc::new(AtomicU64::new(0));
        let counted = micros.clone();
        let watching = tokio::spawn(async move {
            loop {
                let begun = Instant::now();
                sleep(PAUSE).await;
                let late = begun.elapsed().saturating_sub(2 * PAUSE).as_micros();
                counted.fetch_add(u64::try_from(late).unwrap(), Ordering::Relaxed);
            }
        });
        Self { micros, watching }
    }

    fn assert_within(&self, promised: Duration, since: Instant, what: &str) {
        let stalled = Duration::from_micros(self.micros.load(Ordering::Relaxed));
        let took = since.elapsed().saturating_sub(stalled);
        assert!(
            took <= promised,
            "{what} took {took:?}, {stalled:?} of it not counted"
        );
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// Something that was opened; done when it has ended.
type Open = (&'static str, BoxFuture<'static, ()>);

/// An open stream of server-sent events, of which something has come.
async fn opened(request: reqwest::RequestBuilder) -> BoxFuture<'static, ()> {
    let mut response = request.send().await.unwrap();
    let kind = response.headers()["content-type"].clone();
    assert!(
        kind.as_bytes().starts_with(b"text/event-stream"),
        "{kind:?}"
    );
    response.chunk().await.unwrap().unwrap();
    async move {
        // It ends in order: the connection does not break.
        while response.chunk().await.unwrap().is_some() {}
    }
    .boxed()
}

/// An open socket, on which a call was answered.
async fn socket(node: &Callers, name: &str, call: Option<(&str, Value)>) -> BoxFuture<'static, ()> {
    let url = format!("{}/ws", node.url().replace("http", "ws"));
    let mut request = url.into_client_request().unwrap();
    let bearer = node.as_caller(node.client.get(node.url()), Some(name));
    let bearer = bearer.build().unwrap().headers()["authorization"].clone();
    request.headers_mut().insert("authorization", bearer);
    let (mut socket, _) = connect_async(request).await.unwrap();
    if let Some((method, params)) = call {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        socket.send(Message::text(call.to_string())).await.unwrap();
        let answer = socket.next().await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
        assert!(answer["error"].is_null(), "{answer}");
    }
    async move {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(frame))) => {
                    assert_eq!(u16::from(frame.unwrap().code), CLOSED);
                    return;
                }
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    .boxed()
}

/// A run that outlasts the test, told on a stream.
fn long_run() -> Value {
    let task = json!({"name": "long", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": LONG_S * 1_000}});
    json!({"tasks": [task], "use_streaming": true})
}

fn post(node: &Callers, name: &str, method: &str, params: &Value) -> reqwest::RequestBuilder {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    node.as_caller(node.client.post(node.url()).json(&body), Some(name))
}

/// Opens with this caller's credentials whatever stays open.
async fn open_all(node: &Callers, name: &str) -> Vec<Open> {
    let events = node.client.get(format!("{}/events", node.url()));
    let run = post(node, name, "tasks.execute", &long_run());
    vec![
        ("events", opened(node.as_caller(events, Some(name))).await),
        ("run", opened(run).await),
        ("socket", socket(node, name, None).await),
    ]
}

/// A message to agents that begins a run which outlasts the test.
fn long_message() -> Value {
    let run = long_run();
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"tasks": run["tasks"]}}]}})
}

/// Something asked over each binding of Agent2Agent that does not end before the test does.
async fn asked_of_agents(node: &Callers, name: &str, operation: Operation) -> Vec<Open> {
    let mut open = Vec::new();
    for mut binding in all_as(node.url(), Some(node.token(name))).await {
        let what = binding.name();
        let (begun, has_begun) = oneshot::channel();
        let asked = tokio::spawn(async move {
            // Whether the end is told as an error is up to the binding.
            match operation.streams() {
                true => _ = binding.follow(operation, long_message(), Some(begun)).await,
                false => _ = binding.ask(operation, long_message()).await,
            }
        });
        if operation.streams() {
            has_begun.await.unwrap();
        }
        let end: BoxFuture<'static, ()> = async move { asked.await.unwrap() }.boxed();
        open.push((what, end));
    }
    open
}

/// A stream of gRPC that is read to its end.
fn read_out<T: Send + 'static>(
    stream: tonic::Response<tonic::Streaming<T>>,
) -> BoxFuture<'static, ()> {
    let mut stream = stream.into_inner();
    async move { while let Ok(Some(_)) = stream.message().await {} }.boxed()
}

/// What agents have open at the broker.
async fn open_at_the_broker(node: &Callers, name: &str, user: &str) -> Vec<Open> {
    let channel = Endpoint::from_shared(node.url().to_owned()).unwrap();
    let mut client = EventBusClient::new(channel.connect().await.unwrap());
    let bearer = format!("Bearer {}", node.token(name));
    fn shown<T>(bearer: &str, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        let metadata = request.metadata_mut();
        metadata.insert("authorization", bearer.parse().unwrap());
        request
    }
    let tasks = SubscribeToTasksRequest {
        agent_id: user.to_owned(),
        task_types: vec!["nothing".to_owned()],
    };
    let told = SubscribeToTaskResultsRequest {
        requester_agent_id: user.to_owned(),
        ..SubscribeToTaskResultsRequest::default()
    };
    let tasks = client.subscribe_to_tasks(shown(&bearer, tasks)).await;
    let results = client
        .subscribe_to_task_results(shown(&bearer, told.clone()))
        .await;
    let progress = client
        .subscribe_to_task_progress(shown(&bearer, told))
        .await;
    vec![
        ("tasks of the broker", read_out(tasks.unwrap())),
        ("results of the broker", read_out(results.unwrap())),
        ("progress of the broker", read_out(progress.unwrap())),
    ]
}

/// Opens with the credentials of this caller, who is that user, whatever else stays open: what lives on sockets, with
/// agents and at the broker.
async fn open_the_rest(node: &Callers, name: &str, user: &str) -> Vec<Open> {
    let work = json!({"methods": ["nothing"], "worker": "w"});
    let mut open = vec![
        (
            "subscription",
            socket(node, name, Some(("subscribe", json!({})))).await,
        ),
        ("work", socket(node, name, Some(("work", work))).await),
    ];
    open.extend(asked_of_agents(node, name, Operation::SendStreamingMessage).await);
    open.extend(asked_of_agents(node, name, Operation::SendMessage).await);
    open.extend(open_at_the_broker(node, name, user).await);
    open
}

/// Waits until the node refuses this caller, and all of these have ended: since `begun` within what is promised.
async fn assert_ends(node: &Callers, name: &str, open: Vec<Open>, begun: Instant, stalls: &Stalls) {
    let refused = async {
        while node.ask(Some(name), "system.whoami", &json!({})).await.0 != 401 {
            stalls.assert_within(REFUSED_WITHIN, begun, "a refusal");
            sleep(PAUSE).await;
        }
        stalls.assert_within(REFUSED_WITHIN, begun, "a refusal");
    };
    let ended = join_all(open.into_iter().map(async |(what, end)| {
        let in_time = timeout(PATIENCE, end).await;
        assert!(in_time.is_ok(), "{what} does not end");
        stalls.assert_within(ENDED_WITHIN, begun, what);
    }));
    tokio::join!(refused, ended);
}

/// A token of Ann by which she reads, writes, runs and works.
async fn fresh_token(node: &Callers, more: Value) -> Value {
    let mut new = json!({"kind": "user", "name": "ann",
        "scopes": ["tasks:read", "tasks:write", "tasks:run", "worker"]});
    let members = new.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    node.call("chief", "tokens.create", new).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_revoked_or_rotated_at_one_node_ends_at_the_other_on_postgres() {
    let nodes = Nodes::start().await;
    let (one, mut other) = (nodes.at(0), nodes.at(1));
    for (method, more) in [
        ("tokens.revoke", json!({})),
        ("tokens.rotate", json!({"grace_seconds": 0})),
    ] {
        let made = fresh_token(&one, json!({})).await;
        other.know("guest", made["token"].as_str().unwrap());
        let mut open = open_all(&other, "guest").await;
        open.extend(open_the_rest(&other, "guest", "ann").await);
        let stalls = Stalls::watch();
        let mut params = more;
        params["id"] = made["id"].clone();
        one.call("chief", method, params).await;
        assert_ends(&other, "guest", open, Instant::now(), &stalls).await;
        // Those of others go on.
        let (status, text) = other.ask(Some("ann"), "system.whoami", &json!({})).await;
        assert_eq!(status, 200, "{text}");
    }
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_expires_while_it_is_used_ends_on_postgres() {
    // Longer than it takes to open everything on a busy machine, and shorter than what is opened.
    const LIFETIME_S: u64 = 20;
    let nodes = Nodes::start().await;
    let (one, mut other) = (nodes.at(0), nodes.at(1));
    let begun = Instant::now();
    let made = fresh_token(&one, json!({"expires_in_seconds": LIFETIME_S})).await;
    other.know("guest", made["token"].as_str().unwrap());
    let mut open = open_all(&other, "guest").await;
    open.extend(open_the_rest(&other, "guest", "ann").await);
    let over = begun + Duration::from_secs(LIFETIME_S);
    let stalls = Stalls::watch();
    assert_ends(&other, "guest", open, over, &stalls).await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_token_was_revoked_while_it_waited_gets_no_task_on_postgres() {
    let nodes = Nodes::start().await;
    let (one, mut other) = (nodes.at(0), nodes.at(1));
    let made = fresh_token(&one, json!({})).await;
    other.know("guest", made["token"].as_str().unwrap());
    let wanted = json!({"methods": ["resize"], "worker": "w", "wait_seconds": LONG_S});
    let waiting = post(&other, "guest", "tasks.claim", &wanted).send();
    let waiting = tokio::spawn(waiting);
    let declared = async {
        loop {
            let known = one.call("chief", "workers.list", json!({})).await;
            if known.to_string().contains("resize") {
                return;
            }
            sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, declared)
        .await
        .expect("it waits for tasks");

    let stalls = Stalls::watch();
    one.call("chief", "tokens.revoke", json!({"id": made["id"]}))
        .await;
    let begun = Instant::now();
    let ended = async {
        let answer = waiting.await.unwrap().unwrap();
        assert_eq!(answer.status(), 401);
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(1), &json!(-32004))
        );
    };
    assert_ends(
        &other,
        "guest",
        vec![("claim", ended.boxed())],
        begun,
        &stalls,
    )
    .await;

    // Its place went with it: the next task is not held for it.
    let task = json!({"name": "a", "schemas": {"method": "resize", "type": "remote"}});
    let run = one
        .call("ann", "tasks.execute", json!({"tasks": [task]}))
        .await;
    let wanted = json!({"methods": ["resize"], "worker": "v", "wait_seconds": LONG_S});
    let claimed = one.call("ann", "tasks.claim", wanted).await;
    assert_eq!(
        claimed["claims"][0]["task"]["id"], run["root_task_id"],
        "{claimed}"
    );
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_jwt_that_is_denied_at_one_node_ends_at_the_other_on_postgres() {
    let issuer = OidcIssuer::start().await;
    let mut arguments = issuer.arguments();
    arguments.extend(["--oidc-scopes", "groups:ledger-users=worker"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let nodes = Nodes::start_with(&arguments).await;
    let (one, mut other) = (nodes.at(0), nodes.at(1));
    other.know("first", &issuer.token("cora", "t-1"));
    other.know("second", &issuer.token("cora", "t-2"));
    let denied =
        |claim: &str, value: &str| json!({"issuer": issuer.url(), "claim": claim, "value": value});
    for (name, params) in [
        ("first", denied("jti", "t-1")),
        ("second", denied("sub", "cora")),
    ] {
        let mut open = open_all(&other, name).await;
        open.extend(open_the_rest(&other, name, "cora").await);
        let stalls = Stalls::watch();
        one.call("chief", "tokens.deny", params).await;
        assert_ends(&other, name, open, Instant::now(), &stalls).await;
    }
    nodes.close().await;
}
