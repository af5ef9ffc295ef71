//! Clients that are broken or mean harm: each is refused with its status, the server goes on serving others, and what
//! they cost is bounded.

mod frames;
mod readers;
mod values;

use super::{Bus, PATIENCE, Peer, next, task};
use axum::body::Body;
use frames::Wire;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use taskledger_eventbus::{PublishTaskRequest, SubscribeToTasksRequest};
use taskledger_testkit::server::{Folder, Server};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::{Code, Request};

const A2A: &str = "/lf.a2a.v1.A2AService/GetTask";
const PUBLISH: &str = "/eventbus.EventBus/PublishTask";
/// `ENHANCE_YOUR_CALM`, the error of HTTP/2 for peers that cost too much.
const CALM: u32 = 11;

/// Kilobytes of memory of a server.
fn memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let mut lines = status.lines();
    let line = lines.find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Others are served: a task is published, delivered, and ends.
async fn serves(bus: &Bus) {
    let peer = Peer::of(&bus.server).await;
    static SERVED: AtomicUsize = AtomicUsize::new(0);
    let id = format!("served-{}", SERVED.fetch_add(1, Ordering::Relaxed));
    let mut stream = peer.subscribe("server's", &["served"]).await;
    peer.publish(task(&id, "served")).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, id);
    peer.complete("server's", &id).await.unwrap();
}

/// A client of HTTP/2 that knows nothing of gRPC.
#[derive(Clone)]
struct Http2(SendRequest<Body>);

impl Http2 {
    async fn open(server: &Server) -> Self {
        let address = server.api.url.strip_prefix("http://").unwrap();
        let socket = TcpStream::connect(address.trim_end_matches('/'))
            .await
            .unwrap();
        let made =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket));
        let (sender, connection) = made.await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// The status of HTTP, and that of gRPC in the headers; -1: none.
    async fn call(
        &mut self,
        path: &str,
        kind: &str,
        extra: &[(&str, &str)],
        body: Body,
    ) -> (u16, i32) {
        let mut request = hyper::Request::post(format!("http://localhost{path}"))
            .header("content-type", kind)
            .header("te", "trailers");
        for (name, value) in extra {
            request = request.header(*name, *value);
        }
        self.0.ready().await.unwrap();
        let answer = self
            .0
            .send_request(request.body(body).unwrap())
            .await
            .unwrap();
        let status = answer.headers().get("grpc-status");
        let status = status.map_or(-1, |it| it.to_str().unwrap().parse().unwrap());
        (answer.status().as_u16(), status)
    }
}

#[tokio::test]
async fn what_is_no_message_of_the_protocol_has_its_status() {
    let bus = Bus::start().await;
    let mut client = Http2::open(&bus.server).await;
    let message = |flag: u8, bytes: &[u8]| {
        let mut body = vec![flag];
        body.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
        body.extend(bytes);
        body
    };
    let grpc = "application/grpc";
    let gzip = [("grpc-encoding", "gzip")];
    let huge = [&[0][..], &u32::MAX.to_be_bytes(), b"x"].concat();
    let internal = Code::Internal as i32;
    let invalid = Code::InvalidArgument as i32;
    for (path, kind, extra, body, http, status) in [
        // No protobuf; a field of another type; cut off; no frame at all; more than was said; nothing.
        (
            PUBLISH,
            grpc,
            &[][..],
            message(0, b"\xff\xff\xff"),
            200,
            invalid,
        ),
        (PUBLISH, grpc, &[], message(0, b"\x08\x01"), 200, invalid),
        (PUBLISH, grpc, &[], message(0, b"\x0a\x7f"), 200, invalid),
        (PUBLISH, grpc, &[], b"{}".to_vec(), 200, internal),
        (PUBLISH, grpc, &[], huge, 200, Code::OutOfRange as i32),
        (PUBLISH, grpc, &[], Vec::new(), 200, internal),
        // Compressed, said or not.
        (PUBLISH, grpc, &[], message(1, b"x"), 200, internal),
        (
            PUBLISH,
            grpc,
            &gzip,
            message(1, b"x"),
            200,
            Code::Unimplemented as i32,
        ),
        // The other service says so too: no protobuf, a field of another type, cut off, no frame at all.
        (A2A, grpc, &[], message(0, b"\xff\xff\xff"), 200, invalid),
        (A2A, grpc, &[], message(0, b"\x10\x01"), 200, invalid),
        (A2A, grpc, &[], message(0, b"\x12\x7f"), 200, invalid),
        (A2A, grpc, &[], b"{}".to_vec(), 200, invalid),
        // An unknown field is nothing to object to: there is no task.
        (
            PUBLISH,
            grpc,
            &[],
            message(0, b"\x50\x01"),
            200,
            Code::InvalidArgument as i32,
        ),
        (
            "/eventbus.EventBus/Nothing",
            grpc,
            &[],
            message(0, b""),
            200,
            Code::Unimplemented as i32,
        ),
        (PUBLISH, "application/json", &[], b"{}".to_vec(), 415, -1),
        (
            PUBLISH,
            "application/grpc-web",
            &[],
            message(0, b""),
            415,
            -1,
        ),
        (
            PUBLISH,
            "application/grpc+json",
            &[],
            message(0, b"{}"),
            415,
            -1,
        ),
        (
            "/eventbus.Other/PublishTask",
            grpc,
            &[],
            message(0, b""),
            404,
            -1,
        ),
    ] {
        let case = format!("{path} {kind} {body:?}");
        let answer = client.call(path, kind, extra, Body::from(body)).await;
        assert_eq!(answer, (http, status), "{case}");
    }
    serves(&bus).await;
}

