//! What was told wrongly once: tokens of other lists, states that nothing was in, dialects and statuses.

use super::binding::all;
use super::wire::{Agent, JSON, VERSION, call, reason};
use super::{echo, message, question, runs};
use crate::isolation::world::World;
use serde_json::{Value, json};
use taskledger_a2a::Operation::{CancelTask, ListTasks, SendMessage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_belongs_to_its_list_on_every_binding() {
    let agent = Agent::start(&[]).await;
    for mut binding in all(&agent.server.api.url).await {
        let context = format!("context of {}", binding.name());
        for _ in 0..2 {
            let mut sent = runs(json!([echo("a")]));
            sent["message"]["contextId"] = json!(context);
            binding.ask(SendMessage, sent).await.unwrap();
        }
        let first = json!({"contextId": context, "pageSize": 1});
        let first = binding.ask(ListTasks, first).await.unwrap();
        let token = &first["nextPageToken"];
        let second = json!({"contextId": context, "pageSize": 1, "pageToken": token});
        let second = binding.ask(ListTasks, second).await.unwrap();
        assert_ne!(first["tasks"][0]["id"], second["tasks"][0]["id"]);
        assert_eq!(second["nextPageToken"], "", "{second}");
        for other in [
            json!({"contextId": "another", "pageToken": token}),
            json!({"pageToken": token}),
            json!({"contextId": context, "status": "TASK_STATE_COMPLETED", "pageToken": token}),
            json!({"contextId": context, "pageToken": "x"}),
        ] {
            let refused = binding.ask(ListTasks, other).await.unwrap_err();
            assert_eq!(refused.reasons[0], "INVALID_PARAMS", "{}", binding.name());
            assert_eq!(refused.fields, ["pageToken"], "{}", binding.name());
        }
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_task_that_waits_is_cancelled_and_nothing_between() {
    let agent = Agent::start(&[]).await;
    let mut bindings = all(&agent.server.api.url).await;
    let asked = runs(json!([question()]));
    let asked = bindings[0].ask(SendMessage, asked).await.unwrap();
    let id = asked["task"]["id"].clone();
    let body = call("SubscribeToTask", &json!({"id": id}));
    let request = agent.http.post(agent.at("/a2a")).header(JSON.0, JSON.1);
    let stream = request.header(VERSION.0, VERSION.1).body(body).send();
    let stream = stream.await.unwrap();
    bindings[0]
        .ask(CancelTask, json!({"id": id}))
        .await
        .unwrap();
    let text = stream.text().await.unwrap();
    let lines = text.lines().filter_map(|it| it.strip_prefix("data: "));
    let items: Vec<Value> = lines.map(|it| serde_json::from_str(it).unwrap()).collect();
    let states: Vec<&str> = items
        .iter()
        .filter_map(|it| {
            let result = &it["result"];
            let of_task = result["task"]["status"]["state"].as_str();
            of_task.or(result["statusUpdate"]["status"]["state"].as_str())
        })
        .collect();
    assert_eq!(
        states,
        ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_CANCELED"],
        "{text}"
    );
    agent.server.stop().await;
}

#[tokio::test]
async fn what_is_no_request_is_told_in_the_dialect_of_its_method() {
    let agent = Agent::start(&[]).await;
    let odd = |method: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": 7}).to_string()
    };
    let (_, own) = agent.post("/", &[JSON, VERSION], &odd("tasks.get")).await;
    assert_eq!(own["error"]["code"], -32600, "{own}");
    assert!(own["error"]["data"].is_object(), "{own}");
    let (_, theirs) = agent.post("/", &[JSON], &odd("GetTask")).await;
    assert_eq!(reason(&theirs), "INVALID_REQUEST", "{theirs}");
    agent.server.stop().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_has_one_status() {
    let agent = Agent::start(&[]).await;
    let huge = format!("\"{}\"", "x".repeat(20 * 1024 * 1024));
    let (status, answer) = agent
        .post("/a2a/rest/message:send", &[JSON, VERSION], &huge)
        .await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (413, &json!(413)),
        "{answer}"
    );
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_answered_in_the_dialect_of_their_method() {
    let world = World::start().await;
    for (method, is_a2a) in [("GetTask", true), ("tasks.get", false)] {
        let body = json!({"jsonrpc": "2.0", "id": "c", "method": method, "params": {}});
        let request = world.client.post(format!("{}/", world.url())).json(&body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401);
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["id"], "c", "{answer}");
        assert_eq!(reason(&answer) == "UNAUTHENTICATED", is_a2a, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_required_extension_must_be_announced_and_is_echoed() {
    let uri = "urn:example:required";
    let agent = Agent::start(&["--a2a-required-extension", uri]).await;
    let card = agent.http.get(agent.at("/.well-known/agent-card.json"));
    let card: Value = card.send().await.unwrap().json().await.unwrap();
    let extensions = card["capabilities"]["extensions"].as_array().unwrap();
    let found = extensions.iter().find(|it| it["uri"] == uri).unwrap();
    assert_eq!(found["required"], true);
    for mut binding in all(&agent.server.api.url).await {
        let refused = binding.ask(ListTasks, json!({})).await.unwrap_err();
        assert_eq!(
            refused.reasons[0],
            "EXTENSION_SUPPORT_REQUIRED",
            "{}",
            binding.name()
        );
    }
    let request = agent.http.get(agent.at("/a2a/rest/tasks"));
    let request = request.header(VERSION.0, VERSION.1);
    let both = format!("urn:other, {uri}, urn:taskledger:a2a:nodes:v1");
    let response = request.header("a2a-extensions", both).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let echoed = response.headers()["a2a-extensions"].to_str().unwrap();
    assert_eq!(echoed, format!("urn:taskledger:a2a:nodes:v1, {uri}"));
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_texts_for_clients_that_take_nothing_else() {
    let agent = Agent::start(&[]).await;
    for mut binding in all(&agent.server.api.url).await {
        for (modes, part) in [
            (
                json!(["text/plain"]),
                json!({"text": r#"{"text":"a"}"#, "mediaType": "text/plain"}),
            ),
            (
                json!(["image/png"]),
                json!({"data": {"text": "a"}, "mediaType": "application/json"}),
            ),
        ] {
            let mut sent = runs(json!([echo("a")]));
            sent["configuration"] = json!({"acceptedOutputModes": modes});
            let done = binding.ask(SendMessage, sent).await.unwrap();
            let parts = &done["task"]["artifacts"][0]["parts"];
            assert_eq!(parts[0], part, "{} {done}", binding.name());
        }
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_to_a_task_that_waits_for_credentials_is_stored_nowhere() {
    let agent = Agent::start(&[]).await;
    let mut bindings = all(&agent.server.api.url).await;
    let binding = &mut *bindings[0];
    let asks = json!({"name": "ask", "schemas": {"type": "remote", "method": "needs_key"}});
    let mut sent = runs(json!([asks]));
    sent["configuration"] = json!({"returnImmediately": true});
    let begun = binding.ask(SendMessage, sent).await.unwrap();
    let id = begun["task"]["id"].clone();
    let api = &agent.server.api;
    let claim = json!({"worker": "w", "methods": ["needs_key"], "wait_seconds": 30});
    let claimed = api.call("tasks.claim", claim).await;
    let claim = &claimed["claims"][0];
    let suspend = json!({"task_id": claim["task"]["id"], "lease": claim["lease"]["token"],
        "request": {"question": "Which key?", "asks": "auth"}});
    let suspended = api.try_call("tasks.suspend", suspend, None).await;
    assert!(suspended.is_ok(), "{suspended:?} {claimed}");
    let stands = binding
        .ask(taskledger_a2a::Operation::GetTask, json!({"id": id}))
        .await
        .unwrap();
    assert_eq!(
        stands["status"]["state"], "TASK_STATE_AUTH_REQUIRED",
        "{stands}"
    );
    let mut said = message(json!([{"text": "s3cret-s3cret"}]));
    said["message"]["taskId"] = id.clone();
    said["configuration"] = json!({"returnImmediately": true});
    let told = binding.ask(SendMessage, said).await.unwrap();
    assert!(!told.to_string().contains("s3cret"), "{told}");
    let data = agent.folder().data();
    agent.server.stop().await;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        if bytes.windows(6).any(|it| it == b"s3cret") {
            found.push(path);
        }
    }
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_an_answer_has_no_room_for_are_read_page_by_page() {
    const TASKS: usize = 40;
    let agent = Agent::start(&[]).await;
    let text = "x".repeat(100 * 1024);
    let task = |n: usize| {
        let mut task = json!({"id": format!("t{n}"), "name": format!("t{n}"),
            "schemas": {"method": "echo_executor"}, "inputs": {"text": text}});
        if n > 0 {
            task["parent_id"] = json!("t0");
        }
        task
    };
    let sent = runs((0..TASKS).map(task).collect());
    let request = agent.http.post(agent.at("/a2a/rest/message:send"));
    let request = request.header(VERSION.0, VERSION.1).json(&sent);
    let done: Value = request.send().await.unwrap().json().await.unwrap();
    let metadata = &done["task"]["metadata"];
    assert!(
        metadata["artifactsLeftOut"].as_u64() > Some(0),
        "{metadata}"
    );
    let path = metadata["artifactsPath"].as_str().unwrap();
    let (mut found, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = format!("{}?pageSize=30&pageToken={token}", agent.at(path));
        let page: Value = agent
            .http
            .get(page)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let artifacts = page["artifacts"]
            .as_array()
            .unwrap_or_else(|| panic!("{page}"));
        found.extend(artifacts.iter().map(|it| it["artifactId"].to_string()));
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        pages += 1;
        if token.is_empty() {
            break;
        }
    }
    assert!(pages > 1);
    assert_eq!(found.len(), TASKS);
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), TASKS, "none twice");
    for (query, field) in [("?pageSize=0", "pageSize"), ("?pageToken=x", "pageToken")] {
        let refused = agent.http.get(format!("{}{query}", agent.at(path)));
        let refused: Value = refused.send().await.unwrap().json().await.unwrap();
        let told = &refused["error"]["details"][1]["fieldViolations"][0]["field"];
        assert_eq!(told, field, "{refused}");
    }
    let unknown = "/a2a/rest/tasks/00000000-0000-4000-8000-000000000000/artifacts";
    let unknown = agent.http.get(agent.at(unknown)).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    agent.server.stop().await;
}
