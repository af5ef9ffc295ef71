//! J-1 to J-11 and J-13 to J-18: what is a request, what it is answered, and with which bytes.

use crate::harness::{Http2, Server};
use serde_json::{Value, json};

/// A call with this text as its id.
fn with_id(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"test.echo","id":{id}}}"#)
}

/// `depth` arrays in one another.
fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

fn is_parse_error(answer: &Value) -> bool {
    answer["error"]["code"] == -32700
        && answer["error"]["message"] == "Parse error"
        && answer.as_object().unwrap().get("id") == Some(&Value::Null)
}

fn is_invalid_request(answer: &Value) -> bool {
    answer["error"]["code"] == -32600
        && answer["error"]["message"] == "Invalid Request"
        && answer["error"]["data"]["errors"].is_array()
}

#[tokio::test]
async fn j1_what_is_no_json_is_one_parse_error() {
    let server = Server::start().await;
    let bodies: &[&[u8]] = &[
        b"",
        b" ",
        b"{",
        b"}",
        b"[",
        b"]",
        b"[1,",
        b"[1,]",
        b"{\"a\":}",
        b"{\"a\" 1}",
        b"{a:1}",
        b"{'a':1}",
        b"{\"a\":1,}",
        b"nul",
        b"nan",
        b"NaN",
        b"Infinity",
        b"-",
        b"+1",
        b"01",
        b"1.",
        b".5",
        b"1e",
        b"0x10",
        b"1e999",
        b"\"",
        b"\"\x01\"",
        b"\"\\x\"",
        b"\"\\u12\"",
        b"\"a\nb\"",
        b"{} {}",
        b"[] []",
        b"{}x",
        b"// c\n{}",
        b"/**/{}",
        b"\xEF\xBB\xBF{}",
        b"\xFE\xFF\x00{",
        b"{\"jsonrpc\":\"2.0\"",
        b"[{\"jsonrpc\":\"2.0\"},",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"test.write\",\"id\":1}garbage",
        b"[{\"jsonrpc\":\"2.0\",\"method\":\"test.write\",\"id\":1},{\"jsonrpc\":",
        b"\x00",
        b"{\"a\":\"\\uD800\"}",
        b"tru",
        b"[\"a\",\n4\n,1,",
        b"[1 2]",
        b"[\"a\" \"b\"]",
        b"{\"a\":1 \"b\":2}",
        b"{1:1}",
        b"{null:1}",
        b"[,1]",
        b"[1,,2]",
        b"\xc3\xa9",
    ];
    let mut client = server.connect().await;
    for body in bodies {
        let answer = client.post("/", body).await.ok();
        assert!(
            is_parse_error(&answer),
            "{:?}: {answer}",
            String::from_utf8_lossy(body)
        );
        assert!(answer["error"]["data"]["errors"][0]["reason"].is_string());
    }
    assert!(server.fake.calls().is_empty(), "nothing of it was executed");
}

#[tokio::test]
async fn j1_broken_utf8_is_a_parse_error_wherever_it_stands() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for broken in [
        &b"\xff"[..],
        b"\xc3",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xfc\x83\xbf\xbf\xbf\xbf",
    ] {
        for (before, after) in [
            (
                &br#"{"jsonrpc":"2.0","method":"test.write","id":1,"ignored":""#[..],
                &br#""}"#[..],
            ),
            (
                br#"{"jsonrpc":"2.0","method":"test.write","id":""#,
                br#""}"#,
            ),
            (
                br#"{"jsonrpc":"2.0","method":"test.write","id":1,"params":{"n":""#,
                br#""}}"#,
            ),
            (b"", b""),
        ] {
            let answer = client
                .post("/", [before, broken, after].concat())
                .await
                .ok();
            assert!(is_parse_error(&answer), "{answer}");
        }
    }
    assert!(server.fake.calls().is_empty());
}

#[tokio::test]
async fn j11_depth_is_limited_and_no_bomb_ends_the_server() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    // The request object is one level, its params another.
    let params = |depth: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"test.echo","params":{{"n":{}}},"id":1}}"#,
            nested(depth)
        )
    };
    let answer = client.post("/", params(125)).await.ok();
    assert_eq!(answer["result"]["n"].to_string(), nested(125));
    let ignored = |depth: usize| {
        let bomb = nested(depth);
        format!(r#"{{"jsonrpc":"2.0","method":"test.echo","id":1,"ignored":{bomb}}}"#)
    };
    assert_eq!(
        client.post("/", ignored(126)).await.ok()["result"],
        json!({})
    );
    for depth in [127, 128, 500, 100_000] {
        for body in [params(depth - 1), ignored(depth)] {
            assert!(
                is_parse_error(&client.post("/", body).await.ok()),
                "{depth}"
            );
        }
    }
    for depth in [130, 100_000] {
        let bomb = nested(depth);
        let objects = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        for bomb in [bomb.as_str(), &objects, &"[".repeat(depth)] {
            let bodies = [
                bomb.to_owned(),
                with_id(bomb),
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":{bomb}}}"#),
                format!(r#"{{"jsonrpc":{bomb},"id":1,"method":"test.echo"}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"test.echo","metadata":{bomb}}}"#),
                format!("[1,{bomb}]"),
            ];
            for body in bodies {
                assert!(
                    is_parse_error(&client.post("/", body).await.ok()),
                    "{depth}"
                );
            }
        }
    }
    assert_eq!(client.post("/", with_id("1")).await.ok()["id"], 1);
}

#[tokio::test]
async fn j1_json_that_is_no_request_is_invalid() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for body in [
        "null",
        "true",
        "1",
        "-1.5",
        "\"text\"",
        "{}",
        " {} ",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"method":"test.echo"}"#,
        r#"{"jsonrpc":"1.0","method":"test.echo"}"#,
        r#"{"jsonrpc":2.0,"method":"test.echo"}"#,
        r#"{"jsonrpc":null,"method":"test.echo"}"#,
        r#"{"jsonrpc":"2.0","method":1}"#,
        r#"{"jsonrpc":"2.0","method":null}"#,
        r#"{"jsonrpc":"2.0","method":["test.echo"]}"#,
        r#"{"jsonrpc":"2.0","method":"test.echo","params":1}"#,
        r#"{"jsonrpc":"2.0","method":"test.echo","params":"x"}"#,
        r#"{"jsonrpc":"2.0","method":"test.echo","params":null}"#,
        r#"{"jsonrpc":"2.0","method":"test.echo","params":false}"#,
        r#"{"jsonrpc":"2.0","method":"test.echo","metadata":1}"#,
        r#"{"JSONRPC":"2.0","method":"test.echo"}"#,
        r#"{"jsonrpc":"2.0 ","method":"test.echo"}"#,
    ] {
        let answer = client.post("/", body).await.ok();
        assert!(is_invalid_request(&answer), "{body}: {answer}");
        // J-5: it is answered although it has no id, so it is no notification.
        assert_eq!(answer["id"], Value::Null, "{body}");
    }
    assert!(server.fake.calls().is_empty());
}

