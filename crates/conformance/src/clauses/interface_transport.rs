//! How calls travel. spec: interface / Protocol Standards, Transport Layer

use super::interface_rest::{sse_is_supported, the_card_is_json};
use super::prelude::*;
use reqwest::Method;

/// JSON-RPC: the server does not know this method.
const METHOD_NOT_FOUND: i64 = -32601;
/// Where servers commonly take WebSocket connections; the documents name no path.
const WEBSOCKET_PATHS: [&str; 3] = ["/", "/ws", "/tasks"];
/// Makes a GET a request for a WebSocket.
const WEBSOCKET_HEADERS: [(&str, &str); 4] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// The clauses of these sections.
pub(super) fn clauses() -> Vec<Clause> {
    vec![
        not_testable(
            Level::Must,
            "interface/standards/1-mandatory",
            "every implementation keeps the whole of the interface document",
            "it is the sum of all other clauses of the document",
        ),
        must(
            "interface/standards/2-json-rpc-over-http",
            "calls are JSON-RPC 2.0 over HTTP",
            post_is_answered,
        ),
        should(
            "interface/standards/3-a2a",
            "the server speaks the A2A protocol: an agent card, and A2A calls at `POST /`",
            a2a_is_spoken,
        )
        .same_as(&["interface/transport.a2a/1-http"]),
        may(
            "interface/standards/4-streaming-transports",
            "more transports, such as SSE and WebSocket, may serve streams",
            some_stream_is_offered,
        ),
        must(
            "interface/transport.http/1-http-version",
            "the server speaks HTTP/1.1 or HTTP/2",
            http_version_is_known,
        ),
        must(
            "interface/transport.http/2-post",
            "a request is a POST",
            post_is_answered,
        ),
        must(
            "interface/transport.http/3-endpoint",
            "requests go to `/` or to `/tasks`",
            an_endpoint_answers,
        ),
        must(
            "interface/transport.http/4-request-type",
            "a request is sent as `application/json`",
            json_is_accepted,
        ),
        must(
            "interface/transport.http/5-request-body",
            "the body is a JSON-RPC 2.0 request object",
            only_requests_are_bodies,
        ),
        must(
            "interface/transport.http/6-response-type",
            "results and errors come as `application/json`",
            answers_are_json,
        ),
        must(
            "interface/transport.http/7-response-body",
            "the body of an answer is a JSON-RPC 2.0 response object",
            answers_are_responses,
        ),
        should(
            "interface/transport.a2a/1-http",
            "A2A calls are taken over HTTP",
            a2a_is_spoken,
        )
        .same_as(&["interface/standards/3-a2a"]),
        should(
            "interface/transport.a2a/2-sse",
            "executions can be followed as server-sent events",
            sse_is_supported,
        ),
        should(
            "interface/transport.a2a/3-websocket",
            "executions can be followed over a WebSocket",
            websocket_is_offered,
        ),
        should(
            "interface/transport.a2a/4-agent-card",
            "`GET /.well-known/agent-card` tells what the agent can do",
            the_card_is_json,
        ),
        should(
            "interface/transport.a2a/5-rpc-endpoint",
            "`POST /` takes A2A calls",
            a2a_calls_are_taken,
        ),
    ]
}

/// A call that every server answers with a result, and its body.
fn list_request() -> Value {
    json!({"jsonrpc": "2.0", "method": "tasks.list", "params": {"limit": 1}, "id": "list"})
}

async fn post_is_answered(probe: &Probe) -> Outcome {
    let answer = probe.post(list_request().to_string()).await?;
    let result = answer.reply(&json!("list"))?.expect_result()?;
    ensure!(
        result["tasks"].is_array(),
        "{}: expected `tasks`",
        answer.story()
    );
    seen(format!("POST answered with {}", answer.status))
}

async fn http_version_is_known(probe: &Probe) -> Outcome {
    let answer = probe.post(list_request().to_string()).await?;
    ensure!(
        ["HTTP/1.1", "HTTP/2.0"].contains(&answer.version.as_str()),
        "{} in {}: expected HTTP/1.1 or HTTP/2",
        answer.story(),
        answer.version
    );
    seen(format!("answered in {}", answer.version))
}

