//! J-17, and idempotency keys: what calls are answered when a transcript cannot say it.

use crate::protocol::harness::{ANSWER_BYTES_MAX, Server};
use crate::protocol::judge::with_id;
use serde_json::{Value, json};

#[tokio::test]
async fn j17_a_failure_inside_concerns_one_element_and_shows_nothing_of_itself() {
    let server = Server::start().await;
    let call = |method| format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":"{method}"}}"#);
    let methods = [
        "test.panic",
        "test.echo",
        "test.panic_early",
        "test.unwritable",
        "test.write",
    ];
    let answer = server
        .post(format!("[{}]", methods.map(call).join(",")))
        .await;
    assert!(!answer.body.contains("secret"));
    let answers = answer.ok();
    for (index, method) in methods.iter().enumerate() {
        assert_eq!(answers[index]["id"], *method);
        let failed = matches!(
            *method,
            "test.panic" | "test.panic_early" | "test.unwritable"
        );
        assert_eq!(
            answers[index]["error"]["code"] == -32603,
            failed,
            "{method}"
        );
        if failed {
            assert_eq!(answers[index]["error"]["message"], "Internal error");
            assert!(answers[index]["error"]["data"]["error_id"].is_string());
        }
    }
}

#[tokio::test]
async fn j17_an_answer_over_the_limit_fails_alone() {
    let server = Server::start().await;
    let big = r#"{"jsonrpc":"2.0","method":"test.big","params":{"n":5000000},"id":1}"#;
    let answers = server.call(format!("[{big},{big},{}]", with_id("2"))).await;
    assert_eq!(answers[0]["result"].as_str().map(str::len), Some(5_000_000));
    assert_eq!(answers[1]["error"]["code"], -32603);
    assert_eq!(answers[1]["error"]["data"]["limit_bytes"], ANSWER_BYTES_MAX);
    assert_eq!(answers[2]["result"], json!({}));
}

#[tokio::test]
async fn an_idempotency_key_comes_with_the_call() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut call = async |method: &str, params: &str, key: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":1,"metadata":{{"idempotency_key":{key}}}}}"#
        );
        client.post("/", body).await.ok()
    };
    let first =
        call("test.caller", r#"{"n":1,"b":{"x":1,"y":2}}"#, "\"k\"").await["result"].clone();
    assert_eq!(first["key"], "k");
    for bad in [
        "\"\"",
        "7",
        "true",
        "[]",
        &format!("\"{}\"", "k".repeat(256)),
    ] {
        let answer = call("test.caller", "{}", bad).await;
        assert_eq!(answer["error"]["code"], -32602, "{bad}");
        assert_eq!(
            answer["error"]["data"]["path"],
            json!(["metadata", "idempotency_key"])
        );
    }
    let longest = format!("\"{}\"", "é".repeat(255));
    assert!(call("test.caller", "{}", &longest).await["result"].is_object());
    assert_eq!(
        call("test.caller", "{}", "null").await["result"]["key"],
        Value::Null
    );
    assert_eq!(
        call("test.caller_reads", "{}", "\"k\"").await["result"],
        false,
        "a read needs no key"
    );
}
