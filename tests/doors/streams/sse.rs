//! A strict client of server-sent events.

use serde_json::{Value, json};
use std::time::Duration;
use taskledger_testkit::server::Api;
use tokio::time::timeout;

/// Real time after which something that is awaited has not come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One block of a stream: an event, a heartbeat, or the greeting.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Block {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) comments: Vec<String>,
    pub(crate) retry: Option<String>,
}

impl Block {
    /// Reads a block strictly: each field once, a space behind the colon, no other line.
    fn read(text: &str) -> Self {
        let mut block = Self::default();
        for line in text.split('\n') {
            assert!(!line.contains(['\r', '\0']), "{line:?}");
            let (name, value) = line.split_once(':').expect("a field or a comment");
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            let before = match name {
                "" => {
                    block.comments.push(value);
                    None
                }
                "id" => block.id.replace(value),
                "event" => block.event.replace(value),
                "data" => block.data.replace(value),
                "retry" => block.retry.replace(value),
                other => panic!("unknown field {other:?}"),
            };
            assert_eq!(before, None, "each field once: {text:?}");
        }
        block
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.data.as_deref().unwrap()).unwrap()
    }

    pub(crate) fn is_event(&self) -> bool {
        self.event.is_some()
    }
}

/// An open stream.
pub(crate) struct Sse {
    pub(crate) response: reqwest::Response,
    rest: Vec<u8>,
}

impl Sse {
    pub(crate) fn of(response: reqwest::Response) -> Self {
        let kind = response.headers()["content-type"].clone();
        assert_eq!(kind, "text/event-stream; charset=utf-8");
        assert_eq!(response.status(), 200);
        Self {
            response,
            rest: Vec::new(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> String {
        self.response.headers()[name].to_str().unwrap().to_owned()
    }

    /// The next block; `None` at the end, or when the connection broke. What was not finished counts
    /// for nothing.
    pub(crate) async fn block(&mut self) -> Option<Block> {
        loop {
            if let Some(at) = self.rest.windows(2).position(|w| w == b"\n\n") {
                let block: Vec<u8> = self.rest.drain(..at + 2).collect();
                return Some(Block::read(std::str::from_utf8(&block[..at]).unwrap()));
            }
            let chunk = timeout(PATIENCE, self.response.chunk());
            match chunk.await.expect("something comes") {
                Ok(Some(bytes)) => self.rest.extend(bytes),
                Ok(None) => {
                    assert!(self.rest.is_empty(), "half a block at the end");
                    return None;
                }
                Err(_) => return None,
            }
        }
    }

    /// The next event, past greetings and heartbeats.
    pub(crate) async fn event(&mut self) -> Option<Block> {
        loop {
            let block = self.block().await?;
            if block.is_event() {
                return Some(block);
            }
        }
    }

    /// So many events.
    pub(crate) async fn events(&mut self, count: usize) -> Vec<Block> {
        let mut events = Vec::new();
        while events.len() < count {
            events.push(self.event().await.expect("the stream goes on"));
        }
        events
    }

    /// All events up to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Block> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }
}

/// Asks for `/events` with a query.
pub(crate) async fn get(api: &Api, query: &str, last: Option<&str>) -> reqwest::Response {
    let mut request = api.http.get(format!("{}events{query}", api.url));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    request.send().await.unwrap()
}

/// An open stream of `/events`.
pub(crate) async fn open(api: &Api, query: &str, last: Option<&str>) -> Sse {
    Sse::of(get(api, query, last).await)
}

/// Sends a call whose answer may be a stream.
pub(crate) async fn post(api: &Api, body: &Value) -> reqwest::Response {
    api.http
        .post(&api.url)
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await
        .unwrap()
}

/// A call that must be answered with a stream; its answer and the stream behind it.
pub(crate) async fn call(api: &Api, method: &str, params: Value) -> (Value, Sse) {
    let body = json!({"jsonrpc": "2.0", "id": "s", "method": method, "params": params});
    let response = post(api, &body).await;
    if response.headers()["content-type"] == "application/json" {
        panic!("{body}: {}", response.text().await.unwrap());
    }
    let mut sse = Sse::of(response);
    let first = sse.block().await.unwrap();
    assert_eq!((&first.event, &first.id), (&None, &None));
    let mut answer = first.json();
    assert_eq!(answer["id"], "s", "{answer}");
    (answer["result"].take(), sse)
}

/// So many short tasks, which make 5 notices each besides two of their group, and its end.
pub(crate) fn tasks(count: usize) -> Value {
    let mut tasks = vec![json!({"id": "root", "name": "root"})];
    for n in 0..count {
        tasks.push(json!({
            "id": format!("t{n}"), "name": format!("t{n}"), "parent_id": "root",
            "schemas": {"method": "echo_executor"}, "inputs": {"n": n},
        }));
    }
    json!(tasks)
}

/// Runs tasks to their end; the root.
pub(crate) async fn run(api: &Api, count: usize) -> Value {
    let started = api
        .call("tasks.execute", json!({"tasks": tasks(count)}))
        .await;
    let root = started["root_task_id"].clone();
    api.run_of(&root).await;
    root
}

/// Everything that was ever told, from the beginning to the end of the log as it is now.
pub(crate) async fn everything(api: &Api) -> Vec<Block> {
    // A flow of its own marks the end.
    let marker = api.call("tasks.create", json!({"name": "marker"})).await;
    let mut sse = open(api, "?from=beginning", None).await;
    let mut events = Vec::new();
    loop {
        let event = sse.event().await.unwrap();
        if event.json()["task_id"] == marker["id"] {
            return events;
        }
        events.push(event);
    }
}
