//! Connections: reuse, limits, slow and lost peers, and the end of the server.

use crate::protocol::fake::Fake;
use crate::protocol::harness::{Client, Http2, Server, request};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use taskledger::clock::SystemClock;
use taskledger::transport::http::{Inside, Options, Service};
use taskledger::transport::jsonrpc::Dispatcher;

fn call(method: &str, n: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"test.{method}","params":{{"n":{n}}},"id":{n}}}"#)
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for n in 0..50 {
        assert_eq!(client.post("/", call("echo", n)).await.ok()["id"], n);
    }
    assert_eq!(server.handle.connections(), 1);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let requests: Vec<u8> = (0..50)
        .flat_map(|n| request("/", "", call("echo", n)))
        .collect();
    client.send(requests).await;
    for n in 0..50 {
        assert_eq!(client.read().await.ok()["result"]["n"], n);
    }
}

#[tokio::test]
async fn http2_serves_many_requests_at_once_on_one_connection() {
    let server = Server::start().await;
    let client = Http2::connect(server.addr()).await;
    let held = join_all((0..20).map(|n| {
        let mut client = client.clone();
        async move { client.post("/", call("hold", n)).await.ok()["id"].clone() }
    }));
    let release = async {
        // All twenty are under way before any may end.
        server.fake.waiting.acquire_many(20).await.unwrap().forget();
        server.fake.gate.add_permits(20);
    };
    let (ids, ()) = tokio::join!(held, release);
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
    assert_eq!(server.handle.connections(), 1);
}

#[tokio::test]
async fn a_connection_that_sends_its_headers_slowly_or_not_at_all_is_closed() {
    let options = Options {
        header_timeout: Duration::from_millis(250),
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let beginnings = [
        "",
        "P",
        "PRI * HT",
        "POST / HTTP/1.1\r\nhost: localhost\r\nx: ",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    join_all(beginnings.map(async |beginning| {
        let mut client = server.connect().await;
        client.send(beginning).await;
        client.closed().await
    }))
    .await;
    assert_eq!(server.post(call("echo", 1)).await.status, 200);
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_with_a_running_request_is_not() {
    let options = Options {
        header_timeout: Duration::from_millis(250),
        idle_timeout: Duration::from_millis(250),
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let mut busy = server.connect().await;
    busy.send(request("/", "", call("hold", 1))).await;
    server.fake.waiting.acquire().await.unwrap().forget();
    let mut idle = server.connect().await;
    assert_eq!(idle.post("/", call("echo", 1)).await.status, 200);
    assert!(idle.closed().await.is_empty());
    server.fake.gate.add_permits(1);
    assert_eq!(busy.read().await.ok()["result"], "held");
}

#[tokio::test]
async fn connections_over_the_limit_wait_until_one_closes() {
    let options = Options {
        connections_max: 2,
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    first.post("/", call("write", 1)).await.ok();
    second.post("/", call("write", 2)).await.ok();
    let mut third = server.connect().await;
    third.send(request("/", "", call("write", 3))).await;
    for n in 0..20 {
        first.post("/", call("echo", n)).await.ok();
        second.post("/", call("echo", n)).await.ok();
    }
    assert_eq!(server.handle.connections(), 2);
    assert!(!server.fake.calls().contains(&"write3".to_owned()));
    drop(first);
    assert_eq!(third.read().await.ok()["result"], 43);
    second.post("/", call("echo", 1)).await.ok();
}

#[tokio::test]
async fn a_change_goes_on_when_its_caller_hangs_up() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send(request("/", "", call("hold_write", 1))).await;
    server.fake.waiting.acquire().await.unwrap().forget();
    drop(client);
    // Until the server has noticed, which is when the connection is gone.
    while server.handle.connections() > 0 {
        tokio::task::yield_now().await;
    }
    server.fake.gate.add_permits(1);
    server.fake.ended.acquire().await.unwrap().forget();
    while server.fake.calls().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.fake.calls(), ["hold_write1"]);
}

#[tokio::test]
async fn a_read_ends_when_its_caller_hangs_up() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send(request("/", "", call("hold", 1))).await;
    server.fake.waiting.acquire().await.unwrap().forget();
    drop(client);
    while server.handle.connections() > 0 {
        tokio::task::yield_now().await;
    }
    server.fake.gate.add_permits(1);
    // The permit is still there: nobody waits for it any more.
    assert_eq!(server.fake.gate.available_permits(), 1);
    assert!(server.fake.calls().is_empty());
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_finishes_what_is_under_way() {
    let server = Server::start().await;
    let mut idle = server.connect().await;
    idle.post("/", call("echo", 1)).await.ok();
    let mut held = server.connect().await;
    held.send(request("/", "", call("hold", 2))).await;
    let mut http2 = Http2::connect(server.addr()).await;
    let http2_held = tokio::spawn(async move { http2.post("/", call("hold_write", 3)).await });
    server.fake.waiting.acquire_many(2).await.unwrap().forget();
    server.stop.cancel();
    assert!(
        idle.closed().await.is_empty(),
        "an idle connection is closed at once"
    );
    while tokio::net::TcpStream::connect(server.addr()).await.is_ok() {}
    assert!(!server.running.is_finished());
    server.fake.gate.add_permits(2);
    let answer = held.read().await;
    assert_eq!(answer.ok()["result"], "held");
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(http2_held.await.unwrap().ok()["result"], "held");
    server.running.await.unwrap();
}

#[tokio::test]
async fn what_does_not_finish_within_the_grace_is_cut_off() {
    let options = Options {
        shutdown_grace: Duration::from_millis(50),
        ..Options::default()
    };
    let server = Server::with(options, Fake::default()).await;
    let mut clients: Vec<Client> = Vec::new();
    for method in ["hold", "hold_write"] {
        let mut client = server.connect().await;
        client.send(request("/", "", call(method, 1))).await;
        clients.push(client);
    }
    server.fake.waiting.acquire_many(2).await.unwrap().forget();
    server.stop.cancel();
    server.running.await.unwrap();
    for mut client in clients {
        assert!(client.closed().await.is_empty());
    }
    assert!(server.fake.calls().is_empty());
}

#[tokio::test]
async fn an_address_that_cannot_be_had_is_a_clear_error() {
    let server = Server::start().await;
    let clock = Arc::new(SystemClock::default());
    let fake = Arc::new(Fake::default());
    for (listen, hint) in [
        (server.addr().to_string(), "another program listens there"),
        (
            "203.0.113.1:0".to_owned(),
            "this machine has no such address",
        ),
        ("nonsense".to_owned(), "the address must be `host:port`"),
    ] {
        let options = Options {
            listen: listen.clone(),
            ..Options::default()
        };
        let dispatcher = Arc::new(Dispatcher::new(fake.clone(), Vec::new(), clock.clone()));
        let inside = Inside {
            readiness: fake.clone(),
            authenticate: None,
            peers: None,
            metrics: None,
            broker: None,
        };
        let bound = Service::bind(options, dispatcher, inside, clock.clone()).await;
        let error = bound.err().expect("the address cannot be had").to_string();
        assert!(error.contains(&listen) && error.contains(hint), "{error}");
    }
}
