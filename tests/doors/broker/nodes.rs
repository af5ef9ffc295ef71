//! Several servers on one database: whoever publishes, works or waits may be connected to any of them, and goes on at
//! another one when its own has ended, or at the same one when it is back.

use super::{Bus, PATIENCE, Peer, next, nothing, task};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use taskledger_eventbus::{TaskMessage, TaskResult, TaskStatus};
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::server::Server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::{Code, Status, Streaming};

const NODES: usize = 3;
/// Enough that flows of every node are among them.
const TASKS: usize = 12;
/// What nobody keeps goes to others then.
const LEASES_END: Duration = Duration::from_secs(30);
/// What an agent has left goes to others then.
const KEPT: Duration = Duration::from_secs(3);

async fn started() -> (Cluster, Vec<Peer>) {
    let cluster = Cluster::of(NODES).await;
    let mut peers = Vec::new();
    for node in &cluster.nodes {
        peers.push(Peer::of(node).await);
    }
    (cluster, peers)
}

fn ids(prefix: &str) -> BTreeSet<String> {
    (0..TASKS).map(|n| format!("{prefix}{n}")).collect()
}

/// What comes first: these tasks, each once, as they were sent.
async fn given(stream: &mut Streaming<TaskMessage>, ids: &BTreeSet<String>) {
    let mut left = ids.clone();
    while !left.is_empty() {
        let given = next(stream).await;
        let id = given.task_id.clone();
        assert!(left.remove(&id), "{id} is one of {left:?}");
        assert_eq!(given.metadata, None, "{id} was sent without any");
    }
}

/// The results that come first: of these tasks, each once, by this agent.
async fn told(results: &mut Streaming<TaskResult>, ids: &BTreeSet<String>, agent: &str) {
    let mut left = ids.clone();
    while !left.is_empty() {
        let told = next(results).await;
        assert!(
            left.remove(&told.task_id),
            "{} is one of {left:?}",
            told.task_id
        );
        assert_eq!(told.status(), TaskStatus::Completed);
        assert_eq!(told.executor_agent_id, agent);
    }
}

