//! The codes and the forms of errors on each binding.

use super::{Agent, agent, said, sent};
use crate::a2a::binding::all;
use serde_json::{Value, json};
use taskledger_a2a::grpc::{A2aServiceClient, pb, status};
use tonic::transport::Endpoint;
use tonic::{Code, Request};

const VERSION: (&str, &str) = ("a2a-version", "1.0");
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";
const DOMAIN: &str = "a2a-protocol.org";

/// An error that a request provokes: its reason, and its codes.
struct Case {
    reason: &'static str,
    code: i64,
    http: u16,
    grpc: Code,
}

fn is_error_info(detail: &Value, reason: &str) -> bool {
    detail["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
        && detail["reason"] == reason
        && detail["domain"] == DOMAIN
}

/// Checks an answer over JSON-RPC.
async fn over_rpc(agent: &Agent, (method, params): (&str, &Value), case: &Case) {
    let call = json!({"jsonrpc": "2.0", "id": "e-1", "method": method, "params": params});
    let request = agent
        .http
        .post(agent.at("/a2a"))
        .header(VERSION.0, VERSION.1);
    let response = request.json(&call).send().await.unwrap();
    assert_eq!(response.status(), 200, "{}", case.reason);
    assert_eq!(response.headers()["content-type"], "application/json");
    let answer: Value = response.json().await.unwrap();
    let members: Vec<_> = answer
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(members.len(), 3, "{answer}");
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!("e-1"))
    );
    let error = answer["error"].as_object().unwrap();
    assert!(
        error
            .keys()
            .all(|it| ["code", "message", "data"].contains(&it.as_str())),
        "{answer}"
    );
    assert_eq!(error["code"], case.code, "{answer}");
    assert!(
        error["message"].as_str().is_some_and(|it| !it.is_empty()),
        "{answer}"
    );
    assert!(is_error_info(&error["data"][0], case.reason), "{answer}");
}

/// Checks an answer over HTTP+JSON.
async fn over_rest(request: reqwest::RequestBuilder, case: &Case) {
    let response = request.header(VERSION.0, VERSION.1).send().await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(status, case.http, "{}", case.reason);
    assert_eq!(response.headers()["content-type"], "application/a2a+json");
    let answer: Value = response.json().await.unwrap();
    let error = answer["error"].as_object().unwrap();
    assert_eq!(error["code"], status, "{answer}");
    assert!(
        error["status"].as_str().is_some_and(|it| !it.is_empty()),
        "{answer}"
    );
    assert!(
        error["message"].as_str().is_some_and(|it| !it.is_empty()),
        "{answer}"
    );
    assert!(is_error_info(&error["details"][0], case.reason), "{answer}");
}

