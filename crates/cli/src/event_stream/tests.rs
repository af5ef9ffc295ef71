//! The client against a server that follows a script, byte for byte.

use super::*;
use std::sync::Arc;
use taskledger_clock::SystemClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How long anything may take, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);
const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n";

/// Listens, and gives each connection the next answer.
struct Server {
    listener: TcpListener,
}

impl Server {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { listener }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    fn stream(&self, door: Door, after: Option<&str>) -> EventStream {
        let wanted = Wanted {
            target: Target::plain(&self.url()).unwrap(),
            door,
            after: after.map(str::to_owned),
        };
        EventStream::open(wanted, Arc::new(SystemClock::default())).unwrap()
    }

    /// Takes a request, as text, and sends `answer`.
    async fn answer(&self, answer: &str) -> (String, TcpStream) {
        let (mut socket, _) = timeout(PATIENCE, self.listener.accept())
            .await
            .expect("the client connects")
            .unwrap();
        let mut request = Vec::new();
        let mut part = [0; 4096];
        loop {
            let read = socket.read(&mut part).await.unwrap();
            request.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&request);
            if text.contains("\r\n\r\n") && (text.starts_with("GET") || text.ends_with('}')) {
                break;
            }
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
        (String::from_utf8(request).unwrap(), socket)
    }
}

async fn next(stream: &mut EventStream) -> Option<StreamItem> {
    timeout(PATIENCE, stream.next())
        .await
        .expect("the stream says something")
        .unwrap()
}

/// Reads on to the next pieces.
async fn pieces(stream: &mut EventStream) -> Vec<Piece> {
    loop {
        match next(stream).await.expect("the stream goes on") {
            StreamItem::Pieces(pieces) => return pieces,
            StreamItem::Opened { .. } | StreamItem::Lost { .. } => {}
        }
    }
}

fn data(pieces: &[Piece]) -> Vec<&str> {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Event(event) => event.data.as_str(),
            Piece::Place(place) => place.as_str(),
        })
        .collect()
}

fn events() -> Door {
    Door::Events(vec![("flow", "f".to_owned()), ("from", "now".to_owned())])
}

#[tokio::test]
async fn a_stream_that_breaks_goes_on_behind_the_last_whole_event() {
    let server = Server::new().await;
    let mut stream = server.stream(events(), None);

    let first =
        format!("{STREAM}\r\nretry: 1\n\nid: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: cut");
    let (asked, socket) = server.answer(&first).await;
    assert!(
        asked.starts_with("GET /events?flow=f&from=now HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(!asked.contains("last-event-id"), "{asked}");
    assert_eq!(
        next(&mut stream).await,
        Some(StreamItem::Opened {
            again: false,
            place: None
        })
    );
    assert_eq!(data(&pieces(&mut stream).await), ["a", "b"]);
    drop(socket);
    let Some(StreamItem::Lost { reason, .. }) = next(&mut stream).await else {
        panic!("the loss is told")
    };
    assert!(
        reason.contains("the server has ended the stream"),
        "{reason}"
    );

    let again = format!("{STREAM}\r\nid: 3\ndata: c\n\nid: 4\n\n");
    let (asked, socket) = server.answer(&again).await;
    assert!(
        asked.starts_with("GET /events?flow=f HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(asked.contains("\r\nlast-event-id: 2\r\n"), "{asked}");
    let place = Some("2".to_owned());
    assert_eq!(
        next(&mut stream).await,
        Some(StreamItem::Opened { again: true, place })
    );
    assert_eq!(data(&pieces(&mut stream).await), ["c", "4"]);
    drop(socket);

    let (asked, _socket) = server.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert!(
        asked.contains("\r\nlast-event-id: 4\r\n"),
        "a place without an event counts: {asked}"
    );
    loop {
        match next(&mut stream).await {
            None => break,
            Some(StreamItem::Lost { .. }) => {}
            Some(other) => panic!("{other:?} after the end"),
        }
    }
}

#[tokio::test]
async fn the_place_before_the_first_event_is_where_a_stream_goes_on_that_brought_nothing() {
    let server = Server::new().await;
    let mut stream = server.stream(events(), None);
    let silent = format!("{STREAM}x-taskledger-cursor: zero\r\n\r\nretry: 1\n: hello\n\n");
    drop(server.answer(&silent).await);
    let (asked, _socket) = server.answer(STREAM).await;
    assert!(asked.contains("\r\nlast-event-id: zero\r\n"), "{asked}");
    let place = Some("zero".to_owned());
    assert_eq!(
        next(&mut stream).await,
        Some(StreamItem::Opened {
            again: false,
            place
        })
    );
}

#[tokio::test]
async fn a_call_that_streams_is_resumed_by_another_call_and_ends_behind_the_final_event() {
    let server = Server::new().await;
    let mut stream = server.stream(Door::Task("t".to_owned()), None);

    let answer =
        r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t"},"root_task_id":"t","cursor":"c0"}}"#;
    let first = format!("{STREAM}\r\nretry: 1\ndata: {answer}\n\nid: c1\nevent: e\ndata: {{}}\n\n");
    let (asked, socket) = server.answer(&first).await;
    assert!(asked.starts_with("POST / HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains(r#""method":"tasks.subscribe""#), "{asked}");
    let read = pieces(&mut stream).await;
    assert_eq!(data(&read), ["c0", "{}"], "the answer is no event");
    drop(socket);

    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"root_task_id":"t","resumed":false,"reason":"ahead_of_log","cursor":"c7"}}"#;
    let again =
        format!("{STREAM}\r\ndata: {answer}\n\nid: c8\nevent: e\ndata: {{\"final\":true}}\n\n");
    let (asked, socket) = server.answer(&again).await;
    assert!(asked.contains(r#""method":"tasks.resubscribe""#), "{asked}");
    assert!(asked.contains(r#""last_event_id":"c1""#), "{asked}");
    let read = pieces(&mut stream).await;
    let Piece::Event(reset) = &read[0] else {
        panic!("{read:?}")
    };
    assert_eq!((reset.name.as_str(), reset.id.as_str()), (RESET, "c7"));
    assert_eq!(reset.json()["reason"], "ahead_of_log");
    drop(socket);
    assert_eq!(next(&mut stream).await, None);
}

#[tokio::test]
async fn an_answer_that_says_that_the_end_was_told_ends_the_stream() {
    let server = Server::new().await;
    let mut stream = server.stream(Door::Task("t".to_owned()), Some("c9"));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"root_task_id":"t","resumed":true,"cursor":"c9","final":true}}"#;
    let (_, socket) = server
        .answer(&format!("{STREAM}\r\ndata: {answer}\n\n"))
        .await;
    assert_eq!(data(&pieces(&mut stream).await), ["c9"]);
    drop(socket);
    assert_eq!(next(&mut stream).await, None);
}

#[tokio::test]
async fn a_refusal_is_told_with_its_reason_and_a_busy_server_is_asked_again() {
    let server = Server::new().await;
    let mut stream = server.stream(events(), None);
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32013,"message":"Busy","data":{}}}"#;
    let busy = format!(
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    drop(server.answer(&busy).await);
    let Some(StreamItem::Lost { reason, pause }) = next(&mut stream).await else {
        panic!("the refusal is told")
    };
    assert_eq!(reason, "Busy (-32013)");
    assert!(pause <= Duration::from_secs(2), "{pause:?}");
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request","data":{"errors":[
        {"field":"from","reason":"not a position","expected":"a position"}]}}}"#;
    let refused = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (_, _socket) = server.answer(&refused).await;
    let error = timeout(PATIENCE, stream.next()).await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "Invalid Request (-32600)\n  from: not a position, expected a position"
    );
}

