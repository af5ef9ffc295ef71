//! Inputs of `http_executor`, and how it reads made-up answers.

use super::request::{RESPONSE_BYTES_MAX, Request};
use super::{ALIAS, HttpExecutor, NAME};
use crate::egress::{Egress, Incoming, Lookup, LookupError, Options, Policy};
use crate::engine::executor::test_support::{job, registered, takes};
use crate::engine::executor::{Executor as _, ExecutorError};
use crate::engine::secrets::Scrubber;
use async_trait::async_trait;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Violation;

struct Nowhere;

#[async_trait]
impl Lookup for Nowhere {
    async fn lookup(&self, _host: &str) -> Result<Vec<IpAddr>, LookupError> {
        Err(LookupError::NotFound)
    }
}

fn result(request: &Request, incoming: Incoming) -> Result<Value, ExecutorError> {
    super::answer::result(request, incoming, &Scrubber::default())
}

fn executor() -> HttpExecutor {
    let options = Options::new(Policy::default(), Arc::new(Nowhere));
    HttpExecutor::new(Arc::new(Egress::new(options).unwrap()))
}

fn read(inputs: &Value) -> Result<Request, String> {
    Request::read(inputs.as_object().unwrap(), &Policy::default())
        .map_err(|faults| super::references::told(&faults))
}

fn request(inputs: &Value) -> Request {
    assert!(takes(executor(), inputs), "{inputs}");
    read(inputs).unwrap()
}

fn incoming(
    status: u16,
    headers: &[(&'static str, &'static str)],
    body: &'static [u8],
) -> Incoming {
    let headers = headers.iter().map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    });
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name, value);
    }
    Incoming {
        status: StatusCode::from_u16(status).unwrap(),
        headers: map,
        body: Bytes::from_static(body),
        truncated: false,
        cut: false,
        remote: None,
        duration: Duration::from_millis(7),
    }
}

const URL: &str = "https://example.com/a?x=1";

#[test]
fn a_request_is_a_get_unless_it_says_more() {
    let request = request(&json!({"url": URL}));
    assert_eq!(request.method, Method::GET);
    assert_eq!(request.timeout, Duration::from_secs(30));
    assert_eq!(request.response_bytes_max, RESPONSE_BYTES_MAX);
    assert!(request.headers.is_empty() && request.body.is_empty());
    assert_eq!(request.name(), "GET https://example.com/a");
}

