//! The addresses of the broker: one for agents only, one for its monitoring; how large messages may be, how long
//! tasks wait.

use super::{Bus, PATIENCE, next, one, task};
use prost_types::value::Kind;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use taskledger::metrics::broker::rows;
use taskledger::metrics::table;
use taskledger_eventbus::{EventBusClient, PublishTaskRequest, TaskStatus};
use taskledger_testkit::server::{Folder, Server};
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// An address that a server has logged with this message.
fn address(server: &Server, message: &str) -> String {
    let lines = server.logged();
    let entries = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let address = entries
        .filter(|entry| entry["message"] == message)
        .find_map(|entry| entry["address"].as_str().map(str::to_owned));
    format!("http://{}", address.expect("the server logs where"))
}

async fn client_at(url: &str) -> EventBusClient<Channel> {
    let endpoint = Endpoint::from_shared(url.to_owned()).unwrap();
    EventBusClient::new(endpoint.connect().await.unwrap())
}

pub(super) async fn bus_with(flags: &[&str]) -> Bus {
    let folder = Folder::new();
    let server = Server::start_with(&folder, flags).await;
    let peer = super::Peer::of(&server).await;
    Bus {
        server,
        peer,
        folder,
    }
}

async fn read(bus: &Bus, url: &str) -> (u16, String, Value) {
    let response = bus.server.api.http.get(url).send().await.unwrap();
    let status = response.status().as_u16();
    let kind = response.headers()["content-type"].to_str().unwrap();
    let kind = kind.to_owned();
    let text = response.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, kind, body)
}

#[tokio::test]
async fn an_address_for_agents_serves_the_broker_and_nothing_else() {
    let bus = bus_with(&["--broker-listen", "127.0.0.1:0"]).await;
    let url = address(&bus.server, "agents of the broker are served");
    // The same broker at both addresses.
    let mut agents = client_at(&url).await;
    let mut stream = bus.subscribe("agent", &["x"]).await;
    let request = PublishTaskRequest {
        task: Some(task("t", "x")),
    };
    agents.publish_task(request).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "t");
    for path in ["/", "/events", "/readyz", "/metrics", "/openrpc.json"] {
        let (status, _, body) = read(&bus, &format!("{url}{path}")).await;
        assert_eq!(status, 404, "{path}");
        let said = body.as_str().expect("plain text");
        assert!(said.contains("eventbus.EventBus"), "{said}");
        assert!(said.starts_with("this address speaks gRPC"), "{said}");
        assert!(said.contains("is at the server's own address;"), "{said}");
    }
    let call = json!({"jsonrpc": "2.0", "method": "tasks.list", "params": {}, "id": 1});
    let posted = bus.server.api.http.post(&url).json(&call).send().await;
    let posted = posted.unwrap();
    assert_eq!(posted.status(), 404);
    // Where a client of JSON-RPC looks for it.
    let told: Value = posted.json().await.unwrap();
    let reason = told["error"]["data"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("this address speaks gRPC"), "{told}");
    assert!(reason.ends_with("is at the server's own address"), "{told}");
    let public = [
        "--broker-listen",
        "127.0.0.1:0",
        "--public-url",
        "https://tasks.example",
    ];
    let named = bus_with(&public).await;
    let url_named = address(&named.server, "agents of the broker are served");
    let (_, _, said) = read(&named, &url_named).await;
    let said = said.as_str().expect("plain text");
    assert!(said.contains("is at https://tasks.example;"), "{said}");
    named.server.stop().await;
    // A page that has made a browser look up its own name as this address learns nothing.
    let foreign = bus.server.api.http.get(&url).header("host", "evil.example");
    assert_eq!(foreign.send().await.unwrap().status(), 421);
    bus.server.ask_to_stop();
    let end = timeout(PATIENCE, stream.message()).await.unwrap();
    assert_eq!(end.unwrap_err().code(), Code::Unavailable);
    assert!(bus.server.end().await.0.success());
}