#[tokio::test]
async fn what_is_no_stream_and_nobody_at_all_are_errors_at_the_beginning() {
    let server = Server::new().await;
    let mut stream = server.stream(events(), None);
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    let (_, _socket) = server.answer(page).await;
    let error = timeout(PATIENCE, stream.next()).await.unwrap().unwrap_err();
    assert!(matches!(error, ApiError::Protocol(_)), "{error:?}");

    let mut nobody = server.stream(events(), None);
    drop(server);
    let error = timeout(PATIENCE, nobody.next()).await.unwrap().unwrap_err();
    assert!(matches!(error, ApiError::Connection(_)), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_falls_silent_is_given_up() {
    let server = Server::new().await;
    let mut stream = server.stream(events(), None);
    let (_, _socket) = server
        .answer(&format!("{STREAM}\r\nretry: 1\nid: 1\ndata: a\n\n"))
        .await;
    assert_eq!(data(&pieces(&mut stream).await), ["a"]);
    tokio::time::pause();
    let Ok(Some(StreamItem::Lost { reason, .. })) = stream.next().await else {
        panic!("the silence is told")
    };
    tokio::time::resume();
    assert!(
        reason.contains("the server sent nothing for 60 s"),
        "{reason}"
    );
    let (asked, _socket) = server.answer(STREAM).await;
    assert!(asked.contains("\r\nlast-event-id: 1\r\n"), "{asked}");
}

#[test]
fn a_line_of_json_holds_the_data_as_they_came_with_name_and_place() {
    let line = |name: &str, data: &str, id: &str| {
        Event {
            name: name.to_owned(),
            data: data.to_owned(),
            id: id.to_owned(),
        }
        .json_line()
    };
    assert_eq!(
        line("e", "{\"z\":1,\"a\":{\"event\":2}}", "c"),
        r#"{"cursor":"c","event":"e","z":1,"a":{"event":2}}"#
    );
    assert_eq!(line("e", "{}", ""), r#"{"cursor":null,"event":"e"}"#);
    assert_eq!(
        line("reset", r#"{"reason":"r","cursor":"d"}"#, "c"),
        r#"{"cursor":"c","event":"reset","reason":"r"}"#
    );
    assert_eq!(
        line("e", "{\n\"a\":\n1}", "c"),
        r#"{"cursor":"c","event":"e", "a": 1}"#
    );
    assert_eq!(
        line("e", "[1]", "c"),
        r#"{"cursor":"c","data":[1],"event":"e"}"#
    );
    assert_eq!(
        line("e", "{no", "c"),
        r#"{"cursor":"c","data":"{no","event":"e"}"#
    );
}
