//! `/ws`: calls, subscriptions, close codes.

use crate::streams::sse::{PATIENCE, everything, run, tasks};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn open(server: &Server) -> Self {
        let (socket, _) = connect_async(url(server)).await.unwrap();
        Self(socket)
    }

    async fn send(&mut self, message: &Value) {
        self.0
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
    }

    /// The next message.
    async fn next(&mut self) -> Value {
        loop {
            match timeout(PATIENCE, self.0.next())
                .await
                .expect("something comes")
            {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The code with which the server closes.
    async fn code(&mut self) -> u16 {
        loop {
            match timeout(PATIENCE, self.0.next())
                .await
                .expect("something comes")
            {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn url(server: &Server) -> String {
    format!("{}ws", server.api.url.replace("http://", "ws://"))
}

#[tokio::test]
async fn calls_are_answered_as_on_post() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let mut socket = Socket::open(&server).await;
    socket.call(1, "tasks.create", json!({"name": "a"})).await;
    let answer = socket.next().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["status"]),
        (&json!(1), &json!("pending"))
    );
    let call = |id: u64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
    socket
        .send(&json!([call(2, "system.health"), call(3, "no.such")]))
        .await;
    let answers = socket.next().await;
    assert_eq!(answers[0]["id"], 2);
    assert_eq!(answers[1]["error"]["code"], -32601);
    // A name that was mistyped is answered with the one that was meant, those of sockets included.
    for (method, meant) in [
        ("subscribee", "subscribe"),
        ("tasks.gett", "tasks.get"),
        ("wrk", "work"),
    ] {
        socket.call(4, method, json!({})).await;
        let error = socket.next().await["error"].take();
        assert_eq!(error["code"], -32601, "{error}");
        let expected = error["data"]["expected"].as_str().unwrap();
        assert!(
            expected.ends_with(&format!("did you mean `{meant}`?")),
            "{expected}"
        );
    }
    socket.0.send(Message::text("{")).await.unwrap();
    assert_eq!(socket.next().await["error"]["code"], -32700);
    let too_many: Vec<Value> = (0..=100).map(|id| call(id, "system.health")).collect();
    socket.send(&json!(too_many)).await;
    let whole = socket.next().await;
    assert_eq!(
        (&whole["id"], &whole["error"]["code"]),
        (&Value::Null, &json!(-32600))
    );
    // What only sockets have is explained elsewhere.
    let refusal = server.api.refusal("subscribe", json!({})).await;
    assert_eq!(refusal.code, -32601);
    assert!(refusal.data["expected"].as_str().unwrap().contains("/ws"));
    server.stop().await;
}

#[tokio::test]
async fn events_are_notifications_with_the_same_places() {
    // given
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let root = run(&server.api, 2).await;
    let all = everything(&server.api).await;
    // when
    let mut socket = Socket::open(&server).await;
    let params = json!({"from": "beginning", "flow": root, "last_event_id": all[1].id});
    socket.call(1, "subscribe", params).await;
    // then
    let answer = socket.next().await;
    assert_eq!(
        answer["result"],
        json!({"subscription": "1", "cursor": all[1].id})
    );
    for expected in &all[2..] {
        let told = socket.next().await;
        let event = expected.event.as_deref();
        assert_eq!(
            told,
            json!({"jsonrpc": "2.0", "method": "event", "params": {
                "subscription": "1", "event": event, "id": expected.id, "data": expected.json(),
            }})
        );
    }
    // A second one of what happens from now on, and the end of the first.
    socket
        .call(2, "subscribe", json!({"last_event_id": "lost"}))
        .await;
    assert_eq!(socket.next().await["result"]["subscription"], "2");
    let reset = socket.next().await;
    assert_eq!(
        (
            &reset["params"]["event"],
            &reset["params"]["data"]["reason"]
        ),
        (&json!("reset"), &json!("malformed"))
    );
    socket
        .call(3, "unsubscribe", json!({"subscription": "1"}))
        .await;
    assert_eq!(socket.next().await["result"], json!({"success": true}));
    socket
        .call(4, "unsubscribe", json!({"subscription": "1"}))
        .await;
    assert_eq!(socket.next().await["error"]["code"], -32602);
    server
        .api
        .call("tasks.create", json!({"name": "later"}))
        .await;
    let told = socket.next().await;
    if told["params"]["data"]["status"] != "pending" || told["params"]["subscription"] != "2" {
        panic!("{told}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_run_is_followed_to_its_end() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let mut socket = Socket::open(&server).await;
    let params = json!({"tasks": tasks(2), "use_streaming": true});
    socket.call(1, "tasks.execute", params).await;
    let result = socket.next().await["result"].take();
    assert_eq!(
        (&result["subscription"], &result["status"]),
        (&json!("1"), &json!("started"))
    );
    let mut last = Value::Null;
    loop {
        let told = socket.next().await;
        assert_eq!(told["params"]["subscription"], "1");
        if told["method"] == "end" {
            break;
        }
        last = told;
    }
    assert_eq!(last["params"]["data"]["final"], true);
    assert_eq!(last["params"]["data"]["run"]["id"], result["run_id"]);
    server.stop().await;
}

#[tokio::test]
async fn a_socket_has_so_many_subscriptions() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let mut socket = Socket::open(&server).await;
    for n in 1..=33 {
        socket.call(n, "subscribe", json!({})).await;
        let answer = socket.next().await;
        if n <= 32 {
            assert_eq!(answer["result"]["subscription"], n.to_string());
        } else {
            assert_eq!(answer["error"]["code"], -32602);
        }
    }
    // A place is free again as soon as one has ended.
    let end = json!({"subscription": "7"});
    socket.call(34, "unsubscribe", end).await;
    assert_eq!(socket.next().await["result"]["success"], true);
    socket.call(35, "subscribe", json!({})).await;
    assert_eq!(socket.next().await["result"]["subscription"], "33");
    server.stop().await;
}

#[tokio::test]
async fn subscriptions_that_are_asked_for_at_once_are_counted_too() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let mut socket = Socket::open(&server).await;
    for n in 1..=45 {
        socket.call(n, "subscribe", json!({})).await;
    }
    let mut open = 0;
    for _ in 1..=45 {
        open += usize::from(socket.next().await["result"].is_object());
    }
    assert_eq!(open, 32);
    server.stop().await;
}

#[tokio::test]
async fn each_fault_has_its_close_code() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let mut binary = Socket::open(&server).await;
    binary.0.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(binary.code().await, 1003);
    let mut large = Socket::open(&server).await;
    large
        .0
        .send(Message::text("x".repeat(65_537)))
        .await
        .unwrap();
    assert_eq!(large.code().await, 1009);
    // What the client library would not send: text that is no UTF-8, and a frame without a mask.
    for (frame, code) in [
        (&[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe][..], 1007_u16),
        (&[0x81, 0x02, b'h', b'i'][..], 1002),
    ] {
        let mut raw = Socket::open(&server).await;
        let MaybeTlsStream::Plain(tcp) = raw.0.get_mut() else {
            panic!("no TLS");
        };
        tcp.write_all(frame).await.unwrap();
        let mut answer = [0; 4];
        timeout(PATIENCE, tcp.read_exact(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(answer[0], 0x88, "a close frame");
        assert_eq!(u16::from_be_bytes([answer[2], answer[3]]), code);
    }
    let mut drained = Socket::open(&server).await;
    server.ask_to_stop();
    assert_eq!(drained.code().await, 1001);
    let (status, _) = server.end().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn pages_of_other_origins_get_no_socket() {
    let arguments = [
        "--allow-origin",
        "https://app.example",
        "--max-streams",
        "2",
    ];
    let folder = Folder::new();
    let server = Server::start_with(&folder, &arguments).await;
    let own = server.api.url.trim_end_matches('/').to_owned();
    let connect = async |origin: &str| {
        let mut request = url(&server).into_client_request().unwrap();
        request
            .headers_mut()
            .insert("origin", origin.parse().unwrap());
        match connect_async(request).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
    };
    let one = connect("https://app.example").await.unwrap();
    assert_eq!(connect("https://evil.example").await.err(), Some(403));
    let two = connect(&own).await.unwrap();
    // Refused before the upgrade, as all streams beyond the limit.
    assert_eq!(connect(&own).await.err(), Some(429));
    drop((one, two));
    server.stop().await;
}