#[tokio::test]
async fn the_size_of_messages_can_be_set() {
    let bus = bus_with(&["--broker-message-bytes", "65536"]).await;
    let mut message = task("t", "x");
    let text = |bytes: usize| Some(one("k", Kind::StringValue("x".repeat(bytes))));
    message.parameters = text(70_000);
    let refused = bus.publish(message.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("65536"), "{refused}");
    message.parameters = text(60_000);
    bus.publish(message).await.unwrap();
}

#[tokio::test]
async fn a_task_without_a_deadline_fails_when_nobody_takes_it_in_time() {
    let bus = bus_with(&["--broker-ttl", "1"]).await;
    bus.publish(task("parked", "x")).await.unwrap();
    let mut told = bus.results("requester", &[]).await;
    let result = next(&mut told).await;
    assert_eq!(
        (&*result.task_id, result.status()),
        ("parked", TaskStatus::Failed)
    );
    assert_eq!(
        result.error_message,
        "no worker claimed it within 1 s: no worker asks for `x`"
    );
    // One that is taken may take its time, and the same publication again is the same task.
    let mut stream = bus.subscribe("agent", &["x"]).await;
    bus.publish(task("parked", "x")).await.unwrap();
    bus.publish(task("taken", "x")).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "taken");
    let mut patient = task("patient", "nobody.does.this");
    patient.deadline = Some(prost_types::Timestamp {
        seconds: 4_000_000_000,
        nanos: 0,
    });
    bus.publish(patient).await.unwrap();
    super::nothing(&mut told).await;
    super::nothing(&mut told).await;
    bus.complete("agent", "taken").await.unwrap();
    assert_eq!(next(&mut told).await.task_id, "taken");
}

#[tokio::test]
async fn probes_of_the_broker_have_the_documented_shape() {
    let flags = [
        "--broker-metrics-listen",
        "127.0.0.1:0",
        "--broker-listen",
        "127.0.0.1:0",
    ];
    let bus = bus_with(&flags).await;
    let url = address(&bus.server, "metrics and probes of the broker are served");
    let agents = address(&bus.server, "agents of the broker are served");
    let (status, kind, health) = read(&bus, &format!("{url}/health")).await;
    assert_eq!((status, &*kind), (200, "application/json"));
    assert_eq!(
        (&health["status"], &health["service"], &health["version"]),
        (
            &json!("healthy"),
            &json!("agenthub-broker"),
            &json!(env!("CARGO_PKG_VERSION"))
        )
    );
    assert!(
        health["uptime"].as_str().unwrap().ends_with('s'),
        "{health}"
    );
    let checks = health["checks"].as_array().unwrap();
    let names: Vec<&str> = checks
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["self", "grpc_server"], "{health}");
    assert!(names.len() > 2, "the checks of the server: {health}");
    for check in checks {
        assert_eq!(check["status"], "healthy", "{check}");
        for member in ["message", "last_checked", "duration"] {
            assert!(check[member].is_string(), "{check}");
        }
    }
    let (status, _, ready) = read(&bus, &format!("{url}/ready")).await;
    assert_eq!((status, &ready["ready"]), (200, &json!(true)));
    let listening = agents.replace("http://", "gRPC server listening on ");
    assert_eq!(
        ready["dependencies"][1],
        json!({"name": "grpc_server", "ready": true, "message": listening})
    );
    for path in ["/", "/readyz", "/events"] {
        assert_eq!(read(&bus, &format!("{url}{path}")).await.0, 404, "{path}");
    }
    // An open stream keeps the server from ending at once: probes are answered while it drains.
    bus.server.stop().await;
}

/// The samples of a scrape whose lines begin so, added up.
fn sum(text: &str, beginning: &str) -> f64 {
    let lines = text.lines().filter(|line| line.starts_with(beginning));
    lines
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}

