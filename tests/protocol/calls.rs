//! J-6 to J-9 and J-13 to J-18: what calls are answered, alone and in batches.

use crate::harness::{ANSWER_BYTES_MAX, Http2, Server};
use crate::judge::{is_invalid_request, is_parse_error, nested, with_id};
use serde_json::{Value, json};

#[tokio::test]
async fn j6_each_element_of_a_batch_is_judged_alone_and_answered_in_order() {
    let server = Server::start().await;
    let answer = server
        .call(
            r#"[{"jsonrpc":"2.0","method":"test.write","params":{"n":1},"id":"a"},
                1, [], [{"jsonrpc":"2.0","method":"test.write","id":9}],
                {"jsonrpc":"2.0","method":"test.write","params":{"n":2}},
                {"jsonrpc":"2.0","method":"no.such","id":2},
                {"jsonrpc":"2.0","method":"test.missing"},
                {"jsonrpc":"2.0","method":"test.echo","params":{"n":3},"id":null}]"#,
        )
        .await;
    let seen: Vec<(Value, Value)> = answer
        .as_array()
        .unwrap()
        .iter()
        .map(|a| {
            (
                a["id"].clone(),
                a.get("result").unwrap_or(&a["error"]["code"]).clone(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (json!("a"), json!(1)),
            (json!(null), json!(-32600)),
            (json!(null), json!(-32600)),
            (json!(null), json!(-32600)),
            (json!(2), json!(-32601)),
            (json!(null), json!({"n": 3})),
        ]
    );
    assert_eq!(server.fake.calls(), ["write1", "write2", "echo3"]);
}

#[tokio::test]
async fn j6_an_empty_batch_is_one_error_and_a_silent_one_is_no_body() {
    let server = Server::start().await;
    let empty = server.call("[]").await;
    assert!(is_invalid_request(&empty) && empty["id"].is_null());
    assert!(is_invalid_request(&server.call(" [ ] ").await));
    let note = r#"{"jsonrpc":"2.0","method":"test.write"}"#;
    let silent = server.post(format!("[{note},{note}]")).await;
    assert_eq!((silent.status, silent.body.as_str()), (204, ""));
    assert_eq!(server.fake.calls(), ["write", "write"]);
    let first_silent = server.call(format!("[{note},{}]", with_id("1"))).await;
    assert_eq!(first_silent.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn j6_a_batch_may_hold_100_calls_and_one_more_is_refused_as_a_whole() {
    let server = Server::start().await;
    let batch = |n| {
        format!(
            "[{}]",
            vec![r#"{"jsonrpc":"2.0","method":"test.write","id":1}"#; n].join(",")
        )
    };
    assert_eq!(
        server.call(batch(100)).await.as_array().map(Vec::len),
        Some(100)
    );
    let refused = server.call(batch(101)).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(refused["error"]["data"]["actual"], 101);
    assert_eq!(
        server.fake.calls().len(),
        100,
        "nothing of the refused batch ran"
    );
    let broken = batch(150).replace("1}]", "1}");
    assert!(
        is_parse_error(&server.call(broken).await),
        "syntax is checked to the end"
    );
}

#[tokio::test]
async fn j7_parameters_may_be_named_positional_or_absent() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (params, expected) in [
        (r#"{"b":2,"n":1}"#, json!({"n": 1, "b": 2})),
        ("[]", json!({})),
        ("[1]", json!({"n": 1})),
        ("[1,[2]]", json!({"n": 1, "b": [2]})),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"test.echo","params":{params},"id":1}}"#);
        assert_eq!(
            client.post("/", body).await.ok()["result"],
            expected,
            "{params}"
        );
    }
    let many = client
        .post(
            "/",
            r#"{"jsonrpc":"2.0","method":"test.echo","params":[1,2,3],"id":1}"#,
        )
        .await;
    assert_eq!(many.code(), Some(-32602));
    assert_eq!(many.json()["error"]["data"]["expected"], "at most 2: n, b");
}

#[tokio::test]
async fn j8_names_of_methods_are_exact() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for name in [
        "",
        "Test.echo",
        "test.echo ",
        "test.",
        "rpc.",
        "rpc.Discover",
        "rpc.x",
        "test.echo\\u0000",
        "TEST.ECHO",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"{name}","id":1}}"#);
        let answer = client.post("/", body).await.ok();
        assert_eq!(answer["error"]["code"], -32601, "{name}");
        assert_eq!(answer["error"]["message"], "Method not found");
        assert_eq!(answer["error"]["data"]["field"], "method");
    }
    let near = client
        .post("/", r#"{"jsonrpc":"2.0","method":"test.eco","id":1}"#)
        .await
        .json();
    assert_eq!(near["error"]["data"]["method"], "test.eco");
    let expected = near["error"]["data"]["expected"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(expected.contains("did you mean `test.echo`?"), "{expected}");
}

#[tokio::test]
async fn j9_metadata_and_configuration_arrive_and_other_members_are_ignored() {
    let server = Server::start().await;
    let result = server
        .call(
            r#"{"jsonrpc":"2.0","method":"test.caller","id":1,"x":{"y":[1e3,"z",null]},
                "metadata":{"stream":true},"configuration":{"push_notification_config":{"url":"u"}}}"#,
        )
        .await["result"]
        .clone();
    assert_eq!(result["metadata"], json!({"stream": true}));
    assert_eq!(
        result["configuration"]["push_notification_config"]["url"],
        "u"
    );
    assert_eq!(result["principal"], "anonymous");
    let batch = server
        .call(r#"[{"jsonrpc":"2.0","method":"test.caller","id":1,"metadata":{"a":1}}]"#)
        .await;
    assert_eq!(batch[0]["result"]["metadata"], json!({"a": 1}));
}

#[tokio::test]
async fn j13_j14_an_error_has_the_standard_message_and_lists_its_faults() {
    let server = Server::start().await;
    let answer = server
        .call(r#"{"jsonrpc":"2.0","method":"test.missing","id":1}"#)
        .await;
    let fault = json!({"field": "task_id", "reason": "no such task", "expected": "the id of a stored task",
        "actual": "0f8fad5b-d9cb-469f-a165-70867728950e", "path": ["task_id"]});
    let mut data = fault.clone();
    data["errors"] = json!([fault]);
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found", "data": data}})
    );
}

#[tokio::test]
async fn j16_a_notification_is_executed_and_its_failure_is_silent() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for method in ["test.write", "test.missing", "test.panic", "no.such"] {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        let answer = client.post("/", body).await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{method}");
    }
    assert_eq!(server.fake.calls(), ["write"]);
}

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
async fn j18_both_paths_and_both_versions_of_http_answer_alike() {
    let server = Server::start().await;
    let mut http1 = server.connect().await;
    let mut http2 = Http2::connect(server.addr()).await;
    for body in [
        with_id("1.0"),
        "[]".to_owned(),
        "{".to_owned(),
        format!("[{},1]", with_id("null")),
        "7".to_owned(),
        r#"{"jsonrpc":"2.0","method":"test.missing","id":"x"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"test.echo"}"#.to_owned(),
        nested(200),
        r#"{"jsonrpc":"2.0","method":"nope","id":1}"#.to_owned(),
    ] {
        let answers = [
            http1.post("/", &body).await,
            http1.post("/tasks", &body).await,
            http2.post("/", &body).await,
            http2.post("/tasks", &body).await,
        ];
        for answer in &answers {
            assert_eq!(
                (answer.status, &answer.body),
                (answers[0].status, &answers[0].body),
                "{body}"
            );
        }
    }
}

#[tokio::test]
async fn an_idempotency_key_comes_with_a_fingerprint_of_the_call() {
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
    let print = first["fingerprint"].as_str().unwrap().to_owned();
    assert_eq!(print.len(), 64);
    let same = call("test.caller", r#"{ "b":{"y":2,"x":1}, "n":1 }"#, "\"k2\"").await;
    assert_eq!(same["result"]["fingerprint"], print);
    let positional = call("test.caller", r#"[1,{"x":1,"y":2}]"#, "\"k\"").await;
    assert_eq!(positional["result"]["fingerprint"], print);
    let other = call("test.caller", r#"{"n":2,"b":{"x":1,"y":2}}"#, "\"k\"").await;
    assert_ne!(other["result"]["fingerprint"], print);
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
