//! Clauses can be kept, and broken. A gateway in front of the server asks for credentials, which the server does not do
//! here (`NOT_YET`), and gives streams, callbacks and A2A tasks of its own. With faults, each clause of `BROKEN` fails.

use crate::conformance::{NOT_YET, address, clause, server};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use taskledger::clock::SystemClock;
use taskledger_conformance::{Options, Suite, Verdict};
use taskledger_testkit::server::Folder;
use tokio::sync::mpsc;

/// Tells who calls: the user of the suite, or another one.
const KEY_HEADER: &str = "x-key";
const OWN_KEY: &str = "own";
const OTHER_KEY: &str = "other";
/// Clauses that its faults break.
const BROKEN: [&str; 23] = [
    "interface/authentication/3-access",
    "semantics/trees/16-access",
    "semantics/errors/14-not-for-others",
    "interface/a2a-mapping/1-id",
    "interface/a2a-mapping/3-result",
    "interface/a2a-mapping/4-error",
    "interface/a2a-mapping/5-user-id",
    "interface/a2a-mapping/6-instance",
    "interface/a2a-mapping/7-history",
    "interface/a2a-mapping/8-mapped",
    "interface/a2a-methods/2-response",
    "interface/a2a-methods/3-status-message",
    "interface/a2a-methods/4-protocol",
    "interface/streaming-events/1-format",
    "interface/streaming-events/2-protocol",
    "interface/streaming-events/3-status-update",
    "interface/streaming-events/4-progress-update",
    "interface/streaming-events/5-completed",
    "interface/streaming-events/6-failed",
    "interface/streaming-events/7-cancelled",
    "interface/push/3-body",
    "interface/push/4-post",
    "interface/push/5-headers",
];
/// Between two looks at the tasks of a run.
const PAUSE: Duration = Duration::from_millis(5);
/// Events that wait for a slow reader.
const EVENTS_MAX: usize = 1024;
/// How often a callback is sent.
const SENT_MAX: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_kept_yet_is_kept_behind_a_gateway_that_asks_for_credentials() {
    let clauses: Vec<_> = NOT_YET.iter().map(|(id, ..)| *id).collect();
    let kept = |verdict: &Verdict| matches!(verdict, Verdict::Passed(_));
    every_verdict_is(&clauses, false, kept).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_a_gateway_break_the_clauses_about_them() {
    let broken = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_));
    every_verdict_is(&BROKEN, true, broken).await;
}

