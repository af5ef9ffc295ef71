//! Answers that nobody reads, as an attacker asks for them: batches that name the same large tasks again and again, on
//! many connections. The real program holds a bounded part of them, refuses the rest, and serves others meanwhile.

use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_testkit::server::{Api, Folder, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Connections of the attacker: held whole, their answers are 1.5 GB.
const CONNECTIONS: usize = 16;
/// Calls in a batch.
const CALLS: usize = 100;
/// Bytes of the inputs of a large task.
const LARGE: usize = 1_000_000;
/// What the program may grow by: the budget for answers (256 MiB), and as much again for what is being read and
/// encoded.
const GROWTH_KB_MAX: u64 = 512 * 1024;
/// For how long others call while the answers lie there.
const BESIDE: Duration = Duration::from_secs(4);
/// Within which all but one of a hundred calls of others are answered, on a slow machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
/// Longer than it takes until connections that nobody reads are cut off.
const PATIENCE: Duration = Duration::from_secs(120);

/// Memory of the program in use, in KiB.
fn resident_kb(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

async fn created(api: &Api, inputs: Value) -> Value {
    let new = json!({"name": "t", "inputs": inputs});
    api.call("tasks.create", new).await["id"].take()
}

/// Asks for a batch, and reads nothing of the answer.
async fn silent(address: &str, batch: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        batch.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(batch.as_bytes()).await.unwrap();
    stream
}

/// What there is to read of an answer until it stops or the connection ends.
async fn read(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 20];
    while let Ok(Ok(count @ 1..)) = timeout(Duration::from_secs(5), stream.read(&mut piece)).await {
        bytes.extend_from_slice(&piece[..count]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_of_large_tasks_that_nobody_reads_are_bounded_and_others_are_served() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    // given: two large tasks, and a small one of somebody else
    let large = json!({"text": "x".repeat(LARGE)});
    let tasks = [created(api, large.clone()).await, created(api, large).await];
    let small = created(api, json!({})).await;
    let calls = (0..CALLS).map(|n| {
        json!({"jsonrpc": "2.0", "id": n, "method": "tasks.get",
            "params": {"task_id": tasks[n % 2]}})
    });
    let batch = Value::Array(calls.collect()).to_string();
    let address = api.url.trim_start_matches("http://").trim_end_matches('/');
    let before = resident_kb(&server);

    // when: the attacker asks on every connection, and others call meanwhile
    let attack = (0..CONNECTIONS).map(|_| silent(address, &batch));
    let attackers = join_all(attack).await;
    let (begun, mut waits, mut most) = (Instant::now(), Vec::new(), before);
    while begun.elapsed() < BESIDE {
        let asked = Instant::now();
        let told = api.call("tasks.get", json!({"task_id": small})).await;
        assert_eq!(told["id"], small);
        waits.push(asked.elapsed());
        most = most.max(resident_kb(&server));
    }

    // then: what is held is bounded, whatever was asked for
    let growth = most.saturating_sub(before);
    assert!(growth < GROWTH_KB_MAX, "{growth} KiB more than before");
    // others were answered in time
    waits.sort_unstable();
    let p99 = waits[waits.len() * 99 / 100];
    assert!(p99 < ANSWERED_WITHIN, "{p99:?} of {} calls", waits.len());
    // what there was no room for was refused,
    let read = join_all(attackers.into_iter().map(read)).await;
    let is_refused = |text: &String| text.contains("-32013") || text.contains(" 503 ");
    assert!(read.iter().any(is_refused), "nothing was refused");
    // and there is room again.
    let again = async {
        loop {
            let answer = api.post(batch.clone()).await.unwrap().1;
            let whole = answer
                .as_array()
                .is_some_and(|all| all.iter().all(|it| it["result"]["id"].is_string()));
            if whole {
                return;
            }
        }
    };
    timeout(PATIENCE, again).await.expect("there is room again");
    server.stop().await;
}
