//! Versions and extensions, as each binding carries them.

use super::{Agent, agent};
use serde_json::{Value, json};
use taskledger_a2a::grpc::{A2aServiceClient, pb, status};
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

async fn grpc(agent: &Agent) -> A2aServiceClient<Channel> {
    let url = agent.server.api.url.trim_end_matches('/').to_owned();
    A2aServiceClient::new(Endpoint::from_shared(url).unwrap().connect().await.unwrap())
}

/// A request for the list of tasks, with this metadata.
fn listing(metadata: &[(&'static str, &str)]) -> Request<pb::ListTasksRequest> {
    let mut request = Request::new(pb::ListTasksRequest::default());
    for (name, value) in metadata {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    request
}

/// Whether a list of tasks is answered to clients that name this version, and if not, with which reasons.
async fn answered(agent: &Agent, version: Option<&str>) -> [Option<String>; 3] {
    let url = agent.server.api.url.trim_end_matches('/');
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}});
    let rpc = agent.http.post(format!("{url}/a2a")).json(&call);
    let rest = agent.http.get(format!("{url}/a2a/rest/tasks"));
    let with = |request: reqwest::RequestBuilder| match version {
        None => request,
        Some(version) => request.header("a2a-version", version),
    };
    let json = async |request| -> Value {
        let response = with(request).send().await.unwrap();
        response.json().await.unwrap()
    };
    let reason = |details: &Value| details[0]["reason"].as_str().map(str::to_owned);
    let rpc = reason(&json(rpc).await["error"]["data"]);
    let rest = reason(&json(rest).await["error"]["details"]);
    let metadata: Vec<_> = version.into_iter().map(|it| ("a2a-version", it)).collect();
    let answer = grpc(agent).await.list_tasks(listing(&metadata)).await;
    let grpc = answer
        .err()
        .map(|refused| status::reasons(&refused)[0].0.clone());
    [rpc, rest, grpc]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_is_served_whatever_its_patch_and_others_are_refused_on_every_binding() {
    let agent = agent().await;
    for served in ["1.0", "1.0.0", "1.0.1", "1.0.7"] {
        assert_eq!(
            answered(&agent, Some(served)).await,
            [None, None, None],
            "{served}"
        );
    }
    let unsupported = || Some("VERSION_NOT_SUPPORTED".to_owned());
    for refused in [
        None,
        Some(""),
        Some("0.3"),
        Some("1.1"),
        Some("99.0"),
        Some("one"),
    ] {
        let found = answered(&agent, refused).await;
        assert_eq!(
            found,
            [unsupported(), unsupported(), unsupported()],
            "{refused:?}"
        );
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_are_announced_and_echoed_in_headers_and_metadata() {
    let agent = Agent::start(&["--a2a-required-extension", "urn:example:required"]).await;
    let url = agent.server.api.url.trim_end_matches('/');
    let both = "urn:other, urn:example:required";
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}});
    for request in [
        agent.http.post(format!("{url}/a2a")).json(&call),
        agent.http.get(format!("{url}/a2a/rest/tasks")),
    ] {
        let request = request
            .header("a2a-version", "1.0")
            .header("a2a-extensions", both);
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["a2a-extensions"], "urn:example:required");
        let answer: Value = response.json().await.unwrap();
        assert!(answer.get("error").is_none(), "{answer}");
    }
    let mut grpc = grpc(&agent).await;
    let named = [("a2a-version", "1.0"), ("a2a-extensions", both)];
    let answer = grpc.list_tasks(listing(&named)).await.unwrap();
    assert_eq!(
        answer.metadata().get("a2a-extensions").unwrap(),
        "urn:example:required"
    );
    let refused = grpc.list_tasks(listing(&named[..1])).await.unwrap_err();
    assert_eq!(status::reasons(&refused)[0].0, "EXTENSION_SUPPORT_REQUIRED");
    agent.server.stop().await;
}
