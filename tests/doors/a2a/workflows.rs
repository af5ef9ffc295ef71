//! Saved workflows that messages run, and the card that names them.

use super::binding::all;
use super::message;
use super::wire::Agent;
use crate::isolation::world::World;
use serde_json::{Value, json};
use taskledger_a2a::Operation::SendMessage;

const DOCUMENT: &str = "openintent: \"1.0\"\ninfo: {name: Greeting, version: \"1\"}\nworkflow:\n  greet:\n    assign: echo_executor\n    inputs: {text: $trigger.who}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_runs_a_saved_workflow_on_every_binding() {
    let agent = Agent::start(&[]).await;
    let saved = json!({"document": DOCUMENT});
    agent.server.api.call("workflows.save", saved).await;
    for mut binding in all(&agent.server.api.url).await {
        let name = binding.name();
        for data in [
            json!({"workflow": "Greeting", "inputs": {"who": "Ann"}}),
            json!({"template": "Greeting", "version": 1, "inputs": {"who": "Ann"}}),
        ] {
            let sent = message(json!([{"text": "please"}, {"data": data}]));
            let done = binding.ask(SendMessage, sent).await.unwrap();
            let task = &done["task"];
            assert_eq!(
                task["status"]["state"], "TASK_STATE_COMPLETED",
                "{name} {done}"
            );
            let artifacts = task["artifacts"].to_string();
            assert!(artifacts.contains("\"Ann\""), "{name} {artifacts}");
        }
        let mut by_skill = message(json!([{"data": {"who": "Bob"}}]));
        by_skill["message"]["metadata"] = json!({"skillId": "workflow:Greeting"});
        let done = binding.ask(SendMessage, by_skill).await.unwrap();
        assert!(
            done["task"]["artifacts"].to_string().contains("\"Bob\""),
            "{name} {done}"
        );
        for (data, member) in [
            (json!({"workflow": "Nothing"}), "workflow"),
            (json!({"workflow": "Greeting", "version": 9}), "version"),
            (json!({"workflow": "Greeting", "inputs": 7}), "inputs"),
        ] {
            let sent = message(json!([{"data": data}]));
            let refused = binding.ask(SendMessage, sent).await.unwrap_err();
            assert_eq!(refused.reasons[0], "INVALID_PARAMS", "{name}");
            assert_eq!(
                refused.fields,
                [format!("message.parts[0].data.{member}")],
                "{name}"
            );
        }
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_extended_card_names_the_workflows_of_its_caller() {
    let world = World::start().await;
    let native = json!({"jsonrpc": "2.0", "id": 1, "method": "workflows.save",
        "params": {"document": DOCUMENT}});
    let post = async |token: Option<&str>, path: &str, body: &Value| {
        let request = world.client.post(format!("{}{path}", world.url()));
        let request = request.header("a2a-version", "1.0").json(body);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let response = request.send().await.unwrap();
        (
            response.status().as_u16(),
            response.json::<Value>().await.unwrap(),
        )
    };
    let (_, saved) = post(Some("ann"), "/", &native).await;
    assert!(saved.get("result").is_some(), "{saved}");
    let public = world
        .client
        .get(format!("{}/.well-known/agent-card.json", world.url()));
    let public: Value = public.send().await.unwrap().json().await.unwrap();
    assert_eq!(public["capabilities"]["extendedAgentCard"], true);
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": {}});
    let skills = |card: &Value| -> Vec<String> {
        let all = card["result"]["skills"]
            .as_array()
            .unwrap_or_else(|| panic!("{card}"));
        all.iter()
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, card) = post(Some("ann"), "/a2a", &asked).await;
    assert!(
        skills(&card).contains(&"workflow:Greeting".to_owned()),
        "{card}"
    );
    assert_eq!(
        card["result"]["supportedInterfaces"],
        public["supportedInterfaces"]
    );
    let (_, others) = post(Some("bob"), "/a2a", &asked).await;
    assert_eq!(skills(&others), ["tasks.execute"]);
    let (status, _) = post(None, "/a2a", &asked).await;
    assert_eq!(status, 401);
}