async fn an_endpoint_answers(probe: &Probe) -> Outcome {
    let mut answering = Vec::new();
    let mut findings = Vec::new();
    for path in ["/", "/tasks"] {
        let body = list_request().to_string();
        let headers = [("content-type", "application/json")];
        let answer = probe.http(Method::POST, path, &headers, body).await?;
        match answer.reply(&json!("list")).and_then(Reply::expect_result) {
            Ok(_) => answering.push(path),
            Err(Finding::Failed(text) | Finding::Skipped(text)) => findings.push(text),
        }
    }
    ensure!(!answering.is_empty(), "{}", findings.join("; "));
    seen(format!("answered at {}", answering.join(" and ")))
}

async fn json_is_accepted(probe: &Probe) -> Outcome {
    for media_type in ["application/json", "application/json; charset=utf-8"] {
        let headers = [("content-type", media_type)];
        let answer = probe.raw(list_request().to_string(), &headers).await?;
        answer.reply(&json!("list"))?.expect_result()?;
    }
    seen("accepted, with and without `charset=utf-8`")
}

async fn only_requests_are_bodies(probe: &Probe) -> Outcome {
    for body in [
        "1",
        "\"tasks.list\"",
        "null",
        "{}",
        r#"{"method": "tasks.list"}"#,
    ] {
        let answer = probe.post(body).await?;
        answer.expect_error_without_id(-32600)?;
    }
    let answer = probe.post(list_request().to_string()).await?;
    answer.reply(&json!("list"))?.expect_result()?;
    seen("a request object has a result, other JSON is -32600")
}

async fn answers_are_json(probe: &Probe) -> Outcome {
    let unknown = json!({"jsonrpc": "2.0", "method": "no.such", "params": {}, "id": 1});
    for body in [
        list_request().to_string(),
        unknown.to_string(),
        "{".to_owned(),
    ] {
        let answer = probe.post(body).await?;
        let media_type = answer.header("content-type");
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        ensure!(
            essence.eq_ignore_ascii_case("application/json"),
            "{} as `{media_type}`: expected `application/json`",
            answer.story()
        );
    }
    seen("a result, a refusal and a parse error are `application/json`")
}

async fn answers_are_responses(probe: &Probe) -> Outcome {
    probe.result("tasks.list", json!({"limit": 1})).await?;
    let error = probe
        .refused("no.such", json!({}), METHOD_NOT_FOUND)
        .await?;
    seen(format!("a result and {error}"))
}

async fn a2a_calls_are_taken(probe: &Probe) -> Outcome {
    // The method has had two names in the versions of that protocol.
    let part = json!({"kind": "text", "text": "hello"});
    let message = json!({"kind": "message", "role": "user", "messageId": "1", "parts": [part]});
    for method in ["message/send", "SendMessage"] {
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}});
        let headers = [("content-type", "application/json")];
        let answer = probe
            .http(Method::POST, "/", &headers, call.to_string())
            .await?;
        let code = answer.reply(&json!(1))?.outcome.err().map(|e| e.code);
        if code != Some(METHOD_NOT_FOUND) {
            return seen(format!("`{method}` is known"));
        }
    }
    let text = "neither `message/send` nor `SendMessage` is known at `POST /`";
    Err(Finding::failed(text))
}

pub(super) async fn a2a_is_spoken(probe: &Probe) -> Outcome {
    the_card_is_json(probe).await?;
    a2a_calls_are_taken(probe).await
}

pub(super) async fn websocket_is_offered(probe: &Probe) -> Outcome {
    for path in WEBSOCKET_PATHS {
        let answer = probe
            .http(Method::GET, path, &WEBSOCKET_HEADERS, "")
            .await?;
        if answer.status == 101 {
            return seen(format!("GET {path} is upgraded"));
        }
    }
    Err(Finding::failed(format!(
        "a GET with `Upgrade: websocket` is not answered with 101 at any of {WEBSOCKET_PATHS:?}"
    )))
}

async fn some_stream_is_offered(probe: &Probe) -> Outcome {
    let offers = [
        sse_is_supported(probe).await,
        websocket_is_offered(probe).await,
    ];
    let offered = offers.into_iter().find_map(Result::ok);
    offered.ok_or_else(|| Finding::skipped("neither SSE nor WebSocket is offered"))
}