async fn end<T: std::fmt::Debug>(stream: &mut Streaming<T>) -> Status {
    loop {
        match timeout(PATIENCE, stream.message())
            .await
            .expect("the stream ends")
        {
            // What was on its way.
            Ok(Some(_)) => {}
            Ok(None) => panic!("a stream ends with a status"),
            Err(status) => return status,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publisher_agent_and_requester_are_connected_to_three_nodes_on_postgres() {
    let (cluster, peers) = started().await;
    let [publisher, worker, requester] = &peers[..] else {
        panic!("three nodes")
    };
    let mut results = requester.results("requester", &[]).await;
    let mut going = requester.going("requester", &[]).await;
    let mut stream = worker.subscribe("agent", &["x"]).await;
    // The other one is where tasks are published, and gets nothing of what is addressed to the first.
    let mut other = publisher.subscribe("other", &["x"]).await;
    let (own, others) = (ids("own"), ids("other"));
    for (ids, agent) in [(&own, "agent"), (&others, "other")] {
        for id in ids {
            let mut message = task(id, "x");
            message.responder_agent_id = agent.to_owned();
            publisher.publish(message).await.unwrap();
        }
    }
    for (stream, ids) in [(&mut stream, &own), (&mut other, &others)] {
        let mut left = ids.clone();
        while !left.is_empty() {
            assert!(left.remove(&next(stream).await.task_id));
        }
        nothing(stream).await;
    }
    // What an agent says of its task is heard by every node.
    let mut heard = BTreeSet::new();
    for (n, id) in own.iter().enumerate() {
        peers[n % NODES].progress("agent", id, 40).await.unwrap();
        heard.insert(id.clone());
    }
    while !heard.is_empty() {
        let progress = next(&mut going).await;
        let (id, agent) = (&progress.task_id, &progress.executor_agent_id);
        assert_eq!((progress.progress_percentage, &**agent), (40, "agent"));
        assert!(heard.remove(id), "{id}");
    }
    let refused = requester.progress("other", "own0", 50).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    for (ids, agent) in [(&own, "agent"), (&others, "other")] {
        for (n, id) in ids.iter().enumerate() {
            peers[(n + 1) % NODES].complete(agent, id).await.unwrap();
        }
        told(&mut results, ids, agent).await;
    }
    // Ids are unique over all nodes; the first end counts at each.
    for peer in &peers {
        let mut again = task("own0", "x");
        again.responder_agent_id = "agent".to_owned();
        peer.publish(again.clone()).await.unwrap();
        again.priority = 4;
        let refused = peer.publish(again).await.unwrap_err();
        assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
        peer.complete("agent", "own0").await.unwrap();
        let refused = peer
            .end("agent", "own0", TaskStatus::Failed, None, "no")
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    }
    nothing(&mut results).await;
    drop((stream, other, results, going));
    for node in cluster.nodes {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_and_a_requester_go_on_at_other_nodes_when_theirs_end_on_postgres() {
    let (mut cluster, mut peers) = started().await;
    let (first, second, third) = (ids("first"), ids("second"), ids("third"));
    let mut stream = peers[2].subscribe("agent", &["x"]).await;
    let mut results = peers[2].results("requester", &[]).await;
    for id in &first {
        peers[0].publish(task(id, "x")).await.unwrap();
    }
    given(&mut stream, &first).await;

    // Node by node: one is killed, the other one stops.
    cluster.nodes.pop().unwrap().kill().await;
    end(&mut stream).await;
    end(&mut results).await;
    let _ = peers.pop();
    let mut stream = peers[1].subscribe("agent", &["x"]).await;
    let mut results = peers[1].results("requester", &[]).await;
    let mut waiting = peers[0].subscribe("other", &["x"]).await;
    // Before the leases end, so it is the same attempt, and nobody else gets them.
    given(&mut stream, &first).await;
    nothing(&mut waiting).await;
    for (n, id) in first.iter().enumerate() {
        peers[n % 2].complete("agent", id).await.unwrap();
    }
    told(&mut results, &first, "agent").await;
    // It is given nothing more from here on: a stream whose end the server has not seen yet would begin an attempt.
    let drained = json!({"worker": "other", "drain": true});
    cluster.nodes[0].api.call("workers.drain", drained).await;
    drop(waiting);

    for id in &second {
        peers[0].publish(task(id, "x")).await.unwrap();
    }
    given(&mut stream, &second).await;
    let stopping = cluster.nodes.pop().unwrap();
    stopping.ask_to_stop();
    for ended in [end(&mut stream).await, end(&mut results).await] {
        assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    }
    let last = &peers[0];
    // As agents do, at once: what nobody comes back for within seconds is given back by a node that is still there.
    let mut stream = last.subscribe("agent", &["x"]).await;
    let mut results = last.results("requester", &[]).await;
    let (status, log) = stopping.end().await;
    assert!(status.success(), "{log}");
    // All that was told so recently is told again.
    told(&mut results, &first, "agent").await;
    given(&mut stream, &second).await;
    for id in second.iter().chain(&third) {
        if third.contains(id) {
            last.publish(task(id, "x")).await.unwrap();
            assert_eq!(next(&mut stream).await.task_id, *id);
        }
        last.complete("agent", id).await.unwrap();
    }
    let rest = second.union(&third).cloned().collect();
    told(&mut results, &rest, "agent").await;
    nothing(&mut results).await;
}

/// A request that is never finished, and that the server has begun to read: one that stops waits for it.
async fn unfinished(server: &Server) -> TcpStream {
    let address = server.api.url.trim_start_matches("http://");
    let address = address.trim_end_matches('/');
    let mut connection = TcpStream::connect(address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\nexpect: 100-continue\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut told = [0; 12];
    connection.read_exact(&mut told).await.unwrap();
    assert_eq!(told, *b"HTTP/1.1 100");
    connection
}

#[tokio::test]
async fn what_an_agent_held_stays_its_own_however_long_its_server_takes_to_stop() {
    let bus = Bus::start().await;
    let held = ids("held");
    let mut stream = bus.subscribe("agent", &["x"]).await;
    for id in &held {
        bus.publish(task(id, "x")).await.unwrap();
    }
    given(&mut stream, &held).await;
    let unfinished = unfinished(&bus.server).await;
    bus.server.ask_to_stop();
    end(&mut stream).await;
    let ended_at = Instant::now();
    let (status, log) = bus.server.end().await;
    assert!(status.success(), "{log}");
    // It has gone on for longer than it keeps what an agent has left.
    assert!(ended_at.elapsed() > KEPT, "{:?}", ended_at.elapsed());
    let bus = Bus::of(bus.folder).await;
    let mut other = bus.subscribe("other", &["x"]).await;
    nothing(&mut other).await;
    let mut stream = bus.subscribe("agent", &["x"]).await;
    given(&mut stream, &held).await;
    for id in &held {
        bus.complete("agent", id).await.unwrap();
    }
    drop(unfinished);
}

#[tokio::test]
async fn what_an_agent_held_when_its_server_was_killed_comes_back_to_it_at_once() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("agent", &["x", "y.*"]).await;
    let ids = ids("held");
    for (n, id) in ids.iter().enumerate() {
        let task_type = if n % 2 == 0 { "x" } else { "y.z" };
        bus.publish(task(id, task_type)).await.unwrap();
    }
    given(&mut stream, &ids).await;
    let bus = bus.killed().await;
    let mut other = bus.subscribe("other", &["x", "y.*"]).await;
    // A stream that asks for other types gets nothing of it.
    let mut elsewhere = bus.subscribe("agent", &["q"]).await;
    nothing(&mut elsewhere).await;
    let begun = Instant::now();
    let mut stream = bus.subscribe("agent", &["x", "y.*"]).await;
    given(&mut stream, &ids).await;
    assert!(
        begun.elapsed() < LEASES_END,
        "before leases end: {:?}",
        begun.elapsed()
    );
    nothing(&mut other).await;
    for id in &ids {
        bus.complete("agent", id).await.unwrap();
    }
    let mut results = bus.results("requester", &[]).await;
    told(&mut results, &ids, "agent").await;
}
