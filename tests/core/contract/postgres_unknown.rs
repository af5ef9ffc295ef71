//! Postgres: a connection that breaks around an append, and finding out what became of it.

use crate::contract::fixture::{append, appended, event, flow, manual_clock, postgres_options};
use std::sync::Arc;
use taskledger::store::postgres::{Options, PostgresStore};
use taskledger::store::{Append, EventStore, Outcome, Resolution};
use taskledger_domain::{EventId, FlowId};
use taskledger_testkit::postgres::Database;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};

/// An append by this actor reaches the server and is committed; the answer is thrown away.
const ANSWER_LOST: &str = "cut after the answer was made";
/// An append by this actor does not reach the server.
const NEVER_SENT: &str = "cut before it was sent";
/// An append by this actor reaches the server when [`Proxy::let_go`] says so; its sender sees the
/// connection break at once.
const HELD: &str = "cut and held";

/// End of a request (Sync), and of an answer (ready, idle).
const REQUEST_END: &[u8] = b"S\0\0\0\x04";
const ANSWER_END: &[u8] = b"Z\0\0\0\x05I";

/// Between a store and the server.
struct Proxy {
    port: u16,
    go: Arc<Notify>,
    /// What the server said to the request that was held.
    late_answer: oneshot::Receiver<Vec<u8>>,
}

impl Proxy {
    async fn to(database: &Database) -> (Self, Options) {
        let options = postgres_options(database.url(), manual_clock());
        let server = format!("127.0.0.1:{}", options.connect.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let go = Arc::new(Notify::new());
        let (answered, late_answer) = oneshot::channel();
        let held = go.clone();
        tokio::spawn(async move {
            let answered = Arc::new(std::sync::Mutex::new(Some(answered)));
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(carry(client, server, held.clone(), answered.clone()));
            }
        });
        let connect = options.connect.clone().port(port);
        let proxy = Self {
            port,
            go,
            late_answer,
        };
        (proxy, Options { connect, ..options })
    }

    /// Lets the held request go; returns what the server said to it.
    async fn let_go(self) -> String {
        assert_ne!(self.port, 0);
        self.go.notify_one();
        String::from_utf8_lossy(&self.late_answer.await.unwrap()).into_owned()
    }
}

type Answered = Arc<std::sync::Mutex<Option<oneshot::Sender<Vec<u8>>>>>;

async fn carry(mut client: TcpStream, mut server: TcpStream, go: Arc<Notify>, answered: Answered) {
    let (mut asked, mut told) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            n = client.read(&mut asked) => {
                let n = n.unwrap_or(0);
                if n == 0 {
                    return;
                }
                let mut request = asked[..n].to_vec();
                if let Some(what) = marker(&request) {
                    while !request.ends_with(REQUEST_END) {
                        request.push(client.read_u8().await.unwrap());
                    }
                    match what {
                        NEVER_SENT => return,
                        HELD => {
                            drop(client);
                            go.notified().await;
                            let answer = ask(&mut server, &request).await;
                            let answered = answered.lock().unwrap().take().unwrap();
                            answered.send(answer).unwrap();
                        }
                        _ => {
                            ask(&mut server, &request).await;
                        }
                    }
                    return;
                }
                server.write_all(&request).await.unwrap();
            }
            n = server.read(&mut told) => {
                let n = n.unwrap_or(0);
                if n == 0 || client.write_all(&told[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn marker(bytes: &[u8]) -> Option<&'static str> {
    [ANSWER_LOST, NEVER_SENT, HELD].into_iter().find(|text| {
        let text = text.as_bytes();
        bytes.windows(text.len()).any(|part| part == text)
    })
}

/// Sends a request and waits until the server is ready again: its transaction is over.
async fn ask(server: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    server.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(ANSWER_END) {
        answer.push(server.read_u8().await.unwrap());
    }
    answer
}

fn by(actor: &str, stream: FlowId, expected: u64) -> (Append, Vec<EventId>) {
    let mut events = vec![event("one"), event("two")];
    for new in &mut events {
        new.metadata.actor = Arc::from(actor);
    }
    let ids = events.iter().map(|e| e.id).collect();
    let append = Append {
        events,
        ..append(stream, expected, 0)
    };
    (append, ids)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_answer_was_lost_is_found() {
    let database = Database::create().await;
    let (_proxy, options) = Proxy::to(&database).await;
    let store = PostgresStore::open(options).await.unwrap();
    let stream = flow();
    let (lost, ids) = by(ANSWER_LOST, stream, 0);

    let outcome = store.append(lost).await.unwrap();
    let resolution = store.resolve(stream, &ids).await.unwrap();

    assert_eq!(outcome, Outcome::Unknown);
    let written = store.read_stream(stream, 0, 10, usize::MAX).await.unwrap();
    assert_eq!(written.iter().map(|e| e.id).collect::<Vec<_>>(), ids);
    assert_eq!(resolution, Resolution::Appended(written));
    // Life goes on, and readers see all of it.
    let next = appended(store.append(append(stream, 2, 1)).await.unwrap());
    assert_eq!(next[0].position, 3);
    assert_eq!(store.read_all(0, 10).await.unwrap().events.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_was_never_sent_is_absent_and_can_be_repeated() {
    let database = Database::create().await;
    let (_proxy, options) = Proxy::to(&database).await;
    let store = PostgresStore::open(options).await.unwrap();
    let stream = flow();
    let (lost, ids) = by(NEVER_SENT, stream, 0);

    let outcome = store.append(lost.clone()).await.unwrap();
    let resolution = store.resolve(stream, &ids).await.unwrap();

    assert_eq!(outcome, Outcome::Unknown);
    assert_eq!(resolution, Resolution::Absent);
    let mut again = lost;
    for new in &mut again.events {
        new.metadata.actor = Arc::from("somebody");
    }
    assert_eq!(appended(store.append(again).await.unwrap())[1].position, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_arrives_after_it_was_called_absent_is_refused() {
    let database = Database::create().await;
    let (proxy, options) = Proxy::to(&database).await;
    let store = PostgresStore::open(options).await.unwrap();
    let stream = flow();
    let (late, ids) = by(HELD, stream, 0);

    let outcome = store.append(late).await.unwrap();
    let resolution = store.resolve(stream, &ids).await.unwrap();
    let answer = proxy.let_go().await;

    assert_eq!(outcome, Outcome::Unknown);
    assert_eq!(resolution, Resolution::Absent);
    assert!(answer.contains("TL001"), "{answer}");
    assert_eq!(store.head().await.unwrap(), 0);
    assert_eq!(store.stream_head(stream).await.unwrap(), None);
}

/// Nobody asks for the first one: the next append alone shuts the door behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_arrives_after_the_next_one_is_refused() {
    let database = Database::create().await;
    let (proxy, options) = Proxy::to(&database).await;
    let store = PostgresStore::open(options).await.unwrap();
    let (late, _) = by(HELD, flow(), 0);

    let outcome = store.append(late).await.unwrap();
    let next = appended(store.append(append(flow(), 0, 1)).await.unwrap());
    let answer = proxy.let_go().await;

    assert_eq!(outcome, Outcome::Unknown);
    assert_eq!(next[0].position, 1);
    assert!(answer.contains("TL001"), "{answer}");
    assert_eq!(store.head().await.unwrap(), 1);
}
