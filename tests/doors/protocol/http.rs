//! J-12 and what else HTTP itself refuses or serves.

use crate::protocol::fake::Fake;
use crate::protocol::harness::{Answer, Client, Server, request};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;
use taskledger::transport::http::Options;
use tokio::time::timeout;

const ECHO: &str = r#"{"jsonrpc":"2.0","method":"test.echo","id":1}"#;

fn is_refusal(answer: &Answer, status: u16) -> bool {
    let body = answer.json();
    answer.status == status
        && answer.header("content-type") == Some("application/json")
        && body["error"]["code"].is_i64()
        && body["error"]["data"]["errors"].is_array()
        && body["id"].is_null()
}

#[tokio::test]
async fn j12_what_is_read_only_says_so() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (method, path, allow) in [
        ("POST", "/livez", "GET, HEAD"),
        ("POST", "/.well-known/agent-card", "GET, HEAD"),
    ] {
        client
            .send(format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
            ))
            .await;
        let answer = client.read().await;
        assert!(is_refusal(&answer, 405), "{method} {path}: {answer:?}");
        assert_eq!(answer.header("allow"), Some(allow));
    }
}

#[tokio::test]
async fn a_browser_sees_a_page_that_loads_nothing_and_programs_the_answer_of_before() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let page = client.send_with("GET", "/", &[browser], b"").await;
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    for named in ["/openrpc.json", "/healthz", "docs"] {
        assert!(page.body.contains(named), "{named}: {}", page.body);
    }
    for (method, accept) in [
        ("GET", ("accept", "*/*")),
        ("GET", ("accept", "application/json")),
        ("PUT", browser),
    ] {
        let answer = client.send_with(method, "/", &[accept], b"").await;
        assert!(is_refusal(&answer, 405), "{method} {accept:?}: {answer:?}");
        assert_eq!(answer.header("allow"), Some("POST"));
    }
}

#[tokio::test]
async fn an_unknown_path_is_refused_in_json() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for path in [
        "/nothing",
        "/tasks/",
        "/tasks/1",
        "/../etc/passwd",
        "/.well-known/other",
    ] {
        assert!(is_refusal(&client.post(path, ECHO).await, 404), "{path}");
    }
    assert!(server.fake.calls().is_empty());
}

