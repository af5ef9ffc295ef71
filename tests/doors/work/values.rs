//! Values that a parser would change: integers beyond 64 bits, byte order marks, members with one name. Through each
//! way in: calls, batches, sockets, workers, A2A.

use serde_json::{Value, json};
use taskledger_testkit::server::{Folder, Server};

const LARGE: &str = "123456789012345678901234567890";

fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

async fn posted(server: &Server, body: impl Into<String>) -> Value {
    server.api.post(body.into()).await.unwrap().1
}

/// The place and reason of the only fault of an answer.
fn fault(answer: &Value) -> (Value, String) {
    let error = &answer["error"];
    assert_eq!(error["code"], -32602, "{answer}");
    let faults = error["data"]["errors"].as_array().unwrap();
    assert_eq!(faults.len(), 1, "{answer}");
    (
        faults[0]["path"].clone(),
        faults[0]["reason"].as_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn an_integer_beyond_64_bits_is_refused_with_its_place_and_nothing_is_stored() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let inputs =
        format!(r#"{{"name": "a", "inputs": {{"ids": [1, {LARGE}], "text": "{LARGE}"}}}}"#);
    let answer = posted(&server, call("tasks.create", &inputs)).await;
    let (path, reason) = fault(&answer);
    assert_eq!(path, json!(["inputs", "ids", 1]));
    assert!(reason.contains("64 bits"), "{reason}");

    let by_position = call("tasks.create", &format!(r#"["a", null, -{LARGE}]"#));
    assert_eq!(fault(&posted(&server, by_position).await).0, json!([2]));

    let tasks = r#"{"tasks": [{"name": "a", "params": {"x": 18446744073709551616}}]}"#;
    let batch = format!(
        "[{}, {}]",
        call("tasks.execute", tasks),
        call("tasks.list", "{}")
    );
    let answers = posted(&server, batch).await;
    let path = fault(&answers[0]).0;
    assert_eq!(path, json!(["tasks", 0, "params", "x"]));
    assert_eq!(answers[1]["result"]["total"], 0, "{answers}");

    // What is beyond all doubles is no value that could be read.
    let beyond = r#"{"name": "a", "inputs": {"v": [0, -1e400]}}"#;
    let answer = posted(&server, call("tasks.create", beyond)).await;
    assert_eq!(answer["error"]["code"], -32700, "{answer}");
    let data = &answer["error"]["data"];
    assert_eq!(data["path"], json!(["params", "inputs", "v", 1]));
    assert_eq!(data["reason"], "the number is out of range");

    // The largest that fit, and doubles, are kept.
    let most = r#"{"name": "a", "schemas": {"method": "echo_executor"}, "inputs": {"most": 18446744073709551615, "least": -9223372036854775808, "double": 1.5e300}}"#;
    let made = posted(&server, call("tasks.create", most)).await;
    let made = json!({"task_id": made["result"]["id"]});
    let kept = &server.api.call("tasks.get", made).await["inputs"];
    assert_eq!(kept["most"], u64::MAX);
    assert_eq!(kept["least"], i64::MIN);
    assert_eq!(kept["double"], 1.5e300);
    server.stop().await;
}

#[tokio::test]
async fn workers_and_agents_cannot_store_another_number_than_they_sent() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let task = json!({"name": "t", "schemas": {"type": "remote", "method": "m"}});
    server
        .api
        .call("tasks.execute", json!({"tasks": [task]}))
        .await;
    let claim = json!({"methods": ["m"], "worker": "w", "wait_seconds": 20});
    let claimed = server.api.call("tasks.claim", claim).await;
    let (id, lease) = (
        &claimed["claims"][0]["task"]["id"],
        &claimed["claims"][0]["lease"]["token"],
    );
    let output = format!(r#"{{"task_id": {id}, "lease": {lease}, "output": {{"n": {LARGE}}}}}"#);
    let answer = posted(&server, call("tasks.complete", &output)).await;
    assert_eq!(fault(&answer).0, json!(["output", "n"]));
    let right = json!({"task_id": id, "lease": lease, "output": {"n": u64::MAX}});
    let completed = server.api.call("tasks.complete", right).await;
    assert_eq!(completed["status"], "completed");

    let message = format!(
        r#"{{"message": {{"messageId": "m", "role": "ROLE_USER", "parts": [{{"data": {{"n": {LARGE}}}}}]}}}}"#
    );
    let rpc = posted(&server, call("SendMessage", &message)).await;
    assert_eq!(rpc["error"]["code"], -32602, "{rpc}");
    assert!(rpc.to_string().contains("message.parts[0].data.n"), "{rpc}");
    let url = format!(
        "{}/a2a/rest/message:send",
        server.api.url.trim_end_matches('/')
    );
    let post = server
        .api
        .http
        .post(url)
        .header("content-type", "application/json");
    let post = post.header("a2a-version", "1.0").body(message);
    let answer = post.send().await.unwrap();
    assert_eq!(answer.status(), 400);
    let text = answer.text().await.unwrap();
    assert!(text.contains("message.parts[0].data.n"), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn a_byte_order_mark_is_ignored_and_of_equal_names_the_last_counts() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let body = call("tasks.create", r#"{"name": "first", "name": "last"}"#);
    let made = posted(&server, format!("\u{feff}{body}")).await;
    let made = json!({"task_id": made["result"]["id"]});
    assert_eq!(server.api.call("tasks.get", made).await["name"], "last");
    server.stop().await;
}

#[tokio::test]
async fn the_name_that_marks_raw_json_is_refused_before_it_is_read() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    for object in [
        r#"{"$serde_json::private::RawValue": "18446744073709551616"}"#,
        r#"{"a": 1, "$serde_json::private::RawValue": "zz"}"#,
        r#"{"a": [{"\u0024serde_json::private::RawValue": "1e5"}]}"#,
    ] {
        let params = format!(r#"{{"name": "a", "inputs": {{"v": {object}}}}}"#);
        let answer = posted(&server, call("tasks.create", &params)).await;
        let error = &answer["error"];
        assert_eq!(error["code"], -32600, "{answer}");
        let (reason, path) = (&error["data"]["reason"], &error["data"]["path"]);
        let reason = reason.as_str().unwrap();
        assert!(reason.contains("RawValue` is reserved"), "{answer}");
        assert_eq!(path[2], "v", "{answer}");
    }
    // As a text it is one like any other.
    let text = json!({"name": "a", "inputs": {"v": "$serde_json::private::RawValue"}});
    server.api.call("tasks.create", text).await;
    server.stop().await;
}

#[tokio::test]
async fn a_time_that_cannot_be_written_is_refused_by_each_reader() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    for time in [
        "9999-12-31T23:59:60Z",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00+00:01",
    ] {
        for (method, params) in [
            ("tasks.create", json!({"name": "a", "start_at": time})),
            (
                "tasks.create",
                json!({"name": "a", "params": {"deadline": time}}),
            ),
            (
                "schedules.create",
                json!({"name": "s", "cron": "@daily", "start_at": time, "tasks": [{"name": "a"}]}),
            ),
        ] {
            let refusal = server.api.refusal(method, params).await;
            assert_eq!(refusal.code, -32602, "{time} {method}: {refusal:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_misspelt_idempotency_key_is_refused() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    for name in ["idempotency-key", "idempotencyKey", "Idempotency_Key"] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.create",
            "params": {"name": "a"}, "metadata": {name: "k"}});
        let answer = posted(&server, body.to_string()).await;
        assert_eq!(fault(&answer).0, json!(["metadata", name]));
    }
    server.stop().await;
}
