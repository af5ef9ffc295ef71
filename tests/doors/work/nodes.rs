//! A worker is connected to one node, and served from the flows of all.

use super::socket::Socket;
use super::{METHOD, held, remote, task};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use taskledger_testkit::cluster::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_at_one_node_gets_ends_and_loses_tasks_of_every_node_on_postgres() {
    const TASKS: usize = 8;
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.nodes[..] else {
        panic!("two nodes")
    };
    let mut socket = Socket::open(&one.api.url, None).await;
    let asked = json!({"methods": [METHOD], "worker": "w", "window": 2 * TASKS});
    socket.work(asked).await;
    // About half of the flows belong to each node, whichever is asked.
    let mut made = BTreeSet::new();
    for n in 0..TASKS {
        let node = if n % 2 == 0 { one } else { other };
        made.insert(remote(&node.api, Value::Null).await);
    }
    let mut claims = Vec::new();
    for _ in 0..TASKS {
        claims.push(socket.claim().await);
    }
    let id = |claim: &Value| claim["task"]["id"].as_str().unwrap().to_owned();
    assert_eq!(claims.iter().map(id).collect::<BTreeSet<_>>(), made);
    let (done, cancelled) = claims.split_at(TASKS / 2);
    for claim in done {
        let output = held(claim, json!({"output": {"n": 1}}));
        socket.call("tasks.complete", output).await;
        assert_eq!(task(&other.api, &id(claim)).await["status"], "completed");
    }
    for claim in cancelled {
        let cancel = json!({"task_id": id(claim)});
        other.api.call("tasks.cancel", cancel).await;
        let told = socket.told().await;
        assert_eq!(
            told["cancel"],
            json!({"task_id": id(claim), "lease": claim["lease"]["token"], "reason": "cancelled"})
        );
    }
    // A poll at one node is woken by work that comes through the other one.
    socket.close().await;
    let wanted = json!({"methods": [METHOD], "worker": "poller", "wait_seconds": 30});
    for _ in 0..4 {
        let poll = one.api.call("tasks.claim", wanted.clone());
        let (claimed, made) = tokio::join!(poll, remote(&other.api, Value::Null));
        assert_eq!(claimed["claims"][0]["task"]["id"], json!(made));
    }
    for node in cluster.nodes {
        node.stop().await;
    }
}
