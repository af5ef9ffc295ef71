//! What tasks make before they end: told piece by piece, shown joined, the same on each binding.

use super::binding::{Binding, all};
use super::runs;
use crate::webhooks::in_both_places;
use crate::webhooks::site::arguments;
use serde_json::{Value, json};
use taskledger_a2a::Operation::{GetTask, ListTasks, SendMessage, SubscribeToTask};
use taskledger_testkit::receiver::Receiver;
use taskledger_testkit::server::{Api, Folder, Server};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

in_both_places!(
    pieces_are_told_in_order_and_shown_joined_on_every_binding,
    pieces_outlive_a_kill,
);

/// An attempt that a worker holds.
pub(crate) struct Held {
    task: Value,
    lease: Value,
}

impl Held {
    /// Claims the only task of `write` that is ready.
    pub(crate) async fn claim(api: &Api) -> Self {
        let claim =
            json!({"worker": "w", "methods": ["write"], "wait_seconds": 30, "lease_seconds": 600});
        let mut claimed = api.call("tasks.claim", claim).await["claims"][0].take();
        Self {
            task: claimed["task"]["id"].take(),
            lease: claimed["lease"]["token"].take(),
        }
    }

    fn with(&self, mut params: Value) -> Value {
        params["task_id"] = self.task.clone();
        params["lease"] = self.lease.clone();
        params
    }

    pub(crate) async fn makes(&self, api: &Api, number: u32, part: Value) {
        let renewal = self.with(json!({"output_part": part, "output_number": number}));
        api.call("tasks.renew", renewal).await;
    }

    pub(crate) async fn completes(&self, api: &Api, output: Value) {
        let output = self.with(json!({"output": output}));
        api.call("tasks.complete", output).await;
    }

    pub(crate) async fn fails(&self, api: &Api, more: Value) {
        let mut failure = self.with(more);
        failure["error"] = json!("no ink");
        api.call("tasks.fail", failure).await;
    }
}

fn write() -> Value {
    json!({"name": "write", "schemas": {"type": "remote", "method": "write"},
        "params": {"retry": {"max_attempts": 3, "initial_delay_ms": 1}}})
}

pub(super) async fn begun(binding: &mut dyn Binding) -> Value {
    let mut send = runs(json!([write()]));
    send["configuration"] = json!({"returnImmediately": true});
    let sent = binding.ask(SendMessage, send).await.unwrap();
    sent["task"]["id"].clone()
}

/// Reads the stream of a task to its end, by another client of the same binding.
async fn follow(url: &str, number: usize, id: &Value) -> JoinHandle<Vec<Value>> {
    let mut follower = all(url).await.remove(number);
    let (begun, has_begun) = oneshot::channel();
    let request = json!({"id": id});
    let following = tokio::spawn(async move {
        let told = follower.follow(SubscribeToTask, request, Some(begun)).await;
        told.unwrap()
    });
    has_begun.await.unwrap();
    following
}

/// Of each piece whether it appends, whether it is the last, and its parts.
fn pieces(items: &[Value]) -> Vec<(bool, bool, Value)> {
    let is = |flag: &Value| flag.as_bool().unwrap_or(false);
    let updates = items.iter().filter_map(|it| it.get("artifactUpdate"));
    updates
        .map(|it| {
            assert_eq!(it["artifact"]["artifactId"], "result", "{it}");
            let parts = it["artifact"]["parts"].clone();
            (is(&it["append"]), is(&it["lastChunk"]), parts)
        })
        .collect()
}

/// What a client has that puts pieces together.
fn joined(before: &Value, items: &[Value]) -> Value {
    let mut parts = before.as_array().cloned().unwrap_or_default();
    for (appends, _, more) in pieces(items) {
        if !appends {
            parts.clear();
        }
        for part in more.as_array().unwrap() {
            match (parts.last_mut(), part["text"].as_str()) {
                (Some(Value::Object(last)), Some(text)) if last.contains_key("text") => {
                    let before = last["text"].as_str().unwrap();
                    last["text"] = format!("{before}{text}").into();
                }
                _ => parts.push(part.clone()),
            }
        }
    }
    parts.into()
}

async fn shown(binding: &mut dyn Binding, id: &Value) -> Value {
    let read = binding.ask(GetTask, json!({"id": id})).await.unwrap();
    let artifacts = read["artifacts"].as_array().cloned().unwrap_or_default();
    assert!(artifacts.len() <= 1, "{read}");
    artifacts
        .first()
        .map_or(Value::Null, |it| it["parts"].clone())
}

fn data(value: Value) -> Value {
    json!({"data": value, "mediaType": "application/json"})
}

