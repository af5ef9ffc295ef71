//! The ways into a server by JSON-RPC, and what a request is called there.

use super::play::{Answer, Book};
use super::request::{NewTask, Request, Work};
use crate::streams::sse;
use async_trait::async_trait;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use taskledger_testkit::server::Api;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// A way into a server that takes calls of JSON-RPC.
#[async_trait]
pub(crate) trait Door {
    /// What failures call it.
    fn name(&self) -> String;

    /// Sends a request, under an idempotency key if one is given.
    async fn ask(&mut self, request: &Request, book: &Book, key: Option<&str>) -> Answer;

    /// What is told of a flow, from its beginning until nothing in it runs.
    async fn stream(&mut self, flow: &str) -> Vec<Value>;
}

/// The request as a call with this id.
fn call(request: &Request, book: &Book, key: Option<&str>, id: &Value) -> Value {
    let task = |id| json!({"task_id": book.id(id)});
    let held = |id| json!({"task_id": book.id(id), "lease": book.lease()});
    let tasks = |tasks: &[NewTask]| {
        let tasks = tasks.iter().map(|task| new_task(task, &book.user));
        json!({"tasks": tasks.collect::<Vec<_>>()})
    };
    let (method, params) = match request {
        Request::Create(list) => ("create", tasks(list)),
        Request::Run(list) => ("execute", tasks(list)),
        Request::Get(id) => ("get", task(*id)),
        Request::Tree(id) => ("tree", task(*id)),
        Request::Children(id) => ("children", json!({"parent_id": book.id(*id)})),
        Request::History(id) => ("history", task(*id)),
        Request::Explain(id) => ("explain", task(*id)),
        Request::List => ("list", json!({"user_id": book.user})),
        Request::Rename(id, name) => (
            "update",
            json!({"task_id": book.id(*id), "updates": {"name": name}}),
        ),
        Request::Execute(id) => ("execute", task(*id)),
        Request::Cancel(id) => ("cancel", task(*id)),
        Request::Delete { task, cascade } => (
            "delete",
            json!({"task_id": book.id(*task), "cascade": cascade}),
        ),
        Request::Copy(id) => (
            "copy",
            json!({"task_id": book.id(*id), "copy_children": true}),
        ),
        Request::Retry(id) => ("retry", task(*id)),
        Request::Executors => ("", json!({})),
        Request::Claim(id) => ("claim", task(*id)),
        Request::ClaimNext => (
            "claim",
            json!({"methods": [method_of(&book.user)], "worker": "w", "wait_seconds": 20}),
        ),
        Request::Renew(id) => {
            let mut params = held(*id);
            params["progress"] = json!(0.5);
            ("renew", params)
        }
        Request::Complete(id, text) => {
            let mut params = held(*id);
            params["output"] = json!({"text": text});
            ("complete", params)
        }
        Request::Fail { task, retryable } => {
            let mut params = held(*task);
            params["error"] = json!("no paper");
            params["retryable"] = json!(retryable);
            ("fail", params)
        }
        Request::Release(id) => ("release", held(*id)),
        Request::SiblingOutput(id, name) => {
            let mut params = held(*id);
            params["name"] = json!(name);
            ("sibling_output", params)
        }
        Request::Nonsense => ("nonsense", json!({})),
    };
    let method = match method {
        "" => "system.executors".to_owned(),
        method => format!("tasks.{method}"),
    };
    let mut call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    if let Some(key) = key {
        call["metadata"] = json!({"idempotency_key": key});
    }
    call
}

/// A method that no other case has.
fn method_of(user: &str) -> String {
    format!("method-of-{user}")
}

fn new_task(task: &NewTask, user: &str) -> Value {
    let mut made = json!({"id": task.alias, "name": task.alias, "user_id": user});
    if let Some(parent) = task.parent {
        made["parent_id"] = json!(parent);
    }
    if !task.after.is_empty() {
        let after = task.after.iter().map(|id| json!({"id": id}));
        made["dependencies"] = after.collect();
    }
    let (method, inputs) = match task.work {
        Work::Group => return made,
        Work::Echo => ("echo_executor", json!({"text": task.alias})),
        Work::Endless => ("sleep_executor", json!({"duration_ms": 600_000})),
        Work::Failing => {
            made["params"] = json!({"timeout_seconds": 0.05});
            ("sleep_executor", json!({"duration_ms": 600_000}))
        }
        Work::Unknown => ("no_such_executor", json!({})),
        Work::Remote => {
            made["params"] = json!({"retry_count": 1});
            made["schemas"] = json!({"type": "remote", "method": method_of(user)});
            return made;
        }
    };
    made["schemas"] = json!({"method": method});
    made["inputs"] = inputs;
    made
}

