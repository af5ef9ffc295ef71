//! `http_executor` in the real program: what a task asks for arrives, and what comes back is its result.

use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};
use taskledger::clock::{Clock as _, SystemClock};
use taskledger_testkit::dns::{Dns, Reply};
use taskledger_testkit::receiver::{Answer, Behaviour, Receiver, Then};
use taskledger_testkit::server::{Folder, Server};

/// The only address that a server with these options may call.
const ALLOWED: [&str; 2] = ["--egress-allow-net", "127.0.0.1/32"];

async fn started(method: &str, inputs: &Value, server: &Server) -> Value {
    let task = json!({"name": "call", "schemas": {"method": method}, "inputs": inputs});
    let run = server
        .api
        .call("tasks.execute", json!({"tasks": [task]}))
        .await;
    run["root_task_id"].clone()
}

/// What is wrong with the inputs of a task that is refused.
async fn refused(server: &Server, inputs: Value) -> Value {
    let task = json!({"name": "call", "schemas": {"method": "http_executor"}, "inputs": inputs});
    let refusal = server.api.refusal("tasks.create", task).await;
    assert_eq!(refusal.code, -32602);
    refusal.data
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_share_one_key_and_wait_as_long_as_the_answer_asks_for() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start_with(&folder, &ALLOWED).await;
    let busy = |status, pause: &str| Answer::status(status).header("retry-after", pause).into();
    let now = SystemClock::default().wall();
    let soon = now.plus_ms(4_000);
    let micros = u64::try_from(soon.0).unwrap();
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_micros(micros));
    receiver.answers([busy(429, "1"), busy(503, &date), Answer::status(200).into()]);
    let task = json!({"name": "call", "schemas": {"method": "http_executor"},
        "inputs": {"url": receiver.url("/pay"), "method": "POST"},
        "params": {"retry": {"max_attempts": 3, "initial_delay_ms": 1}}});
    let call = json!({"tasks": [task]});
    let run = server.api.call("tasks.execute", call).await;
    let root = &run["root_task_id"];
    server.api.run_of(root).await;
    let task = server.api.call("tasks.get", json!({"task_id": root}));
    let task = task.await;
    assert_eq!(task["status"], "completed", "{task}");
    let came = receiver.requests();
    let (run, root) = (run["run_id"].as_str(), root.as_str());
    let key = format!("{}-{}", run.unwrap(), root.unwrap());
    for (attempt, request) in (1..).zip(&came) {
        let number = format!("{attempt}");
        assert_eq!(request.header("idempotency-key"), Some(&*key));
        assert_eq!(request.header("taskledger-attempt"), Some(&*number));
    }
    let second = came[1].at.duration_since(came[0].at);
    assert!(second.as_millis() >= 1_000, "{second:?}");
    // A date has no fractions of a second.
    assert!(SystemClock::default().wall().plus_ms(1_000) >= soon);
    server.stop().await;
}