async fn pieces_are_told_in_order_and_shown_joined_on_every_binding(folder: Folder) {
    let server = Server::start(&folder).await;
    let api = &server.api;
    for (number, mut binding) in all(&api.url).await.into_iter().enumerate() {
        let binding = &mut *binding;
        let id = begun(binding).await;
        let first = follow(&api.url, number, &id).await;
        let held = Held::claim(api).await;
        assert_eq!(shown(binding, &id).await, Value::Null);
        held.makes(api, 1, json!("Once ")).await;
        // Said twice, it is there once.
        for _ in 0..2 {
            let again = json!({"output_part": "upon", "output_number": 2});
            api.call("tasks.renew", held.with(again)).await;
        }
        let gap = json!({"output_part": "a time", "output_number": 4});
        let refused = api.refusal("tasks.renew", held.with(gap)).await;
        assert_eq!(refused.code, -32602);
        let field = &refused.data["errors"][0]["field"];
        assert_eq!(field, "output_number", "{}", refused.data);
        held.makes(api, 3, json!({"page": 1})).await;
        let file = json!({"url": "https://example.com/cover.png", "mediaType": "image/png"});
        held.makes(api, 4, json!({"a2a_parts": [file]})).await;

        // Who comes now is shown everything so far, and told the rest.
        let parts = json!([{"text": "Once upon"}, data(json!({"page": 1})), file]);
        assert_eq!(shown(binding, &id).await, parts, "{}", binding.name());
        let second = follow(&api.url, number, &id).await;
        held.completes(api, json!({"pages": 1})).await;
        let (first, second) = (first.await.unwrap(), second.await.unwrap());
        let all = json!([{"text": "Once upon"}, data(json!({"page": 1})), file,
            data(json!({"pages": 1}))]);
        let flags: Vec<_> = pieces(&first).into_iter().map(|(a, l, _)| (a, l)).collect();
        let appends = (true, false);
        assert_eq!(
            flags,
            [(false, false), appends, appends, appends, (true, true)],
            "{}",
            binding.name()
        );
        assert_eq!(joined(&Value::Null, &first), all, "{}", binding.name());
        let before = &second[0]["task"]["artifacts"][0]["parts"];
        assert_eq!(*before, parts, "{}", binding.name());
        assert_eq!(pieces(&second), [(true, true, json!([all[3]]))]);
        assert_eq!(joined(before, &second), all);
        assert_eq!(shown(binding, &id).await, all, "{}", binding.name());
        let list = json!({"includeArtifacts": true, "pageSize": 1});
        let listed = binding.ask(ListTasks, list).await.unwrap();
        assert_eq!(listed["tasks"][0]["artifacts"][0]["parts"], all);

        let asked =
            json!({"task_id": held.task, "types": ["task_output_appended"], "order": "asc"});
        let past = api.call("tasks.history", asked).await;
        let data = past["events"].as_array().unwrap().iter().map(|it| {
            let data = &it["data"];
            (data["output_number"].clone(), data["output_part"].clone())
        });
        let data: Vec<_> = data.take(3).collect();
        assert_eq!(data[0], (json!(1), json!("Once ")));
        assert_eq!(data[2], (json!(3), json!({"page": 1})));
    }
    server.stop().await;
}

