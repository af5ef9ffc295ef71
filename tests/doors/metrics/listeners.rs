//! Where metrics are served, and where not.

use serde_json::Value;
use taskledger_testkit::server::{Folder, Server};

async fn status(server: &Server, url: &str) -> u16 {
    let response = server.api.http.get(url).send().await.unwrap();
    response.status().as_u16()
}

/// The address of the listener for monitoring, from the log.
fn admin(server: &Server) -> String {
    let lines = server.logged();
    let entries = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let address = entries
        .filter(|entry| entry["message"] == "metrics and probes are served")
        .find_map(|entry| entry["address"].as_str().map(str::to_owned));
    format!("http://{}/", address.expect("the server logs where"))
}

#[tokio::test]
async fn a_server_serves_no_metrics_unless_it_is_told_to() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.clone();
    assert_eq!(status(&server, &format!("{url}metrics")).await, 404);
    assert!(!server.logged().contains("metrics"));
    server.stop().await;
}

#[tokio::test]
async fn the_listener_for_monitoring_has_metrics_and_probes_and_nothing_else() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--admin-listen", "127.0.0.1:0"]).await;
    let (admin, calls) = (admin(&server), server.api.url.clone());
    for (path, expected) in [
        ("metrics", 200),
        ("livez", 200),
        ("readyz", 200),
        ("healthz?verbose", 200),
        ("", 404),
        ("tasks", 404),
        ("events", 404),
        ("openrpc.json", 404),
    ] {
        assert_eq!(
            status(&server, &format!("{admin}{path}")).await,
            expected,
            "{path}"
        );
    }
    assert_eq!(status(&server, &format!("{calls}metrics")).await, 404);
    let posted = server
        .api
        .http
        .post(format!("{admin}metrics"))
        .send()
        .await
        .unwrap();
    assert_eq!(posted.status(), 405);
    // A page that has made a browser look up its own name as this address learns nothing.
    let foreign = server.api.http.get(format!("{admin}metrics"));
    let foreign = foreign.header("host", "evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), 421);
    server.stop().await;
}