/// The task, once its run has ended.
async fn ran(server: &Server, inputs: Value) -> Value {
    let root = started("http_executor", &inputs, server).await;
    server.api.run_of(&root).await;
    server.api.call("tasks.get", json!({"task_id": root})).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_the_result_of_the_task() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start_with(&folder, &ALLOWED).await;
    let answer = Answer::status(201).header("content-type", "application/json");
    receiver.answer(answer.body(r#"{"id": 7}"#));
    let task = ran(
        &server,
        json!({
            "url": receiver.url("/items?a=1"), "method": "POST", "json": {"name": "ä"},
            "params": {"tag": ["x", "y z"]}, "headers": {"X-One": "1"},
            "auth": {"type": "bearer", "token": "t0k3n"}, "timeout": 20
        }),
    )
    .await;
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(task["result"]["status"], 201);
    assert_eq!(task["result"]["json"], json!({"id": 7}));
    assert_eq!(
        task["result"]["headers"]["content-type"],
        "application/json"
    );
    let came = &receiver.requests()[0];
    assert_eq!(came.path, "/items?a=1&tag=x&tag=y+z");
    assert_eq!(came.body, r#"{"name":"ä"}"#.as_bytes());
    let key = came.header("idempotency-key").unwrap_or_default();
    assert!(key.ends_with(task["id"].as_str().unwrap()), "{key}");
    for (name, value) in [
        ("x-one", "1"),
        ("authorization", "Bearer t0k3n"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(came.header(name), Some(value), "{name}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unexpected_status_a_redirect_and_silence_fail_the_task() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start_with(&folder, &ALLOWED).await;
    let url = receiver.url("/a");
    receiver.answer_at("/a", Answer::status(503).body("try later"));
    let task = ran(&server, json!({"url": url})).await;
    assert_eq!(task["status"], "failed", "{task}");
    let told = format!("GET {url} answered 503, expected 2xx: try later");
    assert_eq!(task["error"], told);
    let expected = ran(&server, json!({"url": url, "expect_status": ["2xx", 503]})).await;
    assert_eq!(expected["result"]["body"], "try later");

    receiver.answer_at(
        "/a",
        Answer::status(302).header("location", "http://127.0.0.2/x"),
    );
    let error = ran(&server, json!({"url": url})).await["error"].take();
    assert!(
        error.as_str().unwrap().contains("points to `127.0.0.2`"),
        "{error}"
    );

    receiver.answer_at("/a", Behaviour::raw("", Then::Hang));
    let error = ran(&server, json!({"url": url, "timeout_seconds": 0.2})).await["error"].take();
    assert!(error.as_str().unwrap().ends_with("(timeout)"), "{error}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_address_is_refused_unless_it_is_allowed() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let url = format!("https://{}/", receiver.address());
    let refused = refused(&server, json!({"url": url})).await;
    assert_eq!(
        (&refused["reason"], &refused["actual"]),
        (
            &json!("the address is not allowed (blocked_address)"),
            &json!(url)
        )
    );
    assert_eq!(receiver.connections(), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allowed_name_may_be_private_and_a_denied_one_is_not_called() {
    let (folder, receiver, dns) = (Folder::new(), Receiver::start().await, Dns::start().await);
    for name in ["a.internal", "b.internal", "a.example"] {
        dns.says(name, [Reply::addresses(&["127.0.0.1"])]);
    }
    let server = dns.address().to_string();
    let options = [
        "--egress-dns",
        &server,
        "--egress-allow-host",
        "localhost,*.internal",
        "--egress-deny-host",
        "b.internal",
        "--egress-allow-http",
    ];
    let server = Server::start_with(&folder, &options).await;
    for (name, status) in [
        ("a.internal", "completed"),
        ("localhost", "completed"),
        // Where it leads is known when it is looked up.
        ("a.example", "failed"),
    ] {
        let task = ran(&server, json!({"url": receiver.url_of(name, "/")})).await;
        assert_eq!(task["status"], status, "{name}: {task}");
    }
    let denied = receiver.url_of("b.internal", "/");
    let refused = refused(&server, json!({"url": denied})).await;
    assert_eq!(refused["actual"], json!(denied), "{refused}");
    assert_eq!(receiver.requests().len(), 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_does_not_call_itself() {
    let folder = Folder::new();
    // A port that is free now; the server must know it before it starts.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let mut command = taskledger_testkit::program::command();
    command
        .args(["serve", "--listen", &address])
        .args(folder.storage())
        .args(ALLOWED);
    let server = Server::spawn(command, folder.path()).await;
    let own = json!({"url": format!("http://{address}/health")});
    let refused = refused(&server, own.clone()).await;
    let told = refused["reason"].as_str().unwrap();
    assert!(told.contains("this server listens on"), "{told}");
    let webhook = server.api.refusal("webhooks.create", own).await;
    assert_eq!(webhook.data["reason"], refused["reason"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_in_the_inputs_are_told_at_once() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    for inputs in [
        json!({}),
        json!({"url": "https://example.com", "method": "TRACE"}),
        json!({"url": "https://example.com", "headers": {"Host": "other.example"}}),
        json!({"url": "https://example.com", "headers": {"a": "b\r\nc: d"}}),
        json!({"url": "https://example.com", "expect_status": ["500-200"]}),
        json!({"url": "ftp://example.com"}),
    ] {
        for method in ["http_executor", "rest_executor"] {
            let task = json!({"name": "t", "schemas": {"method": method}, "inputs": inputs});
            let refusal = server.api.refusal("tasks.create", json!([task])).await;
            assert_eq!(refusal.code, -32602, "{inputs}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_task_drops_its_request() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start_with(&folder, &ALLOWED).await;
    receiver.answer(Behaviour::raw("", Then::Hang));
    let inputs = json!({"url": receiver.url("/"), "timeout": 600});
    let root = started("rest_executor", &inputs, &server).await;
    receiver.wait_for(1).await;
    server
        .api
        .call("tasks.cancel", json!({"task_id": root}))
        .await;
    let run = server.api.run_of(&root).await;
    assert_eq!(run["state"], "cancelled", "{run}");
    server.stop().await;
}
