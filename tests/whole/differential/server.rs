//! The real server in this process, over real HTTP, with the gate for executors and a clock that
//! stands still.

use crate::differential::gate::Gate;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskledger::clock::ManualClock;
use taskledger::server::{self, Storage};
use taskledger::transport::http;
use taskledger_domain::{Recorded, TaskId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Events that are read at once.
const PAGE_EVENTS: usize = 1000;

/// How long the server may be too busy.
const BUSY_MAX: Duration = Duration::from_secs(30);
/// Before it is asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(250);
const BUSY: i64 = -32013;

/// What may be done about answers that the server is too busy. A call that was refused so has done nothing, reads never
/// do, and of a batch one call at most does something.
#[derive(Debug, PartialEq)]
enum Again {
    /// The same body.
    All,
    /// These calls of the batch, which only read, in place of the answers with these numbers.
    Reads(Vec<(usize, Value)>),
}

/// What of a body is asked again after these answers.
fn again(body: &Value, told: &Value) -> Option<Again> {
    const READS: [&str; 4] = ["tasks.get", "tasks.tree", "tasks.children", "tasks.list"];
    let is_busy = |answer: &Value| answer["error"]["code"] == BUSY;
    let is_read = |call: &Value| {
        call["method"]
            .as_str()
            .is_some_and(|method| READS.contains(&method))
    };
    let (Some(calls), Some(answers)) = (body.as_array(), told.as_array()) else {
        return is_busy(told).then_some(Again::All);
    };
    // Calls without an id have no answer.
    let answered = calls.iter().filter(|call| call.get("id").is_some());
    let busy = answered.zip(answers).enumerate();
    let busy = busy.filter(|(_, (_, answer))| is_busy(answer));
    let busy: Vec<_> = busy.map(|(i, (call, _))| (i, call.clone())).collect();
    match busy.iter().all(|(_, call)| is_read(call)) {
        true if busy.is_empty() => None,
        true => Some(Again::Reads(busy)),
        false => Some(Again::All),
    }
}

/// A server and a connection to it.
pub(crate) struct Server {
    server: server::Server,
    doors: JoinHandle<()>,
    stop: CancellationToken,
    connection: TcpStream,
}

impl Server {
    pub(crate) async fn open(storage: Storage, clock: &Arc<ManualClock>, gate: &Arc<Gate>) -> Self {
        let server = server::Server::open(storage, gate.registry(), clock.clone())
            .await
            .expect("the storage can be used");
        let options = http::Options {
            listen: "127.0.0.1:0".to_owned(),
            ..http::Options::default()
        };
        let inside = server.service().clone();
        let dispatcher = server.dispatcher().clone();
        let (service, handle) = http::Service::bind(options, dispatcher, inside, clock.clone())
            .await
            .expect("a free port can be had");
        server.join(&format!("http://{}/", handle.local_addr));
        let stop = CancellationToken::new();
        let doors = tokio::spawn(service.run(stop.clone()));
        let connection = TcpStream::connect(handle.local_addr)
            .await
            .expect("the server listens");
        connection
            .set_nodelay(true)
            .expect("a socket has this option");
        Self {
            server,
            doors,
            stop,
            connection,
        }
    }

    /// Stops as `taskledger serve` does after SIGTERM.
    pub(crate) async fn close(self) {
        drop(self.connection);
        self.stop.cancel();
        self.doors.await.expect("the doors close without a panic");
        self.server.close().await;
    }

    /// Changes whenever something is appended to the log.
    pub(crate) fn head(&self) -> watch::Receiver<u64> {
        self.server.app().store.watch()
    }

    /// The events behind the position `after`.
    pub(crate) async fn events(&self, after: u64) -> Vec<Arc<Recorded>> {
        let store = &self.server.app().store;
        let mut events: Vec<Arc<Recorded>> = Vec::new();
        loop {
            let after = events.last().map_or(after, |e| e.position);
            let page = store.read_all(after, PAGE_EVENTS).await;
            let page = page.expect("the log can be read");
            if page.events.is_empty() {
                return events;
            }
            events.extend(page.events);
        }
    }

    /// All rows of the read models.
    pub(crate) async fn dump(&self) -> String {
        let rows = self.server.app().queries.dump().await;
        rows.expect("the read models can be read")
    }

    /// Has a flow looked at, as its timer would.
    pub(crate) async fn look_at(&self, root: &str) {
        let root = TaskId::parse(root).expect("ids of the server are UUIDs");
        let flows = &self.server.app().flows;
        flows.wake_and_wait(root.as_flow()).await;
    }

    /// The JSON of the answer to a body; null when there is none. A server that is too busy is asked again, as the
    /// documents say: on a slow machine reads may wait longer for the read models than they are allowed to.
    pub(crate) async fn post(&mut self, body: &Value) -> Value {
        let asked_at = Instant::now();
        let mut told = self.post_once(body).await;
        while let Some(again) = again(body, &told)
            && asked_at.elapsed() < BUSY_MAX
        {
            tokio::time::sleep(BUSY_PAUSE).await;
            match again {
                Again::All => told = self.post_once(body).await,
                Again::Reads(calls) => {
                    for (i, call) in calls {
                        told[i] = self.post_once(&call).await;
                    }
                }
            }
        }
        told
    }

    async fn post_once(&mut self, body: &Value) -> Value {
        let body = body.to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let sent = self.connection.write_all(request.as_bytes()).await;
        sent.expect("the server reads");
        let mut received = Vec::new();
        let head = loop {
            if let Some(at) = received.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            self.receive(&mut received).await;
        };
        let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
        let mut lines = text.lines();
        let status = lines.next().unwrap_or_default().to_owned();
        let length = lines.find_map(|l| l.strip_prefix("content-length:"));
        let length: usize = length.map_or(0, |l| l.trim().parse().expect("a number of bytes"));
        while received.len() < head + length {
            self.receive(&mut received).await;
        }
        if status.contains(" 204 ") {
            return Value::Null;
        }
        assert!(status.contains(" 200 "), "{text}");
        serde_json::from_slice(&received[head..]).expect("an answer is JSON")
    }

    async fn receive(&mut self, into: &mut Vec<u8>) {
        let read = self.connection.read_buf(into).await;
        assert!(read.expect("the server writes") > 0, "the server hung up");
    }
}

#[test]
fn what_was_refused_as_busy_is_asked_again_and_nothing_is_done_twice() {
    let call = |method: &str| json!({"id": 0, "method": method});
    let (create, list) = (call("tasks.create"), call("tasks.list"));
    let silent = json!({"method": "tasks.create"});
    let (done, busy) = (json!({"result": 1}), json!({"error": {"code": BUSY}}));
    let unfit = json!({"error": {"code": -32602}});
    for (body, told, expected) in [
        (create.clone(), done.clone(), None),
        (create.clone(), unfit.clone(), None),
        (create.clone(), busy.clone(), Some(Again::All)),
        (
            json!([create, list, create, list]),
            json!([done, busy, unfit, busy]),
            Some(Again::Reads(vec![(1, list.clone()), (3, list.clone())])),
        ),
        (
            json!([silent, list, list]),
            json!([done, busy]),
            Some(Again::Reads(vec![(1, list.clone())])),
        ),
        (json!([create, list]), json!([busy, done]), Some(Again::All)),
        (json!([create, list]), json!([done, done]), None),
        (json!([silent]), Value::Null, None),
    ] {
        assert_eq!(again(&body, &told), expected, "{body} {told}");
    }
}