/// The answer to the call with this id.
fn answer(mut answer: Value, id: &Value) -> Answer {
    assert_eq!(&answer["id"], id, "{answer}");
    match (answer.get("result"), answer.get("error")) {
        (Some(_), None) => Answer::Done(answer["result"].take()),
        (None, Some(_)) => Answer::Refused(answer["error"].take()),
        _ => panic!("no answer: {answer}"),
    }
}

/// Events of a flow as `GET /events` tells them.
pub(super) async fn events(api: &Api, flow: &str) -> Vec<Value> {
    let query = format!("?from=beginning&flow={flow}");
    let mut stream = sse::open(api, &query, None).await;
    let mut told = Vec::new();
    loop {
        let event = stream.event().await.expect("the stream goes on");
        let data = event.json();
        let last = data["final"] == true;
        told.push(json!({"event": event.event, "data": data}));
        if last {
            return told;
        }
    }
}

/// HTTP: one call in one POST.
pub(crate) struct Post {
    api: Api,
    path: &'static str,
}

impl Post {
    pub(crate) fn to(api: &Api, path: &'static str) -> Self {
        let api = api.clone();
        Self { api, path }
    }

    async fn send(&self, body: &Value) -> Value {
        let mut api = self.api.clone();
        api.url.truncate(api.url.trim_end_matches('/').len());
        api.url.push_str(self.path);
        let (status, answer) = api.post(body.to_string()).await.unwrap();
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

#[async_trait]
impl Door for Post {
    fn name(&self) -> String {
        format!("POST {}", self.path)
    }

    async fn ask(&mut self, request: &Request, book: &Book, key: Option<&str>) -> Answer {
        let id = json!(1);
        answer(self.send(&call(request, book, key, &id)).await, &id)
    }

    async fn stream(&mut self, flow: &str) -> Vec<Value> {
        events(&self.api, flow).await
    }
}

/// HTTP: the call as one of several in a batch.
pub(crate) struct Batch(Post);

impl Batch {
    pub(crate) fn of(api: &Api) -> Self {
        Self(Post::to(api, "/"))
    }
}

#[async_trait]
impl Door for Batch {
    fn name(&self) -> String {
        "a batch".to_owned()
    }

    async fn ask(&mut self, request: &Request, book: &Book, key: Option<&str>) -> Answer {
        let id = json!("in a batch");
        let other = call(&Request::Nonsense, book, None, &json!("other"));
        let batch = json!([other, call(request, book, key, &id)]);
        let mut answers = self.0.send(&batch).await;
        assert_eq!(answers[0]["error"]["code"], -32601, "{answers}");
        answer(answers[1].take(), &id)
    }

    async fn stream(&mut self, flow: &str) -> Vec<Value> {
        events(&self.0.api, flow).await
    }
}

/// A WebSocket.
pub(crate) struct Socket {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    calls: u64,
}

impl Socket {
    pub(crate) async fn open(api: &Api) -> Self {
        let url = format!("{}ws", api.url.replace("http://", "ws://"));
        let (socket, _) = connect_async(url).await.unwrap();
        Self { socket, calls: 0 }
    }

    async fn send(&mut self, message: &Value) {
        let message = Message::text(message.to_string());
        self.socket.send(message).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        loop {
            let message = timeout(sse::PATIENCE, self.socket.next());
            match message.await.expect("something comes") {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn id(&mut self) -> Value {
        self.calls += 1;
        json!(self.calls)
    }
}

#[async_trait]
impl Door for Socket {
    fn name(&self) -> String {
        "/ws".to_owned()
    }

    async fn ask(&mut self, request: &Request, book: &Book, key: Option<&str>) -> Answer {
        let id = self.id();
        self.send(&call(request, book, key, &id)).await;
        answer(self.next().await, &id)
    }

    async fn stream(&mut self, flow: &str) -> Vec<Value> {
        let id = self.id();
        let params = json!({"from": "beginning", "flow": flow});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "subscribe", "params": params}))
            .await;
        let subscription = self.next().await["result"]["subscription"].take();
        let mut told = Vec::new();
        loop {
            let mut message = self.next().await;
            let params = &mut message["params"];
            let data = params["data"].take();
            let last = data["final"] == true;
            told.push(json!({"event": params["event"], "data": data}));
            if last {
                break;
            }
        }
        let id = self.id();
        let params = json!({"subscription": subscription});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "unsubscribe", "params": params}))
            .await;
        while self.next().await["id"] != id {}
        told
    }
}
