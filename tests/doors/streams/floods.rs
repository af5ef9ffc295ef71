//! Sockets that send much and no calls, or read nothing: the server closes them, keeps little in memory for them, and
//! serves others meanwhile.

use crate::streams::sse::PATIENCE;
use serde_json::json;
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bytes of a flood that a server takes before it closes the socket: its own limit, and what the buffers of both
/// systems hold.
const TAKEN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What the program may grow by meanwhile.
const GROWTH_KB_MAX: u64 = 32 * 1024;
/// The close code for more control frames or fragments than a socket may send (RFC 6455 7.4.1: policy).
const POLICY: u16 = 1008;

/// A frame of a client. Its mask is zero, so that it masks nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    assert!(length < 126, "a short frame");
    [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

const TEXT_TO_BE_CONTINUED: u8 = 0x01;
const TO_BE_CONTINUED: u8 = 0x00;
const CONTINUED_TO_THE_END: u8 = 0x80;
const PING: u8 = 0x89;

/// A socket, byte by byte.
async fn open(server: &Server) -> TcpStream {
    let address = server.api.url.trim_start_matches("http://");
    let address = address.trim_end_matches('/');
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /ws HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    stream
}

/// Sends a frame again and again until the server takes no more of them. How many bytes it took.
async fn flood(mut sending: impl AsyncWriteExt + Unpin, frame: &[u8]) -> usize {
    let piece = frame.repeat(64 * 1024 / frame.len());
    let mut taken = 0;
    while taken < TAKEN_BYTES_MAX && sending.write_all(&piece).await.is_ok() {
        taken += piece.len();
    }
    taken
}

/// The code of the close frame that the server sends after frames without content; `None`: it sends none.
async fn close_code(mut reading: impl AsyncReadExt + Unpin) -> Option<u16> {
    loop {
        let (first, length) = (reading.read_u8().await.ok()?, reading.read_u8().await.ok()?);
        let mut payload = vec![0; usize::from(length)];
        reading.read_exact(&mut payload).await.ok()?;
        if first == 0x88 {
            return Some(u16::from_be_bytes([payload[0], payload[1]]));
        }
    }
}

/// Memory of the program in use, in KiB.
fn resident_kb(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_of_a_client_that_reads_nothing_are_not_kept_in_memory() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let before = resident_kb(&server);
    let socket = open(&server).await;
    let taken = flood(socket, &frame(PING, &[b'x'; 125])).await;
    assert!(taken < TAKEN_BYTES_MAX, "{taken} bytes were taken");
    let growth = resident_kb(&server).saturating_sub(before);
    assert!(growth < GROWTH_KB_MAX, "{growth} KiB more than before");
    server.api.call("tasks.create", json!({"name": "a"})).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_frames_without_messages_are_closed_with_a_code() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    for (begins, repeated) in [
        (Vec::new(), frame(PING, b"")),
        (Vec::new(), frame(PING, &[b'x'; 125])),
        (Vec::new(), frame(0x8a, b"a pong")),
        (
            frame(TEXT_TO_BE_CONTINUED, b""),
            frame(TO_BE_CONTINUED, b""),
        ),
        (
            frame(TEXT_TO_BE_CONTINUED, b" "),
            frame(TO_BE_CONTINUED, b""),
        ),
    ] {
        let mut socket = open(&server).await;
        socket.write_all(&begins).await.unwrap();
        let (reading, sending) = socket.into_split();
        let (taken, code) = tokio::join!(flood(sending, &repeated), close_code(reading));
        assert!(taken < TAKEN_BYTES_MAX, "{taken} bytes of {repeated:?}");
        assert_eq!(code, Some(POLICY), "{repeated:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn pings_now_and_then_are_answered_and_fragments_make_messages() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let mut socket = open(&server).await;
    for n in 0..100_u8 {
        socket.write_all(&frame(PING, &[n])).await.unwrap();
        let mut pong = [0; 3];
        timeout(PATIENCE, socket.read_exact(&mut pong))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(pong, [0x8a, 1, n]);
    }
    // Calls in fragments of one byte, with a ping in the middle of each: many, so that calls make up for it.
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"system.whoami"}"#;
    for _ in 0..200 {
        socket
            .write_all(&frame(TEXT_TO_BE_CONTINUED, &call[..1]))
            .await
            .unwrap();
        for byte in &call[1..call.len() - 1] {
            socket
                .write_all(&frame(TO_BE_CONTINUED, &[*byte]))
                .await
                .unwrap();
        }
        socket.write_all(&frame(PING, b"")).await.unwrap();
        let last = &call[call.len() - 1..];
        socket
            .write_all(&frame(CONTINUED_TO_THE_END, last))
            .await
            .unwrap();
        let mut pong = [0; 2];
        timeout(PATIENCE, socket.read_exact(&mut pong))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(pong, [0x8a, 0]);
        let (first, length) = (
            socket.read_u8().await.unwrap(),
            socket.read_u8().await.unwrap(),
        );
        assert_eq!((first, length), (0x81, 126), "a text of some hundred bytes");
        let length = socket.read_u16().await.unwrap();
        let mut text = vec![0; usize::from(length)];
        socket.read_exact(&mut text).await.unwrap();
        assert!(text.starts_with(br#"{"jsonrpc":"2.0""#));
    }
    server.stop().await;
}
