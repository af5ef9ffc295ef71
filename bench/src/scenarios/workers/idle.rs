//! Workers that wait and get nothing: processor time and memory of a thousand connections.

use crate::args::Args;
use crate::nodes::Nodes;
use crate::process;
use crate::report::{Figures, Report};
use crate::scenarios::workflow::{self, Executor, IN_FLIGHT};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Connections of each kind.
const CONNECTIONS: usize = 1_000;
/// How long each long poll waits: longer than all that is measured.
const WAIT_SECONDS: u64 = 60;
/// Until memory and processor time have settled.
const SETTLE: Duration = Duration::from_secs(5);
/// How long nothing happens.
const WATCHED: Duration = Duration::from_secs(20);
/// Calls of a round of other work.
const CALLS: usize = 1_000;
/// Open files beside the connections.
const FILES_BESIDE: u64 = 500;
/// From the request to its answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Both kinds of connections.
pub(super) async fn idle(args: &Args, report: &mut Report) -> Result<(), String> {
    process::open_files(CONNECTIONS as u64 + FILES_BESIDE)?;
    for (name, socket) in [("long polls", false), ("sockets", true)] {
        let nodes = Nodes::start(args, "idle").await?;
        let address = nodes.first().address.clone();
        tokio::time::sleep(SETTLE).await;
        let calm = cpu_percent(&nodes).await?;
        let alone = beside(args, &nodes).await?;
        tokio::time::sleep(SETTLE).await;
        let before_kib = nodes.first().own_memory_mb()? * 1024.0;
        let began = Instant::now();
        let mut open = Vec::with_capacity(CONNECTIONS);
        for k in 0..CONNECTIONS {
            open.push(match socket {
                true => subscribed(&address, k).await?,
                false => polling(&address, k).await?,
            });
        }
        let connected = began.elapsed().as_secs_f64();
        tokio::time::sleep(SETTLE).await;
        let busy = cpu_percent(&nodes).await?;
        let after_kib = nodes.first().own_memory_mb()? * 1024.0;
        let name = format!("workers, {CONNECTIONS} idle {name}");
        report.row(format!("{name}: connected in"), "s", &[connected]);
        report.row(
            format!("{name}: memory of the server, each"),
            "KiB",
            &[(after_kib - before_kib) / CONNECTIONS as f64],
        );
        report.row(format!("{name}: server CPU, of one core"), "%", &[busy]);
        report.row(
            format!("{name}: server CPU before, of one core"),
            "%",
            &[calm],
        );
        // While a poll waits still; then polls have ended, and there would be nothing beside the calls.
        let together = beside(args, &nodes).await?;
        for (what, figures) in [("without them", alone), ("beside them", together)] {
            report.figures(&format!("{name}: other calls, {what}"), figures);
        }
        drop(open);
        nodes.stop().await?;
    }
    Ok(())
}

/// Tasks that the server does itself, which concern no worker.
async fn beside(args: &Args, nodes: &Nodes) -> Result<Figures, String> {
    workflow::submitted(args, nodes, Executor::Pure, IN_FLIGHT, CALLS).await
}

/// Of the server, while nothing happens.
async fn cpu_percent(nodes: &Nodes) -> Result<f64, String> {
    let (began, before) = (Instant::now(), nodes.cpu_seconds()?);
    tokio::time::sleep(WATCHED).await;
    Ok(100.0 * (nodes.cpu_seconds()? - before) / began.elapsed().as_secs_f64())
}

fn call(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

async fn open(address: &str) -> Result<TcpStream, String> {
    TcpStream::connect(address)
        .await
        .map_err(|e| format!("{address}: {e}"))
}

/// A connection that waits for the answer of a claim.
async fn polling(address: &str, k: usize) -> Result<TcpStream, String> {
    let mut stream = open(address).await?;
    let body = call(
        "tasks.claim",
        &json!({"methods": [format!("idle-{k}")], "worker": format!("idle-{k}"), "wait_seconds": WAIT_SECONDS}),
    );
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let request = [head, body].concat();
    stream
        .write_all(request.as_bytes())
        .await
        .map_err(|e| e.to_string())?;
    Ok(stream)
}

/// A socket with a subscription to work.
async fn subscribed(address: &str, k: usize) -> Result<TcpStream, String> {
    let mut stream = open(address).await?;
    // The example of RFC 6455; nobody checks that the key is random.
    let upgrade = "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream
        .write_all(upgrade.as_bytes())
        .await
        .map_err(|e| e.to_string())?;
    expect(&mut stream, "\r\n\r\n").await?;
    let subscribe = call(
        "work",
        &json!({"methods": [format!("idle-{k}")], "worker": format!("idle-{k}")}),
    );
    let frame = frame(subscribe.as_bytes());
    stream.write_all(&frame).await.map_err(|e| e.to_string())?;
    expect(&mut stream, "\"subscription\"").await?;
    Ok(stream)
}

/// Reads until it has read `end`.
async fn expect(stream: &mut TcpStream, end: &str) -> Result<(), String> {
    let mut read = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(end) {
            if stream
                .read_buf(&mut read)
                .await
                .map_err(|e| e.to_string())?
                == 0
            {
                return Err("the server closed the connection".to_owned());
            }
        }
        Ok(())
    };
    match tokio::time::timeout(PATIENCE, reading).await {
        Ok(done) => done,
        Err(_) => Err(format!("no answer: {}", String::from_utf8_lossy(&read))),
    }
}

/// A frame of text from a client, of less than 64 KiB, masked with zeros.
fn frame(text: &[u8]) -> Vec<u8> {
    const FINAL_TEXT: u8 = 0x81;
    const MASKED_16_BIT_LENGTH: u8 = 0x80 | 126;
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let mut frame = vec![FINAL_TEXT, MASKED_16_BIT_LENGTH];
    frame.extend(len.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text);
    frame
}