async fn pieces_outlive_a_kill(folder: Folder) {
    let server = Server::start(&folder).await;
    let mut bindings = all(&server.api.url).await;
    let id = begun(&mut *bindings[0]).await;
    let held = Held::claim(&server.api).await;
    held.makes(&server.api, 1, json!("Once ")).await;
    server.kill().await;

    let server = Server::start(&folder).await;
    let api = &server.api;
    let is_there = async || {
        let listed = api.try_call("tasks.list", json!({"limit": 1}), None).await;
        listed.ok().map(|_| ())
    };
    api.eventually("reads are served", is_there).await;
    let mut bindings = all(&api.url).await;
    let once = json!([{"text": "Once "}]);
    assert_eq!(shown(&mut *bindings[0], &id).await, once);
    // The worker does not know whether its part was recorded.
    for (number, part) in [(1, "Once "), (2, "upon")] {
        let part = json!({"output_part": part, "output_number": number});
        api.call("tasks.renew", held.with(part)).await;
    }
    // Another attempt begins anew; until it does, there is what there was.
    held.fails(api, json!({})).await;
    let stream = follow(&api.url, 0, &id).await;
    let both = json!([{"text": "Once upon"}]);
    assert_eq!(shown(&mut *bindings[0], &id).await, both);
    let held = Held::claim(api).await;
    held.makes(api, 1, json!("There was")).await;
    assert_eq!(
        shown(&mut *bindings[0], &id).await,
        json!([{"text": "There was"}])
    );
    held.completes(api, json!({"n": 1})).await;
    let told = stream.await.unwrap();
    let before = &told[0]["task"]["artifacts"][0]["parts"];
    assert_eq!(*before, both);
    let after = json!([{"text": "There was"}, data(json!({"n": 1}))]);
    assert_eq!(joined(before, &told), after, "{told:?}");
    assert_eq!(shown(&mut *bindings[0], &id).await, after);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_has_sent_everything_leaves_no_empty_part() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    for (number, mut binding) in all(&api.url).await.into_iter().enumerate() {
        let binding = &mut *binding;
        let id = begun(binding).await;
        let stream = follow(&api.url, number, &id).await;
        let held = Held::claim(api).await;
        held.makes(api, 1, json!("to be")).await;
        held.makes(api, 2, json!(" or not")).await;
        held.completes(api, json!({})).await;
        let told = stream.await.unwrap();
        let only = json!([{"text": "to be or not"}]);
        assert_eq!(joined(&Value::Null, &told), only, "{}", binding.name());
        let (appends, is_last, _) = pieces(&told).pop().unwrap();
        assert!(appends && is_last, "{told:?}");
        assert_eq!(shown(binding, &id).await, only, "{}", binding.name());
        // What has made nothing before shows that it has ended.
        let id = begun(binding).await;
        Held::claim(api).await.completes(api, json!({})).await;
        let ended = async || {
            let parts = shown(binding, &id).await;
            (!parts.is_null()).then_some(parts)
        };
        let parts = api.eventually("it has ended", ended).await;
        assert_eq!(parts, json!([data(json!({}))]));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_after_one_with_pieces_may_make_none() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let mut bindings = all(&api.url).await;
    let id = begun(&mut *bindings[0]).await;
    let stream = follow(&api.url, 1, &id).await;
    let held = Held::claim(api).await;
    held.makes(api, 1, json!("lost")).await;
    held.fails(api, json!({})).await;
    let held = Held::claim(api).await;
    held.completes(api, json!({"n": 1})).await;
    let told = stream.await.unwrap();
    let whole = (false, true, json!([data(json!({"n": 1}))]));
    assert_eq!(pieces(&told).pop(), Some(whole));
    let only = json!([data(json!({"n": 1}))]);
    assert_eq!(shown(&mut *bindings[0], &id).await, only);
    server.stop().await;
}

/// The answer to a call of 0.3, to its end.
async fn posted(api: &Api, call: &Value) -> String {
    let http = taskledger::tls::client().build().unwrap();
    let url = format!("{}/a2a", api.url.trim_end_matches('/'));
    let request = http.post(url).header("content-type", "application/json");
    let response = request.body(call.to_string()).send().await.unwrap();
    response.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_are_pushed_pieces_and_those_of_0_3_the_result() {
    let folder = Folder::new();
    let mut serve = arguments(&folder);
    serve.push("--a2a-0.3".to_owned());
    let serve: Vec<&str> = serve.iter().map(String::as_str).collect();
    let server = Server::start_with(&folder, &serve).await;
    let api = &server.api;
    let receiver = Receiver::start().await;
    let mut send = runs(json!([write()]));
    send["configuration"] = json!({"returnImmediately": true,
        "taskPushNotificationConfig": {"url": receiver.url("/a")}});
    let sent = all(&api.url).await[0].ask(SendMessage, send).await;
    let id = sent.unwrap()["task"]["id"].clone();
    // One that knows 0.3 alone.
    let older = Receiver::start().await;
    let config = json!({"taskId": id, "pushNotificationConfig": {"url": older.url("/b")}});
    let method = "tasks/pushNotificationConfig/set";
    let set = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": config});
    let answer = posted(api, &set).await;
    assert!(answer.contains("result"), "{answer}");
    let held = Held::claim(api).await;
    held.makes(api, 1, json!("Once ")).await;
    held.makes(api, 2, json!("upon")).await;
    held.completes(api, json!({"n": 1})).await;
    // Working, three pieces, completed.
    let pushed = receiver.wait_for(5).await;
    let items = pushed
        .iter()
        .map(|it| serde_json::from_slice(&it.body).unwrap());
    let items: Vec<Value> = items.collect();
    let all = json!([{"text": "Once upon"}, data(json!({"n": 1}))]);
    assert_eq!(joined(&Value::Null, &items), all, "{items:?}");
    assert_eq!(pieces(&items).len(), 3);
    // Working, the result, completed: a task has no room for pieces.
    let pushed = older.wait_for(3).await;
    let made = pushed.iter().filter_map(|it| {
        let task: Value = serde_json::from_slice(&it.body).unwrap();
        task.pointer("/artifacts/0/parts").cloned()
    });
    let made: Vec<Value> = made.collect();
    assert_eq!(made, [json!([{"kind": "data", "data": {"n": 1}}])]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_0_3_tells_pieces_too() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--a2a-0.3"]).await;
    let api = &server.api;
    let parts = json!([{"kind": "data", "data": {"tasks": [write()]}}]);
    let message = json!({"messageId": "m", "role": "user", "kind": "message", "parts": parts});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream",
        "params": {"message": message}});
    let caller = api.clone();
    let stream = tokio::spawn(async move { posted(&caller, &body).await });
    let held = Held::claim(api).await;
    held.makes(api, 1, json!("Once ")).await;
    held.completes(api, json!({"n": 1})).await;
    let text = stream.await.unwrap();
    let items = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let items = items.map(|it| serde_json::from_str::<Value>(it).unwrap());
    let told: Vec<_> = items
        .filter(|it| it["result"]["kind"] == "artifact-update")
        .map(|it| {
            let is = |flag: &str| it["result"][flag].as_bool().unwrap_or(false);
            (is("append"), is("lastChunk"))
        })
        .collect();
    assert_eq!(told, [(false, false), (true, true)], "{text}");
    server.stop().await;
}
