//! The skill for messages without tasks: what its method is given, what the card says of it, and questions as texts.

use super::binding::all;
use super::wire::Agent;
use super::{message, question, runs};
use serde_json::{Value, json};
use taskledger_a2a::Operation::{GetTask, SendMessage};
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Api, Folder, Server};

const CARD: &str = "/.well-known/agent-card.json";
const TALK: [&str; 2] = ["--a2a-text-method", "talk"];

/// The only claim of `talk`, once there is one.
async fn claimed(api: &Api) -> Value {
    let claim = json!({"worker": "w", "methods": ["talk"], "wait_seconds": 30});
    api.call("tasks.claim", claim).await["claims"][0].take()
}

async fn complete(api: &Api, claim: &Value, output: Value) {
    let done =
        json!({"task_id": claim["task"]["id"], "lease": claim["lease"]["token"], "output": output});
    api.call("tasks.complete", done).await;
}

fn at_once(mut send: Value) -> Value {
    send["configuration"] = json!({"returnImmediately": true});
    send
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_comes_after_the_message_is_given_all_of_it() {
    let modes = ["--a2a-input-mode", "text/plain,application/json,image/*"];
    let agent = Agent::start(&[&TALK[..], &modes].concat()).await;
    let api = &agent.server.api;
    assert!(
        agent
            .server
            .logged()
            .contains("the method `talk` of --a2a-text-method")
    );
    for mut binding in all(&api.url).await {
        let name = binding.name();
        let earlier = binding
            .ask(SendMessage, runs(json!([super::echo("a")])))
            .await;
        let earlier = earlier.unwrap()["task"]["id"].clone();
        let parts = json!([{"text": "hello"}, {"data": {"name": "bob"}},
            {"raw": "AQI=", "mediaType": "image/png", "filename": "b.png"}]);
        let mut send = at_once(message(parts.clone()));
        send["message"]["contextId"] = json!("c-1");
        send["message"]["metadata"] = json!({"tone": "formal"});
        send["message"]["referenceTaskIds"] = json!([earlier]);
        let sent = binding.ask(SendMessage, send).await.unwrap();
        let claim = claimed(api).await;
        assert_eq!(
            claim["input"],
            json!({"text": "hello", "parts": parts}),
            "{name}"
        );
        let expected = json!({"context_id": "c-1", "message_id": "m-1", "metadata": {"tone": "formal"},
            "reference_task_ids": [earlier]});
        assert_eq!(claim["context"]["message"], expected, "{name}");
        assert_eq!(claim["context"]["run_id"], sent["task"]["id"]);
        complete(api, &claim, json!({"a2a_parts": [{"text": "hello, bob"}]})).await;

        // Without a context of its own, a conversation is named by the root task.
        let send = at_once(message(json!([{"text": "hello"}])));
        let sent = binding.ask(SendMessage, send).await.unwrap();
        let claim = claimed(api).await;
        assert_eq!(claim["input"], json!({"text": "hello"}), "{name}");
        let of_message = &claim["context"]["message"];
        assert_eq!(of_message["context_id"], sent["task"]["contextId"]);
        complete(api, &claim, json!({})).await;
    }
    // A run that no message has begun has none.
    let native = json!({"tasks": [{"name": "t", "schemas": {"type": "remote", "method": "talk"}}]});
    api.call("tasks.execute", native).await;
    let claim = claimed(api).await;
    assert!(claim["context"].get("message").is_none(), "{claim}");
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_outlives_a_kill_with_its_context() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &TALK).await;
    let mut send = at_once(message(json!([{"text": "hello"}])));
    send["message"]["contextId"] = json!("c-1");
    let sent = all(&server.api.url).await[0].ask(SendMessage, send).await;
    sent.unwrap();
    server.kill().await;
    let server = Server::start_with(&folder, &TALK).await;
    let claim = claimed(&server.api).await;
    let of_message = &claim["context"]["message"];
    assert_eq!(
        *of_message,
        json!({"context_id": "c-1", "message_id": "m-1"})
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_skill_runs_every_message_and_refuses_others_by_name() {
    let agent = Agent::start(&["--a2a-text-method", "echo_executor", "--a2a-text-only"]).await;
    let card: Value = agent
        .http
        .get(agent.at(CARD))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let skills: Vec<_> = card["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(skills, ["echo_executor"]);
    let tasks = json!([{"name": "a", "schemas": {"method": "sleep_executor"}}]);
    for mut binding in all(&agent.server.api.url).await {
        let done = binding.ask(SendMessage, runs(tasks.clone())).await.unwrap();
        let echoed = &done["task"]["artifacts"][0]["parts"][0]["data"];
        assert_eq!(echoed["parts"][1]["data"]["tasks"], tasks, "{done}");
        let mut named = runs(tasks.clone());
        named["message"]["metadata"] = json!({"skillId": "tasks.execute"});
        let refused = binding.ask(SendMessage, named).await.unwrap_err();
        assert_eq!(
            refused.fields,
            ["message.metadata.skillId"],
            "{}",
            binding.name()
        );
    }
    agent.server.stop().await;
    let alone = run(["serve", "--a2a-text-only"]).await.refused(2);
    assert!(alone.contains("--a2a-text-method"), "{alone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_says_what_the_operator_and_the_workers_have_set() {
    let folder = Folder::new();
    let file = folder.path().join("card.json");
    let texts = json!({"name": "Ann", "description": "Draws", "version": "7.1", "iconUrl": "https://example.com/i.png",
        "documentationUrl": "https://example.com/docs", "provider": {"organization": "Acme", "url": "https://example.com"},
        "skill": {"name": "Draw", "tags": ["art"], "examples": ["a boat"], "outputModes": ["image/png"]}});
    std::fs::write(&file, texts.to_string()).unwrap();
    let arguments = [
        &TALK[..],
        &[
            "--a2a-card",
            file.to_str().unwrap(),
            "--a2a-input-mode",
            "text/markdown",
        ],
    ]
    .concat();
    let server = Server::start_with(&folder, &arguments).await;
    let url = format!("{}{CARD}", server.api.url.trim_end_matches('/'));
    let read = async || {
        let response = server.api.http.get(&url).send().await.unwrap();
        let tag = response.headers()["etag"].clone();
        (tag, response.json::<Value>().await.unwrap())
    };
    let (tag, card) = read().await;
    for member in [
        "name",
        "description",
        "version",
        "iconUrl",
        "documentationUrl",
        "provider",
    ] {
        assert_eq!(card[member], texts[member], "{member}");
    }
    let skill = &card["skills"][1];
    assert_eq!(skill["id"], "talk");
    for member in ["name", "tags", "examples", "outputModes"] {
        assert_eq!(skill[member], texts["skill"][member], "{member}");
    }
    assert_eq!(skill["inputModes"], json!(["text/markdown"]));
    // What the operator has not set, workers may.
    let declared = json!({"method": "talk", "description": "Draws what it is told to."});
    server.api.call("workers.declare", declared).await;
    let is_declared = async || {
        let (tag, card) = read().await;
        (card["skills"][1]["description"] == "Draws what it is told to.").then_some(tag)
    };
    let newer = server.api.eventually("the card follows", is_declared).await;
    assert_ne!(newer, tag);
    server.stop().await;

    std::fs::write(&file, r#"{"skil": {}}"#).unwrap();
    let refused = run(["serve", "--a2a-card", file.to_str().unwrap()]).await;
    let refused = refused.refused(2);
    assert!(
        refused.contains("unknown field `skil`, expected one of `name`"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_question_is_a_text_and_faults_of_its_answer_name_the_part() {
    let agent = Agent::start(&[]).await;
    for mut binding in all(&agent.server.api.url).await {
        let name = binding.name();
        let asks = binding
            .ask(SendMessage, runs(json!([question()])))
            .await
            .unwrap();
        let parts = &asks["task"]["status"]["message"]["parts"];
        assert_eq!(*parts, json!([{"text": "Which colour?"}]), "{name}");

        let form = json!({"name": "ask", "schemas": {"method": "approval_executor"}, "inputs": {
            "question": "How many?", "response_type": "form",
            "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}});
        let asks = binding.ask(SendMessage, runs(json!([form]))).await.unwrap();
        let id = &asks["task"]["id"];
        let parts = &asks["task"]["status"]["message"]["parts"];
        assert_eq!(parts[1]["data"]["responseType"], "form", "{name}: {asks}");
        let mut answer = message(json!([{"text": "here"}, {"data": {"n": "seven"}}]));
        answer["message"]["taskId"] = id.clone();
        let refused = binding.ask(SendMessage, answer).await.unwrap_err();
        assert_eq!(refused.fields, ["message.parts[1].data"], "{name}");
        let read = binding.ask(GetTask, json!({"id": id})).await.unwrap();
        assert_eq!(read["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    }
    agent.server.stop().await;
}