fn named<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert(VERSION.0, VERSION.1.parse().unwrap());
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_the_codes_and_forms_of_their_binding() {
    let agent = Agent::start(&["--a2a-conformance-executor", "--a2a-push", "off"]).await;
    let mut bindings = all(&agent.server.api.url).await;
    let ended = sent(
        &mut *bindings[0],
        said("tck-complete-task", "Hello"),
        "COMPLETED",
    )
    .await;
    let ended = ended["id"].as_str().unwrap();
    let url = agent.server.api.url.trim_end_matches('/').to_owned();
    let channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
    let mut grpc = A2aServiceClient::new(channel);
    let rest = |path: &str| agent.at(&format!("/a2a/rest{path}"));
    let check = |refused: tonic::Status, case: &Case| {
        assert_eq!(refused.code(), case.grpc, "{refused:?}");
        let (reason, domain) = status::reasons(&refused)[0].clone();
        assert_eq!((&*reason, &*domain), (case.reason, DOMAIN));
    };

    let case = Case {
        reason: "TASK_NOT_FOUND",
        code: -32001,
        http: 404,
        grpc: Code::NotFound,
    };
    over_rpc(&agent, ("GetTask", &json!({"id": UNKNOWN})), &case).await;
    over_rest(agent.http.get(rest(&format!("/tasks/{UNKNOWN}"))), &case).await;
    let request = pb::GetTaskRequest {
        id: UNKNOWN.to_owned(),
        ..Default::default()
    };
    check(grpc.get_task(named(request)).await.unwrap_err(), &case);

    let failed = Code::FailedPrecondition;
    let case = Case {
        reason: "TASK_NOT_CANCELABLE",
        code: -32002,
        http: 400,
        grpc: failed,
    };
    over_rpc(&agent, ("CancelTask", &json!({"id": ended})), &case).await;
    over_rest(
        agent.http.post(rest(&format!("/tasks/{ended}:cancel"))),
        &case,
    )
    .await;
    let request = pb::CancelTaskRequest {
        id: ended.to_owned(),
        ..Default::default()
    };
    check(grpc.cancel_task(named(request)).await.unwrap_err(), &case);

    let case = Case {
        reason: "PUSH_NOTIFICATION_NOT_SUPPORTED",
        code: -32003,
        http: 400,
        grpc: failed,
    };
    over_rpc(
        &agent,
        ("ListTaskPushNotificationConfigs", &json!({"taskId": ended})),
        &case,
    )
    .await;
    let configs = rest(&format!("/tasks/{ended}/pushNotificationConfigs"));
    over_rest(agent.http.get(configs), &case).await;
    let request = pb::ListTaskPushNotificationConfigsRequest {
        task_id: ended.to_owned(),
        ..Default::default()
    };
    check(
        grpc.list_task_push_notification_configs(named(request))
            .await
            .unwrap_err(),
        &case,
    );

    let case = Case {
        reason: "UNSUPPORTED_OPERATION",
        code: -32004,
        http: 400,
        grpc: failed,
    };
    over_rpc(&agent, ("SubscribeToTask", &json!({"id": ended})), &case).await;
    over_rest(
        agent.http.get(rest(&format!("/tasks/{ended}:subscribe"))),
        &case,
    )
    .await;
    let request = pb::SubscribeToTaskRequest {
        id: ended.to_owned(),
        ..Default::default()
    };
    check(
        grpc.subscribe_to_task(named(request)).await.unwrap_err(),
        &case,
    );

    let case = Case {
        reason: "UNSUPPORTED_OPERATION",
        code: -32004,
        http: 400,
        grpc: failed,
    };
    over_rpc(&agent, ("GetExtendedAgentCard", &json!({})), &case).await;
    over_rest(agent.http.get(rest("/extendedAgentCard")), &case).await;
    let request = pb::GetExtendedAgentCardRequest::default();
    check(
        grpc.get_extended_agent_card(named(request))
            .await
            .unwrap_err(),
        &case,
    );

    let case = Case {
        reason: "CONTENT_TYPE_NOT_SUPPORTED",
        code: -32005,
        http: 400,
        grpc: Code::InvalidArgument,
    };
    let mut odd = said("tck-send-003", "Hello");
    odd["message"]["parts"] = json!([{"raw": "dGNr", "mediaType": "application/x-odd"}]);
    over_rpc(&agent, ("SendMessage", &odd), &case).await;
    over_rest(agent.http.post(rest("/message:send")).json(&odd), &case).await;

    let case = Case {
        reason: "INVALID_PARAMS",
        code: -32602,
        http: 400,
        grpc: Code::InvalidArgument,
    };
    let mut empty = said("tck-complete-task", "Hello");
    empty["message"]["parts"] = json!([]);
    over_rpc(&agent, ("SendMessage", &empty), &case).await;
    over_rest(agent.http.post(rest("/message:send")).json(&empty), &case).await;
    let request = pb::SendMessageRequest::default();
    check(grpc.send_message(named(request)).await.unwrap_err(), &case);
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_request_is_told_with_its_fields_before_anything_is_done() {
    let agent = agent().await;
    let agent = &agent;
    let post = async |body: &Value| {
        let request = agent
            .http
            .post(agent.at("/a2a/rest/message:send"))
            .json(body);
        let response = request.header(VERSION.0, VERSION.1).send().await.unwrap();
        (
            response.status().as_u16(),
            response.json::<Value>().await.unwrap(),
        )
    };
    for (member, wrong, field) in [
        ("role", json!("ROLE_NOBODY"), "message.role"),
        ("messageId", json!(7), "message.messageId"),
        ("parts", json!([]), "message.parts"),
        ("parts", json!([{}]), "message.parts[0]"),
        (
            "parts",
            json!([{"text": "a", "url": "b"}]),
            "message.parts[0]",
        ),
    ] {
        let mut request = said("tck-complete-task", "Hello");
        request["message"][member] = wrong.clone();
        let (status, answer) = post(&request).await;
        assert_eq!(status, 400, "{wrong}: {answer}");
        let violations = &answer["error"]["details"][1]["fieldViolations"];
        assert_eq!(violations[0]["field"], field, "{wrong}: {answer}");
    }
    // What nobody knows is ignored.
    let mut request = said("tck-complete-task", "Hello");
    request["message"]["unknownMember"] = json!(1);
    request["another"] = json!({});
    let (status, answer) = post(&request).await;
    assert_eq!(status, 200, "{answer}");
    let list = agent
        .http
        .get(agent.at("/a2a/rest/tasks"))
        .header(VERSION.0, VERSION.1);
    let list: Value = list.send().await.unwrap().json().await.unwrap();
    assert_eq!(list["totalSize"], 1, "only the last one was begun");
}