#[tokio::test]
async fn metrics_of_the_broker_have_the_documented_names_and_labels() {
    let bus = bus_with(&["--broker-metrics-listen", "127.0.0.1:0", "--metrics"]).await;
    let url = address(&bus.server, "metrics and probes of the broker are served");
    let mut results = bus.results("requester", &[]).await;
    let mut going = bus.going("requester", &[]).await;
    bus.publish(task("waits", "parked")).await.unwrap();
    let mut stream = bus.subscribe("agent", &["x"]).await;
    bus.publish(task("t", "x")).await.unwrap();
    next(&mut stream).await;
    bus.progress("agent", "t", 40).await.unwrap();
    next(&mut going).await;
    bus.complete("agent", "t").await.unwrap();
    next(&mut results).await;
    bus.publish(task("held", "x")).await.unwrap();
    next(&mut stream).await;
    bus.publish(task("", "made.up")).await.unwrap_err();
    bus.complete("agent", "unknown").await.unwrap_err();
    let (status, kind, body) = read(&bus, &format!("{url}/metrics")).await;
    assert_eq!(
        (status, &*kind),
        (200, "text/plain; version=0.0.4; charset=utf-8")
    );
    let text = body.as_str().unwrap();
    for (series, value) in [
        (
            r#"events_processed_total{service="agenthub-broker",event_type="x",success="true"}"#,
            2.0,
        ),
        (
            r#"events_processed_total{service="agenthub-broker",event_type="parked",success="true"}"#,
            1.0,
        ),
        (
            r#"events_processed_total{service="agenthub-broker",event_type="task_result",success="true"}"#,
            1.0,
        ),
        (
            r#"events_processed_total{service="agenthub-broker",event_type="task_result",success="false"}"#,
            1.0,
        ),
        (
            r#"events_processed_total{service="agenthub-broker",event_type="task_delivery",success="true"}"#,
            2.0,
        ),
        (
            r#"events_published_total{event_type="x",target_agent="agent"}"#,
            2.0,
        ),
        (
            r#"events_published_total{event_type="task_result",target_agent="requester"}"#,
            1.0,
        ),
        (
            r#"events_published_total{event_type="task_progress",target_agent="requester"}"#,
            1.0,
        ),
        (
            r#"event_errors_total{service="agenthub-broker",event_type="unknown",error_type="validation_error"}"#,
            1.0,
        ),
        (
            r#"event_errors_total{service="agenthub-broker",event_type="task_result",error_type="not_found"}"#,
            1.0,
        ),
        (
            r#"event_processing_duration_seconds_count{service="agenthub-broker",event_type="x"}"#,
            2.0,
        ),
        (
            r#"message_broker_publish_duration_seconds_count{topic="task_queue"}"#,
            4.0,
        ),
        (
            r#"message_broker_consume_duration_seconds_count{topic="task_result_queue"}"#,
            1.0,
        ),
        ("message_broker_connection_errors_total", 0.0),
        (r#"taskledger_broker_streams{kind="tasks"}"#, 1.0),
        (r#"taskledger_broker_streams{kind="results"}"#, 1.0),
        (r#"taskledger_broker_streams{kind="progress"}"#, 1.0),
        (r#"taskledger_broker_queue_depth{event_type="parked"}"#, 1.0),
        (r#"taskledger_broker_leases{event_type="x"}"#, 1.0),
        ("taskledger_broker_redeliveries_total", 0.0),
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(series)),
            "{series}\n{text}"
        );
        assert_eq!(sum(text, series), value, "{series}\n{text}");
    }
    assert!(!text.contains("made.up"), "{text}");
    let oldest = r#"taskledger_broker_queue_oldest_seconds{event_type="parked"}"#;
    assert!(sum(text, oldest) > 0.0, "{text}");
    let families: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let expected: BTreeSet<&str> = rows().map(|row| row.name).collect();
    assert_eq!(families, expected);
    // The names of this server stand on its own page too.
    let own = bus
        .server
        .api
        .http
        .get(format!("{}metrics", bus.server.api.url));
    let own = own.send().await.unwrap().text().await.unwrap();
    assert_eq!(sum(&own, r#"taskledger_broker_streams{kind="tasks"}"#), 1.0);
    assert!(!own.contains("events_processed"), "{own}");
    // What goes to another agent is counted.
    drop(stream);
    next(&mut bus.subscribe("another", &["x"]).await).await;
    let (.., body) = read(&bus, &format!("{url}/metrics")).await;
    let again = table::BROKER_REDELIVERIES.name;
    assert_eq!(sum(body.as_str().unwrap(), again), 1.0);
}
