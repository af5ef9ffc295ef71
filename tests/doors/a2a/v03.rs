//! Version 0.3, where it is switched on: the wire of each operation, the dialect of a call, the card.

use super::wire::{Agent, JSON, VERSION, call, reason};
use super::{echo, endless, question};
use serde_json::{Value, json};
use taskledger_a2a::v03::grpc::{A2aServiceClient, pb};
use tonic::transport::Endpoint;
use tonic::{Code, Request};

pub(super) const ON: &[&str] = &["--a2a-0.3"];
pub(super) const ABSENT: &str = "00000000-0000-4000-8000-000000000000";

/// A message of 0.3 that runs these tasks.
pub(super) fn runs(tasks: Value) -> Value {
    json!({"message": {"kind": "message", "messageId": "m-1", "role": "user", "parts": [
        {"kind": "text", "text": "please"}, {"kind": "data", "data": {"tasks": tasks}}]}})
}

pub(super) fn at_once(mut params: Value) -> Value {
    params["configuration"] = json!({"blocking": false});
    params
}

pub(super) fn waiting(mut params: Value) -> Value {
    params["configuration"] = json!({"blocking": true});
    params
}

async fn asked(agent: &Agent, method: &str, params: &Value) -> Value {
    let (status, answer) = agent.post("/a2a", &[JSON], &call(method, params)).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

async fn result(agent: &Agent, method: &str, params: &Value) -> Value {
    let answer = asked(agent, method, params).await;
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].clone()
}