#[tokio::test]
async fn j12_a_body_over_the_limit_is_refused_also_when_its_length_is_not_announced() {
    let options = Options {
        body_bytes_max: 1000,
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let fits = format!("{ECHO}{}", " ".repeat(1000 - ECHO.len()));
    assert_eq!(server.post(&fits).await.status, 200);
    // Large enough that the client is still writing when the refusal is sent.
    for excess in [1, 100, 8_000_000] {
        let large = format!("{fits}{}", " ".repeat(excess));
        assert!(is_refusal(&server.post(&large).await, 413), "{excess}");
        let mut chunked = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for piece in large.as_bytes().chunks(100_000) {
            chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            chunked.extend_from_slice(piece);
            chunked.extend_from_slice(b"\r\n");
        }
        chunked.extend_from_slice(b"0\r\n\r\n");
        let mut client = server.connect().await;
        client.send(chunked).await;
        assert!(is_refusal(&client.read().await, 413), "{excess}");
    }
    assert_eq!(server.fake.calls().len(), 1);
}

/// The server would wait for an hour, and the client never sends.
#[tokio::test]
async fn a_length_over_the_limit_is_refused_before_a_byte_of_the_body_comes() {
    let options = Options {
        request_timeout: Duration::from_secs(3600),
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let mut client = server.connect().await;
    client
        .send("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\n\r\n")
        .await;
    let answer = client.read().await;
    assert!(is_refusal(&answer, 413), "{answer:?}");
    assert_eq!(answer.header("connection"), Some("close"));
}

#[tokio::test]
async fn a_client_that_asks_first_is_refused_before_it_sends() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .send("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\nexpect: 100-continue\r\n\r\n")
        .await;
    assert!(is_refusal(&client.read().await, 413));
}

#[tokio::test]
async fn a_body_in_pieces_is_put_together() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").await;
    for byte in ECHO.chars() {
        client.send(format!("1\r\n{byte}\r\n")).await;
    }
    client.send("0\r\n\r\n").await;
    assert_eq!(client.read().await.ok()["id"], 1);
    let text = "x".repeat(3_000_000);
    let large =
        format!(r#"{{"jsonrpc":"2.0","method":"test.echo","params":{{"b":"{text}"}},"id":1}}"#);
    assert_eq!(client.post("/", &large).await.ok()["result"]["b"], text);
}

#[tokio::test]
async fn too_much_being_received_at_once_is_refused() {
    let options = Options {
        receiving_bytes_max: 1000,
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let large = format!("{ECHO}{}", " ".repeat(2000));
    let answer = server.post(&large).await;
    assert!(is_refusal(&answer, 503));
    assert_eq!(answer.code(), Some(-32013));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(
        server.post(ECHO).await.status,
        200,
        "the room was given back"
    );
}

#[tokio::test]
async fn answers_that_nobody_reads_are_bounded_over_all_connections_and_freed_soon() {
    // More than the system takes for a client that does not read.
    const LARGE: usize = 7_000_000;
    let options = Options {
        answers_bytes_max: 20_000_000,
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let text = "x".repeat(LARGE);
    let large =
        format!(r#"[{{"jsonrpc":"2.0","method":"test.echo","params":{{"b":"{text}"}},"id":1}}]"#);
    // given: a client that reads nothing of its answer, and whose address may have one in memory
    let mut silent = server.connect().await;
    silent.send(request("/", "", &large)).await;
    // when: others at that address ask for as much
    let refused = async || {
        let answer = server.call(&large).await;
        let code = &answer[0]["error"]["code"];
        assert!(code.is_null() || code == -32013, "{answer}");
        !code.is_null()
    };
    let patience = Duration::from_secs(60);
    let wait_for = async |wanted: bool| {
        timeout(patience, async {
            while refused().await != wanted {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("it happens soon");
    };
    wait_for(true).await;
    // then: small answers are given as ever, and large ones again when the silent client was cut off
    assert_eq!(server.call(ECHO).await["id"], 1);
    wait_for(false).await;
    assert_eq!(server.call(ECHO).await["id"], 1);
}

#[tokio::test]
async fn who_reads_no_answers_is_refused_and_clients_at_other_addresses_are_not() {
    const LARGE: usize = 7_000_000;
    let options = Options {
        answers_bytes_max: 30_000_000,
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let text = "x".repeat(LARGE);
    let large =
        format!(r#"[{{"jsonrpc":"2.0","method":"test.echo","params":{{"b":"{text}"}},"id":1}}]"#);
    let greedy = IpAddr::from([127, 0, 0, 2]);
    // given: clients at one address that read nothing, until an answer to that address is refused
    let mut silent = Vec::new();
    let refused = loop {
        let mut client = Client::connect_from(greedy, server.addr()).await;
        client.send(request("/", "", &large)).await;
        silent.push(client);
        let mut client = Client::connect_from(greedy, server.addr()).await;
        let mut answer = client.post("/", &large).await.ok();
        if answer[0]["result"].is_null() {
            break answer[0]["error"].take();
        }
    };
    assert_eq!(refused["code"], -32013);
    let reason = refused["data"]["reason"].as_str().unwrap();
    assert!(reason.contains("by this caller"), "{refused}");
    // then: a client at another address gets as large an answer
    let mut other = Client::connect_from(IpAddr::from([127, 0, 0, 3]), server.addr()).await;
    assert_eq!(other.post("/", &large).await.ok()[0]["result"]["b"], text);
    drop(silent);
}

#[tokio::test]
async fn more_requests_than_the_limit_are_answered_busy() {
    let options = Options {
        requests_max: 1,
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let mut holder = server.connect().await;
    holder
        .send(request("/", "", ECHO.replace("echo", "hold")))
        .await;
    server.fake.waiting.acquire().await.unwrap().forget();
    let busy = server.post(ECHO).await;
    assert!(is_refusal(&busy, 503));
    assert_eq!(busy.code(), Some(-32013));
    assert!(busy.json()["error"]["data"]["retry_after_ms"].is_u64());
    server.fake.gate.add_permits(1);
    assert_eq!(holder.read().await.ok()["result"], "held");
    assert_eq!(server.post(ECHO).await.status, 200);
}

#[tokio::test]
async fn a_request_id_is_taken_over_when_it_is_harmless() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let call = ECHO.replace("echo", "caller");
    let mut send = async |line: &str| {
        client.send(request("/", line, &call)).await;
        let answer = client.read().await;
        let header = answer.header("x-request-id").unwrap().to_owned();
        assert_eq!(
            answer.ok()["result"]["correlation"],
            header,
            "echoed and used"
        );
        header
    };
    assert_eq!(
        send("x-request-id: abc-1_2.3:4/5\r\n").await,
        "abc-1_2.3:4/5"
    );
    let long = "a".repeat(129);
    let mut fresh = Vec::new();
    for bad in [
        "",
        "x-request-id: \r\n",
        "x-request-id: a b\r\n",
        "x-request-id: a\"b\r\n",
        &format!("x-request-id: {long}\r\n"),
    ] {
        let id = send(bad).await;
        assert!(taskledger_domain::TaskId::parse(&id).is_ok(), "{id}");
        assert!(!fresh.contains(&id));
        fresh.push(id);
    }
}

#[tokio::test]
async fn a_valid_trace_context_reaches_the_caller_and_another_does_not() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let call = ECHO.replace("echo", "caller");
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (given, kept) in [(good, json!(good)), ("00-xyz", Value::Null)] {
        client
            .send(request("/", &format!("traceparent: {given}\r\n"), &call))
            .await;
        assert_eq!(client.read().await.ok()["result"]["traceparent"], kept);
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_answered_and_the_rest_of_its_batch_is_not_started() {
    let options = Options {
        request_timeout: Duration::from_millis(250),
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let read = server.call(ECHO.replace("echo", "hold")).await;
    assert_eq!(read["error"]["code"], -32013);
    assert!(read["error"]["data"]["retry_after_ms"].is_u64());
    let changes = server.call(ECHO.replace("echo", "hold_write")).await;
    assert_eq!(changes["error"]["code"], -32603);
    let reason = changes["error"]["data"]["reason"].as_str().unwrap();
    assert!(reason.contains("idempotency key"), "{reason}");
    let batch = format!(
        "[{ECHO},{},{}]",
        ECHO.replace("echo", "hold"),
        ECHO.replace("echo", "write")
    );
    let answers = server.call(batch).await;
    assert!(answers[0]["result"].is_object());
    assert_eq!(answers[1]["error"]["code"], -32013);
    assert_eq!(answers[2]["error"]["code"], -32013);
    assert_eq!(
        server.fake.calls(),
        ["echo"],
        "what was not started was not executed"
    );
}

#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_refused() {
    let options = Options {
        request_timeout: Duration::from_millis(250),
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let mut client = server.connect().await;
    client.send("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{").await;
    assert!(is_refusal(&client.read().await, 408));
    assert!(client.closed().await.is_empty());
}

#[tokio::test]
async fn the_agent_card_has_the_members_of_the_protocol() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .send("GET /.well-known/agent-card HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned())
        .await;
    let card = client.read().await.ok();
    let mut names: Vec<&String> = card.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(
        names,
        [
            "capabilities",
            "description",
            "name",
            "skills",
            "url",
            "version"
        ]
    );
    assert_eq!(card["name"], "taskledger");
    assert_eq!(card["url"], format!("http://{}", server.addr()));
    assert_eq!(card["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        card["capabilities"],
        json!({"streaming": false, "push_notifications": false})
    );
    assert_eq!(
        card["skills"][0],
        json!({"id": "test.echo", "name": "A fake", "description": "Does nothing real", "tags": ["test"]})
    );
}

#[tokio::test]
async fn health_is_told_apart_from_readiness() {
    let ill = Fake {
        ready: false,
        ..Fake::default()
    };
    let server = Server::with(Options::default(), ill).await;
    let mut client = server.connect().await;
    let mut get = async |path: &str| {
        client
            .send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
            .await;
        client.read().await
    };
    assert_eq!(get("/livez").await.ok(), json!({"status": "ok"}));
    let ready = get("/readyz").await;
    assert_eq!(
        (ready.status, ready.json()),
        (503, json!({"status": "unavailable"}))
    );
    assert_eq!(
        get("/readyz?verbose").await.json()["checks"],
        json!([{"name": "store", "ok": false, "detail": "a fake"}])
    );
    assert_eq!(get("/healthz").await.status, 503);
    let well = Server::start().await;
    let mut client = well.connect().await;
    client
        .send("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert_eq!(client.read().await.ok(), json!({"status": "ok"}));
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_closed() {
    let server = Server::start().await;
    for bytes in [
        "hello\r\n\r\n".to_owned(),
        "\x00\x01\x02\x03\r\n\r\n".to_owned(),
        "POST / HTTP/9.9\r\n\r\n".to_owned(),
        format!(
            "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
            "a".repeat(200_000)
        ),
        format!(
            "GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
            "x: y\r\n".repeat(200)
        ),
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"
            .to_owned(),
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n".to_owned(),
    ] {
        let mut client = server.connect().await;
        client.send(bytes).await;
        let answer = client.closed().await;
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    assert_eq!(server.post(ECHO).await.status, 200);
}