#[test]
fn a_full_request_is_understood() {
    let request = request(&json!({
        "url": URL, "method": "PATCH", "headers": {"X-One": "ä", "content-type": "x/y"},
        "params": {"q": "a b&c", "n": [1, 2.5, true]}, "json": {"a": null},
        "auth": {"type": "basic", "username": "u", "password": "p:q"},
        "timeout": 60, "response_bytes_max": 10, "truncate": true,
        "expect_status": [200, "3xx", "404-410"]
    }));
    let url = "https://example.com/a?x=1&n=1&n=2.5&n=true&q=a+b%26c";
    assert_eq!(request.target.url().as_str(), url);
    assert_eq!(request.headers["content-type"], "x/y");
    assert_eq!(request.headers["x-one"].as_bytes(), "ä".as_bytes());
    assert_eq!(request.headers["authorization"], "Basic dTpwOnE=");
    assert!(!format!("{request:?}").contains("dTpwOnE"));
    assert_eq!(request.body, r#"{"a":null}"#);
    assert_eq!(request.timeout, Duration::from_secs(60));
    for (status, holds) in [
        (200, true),
        (201, false),
        (399, true),
        (404, true),
        (411, false),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(request.expected.holds(status), holds, "{status}");
    }
}

#[test]
fn bodies_have_a_type() {
    for (field, value, kind, bytes) in [
        ("json", json!(null), "application/json", "null"),
        ("body", json!("a=b"), "text/plain; charset=utf-8", "a=b"),
        (
            "form",
            json!({"a": "b c", "n": [1, 2]}),
            "application/x-www-form-urlencoded",
            "a=b+c&n=1&n=2",
        ),
    ] {
        let request = request(&json!({"url": URL, "method": "POST", field: value}));
        assert_eq!(request.headers["content-type"], kind);
        assert_eq!(request.body, bytes);
    }
}

#[test]
fn mistakes_are_told_by_the_schema_and_by_the_executor() {
    for (more, part) in [
        (json!({"method": "TRACE"}), "`method`"),
        (json!({"method": "get"}), "`method`"),
        (json!({"headers": {"Host": "x"}}), "header `host`"),
        (
            json!({"headers": {"content-LENGTH": "1"}}),
            "header `content-length`",
        ),
        (
            json!({"headers": {"Proxy-Authorization": "x"}}),
            "header `proxy-authorization`",
        ),
        (json!({"headers": {"a": "x\r\nb: y"}}), "`headers.a`"),
        (json!({"headers": {"a\r\nb": "x"}}), "`headers.a\\r\\nb`"),
        (json!({"headers": {"": "x"}}), "`headers.`"),
        (json!({"headers": {"a": 1}}), "`headers.a`"),
        (json!({"headers": {"a": "x".repeat(8193)}}), "`headers.a`"),
        (json!({"params": {"a": null}}), "`params.a`"),
        (json!({"params": {"a": [[1]]}}), "`params.a`"),
        (json!({"json": 1, "body": "x"}), "`json`, `body` are given"),
        (json!({"body": {"a": 1}}), "`body`"),
        (json!({"auth": {"type": "digest"}}), "`auth.type`"),
        (json!({"auth": {"type": "bearer"}}), "`auth.token`"),
        (
            json!({"auth": {"type": "bearer", "token": "a\nb"}}),
            "`auth.token`",
        ),
        (
            json!({"auth": {"type": "header", "name": "Host", "value": "x"}}),
            "header `host`",
        ),
        (json!({"timeout": 0}), "`timeout`"),
        (json!({"timeout_seconds": 601}), "`timeout_seconds`"),
        (
            json!({"timeout": 1, "timeout_seconds": 1}),
            "expected one of them",
        ),
        (
            json!({"response_bytes_max": RESPONSE_BYTES_MAX + 1}),
            "`response_bytes_max`",
        ),
        (json!({"expect_status": []}), "`expect_status`"),
        (json!({"expect_status": ["6xx"]}), "`expect_status.0`"),
        (json!({"expect_status": [99]}), "`expect_status.0`"),
    ] {
        let mut inputs = more;
        inputs["url"] = json!(URL);
        assert!(!takes(executor(), &inputs), "{inputs}");
        let error = read(&inputs).unwrap_err();
        assert!(error.contains(part), "{inputs}: {error}");
    }
    assert!(!takes(executor(), &json!({})));
    assert!(!takes(executor(), &json!({"url": URL, "metod": "GET"})));
    let both = json!({
        "url": URL, "headers": {"Authorization": "x"}, "auth": {"type": "bearer", "token": "y"}
    });
    assert!(
        read(&both)
            .unwrap_err()
            .contains("both name `authorization`")
    );
}

/// What is told of inputs when a task is created: place, reason, expected.
fn checked(more: &Value) -> Vec<(String, String, String)> {
    let mut inputs = json!({"url": URL});
    for (name, value) in more.as_object().unwrap() {
        inputs[name] = value.clone();
    }
    let faults = executor().check(inputs.as_object().unwrap());
    let place = |v: &Violation| serde_json::to_string(&v.path).unwrap();
    let one = |v: Violation| (place(&v), v.reason, v.expected);
    faults.into_iter().map(one).collect()
}

#[test]
fn each_mistake_is_told_at_its_place_with_what_would_be_accepted() {
    assert_eq!(checked(&json!({})), []);
    for (more, place, accepted) in [
        (
            json!({"json": 1, "body": "x"}),
            r#"["body"]"#,
            "one of `json`, `body` and `form`",
        ),
        (
            json!({"timeout": 1, "timeout_seconds": 1}),
            r#"["timeout"]"#,
            "one of them",
        ),
        (
            json!({"headers": {"Host": "x"}}),
            r#"["headers","Host"]"#,
            "the client sets host, content-length",
        ),
        (
            json!({"expect_status": ["500-200"]}),
            r#"["expect_status",0]"#,
            "not above its last",
        ),
        (
            json!({"expect_status": [200, "6xx"]}),
            r#"["expect_status",1]"#,
            "a class such as \"4xx\"",
        ),
        (
            json!({"auth": {"type": "digest"}}),
            r#"["auth","type"]"#,
            "`basic`, `bearer` or `header`",
        ),
        (
            json!({"auth": {"type": "basic", "username": "u"}}),
            r#"["auth","password"]"#,
            "`username` and `password`",
        ),
        (
            json!({"auth": {"type": "bearer", "token": "t", "tokn": 1}}),
            r#"["auth","tokn"]"#,
            "`type` and `token`",
        ),
        (
            json!({"params": {"a": {}}}),
            r#"["params","a"]"#,
            "a text, a number, a boolean, or a list",
        ),
        (
            json!({"url": "ftp://example.com/"}),
            r#"["url"]"#,
            "`https`",
        ),
        (
            json!({"url": "http://example.com/"}),
            r#"["url"]"#,
            "the operator allows `http`, with --egress-allow-net NET or --egress-allow-host NAME",
        ),
        (
            json!({"url": "https://10.0.0.1/"}),
            r#"["url"]"#,
            "the operator allows with --egress-allow-net NET or --egress-allow-host NAME",
        ),
        (
            json!({"url": "https://[::1]/"}),
            r#"["url"]"#,
            "a public one",
        ),
    ] {
        let found = checked(&more);
        assert_eq!(found.len(), 1, "{more}: {found:?}");
        assert_eq!(found[0].0, place, "{more}");
        assert!(found[0].2.contains(accepted), "{more}: {found:?}");
    }
    let several = json!({"url": "https://10.0.0.1/", "timeout": -1, "method": "TRACE"});
    assert_eq!(checked(&several).len(), 3);
}

#[test]
fn what_is_wrong_repeats_no_credentials() {
    let inputs = json!({
        "url": "https://user:hunter2@example.com/?key=hunter2", "headers": {"Host": "hunter2", "a": "hunter2\n"},
        "auth": {"type": "bearer", "token": "hunter2\n", "password": "hunter2"}
    });
    let faults = executor().check(inputs.as_object().unwrap());
    assert_eq!(faults.len(), 5, "{faults:?}");
    assert!(!format!("{faults:?}").contains("hunter2"), "{faults:?}");
}

#[test]
fn an_answer_becomes_a_result() {
    let request = request(&json!({"url": URL}));
    let headers = [
        ("content-type", "application/problem+json; charset=utf-8"),
        ("x-a", "1"),
        ("x-a", "2"),
        ("set-cookie", "session=secret"),
    ];
    assert_eq!(
        result(&request, incoming(201, &headers, br#"{"n": [1]}"#)),
        Ok(json!({
            "status": 201, "json": {"n": [1]}, "truncated": false, "duration_ms": 7,
            "headers": {"content-type": headers[0].1, "x-a": "1, 2"}
        }))
    );
    let json_only = &headers[..1];
    for (headers, body, field, value) in [
        (json_only, b"not json".as_slice(), "body", "not json"),
        (&[], b"{}", "body", "{}"),
        (&[], b"a\0b", "body", "a\0b"),
        (&[], b"\xff\x00", "body_base64", "/wA="),
        (&[], b"", "body", ""),
    ] {
        let result = result(&request, incoming(200, headers, body)).unwrap();
        assert_eq!(result[field], value);
    }
}

#[test]
fn an_answer_that_is_not_expected_is_a_failure_that_shows_it() {
    let request = request(&json!({"url": URL, "expect_status": [200, "202-204"]}));
    let fails = |incoming| result(&request, incoming).unwrap_err().to_string();
    assert_eq!(
        fails(incoming(503, &[], b"busy")),
        "GET https://example.com/a answered 503, expected 200, 202-204: busy"
    );
    assert_eq!(
        fails(incoming(404, &[], b"")),
        "GET https://example.com/a answered 404, expected 200, 202-204"
    );
    let long: &'static [u8] = Box::leak(vec![b'x'; 5000].into_boxed_slice());
    assert!(fails(incoming(500, &[], long)).ends_with(&format!(": {}", "x".repeat(500))));
    let elsewhere = [("location", "http://10.0.0.1/secret?token=1")];
    assert_eq!(
        fails(incoming(302, &elsewhere, b"")),
        "GET https://example.com/a answered 302 and points to `10.0.0.1`; redirects are not followed"
    );
}

#[test]
fn a_body_that_is_too_large_fails_unless_a_part_is_enough() {
    let too_large = || Incoming {
        truncated: true,
        ..incoming(200, &[], "aä".as_bytes().split_at(2).0)
    };
    let whole = request(&json!({"url": URL, "response_bytes_max": 2}));
    let error = result(&whole, too_large()).unwrap_err().to_string();
    assert!(error.contains("more than 2 bytes"), "{error}");
    let part = request(&json!({"url": URL, "response_bytes_max": 2, "truncate": true}));
    let taken = result(&part, too_large()).unwrap();
    assert_eq!(
        (&taken["body"], &taken["truncated"]),
        (&json!("a"), &json!(true))
    );
    let cut = Incoming {
        cut: true,
        ..incoming(200, &[], b"abc")
    };
    let error = result(&request(&json!({"url": URL})), cut)
        .unwrap_err()
        .to_string();
    assert!(error.contains("broke off after 3 bytes"), "{error}");
}

#[test]
fn an_answer_that_grows_beyond_a_result_is_a_failure_that_says_so() {
    let request = request(&json!({"url": URL}));
    for byte in [0xff, 1] {
        let body = vec![byte; RESPONSE_BYTES_MAX];
        let large = Incoming {
            body: body.into(),
            ..incoming(200, &[], b"")
        };
        let error = result(&request, large).unwrap_err().to_string();
        assert!(error.contains("at most 1048576 fit"), "{error}");
    }
    let text = Incoming {
        body: vec![b'x'; RESPONSE_BYTES_MAX].into(),
        ..incoming(200, &[], b"")
    };
    assert!(result(&request, text).is_ok());
}

#[test]
fn json_with_a_byte_order_mark_is_json() {
    let request = request(&json!({"url": URL}));
    let body = "\u{feff}{\"a\": 1}".as_bytes();
    let answer = incoming(200, &[("content-type", "application/json")], body);
    let result = result(&request, answer).unwrap();
    assert_eq!(result["json"], json!({"a": 1}));
    assert!(result.get("body").is_none());
}

#[test]
fn all_attempts_of_a_run_have_one_key_and_pass_the_trace_on() {
    let mut attempt = job(json!({"url": URL}));
    attempt.attempt = 3;
    attempt.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
    let headers = request(&json!({"url": URL})).outgoing(&attempt).headers;
    let key = format!("{}-{}", attempt.run_id, attempt.task_id);
    assert_eq!(headers["idempotency-key"], key);
    assert_eq!(headers["taskledger-attempt"], "3");
    let mut later = attempt.clone();
    later.attempt = 4;
    let of_later = request(&json!({"url": URL})).outgoing(&later).headers;
    assert_eq!(of_later["idempotency-key"], key);
    assert_eq!(of_later["taskledger-attempt"], "4");
    later.run_id = taskledger_domain::RunId::parse("0d4b5a6e-1111-4c61-8a3c-000000000001").unwrap();
    let of_other_run = request(&json!({"url": URL})).outgoing(&later).headers;
    assert_ne!(of_other_run["idempotency-key"], key);
    assert_eq!(
        headers["traceparent"],
        attempt.traceparent.as_deref().unwrap()
    );
    let own = json!({"url": URL, "headers": {"Idempotency-Key": "mine"}});
    assert_eq!(
        request(&own).outgoing(&attempt).headers["idempotency-key"],
        "mine"
    );
}

#[tokio::test]
async fn an_address_that_is_not_allowed_fails_with_its_class_only() {
    let blocked = "`url`: the address is not allowed (blocked_address), expected a public one, or one that \
                   the operator allows with --egress-allow-net NET or --egress-allow-host NAME";
    for url in [
        "https://127.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
    ] {
        let refused = executor().execute(job(json!({"url": url}))).await;
        assert_eq!(refused, Err(ExecutorError::new(blocked)));
    }
    let unknown = executor().execute(job(json!({"url": URL}))).await;
    let told = "GET https://example.com/a: the name has no addresses (dns)";
    assert_eq!(unknown, Err(ExecutorError::new(told)));
}

#[test]
fn it_has_two_names_and_is_not_repeated_after_a_restart() {
    let registered = registered(executor());
    assert_eq!(registered.name(), NAME);
    assert_eq!(registered.description().aliases, [ALIAS]);
    assert!(!registered.description().idempotent);
}

#[test]
fn no_attempt_follows_after_what_the_caller_did_wrong_or_what_the_task_lists() {
    let better = |status: u16, params: &Value| {
        let status = StatusCode::from_u16(status).unwrap();
        super::may_get_better(status, params.as_object().unwrap())
    };
    let plain = json!({"retry_count": 3});
    for status in [400, 401, 403, 404, 409, 410, 422, 451, 499] {
        assert!(!better(status, &plain), "{status}");
    }
    for status in [302, 408, 425, 429, 500, 502, 503, 504] {
        assert!(better(status, &plain), "{status}");
    }
    let listed = json!({"retry": {"max_attempts": 3, "non_retryable_statuses": [404, 501]}});
    for (status, again) in [(404, false), (501, false), (400, true), (503, true)] {
        assert_eq!(better(status, &listed), again, "{status}");
    }
}
