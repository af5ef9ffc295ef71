//! What is particular to a binding: versions, content types, dialects, cursors, editions.

use super::{echo, message, runs};
use serde_json::{Value, json};
use taskledger_testkit::server::{Folder, Server};

pub(super) struct Agent {
    pub(super) server: Server,
    pub(super) http: reqwest::Client,
    folder: Folder,
}

impl Agent {
    pub(super) async fn start(arguments: &[&str]) -> Self {
        let folder = Folder::new();
        Self {
            server: Server::start_with(&folder, arguments).await,
            http: taskledger::tls::client().build().unwrap(),
            folder,
        }
    }

    pub(super) const fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.server.api.url.trim_end_matches('/'))
    }

    pub(super) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, Value) {
        let mut request = self.http.post(self.at(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.to_owned()).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or(Value::Null))
    }
}

pub(super) const JSON: (&str, &str) = ("content-type", "application/json");
pub(super) const VERSION: (&str, &str) = ("a2a-version", "1.0");

pub(super) fn call(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

/// The reason of an error in either form.
pub(super) fn reason(answer: &Value) -> &Value {
    let error = &answer["error"];
    let details = error.get("data").or_else(|| error.get("details"));
    details.map_or(&Value::Null, |it| &it[0]["reason"])
}

#[tokio::test]
async fn the_method_tells_the_dialect_and_both_tables_keep_their_meaning() {
    let agent = Agent::start(&[]).await;
    let unknown = json!({"id": "00000000-0000-4000-8000-000000000000"});
    let native = json!({"task_id": "00000000-0000-4000-8000-000000000000"});
    // Path, headers, body, code, whether the error is in the form of the protocol.
    for (path, headers, body, code, is_a2a) in [
        ("/", &[JSON][..], call("tasks.get", &native), -32001, false),
        (
            "/",
            &[JSON, VERSION][..],
            call("tasks.get", &native),
            -32001,
            false,
        ),
        (
            "/",
            &[JSON, VERSION][..],
            call("GetTask", &unknown),
            -32001,
            true,
        ),
        ("/", &[JSON][..], call("GetTask", &unknown), -32009, true),
        (
            "/",
            &[JSON, ("a2a-version", "0.3")][..],
            call("GetTask", &unknown),
            -32009,
            true,
        ),
        (
            "/",
            &[JSON][..],
            call("message/send", &json!({})),
            -32601,
            false,
        ),
        (
            "/",
            &[JSON, VERSION][..],
            call("message/send", &json!({})),
            -32601,
            true,
        ),
        (
            "/",
            &[JSON, VERSION][..],
            call("Nonsense", &json!({})),
            -32601,
            true,
        ),
        (
            "/",
            &[JSON][..],
            call("Nonsense", &json!({})),
            -32601,
            false,
        ),
        ("/", &[JSON, VERSION][..], "{".to_owned(), -32700, true),
        ("/", &[JSON][..], "{".to_owned(), -32700, false),
        ("/a2a", &[JSON][..], "{".to_owned(), -32700, true),
        (
            "/a2a",
            &[JSON, VERSION][..],
            call("tasks.get", &native),
            -32601,
            true,
        ),
        (
            "/a2a/",
            &[JSON, VERSION][..],
            call("GetTask", &unknown),
            -32001,
            true,
        ),
        (
            "/a2a?A2A-Version=1.0",
            &[JSON][..],
            call("GetTask", &unknown),
            -32001,
            true,
        ),
        (
            "/a2a",
            &[JSON, VERSION][..],
            format!("[{}]", call("GetTask", &unknown)),
            -32600,
            true,
        ),
        (
            "/a2a",
            &[JSON, VERSION][..],
            call("GetTask", &json!({})),
            -32602,
            true,
        ),
    ] {
        let (status, answer) = agent.post(path, headers, &body).await;
        assert_eq!(status, 200, "{path} {body}: {answer}");
        assert_eq!(
            answer["error"]["code"], code,
            "{path} {headers:?} {body}: {answer}"
        );
        assert_eq!(
            reason(&answer).is_string(),
            is_a2a,
            "{path} {body}: {answer}"
        );
    }
    let (status, answer) = agent
        .post("/a2a", &[VERSION], &call("GetTask", &unknown))
        .await;
    assert_eq!((status, &answer["error"]["code"]), (415, &json!(-32005)));
    agent.server.stop().await;
}

#[tokio::test]
async fn resources_have_the_statuses_of_their_edition() {
    for (edition, cancel, content, media_type) in [
        ("1.0.1", 400, 400, "application/a2a+json"),
        ("1.0.0", 409, 415, "application/json"),
    ] {
        let agent = Agent::start(&["--a2a-edition", edition]).await;
        let send = runs(json!([echo("a")])).to_string();
        let headers = [("content-type", "application/a2a+json"), VERSION];
        let (status, sent) = agent.post("/a2a/rest/message:send", &headers, &send).await;
        assert_eq!(status, 200, "{sent}");
        let id = sent["task"]["id"].as_str().unwrap();
        let path = format!("/a2a/rest/tasks/{id}:cancel");
        let (status, refused) = agent.post(&path, &[VERSION], "").await;
        assert_eq!(
            (status, reason(&refused)),
            (cancel, &json!("TASK_NOT_CANCELABLE"))
        );
        let xml = [("content-type", "text/xml"), VERSION];
        let (status, refused) = agent.post("/a2a/rest/message:send", &xml, &send).await;
        assert_eq!(
            (status, reason(&refused)),
            (content, &json!("CONTENT_TYPE_NOT_SUPPORTED"))
        );
        let (status, refused) = agent.post("/a2a/rest/message:send", &[JSON], &send).await;
        assert_eq!(
            (status, reason(&refused)),
            (400, &json!("VERSION_NOT_SUPPORTED"))
        );
        let (status, refused) = agent.post("/a2a/rest/nonsense", &[VERSION], "").await;
        assert_eq!(
            (status, reason(&refused)),
            (404, &json!("METHOD_NOT_FOUND"))
        );
        let get = agent.http.get(agent.at(&format!("/a2a/rest/tasks/{id}")));
        let read = get.header(VERSION.0, VERSION.1).send().await.unwrap();
        assert_eq!(read.headers()["content-type"], media_type);
        agent.server.stop().await;
    }
}

#[tokio::test]
async fn a_stream_goes_on_behind_its_last_event() {
    let agent = Agent::start(&[]).await;
    // What ends at once would be over before the stream begins.
    let short = json!({"name": "a", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 2000}});
    let request = runs(json!([short]));
    let stream = agent.http.post(agent.at("/a2a/rest/message:stream"));
    let stream = stream.header(VERSION.0, VERSION.1).header(JSON.0, JSON.1);
    let text = stream.body(request.to_string()).send().await.unwrap();
    let text = text.text().await.unwrap();
    let events: Vec<(String, Value)> = text
        .split("\n\n")
        .filter_map(|event| {
            let id = event.lines().find_map(|it| it.strip_prefix("id: "))?;
            let data = event.lines().find_map(|it| it.strip_prefix("data: "))?;
            Some((id.to_owned(), serde_json::from_str(data).unwrap()))
        })
        .collect();
    assert!(events.len() >= 2, "{text}");
    let id = events[0].1["task"]["id"].as_str().unwrap();
    let behind = agent
        .http
        .get(agent.at(&format!("/a2a/rest/tasks/{id}:subscribe")));
    let behind = behind.header(VERSION.0, VERSION.1);
    let again = behind
        .header("last-event-id", &events[0].0)
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), 200);
    let again = again.text().await.unwrap();
    let again: Vec<Value> = again
        .lines()
        .filter_map(|it| it.strip_prefix("data: "))
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let rest: Vec<Value> = events.into_iter().skip(1).map(|(_, data)| data).collect();
    assert_eq!(again, rest);
    agent.server.stop().await;
}