#[tokio::test]
async fn j1_the_version_may_be_written_with_escapes() {
    let server = Server::start().await;
    let answer = server
        .call(r#"{"jsonrpc":"\u0032.0","m\u0065thod":"test.ech\u006f","id":1}"#)
        .await;
    assert_eq!(answer["result"], json!({}));
}

#[tokio::test]
async fn j2_a_call_with_the_id_null_is_answered_and_one_without_an_id_is_not() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let answer = client.post("/", with_id("null")).await;
    assert_eq!(answer.body, r#"{"jsonrpc":"2.0","result":{},"id":null}"#);
    let silent = client
        .post("/", r#"{"jsonrpc":"2.0","method":"test.write"}"#)
        .await;
    assert_eq!((silent.status, silent.body.as_str()), (204, ""));
    assert_eq!(silent.header("content-type"), None);
    assert_eq!(server.fake.calls(), ["echo", "write"]);
}

#[tokio::test]
async fn j3_ids_come_back_byte_for_byte() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for id in [
        "0",
        "-0",
        "1",
        "-7",
        "1.0",
        "1.50",
        "1e2",
        "1E+2",
        "-1.25e-3",
        "9007199254740993",
        "18446744073709551616",
        "123456789012345678901234567890",
        "3.141592653589793238462643383279",
        "1e400",
        "\"\"",
        "\"a\"",
        r#""\u0061""#,
        r#""\/""#,
        r#""\"quoted\"""#,
        r#""\ud83d\ude00""#,
        "\"😀 é\"",
        r#""\\n\n""#,
        "null",
        r#""0f8fad5b-d9cb-469f-a165-70867728950e""#,
    ] {
        for spaced in [id.to_owned(), format!(" \n\t{id} ")] {
            let answer = client.post("/", with_id(&spaced)).await;
            assert_eq!(
                answer.body,
                format!(r#"{{"jsonrpc":"2.0","result":{{}},"id":{id}}}"#)
            );
        }
    }
    let long = format!("\"{}\"", "x".repeat(100_000));
    assert!(
        client
            .post("/", with_id(&long))
            .await
            .body
            .ends_with(&format!("{long}}}"))
    );
}

#[tokio::test]
async fn j3_ids_of_other_types_are_invalid_and_answered_with_null() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for id in ["true", "false", "[]", "[1]", "{}", r#"{"a":1}"#] {
        let answer = client.post("/", with_id(id)).await.ok();
        assert!(
            is_invalid_request(&answer) && answer["id"].is_null(),
            "{id}: {answer}"
        );
    }
    assert!(server.fake.calls().is_empty());
}

#[tokio::test]
async fn j4_an_invalid_request_with_a_readable_id_gets_it_back() {
    let server = Server::start().await;
    let answer = server
        .post(r#"{"jsonrpc":"1.0","method":"test.echo","id":1.0}"#)
        .await;
    assert!(is_invalid_request(&answer.ok()));
    assert!(answer.body.ends_with(r#""id":1.0}"#));
}

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
        "rpc.discover",
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
async fn j10_a_member_that_occurs_twice_makes_the_request_invalid() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (body, id) in [
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"test.write","id":1}"#,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"test.write","method":"test.echo","id":1}"#,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"test.write","params":{},"params":{},"id":1}"#,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"test.write","id":1,"id":2}"#,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"test.write","id":1,"i\u0064":1}"#,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"test.write","metadata":{},"id":1,"metadata":{}}"#,
            json!(1),
        ),
    ] {
        let answer = client.post("/", body).await.ok();
        assert!(is_invalid_request(&answer), "{body}: {answer}");
        assert_eq!(answer["id"], id, "{body}");
    }
    assert!(server.fake.calls().is_empty());
    let inside = r#"{"jsonrpc":"2.0","method":"test.echo","params":{"n":1,"n":2},"id":1}"#;
    assert_eq!(
        client.post("/", inside).await.ok()["result"],
        json!({"n": 2}),
        "the last wins"
    );
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
    let big = r#"{"jsonrpc":"2.0","method":"test.big","params":{"n":140000000},"id":1}"#;
    let answers = server.call(format!("[{big},{big},{}]", with_id("2"))).await;
    assert_eq!(
        answers[0]["result"].as_str().map(str::len),
        Some(140_000_000)
    );
    assert_eq!(answers[1]["error"]["code"], -32603);
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
