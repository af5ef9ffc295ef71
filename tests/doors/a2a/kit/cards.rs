//! The card: what it declares is what is served.

use super::{agent, said};
use crate::a2a::binding::all;
use serde_json::Value;
use taskledger_a2a::Operation::SendMessage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_names_every_binding_and_each_is_served_where_it_says() {
    let agent = agent().await;
    let card = agent.http.get(agent.at("/.well-known/agent-card.json"));
    let card: Value = card.send().await.unwrap().json().await.unwrap();
    for member in [
        "name",
        "description",
        "version",
        "supportedInterfaces",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ] {
        assert!(card.get(member).is_some(), "{member}: {card}");
    }
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let mut named = Vec::new();
    for interface in interfaces {
        named.push(interface["protocolBinding"].as_str().unwrap());
        assert_eq!(interface["protocolVersion"], "1.0", "{interface}");
        let url = interface["url"].as_str().unwrap();
        // The bindings of the tests are at these places.
        let known = [
            agent.at("/a2a"),
            agent.at("/a2a/rest"),
            agent.at("").replace("http://", ""),
        ];
        assert!(known.iter().any(|it| it == url), "{interface}");
    }
    named.sort_unstable();
    assert_eq!(named, ["GRPC", "HTTP+JSON", "JSONRPC"]);
    for skill in card["skills"].as_array().unwrap() {
        for member in ["id", "name", "description", "tags"] {
            assert!(skill.get(member).is_some(), "{member}: {skill}");
        }
    }
    for mut binding in all(&agent.server.api.url).await {
        let answer = binding
            .ask(SendMessage, said("tck-complete-task", "Hello"))
            .await;
        assert!(answer.is_ok(), "{}: {answer:?}", binding.name());
    }
    agent.server.stop().await;
}