/// The results on a stream of JSON-RPC, or the items of one over HTTP+JSON.
async fn told(response: reqwest::Response) -> Vec<Value> {
    assert_eq!(response.status(), 200);
    let text = response.text().await.unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            match line.get_mut("result") {
                Some(result) => result.take(),
                None => line,
            }
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_operation_has_the_wire_of_0_3_over_json_rpc() {
    let agent = Agent::start(ON).await;
    let done = result(&agent, "message/send", &waiting(runs(json!([echo("a")])))).await;
    assert_eq!(done["kind"], "task");
    assert_eq!(done["status"]["state"], "completed");
    assert_eq!(done["history"][0]["role"], "user");
    assert_eq!(done["history"][0]["kind"], "message");
    assert_eq!(done["history"][0]["parts"][0]["kind"], "text");
    let part = &done["artifacts"][0]["parts"][0];
    assert_eq!(part["kind"], "data");
    assert_eq!(part["data"]["text"], "a");
    assert!(part.get("mediaType").is_none(), "{part}");

    let direct = json!({"message": {"kind": "message", "messageId": "m", "role": "user",
        "parts": [{"kind": "text", "text": "hello"}]}});
    let direct = result(&agent, "message/send", &direct).await;
    assert_eq!(
        (&direct["kind"], &direct["role"]),
        (&json!("message"), &json!("agent"))
    );

    // It waits unless the request says that it does not.
    let short = result(&agent, "message/send", &runs(json!([echo("b")]))).await;
    assert_eq!(short["status"]["state"], "completed", "{short}");
    let long = result(&agent, "message/send", &at_once(runs(json!([endless()])))).await;
    let state = long["status"]["state"].as_str().unwrap();
    assert!(["submitted", "working"].contains(&state), "{long}");
    let id = json!({"id": long["id"]});
    let read = result(
        &agent,
        "tasks/get",
        &json!({"id": long["id"], "historyLength": 0}),
    )
    .await;
    assert_eq!(read["id"], long["id"]);
    assert!(read.get("history").is_none(), "{read}");

    let configs = "tasks/pushNotificationConfig";
    let none = asked(&agent, &format!("{configs}/get"), &id).await;
    assert_eq!(none["error"]["code"], -32001);
    let config = json!({"id": "first", "url": "https://example.com/hook",
        "authentication": {"schemes": ["Bearer", "Basic"], "credentials": "hunter2-hunter2"}});
    let set = json!({"taskId": long["id"], "pushNotificationConfig": config});
    let kept = json!({"taskId": long["id"], "pushNotificationConfig": {"id": "first",
        "url": "https://example.com/hook", "authentication": {"schemes": ["Bearer"]}}});
    assert_eq!(result(&agent, &format!("{configs}/set"), &set).await, kept);
    let one = json!({"id": long["id"], "pushNotificationConfigId": "first"});
    assert_eq!(result(&agent, &format!("{configs}/get"), &one).await, kept);
    assert_eq!(result(&agent, &format!("{configs}/get"), &id).await, kept);
    assert_eq!(
        result(&agent, &format!("{configs}/list"), &id).await,
        json!([kept])
    );
    assert_eq!(
        result(&agent, &format!("{configs}/delete"), &one).await,
        Value::Null
    );
    assert_eq!(
        result(&agent, &format!("{configs}/list"), &id).await,
        json!([])
    );

    let stream = agent
        .http
        .post(agent.at("/a2a"))
        .header("content-type", "application/json");
    let stream = stream
        .body(call("tasks/resubscribe", &id))
        .send()
        .await
        .unwrap();
    let cancelled = result(&agent, "tasks/cancel", &id).await;
    assert_eq!(cancelled["status"]["state"], "canceled");
    let followed = told(stream).await;
    assert_eq!(followed[0]["kind"], "task");
    let last = followed.last().unwrap();
    assert_eq!(
        (&last["kind"], &last["final"]),
        (&json!("status-update"), &json!(true))
    );
    assert_eq!(last["status"]["state"], "canceled");

    // A stream ends at a question, which its last item says. It comes while the stream is read.
    let pause = json!({"id": "pause", "name": "pause", "parent_id": "ask",
        "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 2000}});
    let mut ask = question();
    ask["id"] = json!("ask");
    ask["dependencies"] = json!([{"id": "pause"}]);
    let stream = agent
        .http
        .post(agent.at("/a2a"))
        .header("content-type", "application/json");
    let stream = stream.body(call("message/stream", &runs(json!([ask, pause]))));
    let asks = told(stream.send().await.unwrap()).await;
    let last = asks.last().unwrap();
    assert_eq!(
        (&last["status"]["state"], &last["final"]),
        (&json!("input-required"), &json!(true))
    );
    assert_eq!(
        last["status"]["message"]["parts"][0]["text"],
        "Which colour?"
    );
    let reply = json!({"message": {"kind": "message", "messageId": "m-2", "role": "user", "taskId": last["taskId"],
        "parts": [{"kind": "text", "text": "blue"}]}, "configuration": {"blocking": true}});
    let answered = result(&agent, "message/send", &reply).await;
    assert_eq!(answered["status"]["state"], "completed");

    // Without authentication there is no other card, for which 0.3 has a code.
    let card = asked(&agent, "agent/getAuthenticatedExtendedCard", &json!({})).await;
    assert_eq!(card["error"]["code"], -32007);
    agent.server.stop().await;
}

#[tokio::test]
async fn the_dialect_follows_from_method_and_version() {
    let agent = Agent::start(ON).await;
    let unknown = json!({"id": ABSENT});
    let old = ("a2a-version", "0.3");
    for (path, headers, method, code) in [
        ("/", &[JSON][..], "tasks/get", -32001),
        ("/", &[JSON, old][..], "tasks/get", -32001),
        (
            "/a2a",
            &[JSON, ("a2a-version", "0.3.0")][..],
            "tasks/get",
            -32001,
        ),
        ("/", &[JSON, VERSION][..], "tasks/get", -32009),
        ("/", &[JSON][..], "tasks/gte", -32601),
        ("/", &[JSON][..], "GetTask", -32009),
        ("/", &[JSON, old][..], "GetTask", -32009),
        ("/", &[JSON, VERSION][..], "GetTask", -32001),
    ] {
        let (_, answer) = agent.post(path, headers, &call(method, &unknown)).await;
        assert_eq!(
            answer["error"]["code"], code,
            "{method} {headers:?}: {answer}"
        );
        assert!(reason(&answer).is_string(), "{method}: {answer}");
    }
    let (_, native) = agent
        .post(
            "/",
            &[JSON],
            &call("tasks.get", &json!({"task_id": ABSENT})),
        )
        .await;
    assert!(reason(&native).is_null(), "{native}");

    // Faults have the paths of 0.3.
    for (method, params, field) in [
        (
            "message/send",
            json!({"message": {"kind": "task", "messageId": "m", "role": "user",
            "parts": [{"kind": "text", "text": "x"}]}}),
            "message.kind",
        ),
        (
            "message/send",
            json!({"message": {"messageId": "m", "role": "user", "parts": [{"text": "x"}]}}),
            "message.parts[0].kind",
        ),
        (
            "message/send",
            json!({"message": {"messageId": "m", "role": "user",
            "parts": [{"kind": "data", "data": 7}]}}),
            "message.parts[0].data",
        ),
        (
            "message/send",
            json!({"message": {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]},
            "configuration": {"pushNotificationConfig": {"token": "t"}}}),
            "configuration.pushNotificationConfig.url",
        ),
        (
            "tasks/pushNotificationConfig/set",
            json!({"taskId": ABSENT, "pushNotificationConfig": {"id": "x"}}),
            "pushNotificationConfig.url",
        ),
        (
            "tasks/pushNotificationConfig/delete",
            json!({"id": ABSENT}),
            "pushNotificationConfigId",
        ),
    ] {
        let answer = asked(&agent, method, &params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let fault = &answer["error"]["data"][1]["fieldViolations"][0]["field"];
        assert_eq!(fault, field, "{answer}");
    }

    // A path below `v1` is 0.3's, unless 1.0 is asked for: then it is a tenant.
    let path = format!("/a2a/rest/v1/tasks/{ABSENT}");
    for (version, shape) in [
        (None, "code"),
        (Some("0.3"), "code"),
        (Some("1.0"), "error"),
    ] {
        let request = agent.http.get(agent.at(&path));
        let request = match version {
            Some(version) => request.header("a2a-version", version),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 404);
        let answer: Value = response.json().await.unwrap();
        assert!(answer.get(shape).is_some(), "{version:?}: {answer}");
    }
    agent.server.stop().await;

    let off = Agent::start(&[]).await;
    let (_, answer) = off
        .post("/a2a", &[JSON], &call("tasks/get", &unknown))
        .await;
    assert_eq!(answer["error"]["code"], -32601);
    let refused = off
        .http
        .get(off.at("/a2a/rest/v1/card"))
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), 404);
    let channel = Endpoint::from_shared(off.at(""))
        .unwrap()
        .connect()
        .await
        .unwrap();
    let refused = A2aServiceClient::new(channel)
        .get_agent_card(pb::GetAgentCardRequest {})
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::Unimplemented);
    off.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_is_of_both_versions_for_those_who_do_not_ask_for_1_0() {
    let agent = Agent::start(ON).await;
    let card = "/.well-known/agent-card.json";
    for (version, is_both) in [(None, true), (Some("0.3"), true), (Some("1.0"), false)] {
        let request = agent.http.get(agent.at(card));
        let request = match version {
            Some(version) => request.header("a2a-version", version),
            None => request,
        };
        let response = request.send().await.unwrap();
        let varies = response.headers().get_all("vary").iter();
        assert!(
            varies.into_iter().any(|it| it == "a2a-version"),
            "{version:?}"
        );
        let card: Value = response.json().await.unwrap();
        assert_eq!(
            card.get("protocolVersion").is_some(),
            is_both,
            "{version:?}: {card}"
        );
        assert_eq!(card["supportedInterfaces"][0]["protocolVersion"], "1.0");
        if is_both {
            assert_eq!(card["preferredTransport"], "JSONRPC");
            assert_eq!(card["url"], agent.at("/a2a"));
            let rest = &card["additionalInterfaces"][2];
            assert_eq!(
                *rest,
                json!({"url": agent.at("/a2a/rest"), "transport": "HTTP+JSON"})
            );
        }
    }
    let by_path = agent
        .http
        .get(agent.at("/a2a/rest/v1/card"))
        .send()
        .await
        .unwrap();
    let by_path: Value = by_path.json().await.unwrap();
    assert_eq!(by_path["protocolVersion"], "0.3.0");
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_json_and_grpc_speak_the_older_proto() {
    let agent = Agent::start(ON).await;
    let rest = |path: &str| agent.at(&format!("/a2a/rest/v1{path}"));
    let post = async |path: &str, body: Value| {
        let response = agent
            .http
            .post(rest(path))
            .json(&body)
            .send()
            .await
            .unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let message = |tasks: Value| {
        json!({"message": {"messageId": "m", "role": "ROLE_USER",
        "content": [{"data": {"data": {"tasks": tasks}}}]}})
    };
    let mut waits = message(json!([echo("a")]));
    waits["configuration"] = json!({"blocking": true});
    let (status, done) = post("/message:send", waits).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(
        done["task"]["artifacts"][0]["parts"][0]["data"]["data"]["text"],
        "a"
    );
    assert_eq!(
        done["task"]["history"][0]["content"][0]["data"]["data"]["tasks"][0]["name"],
        "a"
    );
    let (_, long) = post("/message:send", message(json!([endless()]))).await;
    let id = long["task"]["id"].as_str().unwrap().to_owned();
    let stream = agent
        .http
        .get(rest(&format!("/tasks/{id}:subscribe")))
        .send()
        .await
        .unwrap();
    let (status, cancelled) = post(
        &format!("/tasks/{id}:cancel"),
        json!({"name": format!("tasks/{id}")}),
    )
    .await;
    assert_eq!(
        (status, &cancelled["status"]["state"]),
        (200, &json!("TASK_STATE_CANCELLED"))
    );
    let followed = told(stream).await;
    assert_eq!(followed[0]["task"]["id"], *id);
    let last = &followed.last().unwrap()["statusUpdate"];
    assert_eq!(
        (&last["final"], &last["status"]["state"]),
        (&json!(true), &json!("TASK_STATE_CANCELLED"))
    );
    let (status, refused) = post(&format!("/tasks/{id}:cancel"), json!({})).await;
    assert_eq!((status, &refused["code"]), (409, &json!(-32002)));

    let channel = Endpoint::from_shared(agent.at(""))
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut grpc = A2aServiceClient::new(channel);
    let name = format!("tasks/{id}");
    let read = pb::GetTaskRequest {
        name: name.clone(),
        history_length: 0,
    };
    let read = grpc.get_task(read).await.unwrap().into_inner();
    assert_eq!(
        read.status.unwrap().state,
        i32::from(pb::TaskState::Cancelled)
    );
    assert!(!read.history.is_empty());
    let bad = pb::GetTaskRequest {
        name: id.clone(),
        history_length: 0,
    };
    assert_eq!(
        grpc.get_task(bad).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    let subscribed = grpc
        .task_subscription(pb::TaskSubscriptionRequest { name })
        .await;
    let subscribed = subscribed.unwrap_err();
    assert_eq!(subscribed.code(), Code::Unimplemented);
    let told = subscribed.message();
    assert!(told.starts_with("UnsupportedOperationError: "), "{told}");
    let absent = pb::GetTaskRequest {
        name: format!("tasks/{ABSENT}"),
        history_length: 0,
    };
    let absent = grpc.get_task(absent).await.unwrap_err();
    assert_eq!(absent.code(), Code::NotFound);
    assert_eq!(absent.message(), "TaskNotFoundError: Run not found");
    let card = grpc
        .get_agent_card(pb::GetAgentCardRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (&*card.protocol_version, &*card.preferred_transport),
        ("0.3.0", "JSONRPC")
    );
    let mut later = Request::new(pb::GetAgentCardRequest {});
    later
        .metadata_mut()
        .insert("a2a-version", "1.0".parse().unwrap());
    assert_eq!(
        grpc.get_agent_card(later).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    agent.server.stop().await;
}
