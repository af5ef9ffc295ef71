//! With authentication: 401 and 403 by the table, and what belongs to others does not exist, on every binding.

use super::binding::all_as;
use super::{endless, runs};
use crate::isolation::world::World;
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger::transport::http::Options;
use taskledger_a2a::Operation;
use taskledger_a2a::grpc::{A2aServiceClient, pb, status};
use tonic::transport::Endpoint;
use tonic::{Code, Request};

async fn post(world: &World, path: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
    let request = world.client.post(format!("{}{path}", world.url()));
    let request = request.header("a2a-version", "1.0").json(body);
    let request = match token {
        None => request,
        Some(token) => request.bearer_auth(token),
    };
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    if status == 401 {
        assert!(response.headers().contains_key("www-authenticate"));
    }
    (status, response.json().await.unwrap())
}

fn call(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn reason(answer: &Value) -> &Value {
    let error = &answer["error"];
    let details = error.get("data").or_else(|| error.get("details"));
    details.map_or(&Value::Null, |it| &it[0]["reason"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_others_does_not_exist_on_any_binding() {
    let world = World::start().await;
    let mut send = runs(json!([endless()]));
    send["configuration"] = json!({"returnImmediately": true});
    let (status, begun) = post(&world, "/a2a/rest/message:send", Some("ann"), &send).await;
    assert_eq!(status, 200, "{begun}");
    let id = begun["task"]["id"].as_str().unwrap().to_owned();
    let absent = "00000000-0000-4000-8000-000000000000";
    let channel = Endpoint::from_shared(world.url().to_owned()).unwrap();
    let mut grpc = A2aServiceClient::new(channel.connect().await.unwrap());
    let mut told =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}});
    for operation in ["GetTask", "CancelTask", "SubscribeToTask", "SendMessage"] {
        let mut answers = Vec::new();
        for of in [&*id, absent] {
            told["message"]["taskId"] = json!(of);
            let params = match operation {
                "SendMessage" => told.clone(),
                _ => json!({"id": of}),
            };
            let (status, answer) =
                post(&world, "/a2a", Some("bob"), &call(operation, &params)).await;
            assert_eq!(
                (status, &answer["error"]["code"]),
                (200, &json!(-32001)),
                "{operation}"
            );
            answers.push(answer.to_string().replace(of, "ID"));
        }
        assert_eq!(answers[0], answers[1], "{operation}");
    }
    for of in [&*id, absent] {
        let (status, answer) = post(
            &world,
            &format!("/a2a/rest/tasks/{of}:cancel"),
            Some("bob"),
            &json!({}),
        )
        .await;
        assert_eq!((status, reason(&answer)), (404, &json!("TASK_NOT_FOUND")));
        let mut request = Request::new(pb::GetTaskRequest {
            id: of.to_owned(),
            ..Default::default()
        });
        request
            .metadata_mut()
            .insert("a2a-version", "1.0".parse().unwrap());
        request
            .metadata_mut()
            .insert("authorization", "Bearer bob".parse().unwrap());
        let refused = grpc.get_task(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
    }
    let mut seen = Vec::new();
    for of in [&*id, absent] {
        let path = format!("{}/a2a/rest/tasks/{of}/artifacts", world.url());
        let page = world.client.get(path).bearer_auth("bob").send();
        let page = page.await.unwrap();
        assert_eq!(page.status(), 404);
        seen.push(page.text().await.unwrap().replace(of, "ID"));
    }
    assert_eq!(seen[0], seen[1]);
    let (_, list) = post(&world, "/a2a", Some("bob"), &call("ListTasks", &json!({}))).await;
    assert_eq!(list["result"]["totalSize"], 0, "{list}");
    let (_, list) = post(&world, "/a2a", Some("ann"), &call("ListTasks", &json!({}))).await;
    assert_eq!(list["result"]["totalSize"], 1, "{list}");

    // No credentials, and too few.
    let (status, answer) = post(&world, "/a2a", None, &call("ListTasks", &json!({}))).await;
    assert_eq!((status, reason(&answer)), (401, &json!("UNAUTHENTICATED")));
    let (status, answer) = post(&world, "/a2a/rest/message:send", None, &send).await;
    assert_eq!((status, reason(&answer)), (401, &json!("UNAUTHENTICATED")));
    let (status, answer) = post(&world, "/a2a/rest/message:send", Some("reader"), &send).await;
    assert_eq!(
        (status, reason(&answer)),
        (403, &json!("PERMISSION_DENIED"))
    );
    let (status, answer) = post(&world, "/a2a", Some("reader"), &call("SendMessage", &send)).await;
    assert_eq!(
        (status, reason(&answer)),
        (403, &json!("PERMISSION_DENIED"))
    );
    let refused = grpc
        .get_task(pb::GetTaskRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert_eq!(status::reasons(&refused)[0].0, "UNAUTHENTICATED");
    let card = world
        .client
        .get(format!("{}/.well-known/agent-card.json", world.url()));
    let card: Value = card.send().await.unwrap().json().await.unwrap();
    let scheme = &card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"];
    assert_eq!(scheme, "Bearer");
    assert_eq!(
        card["securityRequirements"][0]["schemes"]["bearer"]["list"][0],
        "tasks:read"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_says_where_issuers_describe_themselves() {
    let urls = ["https://one.example", "https://two.example"];
    let urls = urls.map(|url| Arc::from(format!("{url}/.well-known/openid-configuration")));
    let mut options = Options::default();
    options.a2a.discovery_urls = Arc::new(urls);
    let world = World::listening(options).await;
    let card = world
        .client
        .get(format!("{}/.well-known/agent-card.json", world.url()));
    let card: Value = card.send().await.unwrap().json().await.unwrap();
    let schemes = &card["securitySchemes"];
    for (name, host) in [("oidc", "one"), ("oidc-2", "two")] {
        let url = &schemes[name]["openIdConnectSecurityScheme"]["openIdConnectUrl"];
        let expected = format!("https://{host}.example/.well-known/openid-configuration");
        assert_eq!(*url, expected, "{card}");
    }
    assert_eq!(
        schemes["bearer"]["httpAuthSecurityScheme"]["scheme"],
        "Bearer"
    );
    // Any one of them is enough.
    let requirements = card["securityRequirements"].as_array().unwrap();
    let names = requirements.iter().map(|it| {
        let names = it["schemes"].as_object().unwrap().keys();
        names.map(String::as_str).collect::<Vec<_>>()
    });
    assert_eq!(
        names.collect::<Vec<_>>(),
        [["bearer"], ["oidc"], ["oidc-2"]]
    );
    world.close().await;
}

/// A request that is well formed, for every operation.
fn well_formed(operation: Operation) -> Value {
    let id = "00000000-0000-4000-8000-000000000000";
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => runs(json!([endless()])),
        Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask => {
            json!({"id": id})
        }
        Operation::ListTasks | Operation::GetExtendedAgentCard => json!({}),
        Operation::CreateTaskPushNotificationConfig => {
            json!({"taskId": id, "url": "https://a.example/"})
        }
        Operation::GetTaskPushNotificationConfig | Operation::DeleteTaskPushNotificationConfig => {
            json!({"taskId": id, "id": "a"})
        }
        Operation::ListTaskPushNotificationConfigs => json!({"taskId": id}),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_needs_credentials_on_every_binding() {
    let world = World::start().await;
    for (token, expected) in [(None, true), (Some("nobody"), true), (Some("ann"), false)] {
        for mut binding in all_as(world.url(), token).await {
            for operation in Operation::ALL {
                // What it would begin would not end.
                let begins = matches!(
                    operation,
                    Operation::SendMessage | Operation::SendStreamingMessage
                );
                if begins && !expected {
                    continue;
                }
                let request = well_formed(operation);
                let answer = match operation {
                    Operation::SendStreamingMessage | Operation::SubscribeToTask => {
                        let items = binding.stream(operation, request).await;
                        items.map(Value::Array)
                    }
                    Operation::SendMessage
                    | Operation::GetTask
                    | Operation::ListTasks
                    | Operation::CancelTask
                    | Operation::CreateTaskPushNotificationConfig
                    | Operation::GetTaskPushNotificationConfig
                    | Operation::ListTaskPushNotificationConfigs
                    | Operation::DeleteTaskPushNotificationConfig
                    | Operation::GetExtendedAgentCard => binding.ask(operation, request).await,
                };
                let refused = answer.err();
                let reason = refused.as_ref().map(|it| &*it.reasons[0]);
                let is_denied = reason == Some("UNAUTHENTICATED");
                let name = binding.name();
                assert_eq!(is_denied, expected, "{name} {operation:?}: {refused:?}");
            }
        }
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_shows_no_credentials_or_wrong_ones_is_told_which_under_the_id_of_the_call() {
    let world = World::start().await;
    let listing = json!({"jsonrpc": "2.0", "id": "c-7", "method": "ListTasks", "params": {}});
    for path in ["/a2a", "/"] {
        let mut told = Vec::new();
        for token in [None, Some("nobody")] {
            let (status, answer) = post(&world, path, token, &listing).await;
            assert_eq!(status, 401, "{answer}");
            assert_eq!(answer["id"], "c-7", "{answer}");
            assert_eq!(reason(&answer), "UNAUTHENTICATED");
            told.push(answer["error"]["message"].as_str().unwrap().to_owned());
        }
        assert!(told[0].contains("are required"), "{told:?}");
        assert!(told[1].contains("are not known"), "{told:?}");
    }
    // What cannot be read has no id.
    let url = format!("{}/a2a", world.url());
    let broken = world
        .client
        .post(url)
        .header("content-type", "application/json")
        .body("{");
    let broken = broken.send().await.unwrap();
    assert_eq!(broken.status(), 401);
    let broken: Value = broken.json().await.unwrap();
    assert_eq!(broken["id"], Value::Null, "{broken}");
    let mut told = Vec::new();
    for token in [None, Some("nobody")] {
        let path = "/a2a/rest/message:send";
        let (status, answer) = post(&world, path, token, &runs(json!([endless()]))).await;
        assert_eq!(status, 401, "{answer}");
        told.push(answer["error"]["message"].as_str().unwrap().to_owned());
    }
    assert_ne!(told[0], told[1]);
    world.close().await;
}
