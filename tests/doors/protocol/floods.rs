//! Connections of HTTP/2 that send frames and no requests are closed with `ENHANCE_YOUR_CALM`; clients that send many
//! frames with their requests are served.

use crate::protocol::harness::{Http2, Server};
use futures_util::future::join_all;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of a flood that the server takes before it closes the connection: its own limit, and what the buffers of both
/// systems hold.
const TAKEN_BYTES_MAX: usize = 64 * 1024 * 1024;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const ENHANCE_YOUR_CALM: u32 = 0xb;
const GOAWAY: u8 = 7;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head, &stream.to_be_bytes()[..], payload].concat()
}

fn settings() -> Vec<u8> {
    frame(4, 0, 0, &[])
}

/// The header block of `POST /` with a body of JSON, in literals without indexing (RFC 7541 6.2.2).
fn post() -> Vec<u8> {
    // :method POST and :scheme http and :path / of the static table.
    let mut block = vec![0x83, 0x86, 0x84];
    for (name, value) in [
        (":authority", "localhost"),
        ("content-type", "application/json"),
    ] {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    block
}

/// Sends `first`, then `repeated` again and again. How many bytes of it the server took, and the code of its GOAWAY.
async fn flood(addr: SocketAddr, first: &[u8], repeated: &[u8]) -> (usize, Option<u32>) {
    let stream = TcpStream::connect(addr).await.unwrap();
    let (mut reading, mut sending) = stream.into_split();
    let piece = repeated.repeat(1 + 64 * 1024 / repeated.len());
    let send = async {
        sending.write_all(PREFACE).await.unwrap();
        sending.write_all(first).await.unwrap();
        let mut taken = 0;
        while taken < TAKEN_BYTES_MAX && sending.write_all(&piece).await.is_ok() {
            taken += piece.len();
        }
        taken
    };
    let read = async {
        let mut code = None;
        while code.is_none() {
            let mut head = [0; 9];
            reading.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            reading.read_exact(&mut payload).await.ok()?;
            if head[3] == GOAWAY {
                code = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
            }
        }
        code
    };
    tokio::join!(send, read)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_without_requests_end_the_connection() {
    let server = Server::start().await;
    let one = 1_u32.to_be_bytes();
    // A request whose body does not end, so that floods go on while one is under way.
    let request = frame(1, 0x4, 1, &post());
    for (name, first, repeated) in [
        ("PRIORITY", settings(), frame(2, 0, 3, &[0, 0, 0, 0, 16])),
        (
            "RST_STREAM",
            [settings(), request.clone(), frame(3, 0, 1, &[0, 0, 0, 8])].concat(),
            frame(3, 0, 1, &[0, 0, 0, 8]),
        ),
        ("SETTINGS", settings(), settings()),
        ("PING", settings(), frame(6, 0, 0, &[0; 8])),
        ("PING that is answered", settings(), frame(6, 1, 0, &[0; 8])),
        ("WINDOW_UPDATE", settings(), frame(8, 0, 0, &one)),
        (
            "WINDOW_UPDATE of a request",
            [settings(), request.clone()].concat(),
            frame(8, 0, 1, &one),
        ),
        (
            "PRIORITY beside a request",
            [settings(), request.clone()].concat(),
            frame(2, 0, 3, &[0, 0, 0, 0, 16]),
        ),
        (
            "DATA without content",
            [settings(), request.clone()].concat(),
            frame(0, 0, 1, &[]),
        ),
        ("an unknown type", settings(), frame(0x77, 0, 0, &[0; 100])),
    ] {
        let (taken, code) = flood(server.addr(), &first, &repeated).await;
        assert!(taken < TAKEN_BYTES_MAX, "{name}: {taken} bytes");
        assert_eq!(code, Some(ENHANCE_YOUR_CALM), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn padding_is_no_body() {
    let server = Server::start().await;
    let first = [settings(), frame(1, 0x4, 1, &post())].concat();
    // A byte that says how many bytes of padding follow, and those.
    let padded = frame(0, 0x8, 1, &[&[255_u8][..], &[0; 255]].concat());
    let (taken, code) = flood(server.addr(), &first, &padded).await;
    assert!(taken < TAKEN_BYTES_MAX, "{taken} bytes");
    assert_eq!(code, Some(ENHANCE_YOUR_CALM));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_and_large_answers_on_one_connection_are_served() {
    let server = Server::start().await;
    let client = Http2::connect(server.addr()).await;
    // Each request sends at least four frames, and each answer is acknowledged with some.
    for _ in 0..40 {
        let calls = (0..50).map(|n| {
            let mut client = client.clone();
            let call = format!(
                r#"{{"jsonrpc":"2.0","method":"test.echo","params":{{"n":{n}}},"id":{n}}}"#
            );
            async move { client.post("/", call).await.ok()["result"]["n"].clone() }
        });
        assert_eq!(join_all(calls).await, (0..50).collect::<Vec<_>>());
    }
    let text = "x".repeat(3_000_000);
    let large =
        format!(r#"{{"jsonrpc":"2.0","method":"test.echo","params":{{"b":"{text}"}},"id":1}}"#);
    let mut client = client;
    for _ in 0..5 {
        assert_eq!(client.post("/", &large).await.ok()["result"]["b"], text);
    }
    assert_eq!(server.handle.connections(), 1);
}