/// Asks clauses of a gateway; each verdict must be as `right` demands.
async fn every_verdict_is(ids: &[&str], faulty: bool, right: fn(&Verdict) -> bool) {
    let folder = Folder::new();
    let server = server(&folder).await;
    let gateway = Arc::new(Gateway {
        upstream: address(&server).to_owned(),
        client: taskledger::tls::client().no_proxy().build().unwrap(),
        faulty,
        executions: AtomicU64::new(0),
    });
    let clock = SystemClock::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(gateway);
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let mut options = Options::new(&url);
    let key = HeaderValue::from_static;
    options.headers.insert(KEY_HEADER, key(OWN_KEY));
    options.other_headers.insert(KEY_HEADER, key(OTHER_KEY));
    let suite = Suite::new(options, &clock).unwrap();
    let clauses: Vec<_> = ids.iter().map(|id| clause(id)).collect();
    let report = suite.run(&clauses, |_| {}).await;
    serving.abort();
    server.kill().await;
    let wrong: Vec<_> = report
        .lines
        .iter()
        .filter(|line| !right(&line.verdict))
        .map(|line| format!("{}: {:?}", line.id, line.verdict))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

struct Gateway {
    upstream: String,
    client: reqwest::Client,
    faulty: bool,
    executions: AtomicU64,
}

/// One change of a task: the type of its event, and the task.
type Change = (&'static str, Value);

impl Gateway {
    async fn forward(&self, method: Method, path: &str, body: impl Into<Vec<u8>>) -> Response {
        let request = self
            .client
            .request(method, format!("{}{path}", self.upstream));
        let request = request
            .header("content-type", "application/json")
            .body(body.into());
        let response = request.send().await.unwrap();
        let status = response.status();
        let media_type = response.headers().get("content-type").cloned();
        let body = response.bytes().await.unwrap();
        let mut answer = (status, body).into_response();
        answer.headers_mut().remove("content-type");
        if let Some(media_type) = media_type {
            answer.headers_mut().insert("content-type", media_type);
        }
        answer
    }

    async fn call(&self, method: &str, params: Value, id: &Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": id});
        let sent = self.client.post(&self.upstream).json(&call).send().await;
        sent.unwrap().json().await.unwrap()
    }

    /// The changes of all tasks of a tree until all have ended.
    fn watch(self: &Arc<Self>, root: String) -> mpsc::Receiver<Change> {
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        let gateway = Arc::clone(self);
        tokio::spawn(async move {
            let mut known: BTreeMap<String, (Value, Value)> = BTreeMap::new();
            loop {
                let params = json!({"task_id": root});
                let answer = gateway.call("tasks.tree", params, &json!(1)).await;
                let mut nodes = vec![answer["result"].clone()];
                let mut open = false;
                while let Some(mut node) = nodes.pop() {
                    nodes.extend(node["children"].as_array().cloned().unwrap_or_default());
                    let task = node["task"].take();
                    let now = (task["status"].clone(), task["progress"].clone());
                    let before = known.insert(task["id"].to_string(), now.clone());
                    let kind = match task["status"].as_str().unwrap() {
                        "completed" => "task_completed",
                        "failed" => "task_failed",
                        "cancelled" => "task_cancelled",
                        _ => "task_status_update",
                    };
                    open |= kind == "task_status_update";
                    let kind = match &before {
                        Some(before) if *before == now => continue,
                        Some((status, _)) if *status == now.0 => "task_progress_update",
                        _ => kind,
                    };
                    if sender.send((kind, task)).await.is_err() {
                        return;
                    }
                }
                if !open {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        receiver
    }

    fn event(&self, (kind, task): &Change, root: &str) -> Value {
        match self.faulty {
            false => json!({"event": kind, "data": {
                "protocol": "a2a",
                "task_id": task["id"],
                "status": task["status"],
                "progress": task["progress"],
                "root_task_id": root,
            }}),
            true => json!({"event": "task_changed", "data": {
                "task_id": task["id"],
                "status": task["status"],
            }}),
        }
    }

    fn stream(self: &Arc<Self>, answer: &Value, root: String) -> Response {
        let first = Some(format!("data: {answer}\n\n"));
        let changes = self.watch(root.clone());
        let gateway = Arc::clone(self);
        let messages = stream::unfold((first, changes), move |(first, mut changes)| {
            let (gateway, root) = (Arc::clone(&gateway), root.clone());
            async move {
                if let Some(first) = first {
                    return Some((Ok::<_, std::convert::Infallible>(first), (None, changes)));
                }
                let change = changes.recv().await?;
                let event = gateway.event(&change, &root);
                Some((
                    Ok(format!(": news\r\ndata: {event}\r\n\r\n")),
                    (None, changes),
                ))
            }
        });
        let head = [("content-type", "text/event-stream")];
        (head, Body::from_stream(messages)).into_response()
    }

    fn call_back(self: &Arc<Self>, config: Value, root: String) {
        let mut changes = self.watch(root);
        let gateway = Arc::clone(self);
        tokio::spawn(async move {
            while let Some((_, task)) = changes.recv().await {
                let mut body = json!({"task_id": task["id"], "status": task["status"]});
                let mut method = Method::PUT;
                if !gateway.faulty {
                    body["progress"] = task["progress"].clone();
                    body["result"] = task["result"].clone();
                    method = Method::POST;
                }
                for _ in 0..SENT_MAX {
                    let url = config["url"].as_str().unwrap();
                    let mut request = gateway.client.request(method.clone(), url).json(&body);
                    let headers = config["headers"].as_object().filter(|_| !gateway.faulty);
                    for (name, value) in headers.into_iter().flatten() {
                        request = request.header(name, value.as_str().unwrap());
                    }
                    let sent = request.send().await;
                    if sent.is_ok_and(|response| response.status().is_success()) {
                        break;
                    }
                }
            }
        });
    }

    async fn a2a_task(self: &Arc<Self>, root: &str) -> Value {
        let mut changes = self.watch(root.to_owned());
        let mut last = Value::Null;
        while let Some((_, task)) = changes.recv().await {
            if task["id"] == root {
                last = task;
            }
        }
        if self.faulty {
            let status = json!({"state": last["status"]});
            return json!({"kind": "task", "id": root, "status": status, "history": "none"});
        }
        let instance = self.executions.fetch_add(1, Ordering::Relaxed);
        let data = json!({
            "protocol": "a2a",
            "status": last["status"],
            "progress": last["progress"],
            "root_task_id": root,
            "error": last["error"],
        });
        let parts = json!([{"kind": "data", "data": data}]);
        json!({
            "id": format!("execution-{instance}"),
            "context_id": root,
            "kind": "task",
            "status": {"state": last["status"], "message": {"kind": "message", "parts": parts}},
            "artifacts": [{"parts": [{"kind": "data", "data": last["result"]}]}],
            "history": [],
            "metadata": {"protocol": "a2a", "root_task_id": root, "user_id": last["user_id"]},
        })
    }
}

async fn answer(
    State(gateway): State<Arc<Gateway>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if uri.path() == "/.well-known/agent-card" {
        let url = format!("{}{}", gateway.upstream, uri.path());
        let response = gateway.client.get(url).send().await.unwrap();
        let mut card: Value = response.json().await.unwrap();
        card["capabilities"] = json!({"streaming": true, "push_notifications": true});
        return json_answer(&card);
    }
    let Ok(mut call) = serde_json::from_slice::<Value>(&body) else {
        return gateway.forward(method, uri.path(), body).await;
    };
    let id = call["id"].clone();
    let key = headers.get(KEY_HEADER).map(HeaderValue::as_bytes);
    let known = key == Some(OWN_KEY.as_bytes()) || key == Some(OTHER_KEY.as_bytes());
    if headers.contains_key("authorization") || !known {
        let error = json!({"code": -32004, "message": "Unauthorized"});
        return json_answer(&json!({"jsonrpc": "2.0", "error": error, "id": id}));
    }
    if key == Some(OTHER_KEY.as_bytes()) && !gateway.faulty {
        // The other user has no tasks.
        let error = json!({"code": -32001, "message": "Task not found"});
        return json_answer(&json!({"jsonrpc": "2.0", "error": error, "id": id}));
    }
    let message = call["method"] == "message/send";
    if message {
        let tasks = call["params"]["message"]["parts"][0]["data"]["tasks"].take();
        call["params"] = json!({"tasks": tasks});
    }
    if !message && call["method"] != "tasks.execute" {
        return gateway.forward(method, uri.path(), body).await;
    }
    let a2a = message || call["metadata"]["protocol"] == "a2a";
    let streams = call["params"]["use_streaming"] == true || call["metadata"]["stream"] == true;
    if let Some(params) = call["params"].as_object_mut() {
        params.remove("use_streaming");
    }
    let answer = gateway
        .call("tasks.execute", call["params"].take(), &id)
        .await;
    let Some(root) = answer["result"]["root_task_id"].as_str().map(str::to_owned) else {
        return json_answer(&answer);
    };
    let config = call["configuration"]["push_notification_config"].take();
    if config.is_object() {
        gateway.call_back(config, root.clone());
    }
    if streams {
        return gateway.stream(&answer, root);
    }
    if a2a {
        let task = gateway.a2a_task(&root).await;
        return json_answer(&json!({"jsonrpc": "2.0", "result": task, "id": id}));
    }
    json_answer(&answer)
}

fn json_answer(answer: &Value) -> Response {
    let head = [("content-type", "application/json")];
    (StatusCode::OK, head, answer.to_string()).into_response()
}
