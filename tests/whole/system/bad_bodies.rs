//! Bodies that are no requests: each gets a clear error, and the server goes on.

use serde_json::{Value, json};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of each piece of a body whose length is not announced.
const PIECE_BYTES: usize = 64 * 1024;

fn code(answer: &Value) -> i64 {
    answer["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_request_is_refused_and_nothing_is_stored() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let broken_text = [
        br#"{"jsonrpc":"2.0","id":1,"method":"tasks.create","params":{"name":""#,
        &b"\xff\xfe"[..],
        br#""}}"#,
    ]
    .concat();
    let deep_inputs = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tasks.create","params":{{"name":"a","inputs":{}1{}}}}}"#,
        r#"{"a":"#.repeat(5_000),
        "}".repeat(5_000)
    );
    let bodies: Vec<(Vec<u8>, i64)> = vec![
        (b"".to_vec(), -32700),
        (b"{".to_vec(), -32700),
        (b"\x00\x01\x02".to_vec(), -32700),
        (broken_text, -32700),
        (b"[".repeat(1_000_000), -32700),
        // So many objects would take too much memory, whatever follows.
        (b"{\"a\":".repeat(1_000_000), -32600),
        (deep_inputs.into_bytes(), -32700),
        (b"7".to_vec(), -32600),
        (b"[]".to_vec(), -32600),
        (b"{}".to_vec(), -32600),
        (
            br#"{"jsonrpc":"1.0","id":1,"method":"tasks.list"}"#.to_vec(),
            -32600,
        ),
        (br#"{"jsonrpc":"2.0","id":1,"method":7}"#.to_vec(), -32600),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"tasks.destroy"}"#.to_vec(),
            -32601,
        ),
    ];
    for (body, expected) in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let (status, answer) = server.api.post(body).await.unwrap();
        assert_eq!(
            (status, code(&answer)),
            (200, expected),
            "{shown}: {answer}"
        );
    }
    assert_eq!(
        server.api.call("system.health", json!({})).await["log"]["head"],
        0
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_over_the_limit_is_refused_with_and_without_its_length() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;

    let (status, answer) = server
        .api
        .post(vec![b' '; BODY_BYTES_MAX + 1])
        .await
        .unwrap();
    assert_eq!(status, 413, "{answer}");
    assert!(
        answer.to_string().contains("at most 16777216 bytes"),
        "{answer}"
    );
    let answer = post_in_pieces(&server, BODY_BYTES_MAX / PIECE_BYTES + 1).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tasks.create","params":{"name":"fits"}}"#;
    let mut fits = request.as_bytes().to_vec();
    fits.resize(BODY_BYTES_MAX, b' ');
    let (status, answer) = server.api.post(fits).await.unwrap();
    assert_eq!(
        (status, &answer["result"]["status"]),
        (200, &json!("pending")),
        "{answer}"
    );
    server.stop().await;
}

/// Sends a body of spaces without announcing its length; gives what came back.
async fn post_in_pieces(server: &Server, pieces: usize) -> String {
    let address = server
        .api
        .url
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let (mut from, mut to) = TcpStream::connect(address).await.unwrap().into_split();
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let piece = format!("{PIECE_BYTES:x}\r\n{}\r\n", " ".repeat(PIECE_BYTES));
    let sending = tokio::spawn(async move {
        to.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..pieces {
            to.write_all(piece.as_bytes()).await.unwrap();
        }
        to.write_all(b"0\r\n\r\n").await.unwrap();
        // Open until the answer is there.
        to
    });
    let mut answer = Vec::new();
    // A reset after the answer is no matter.
    let _ = from.read_to_end(&mut answer).await;
    drop(sending.await.unwrap());
    String::from_utf8_lossy(&answer).into_owned()
}
