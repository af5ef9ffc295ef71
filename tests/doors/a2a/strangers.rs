//! With authentication: 401 and 403 by the table, and what belongs to others does not exist, on every binding.

use super::{endless, runs};
use crate::isolation::world::World;
use serde_json::{Value, json};
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