#[tokio::test]
async fn a_refused_stream_ends_with_its_headers() {
    let bus = Bus::start().await;
    let mut wire = Wire::open(&bus.server).await;
    for (call, message) in [
        ("SubscribeToTasks", &b""[..]),
        ("SubscribeToTaskResults", b""),
        ("SubscribeToTaskProgress", b""),
        ("PublishTask", b""),
        // Not UTF-8.
        ("SubscribeToTasks", b"\x0a\x01\xff"),
    ] {
        let path = format!("/eventbus.EventBus/{call}");
        let frames = wire.call(&path, message).await;
        // Some clients find no status if a frame of data follows.
        assert_eq!(frames, [(frames::HEADERS, true)], "{call}");
    }
}

#[tokio::test]
async fn a_task_that_agents_cannot_read_fails_and_their_streams_go_on() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let mut deep = json!(1);
    for _ in 0..40 {
        deep = json!({ "k": deep });
    }
    let large = json!(vec![1; 500_000]);
    for inputs in [deep, large] {
        let create = json!({"tasks": [{"name": "n", "inputs": {"v": inputs},
            "schemas": {"type": "remote", "method": "x"}}]});
        let started = bus.server.api.call("tasks.execute", create).await;
        bus.publish(task(&started.to_string(), "x")).await.unwrap();
        let given = next(&mut stream).await.task_id;
        assert_eq!(given, started.to_string(), "nothing else is given");
        bus.complete("a", &given).await.unwrap();
        let id = json!({"task_id": started["root_task_id"]});
        let found = bus.server.api.call("tasks.get", id).await;
        assert_eq!(found["status"], "failed", "{}", found["error"]);
        let error = found["error"].as_str().unwrap();
        assert!(error.contains("parameters: "), "{error}");
    }
}

#[tokio::test]
async fn calls_that_are_cancelled_or_half_open_take_nothing_from_others() {
    const CALLS: usize = 60;
    let bus = Bus::start().await;
    let calls = (0..CALLS).map(|n| {
        let mut client = bus.client.clone();
        let request = PublishTaskRequest {
            task: Some(task(&format!("t{n}"), "x")),
        };
        tokio::spawn(async move { client.publish_task(request).await })
    });
    let calls: Vec<_> = calls.collect();
    // Some of them have been answered by then, some were not even sent.
    bus.publish(task("between", "x")).await.unwrap();
    for call in calls {
        call.abort();
    }
    for n in 0..CALLS {
        bus.publish(task(&format!("t{n}"), "x")).await.unwrap();
    }
    let list = bus.server.api.call("tasks.list", json!({"limit": 1})).await;
    assert_eq!(list["total"], CALLS + 1, "each was published once");
    // Calls whose message never comes: as long as they say, not as long as the server would wait.
    let client = Http2::open(&bus.server).await;
    let calls = (0..100).map(|_| {
        let mut client = client.clone();
        async move {
            let never = futures_util::stream::pending::<std::io::Result<Vec<u8>>>();
            let (never, late) = (Body::from_stream(never), [("grpc-timeout", "300m")]);
            client.call(PUBLISH, "application/grpc", &late, never).await
        }
    });
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer, (200, Code::DeadlineExceeded as i32));
    }
    serves(&bus).await;
}

#[tokio::test]
async fn a_flood_of_streams_that_are_reset_ends_its_connection_only() {
    let bus = Bus::start().await;
    let before = memory(&bus.server);
    for body in [false, true] {
        let mut wire = Wire::open(&bus.server).await;
        for _ in 0..200 {
            let mut flood = Vec::new();
            for _ in 0..100 {
                flood.extend(wire.reset_call(PUBLISH, body));
            }
            if wire.send(&flood).await.is_err() {
                break;
            }
        }
        let told = timeout(PATIENCE, wire.ended()).await.unwrap();
        // A connection that is reset takes along what was said last.
        assert!(told.is_none_or(|code| code == CALM), "{told:?}");
    }
    let grown = memory(&bus.server).saturating_sub(before) / 1024;
    assert!(grown < 64, "{grown} MB");
    serves(&bus).await;
}

#[tokio::test]
async fn headers_without_an_end_end_their_connection_only() {
    let bus = Bus::start().await;
    let before = memory(&bus.server);
    let mut wire = Wire::open(&bus.server).await;
    let mut sent = 0;
    let beginning = wire.unfinished_headers(PUBLISH);
    wire.send(&beginning).await.unwrap();
    // 16 KiB each, up to a gigabyte if nobody stops it.
    while sent < 65_536 && wire.send(&wire.continuation()).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 4096, "{sent} frames were taken");
    timeout(PATIENCE, wire.ended()).await.unwrap();
    let grown = memory(&bus.server).saturating_sub(before) / 1024;
    assert!(grown < 64, "{grown} MB");
    serves(&bus).await;
}

#[tokio::test]
async fn more_streams_than_there_may_be_are_refused_until_one_ends() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--max-streams", "3"]).await;
    let peer = Peer::of(&server).await;
    let tasks = peer.subscribe("a", &["x"]).await;
    let _results = peer.results("r", &[]).await;
    let _going = peer.going("r", &[]).await;
    let request = || {
        Request::new(SubscribeToTasksRequest {
            agent_id: "b".to_owned(),
            task_types: vec!["x".to_owned()],
        })
    };
    let mut client = peer.client.clone();
    let refused = client.subscribe_to_tasks(request()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    peer.publish(task("t", "x")).await.unwrap();
    drop(tasks);
    let subscribed = async {
        loop {
            match client.subscribe_to_tasks(request()).await {
                Ok(stream) => break stream.into_inner(),
                Err(refused) => assert_eq!(refused.code(), Code::ResourceExhausted),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut stream = timeout(PATIENCE, subscribed).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "t");
}