#[tokio::test]
async fn a_repeated_send_under_one_key_runs_once_and_without_a_key_twice() {
    let agent = Agent::start(&["--a2a-text-method", "echo_executor"]).await;
    let send = async |key: Option<&'static str>, text: &str| {
        let body = call("SendMessage", &message(json!([{"text": text}])));
        let mut headers = vec![JSON, VERSION];
        headers.extend(key.map(|key| ("idempotency-key", key)));
        agent.post("/a2a", &headers, &body).await.1
    };
    let task = |answer: &Value| answer["result"]["task"]["id"].clone();
    let first = send(Some("k"), "hello").await;
    assert_eq!(
        first["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{first}"
    );
    let text = &first["result"]["task"]["artifacts"][0]["parts"][0]["data"]["text"];
    assert_eq!(text, "hello");
    assert_eq!(task(&send(Some("k"), "hello").await), task(&first));
    assert_ne!(task(&send(None, "hello").await), task(&first));
    let other = send(Some("k"), "other").await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let field = &other["error"]["data"][1]["fieldViolations"][0]["field"];
    assert_eq!(field, "idempotency-key", "{other}");
    agent.server.stop().await;
}

#[tokio::test]
async fn the_extension_of_nodes_is_echoed_if_it_is_announced() {
    let agent = Agent::start(&[]).await;
    let body = runs(json!([echo("a")])).to_string();
    for (given, expected) in [
        (
            "urn:other, urn:taskledger:a2a:nodes:v1",
            Some("urn:taskledger:a2a:nodes:v1"),
        ),
        ("urn:other", None),
    ] {
        let request = agent.http.post(agent.at("/a2a/rest/message:send"));
        let request = request.header(VERSION.0, VERSION.1).header(JSON.0, JSON.1);
        let request = request.header("a2a-extensions", given).body(body.clone());
        let response = request.send().await.unwrap();
        let echoed = response.headers().get("a2a-extensions");
        assert_eq!(echoed.map(|it| it.to_str().unwrap()), expected);
    }
    agent.server.stop().await;
}

#[tokio::test]
async fn a_stream_that_a_stop_cuts_off_says_that_the_task_goes_on() {
    let agent = Agent::start(&[]).await;
    let task = json!({"name": "wait", "schemas": {"type": "remote", "method": "nobody"}});
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"data": task}]});
    let body = call("SendStreamingMessage", &json!({"message": message}));
    let request = agent.http.post(agent.at("/a2a")).body(body);
    let request = request.header(JSON.0, JSON.1).header(VERSION.0, VERSION.1);
    let mut response = request.send().await.unwrap();
    let first = response.chunk().await.unwrap().expect("the task as it is");
    let mut text = String::from_utf8(first.to_vec()).unwrap();
    agent.server.ask_to_stop();
    while let Some(chunk) = response.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let last = text.lines().rev().find_map(|it| it.strip_prefix("data: "));
    let last: Value = serde_json::from_str(last.expect("a line with data")).unwrap();
    assert_eq!(last["error"]["data"][0]["reason"], "UNAVAILABLE", "{last}");
    let (status, log) = agent.server.end().await;
    assert!(status.success(), "{log}");
}
