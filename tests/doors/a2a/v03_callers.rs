//! Version 0.3: what is pushed, which extensions are active, and to whom what belongs.

use super::v03::{ABSENT, ON, at_once, runs, waiting};
use super::wire::{Agent, call, reason};
use super::{echo, endless};
use crate::isolation::world::World;
use crate::webhooks::site::arguments;
use serde_json::{Value, json};
use taskledger_a2a::v03::grpc::{A2aServiceClient, pb};
use taskledger_testkit::receiver::Receiver;
use taskledger_testkit::server::{Folder, Server};
use tonic::transport::Endpoint;
use tonic::{Code, Request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_pushed_as_the_task() {
    let folder = Folder::new();
    let all = arguments(&folder);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let server = Server::start_with(&folder, &[&all, ON].concat()).await;
    let receiver = Receiver::start().await;
    let mut params = waiting(runs(json!([echo("a")])));
    params["configuration"]["pushNotificationConfig"] =
        json!({"id": "p", "url": receiver.url("/hook"), "token": "t0ken-t0ken"});
    let http = taskledger::tls::client().build().unwrap();
    let url = format!("{}/a2a", server.api.url.trim_end_matches('/'));
    let sent = http.post(url).header("content-type", "application/json");
    let done: Value = sent
        .body(call("message/send", &params))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let task = &done["result"]["id"];
    let requests = receiver.wait_for(3).await;
    let bodies: Vec<Value> = requests
        .iter()
        .map(|it| serde_json::from_slice(&it.body).unwrap())
        .collect();
    for (request, body) in requests.iter().zip(&bodies) {
        assert_eq!(
            (&body["kind"], &body["id"]),
            (&json!("task"), task),
            "{body}"
        );
        let content_type = request.header("content-type");
        assert_eq!(content_type, Some("application/json; version=0.3"));
        assert_eq!(
            request.header("x-a2a-notification-token"),
            Some("t0ken-t0ken")
        );
    }
    let states: Vec<_> = bodies
        .iter()
        .map(|it| it["status"]["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["working", "working", "completed"]);
    assert_eq!(bodies[1]["artifacts"][0]["parts"][0]["data"]["text"], "a");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_have_the_header_of_0_3() {
    let agent = Agent::start(ON).await;
    let request = agent
        .http
        .post(agent.at("/a2a"))
        .header("content-type", "application/json");
    let request = request.header("x-a2a-extensions", "urn:other, urn:taskledger:a2a:nodes:v1");
    let response = request
        .body(call("message/send", &waiting(runs(json!([echo("a")])))))
        .send();
    let response = response.await.unwrap();
    assert_eq!(
        response.headers()["x-a2a-extensions"],
        "urn:taskledger:a2a:nodes:v1"
    );
    assert!(!response.headers().contains_key("a2a-extensions"));
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_others_does_not_exist_in_0_3_either() {
    let mut listener = taskledger::transport::http::Options::default();
    listener.a2a.v03 = true;
    let world = World::listening(listener).await;
    let post = async |token: Option<&str>, method: &str, params: &Value| {
        let request = world.client.post(format!("{}/a2a", world.url()));
        let request = request
            .header("content-type", "application/json")
            .body(call(method, params));
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let (_, begun) = post(
        Some("ann"),
        "message/send",
        &at_once(runs(json!([endless()]))),
    )
    .await;
    let id = begun["result"]["id"].as_str().unwrap().to_owned();
    let channel = Endpoint::from_shared(world.url().to_owned()).unwrap();
    let mut grpc = A2aServiceClient::new(channel.connect().await.unwrap());
    for method in [
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/pushNotificationConfig/list",
    ] {
        let mut answers = Vec::new();
        for of in [&*id, ABSENT] {
            let (status, answer) = post(Some("bob"), method, &json!({"id": of})).await;
            assert_eq!(
                (status, &answer["error"]["code"]),
                (200, &json!(-32001)),
                "{method}"
            );
            answers.push(answer.to_string().replace(of, "ID"));
        }
        assert_eq!(answers[0], answers[1], "{method}");
    }
    for of in [&*id, ABSENT] {
        let path = format!("{}/a2a/rest/v1/tasks/{of}", world.url());
        let seen = world
            .client
            .get(path)
            .bearer_auth("bob")
            .send()
            .await
            .unwrap();
        assert_eq!(seen.status(), 404);
        let mut request = Request::new(pb::GetTaskRequest {
            name: format!("tasks/{of}"),
            history_length: 0,
        });
        request
            .metadata_mut()
            .insert("authorization", "Bearer bob".parse().unwrap());
        assert_eq!(
            grpc.get_task(request).await.unwrap_err().code(),
            Code::NotFound
        );
    }
    let (status, answer) = post(None, "tasks/get", &json!({"id": id})).await;
    assert_eq!((status, reason(&answer)), (401, &json!("UNAUTHENTICATED")));
    let (status, _) = post(Some("reader"), "message/send", &runs(json!([echo("a")]))).await;
    assert_eq!(status, 403);
    let refused = grpc
        .get_agent_card(pb::GetAgentCardRequest {})
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let path = format!("{}/a2a/rest/v1/card", world.url());
    assert_eq!(world.client.get(&path).send().await.unwrap().status(), 401);
    let (_, card) = post(
        Some("ann"),
        "agent/getAuthenticatedExtendedCard",
        &json!({}),
    )
    .await;
    let card = &card["result"];
    assert_eq!(card["securitySchemes"]["bearer"]["type"], "http");
    assert_eq!(card["security"][0]["bearer"][0], "tasks:read");
    assert_eq!(card["supportsAuthenticatedExtendedCard"], true);
}
