//! Calls of Agent2Agent and of the EventBus are counted like all others, whichever way they come in.

use super::scrape::{Scrape, scrape, server};
use reqwest::header::CONTENT_TYPE;
use serde_json::json;
use taskledger_a2a::grpc::{A2aServiceClient, pb};
use taskledger_eventbus::{EventBusClient, PublishTaskRequest, SubscribeToTasksRequest};
use taskledger_testkit::server::{Api, Folder};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
const CALLS: &str = "rpc_server_call_duration_seconds_count";

async fn channel(api: &Api) -> Channel {
    let url = api.url.trim_end_matches('/').to_owned();
    Endpoint::from_shared(url).unwrap().connect().await.unwrap()
}

/// Calls a method of the JSON-RPC binding.
async fn rpc(api: &Api, path: &str, method: &str) {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": NOBODY}});
    let request = api.http.post(format!("{}{path}", api.url)).json(&call);
    let request = request.header("a2a-version", "1.0");
    assert_eq!(request.send().await.unwrap().status(), 200, "{method}");
}

/// Reads a resource of the HTTP+JSON binding.
async fn rest(api: &Api, path: &str, status: u16) {
    let request = api.http.get(format!("{}a2a/rest/{path}", api.url));
    let request = request.header("a2a-version", "1.0");
    let request = request.header(CONTENT_TYPE, "application/json");
    assert_eq!(request.send().await.unwrap().status(), status, "{path}");
}

fn count(found: &Scrape, door: &str, method: &str, code: &str) -> f64 {
    let labels = [
        ("door", door),
        ("rpc_method", method),
        ("rpc_response_status_code", code),
    ];
    found.sum(CALLS, &labels)
}

#[tokio::test]
async fn calls_through_every_binding_are_counted_by_method_and_code() {
    // given
    let folder = Folder::new();
    let server = server(&folder).await;
    let api = &server.api;
    // when
    rpc(api, "a2a", "GetTask").await;
    rpc(api, "", "GetTask").await;
    rpc(api, "a2a", "ListTasks").await;
    rpc(api, "a2a", "MadeUp").await;
    rest(api, "tasks", 200).await;
    rest(api, &format!("tasks/{NOBODY}"), 404).await;
    rest(api, &format!("tasks/{NOBODY}/artifacts"), 404).await;
    rest(api, "made/up", 404).await;
    let mut agent = A2aServiceClient::new(channel(api).await);
    let mut request = tonic::Request::new(pb::GetTaskRequest {
        id: NOBODY.to_owned(),
        ..pb::GetTaskRequest::default()
    });
    let version = request.metadata_mut();
    version.insert("a2a-version", "1.0".parse().unwrap());
    let refused = agent.get_task(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let mut request = tonic::Request::new(pb::ListTasksRequest::default());
    let version = request.metadata_mut();
    version.insert("a2a-version", "1.0".parse().unwrap());
    agent.list_tasks(request).await.unwrap();
    let mut bus = EventBusClient::new(channel(api).await);
    let nothing = PublishTaskRequest { task: None };
    let refused = bus.publish_task(nothing).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let wanted = SubscribeToTasksRequest {
        agent_id: "a".to_owned(),
        task_types: vec!["x".to_owned()],
    };
    let stream = bus.subscribe_to_tasks(wanted).await.unwrap();
    drop(stream);
    // then
    let found = scrape(api).await;
    for (door, method, code, calls) in [
        ("a2a_jsonrpc", "GetTask", "NOT_FOUND", 2.0),
        ("a2a_jsonrpc", "ListTasks", "OK", 1.0),
        ("a2a_jsonrpc", "_OTHER", "UNIMPLEMENTED", 1.0),
        ("a2a_rest", "ListTasks", "OK", 1.0),
        ("a2a_rest", "GetTask", "NOT_FOUND", 1.0),
        ("a2a_rest", "ListArtifacts", "NOT_FOUND", 1.0),
        ("a2a_rest", "_OTHER", "UNIMPLEMENTED", 1.0),
        ("a2a_grpc", "GetTask", "NOT_FOUND", 1.0),
        ("a2a_grpc", "ListTasks", "OK", 1.0),
        ("eventbus", "PublishTask", "INVALID_ARGUMENT", 1.0),
        ("eventbus", "SubscribeToTasks", "OK", 1.0),
    ] {
        let counted = count(&found, door, method, code);
        assert_eq!(counted, calls, "{door} {method} {code}\n{}", found.text);
    }
    for (door, all) in [
        ("a2a_jsonrpc", 4.0),
        ("a2a_rest", 4.0),
        ("a2a_grpc", 2.0),
        ("eventbus", 2.0),
    ] {
        assert_eq!(found.sum(CALLS, &[("door", door)]), all, "{door}");
    }
    server.stop().await;
}
