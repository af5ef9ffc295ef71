//! J-1 to J-5, J-10 and J-11: what is JSON, what is a request, and which id is answered.

use crate::harness::Server;
use crate::judge::{is_invalid_request, is_parse_error, nested, with_id};
use serde_json::{Value, json};

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
