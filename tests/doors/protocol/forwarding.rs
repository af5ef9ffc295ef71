//! The door for calls of other nodes: it carries bytes, and lets in nodes only.

use crate::protocol::fake::Fake;
use crate::protocol::harness::Server;
use axum::body::Bytes;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use taskledger::application::api::PEER_CALLS;
use taskledger::transport::http::{Options, Peers};
use tokio::time::Instant;

/// Takes what the test says, then nothing more.
#[derive(Debug, Default)]
struct Node {
    answers: Mutex<VecDeque<Vec<u8>>>,
    taken: Mutex<Vec<Bytes>>,
}

impl Peers for Node {
    fn admits(&self, authorization: &[u8]) -> Option<bool> {
        Some(authorization == b"Bearer secret")
    }
    fn take(&self, body: Bytes, _: Instant) -> BoxFuture<'_, Option<Vec<u8>>> {
        self.taken.lock().unwrap().push(body);
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async { answer })
    }
}

async fn server(node: Option<Arc<Node>>) -> Server {
    let peers = node.map(|node| node as Arc<dyn Peers>);
    Server::as_node(Options::default(), Fake::default(), peers).await
}

async fn post(server: &Server, path: &str, authorization: &str, body: &[u8]) -> (u16, String) {
    let headers = [
        ("authorization", authorization),
        ("content-type", "application/json"),
    ];
    let mut client = server.connect().await;
    let answer = client.send_with("POST", path, &headers, body).await;
    (answer.status, answer.body)
}

#[tokio::test]
async fn a_server_that_is_alone_takes_no_calls_of_nodes() {
    let server = server(None).await;
    assert_eq!(
        post(&server, PEER_CALLS, "Bearer secret", b"{}").await.0,
        404
    );
}

#[tokio::test]
async fn calls_of_nodes_are_taken_from_nodes_only() {
    let node = Arc::new(Node::default());
    let server = server(Some(node.clone())).await;
    let taken = || node.taken.lock().unwrap().len();
    assert_eq!(post(&server, PEER_CALLS, "Bearer other", b"a").await.0, 401);
    assert_eq!(taken(), 0);
    // Not taken: the flow is elsewhere, or this is not understood.
    assert_eq!(
        post(&server, PEER_CALLS, "Bearer secret", b"a").await.0,
        421
    );
    node.answers.lock().unwrap().push_back(b"answer".to_vec());
    let answer = post(&server, PEER_CALLS, "Bearer secret", b"b").await;
    assert_eq!(answer, (200, "answer".to_owned()));
    assert_eq!(taken(), 2);
}

#[tokio::test]
async fn calls_of_another_version_find_no_door() {
    let node = Arc::new(Node::default());
    let server = server(Some(node.clone())).await;
    let version = PEER_CALLS.strip_prefix("/internal/v").unwrap();
    let version: u32 = version.strip_suffix("/call").unwrap().parse().unwrap();
    let later = |steps: u32| format!("/internal/v{}/call", version + steps);
    assert_eq!(later(0), PEER_CALLS);
    // A node of that version takes the answer for "not taken", and looks for another owner.
    for path in [later(1), later(2)] {
        let (status, _) = post(&server, &path, "Bearer secret", b"a").await;
        assert_eq!(status, 404, "{path}");
    }
    assert!(node.taken.lock().unwrap().is_empty());
}
