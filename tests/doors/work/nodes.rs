//! A worker is connected to one node, and served from the flows of all.

use super::socket::Socket;
use super::{METHOD, held, remote, task};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::server::{Api, Server};
use tokio::time::sleep;

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
    // Whoever is asked shows what is held of all nodes.
    for node in [one, other] {
        let workers = node.api.call("workers.list", json!({})).await;
        let held = workers["workers"].as_array().unwrap().iter();
        let held: Vec<_> = held
            .map(|worker| worker["held"].as_u64().unwrap())
            .collect();
        assert_eq!(held.iter().sum::<u64>(), TASKS as u64, "{workers}");
        let of = node
            .api
            .eventually("the method is known", async || {
                let methods = node.api.call("workers.methods", json!({})).await;
                let mut methods = methods["methods"].as_array()?.iter();
                methods.find(|known| known["method"] == METHOD).cloned()
            })
            .await;
        assert_eq!((&of["running"], &of["waiting"]), (&json!(TASKS), &json!(0)));
    }
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

/// Declares a method with a limit, and waits until all nodes know of it.
async fn limited(nodes: &[Server], method: &str, limit: u64) {
    let declare = json!({"method": method, "limit": limit});
    nodes[0].api.call("workers.declare", declare).await;
    for node in nodes {
        node.api
            .eventually("the limit is known", async || {
                let known = node.api.call("workers.methods", json!({})).await;
                let mut methods = known["methods"].as_array()?.iter();
                methods
                    .any(|known| known["method"] == method && known["limit"] == limit)
                    .then_some(())
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_hears_of_methods_and_workers_the_other_one_knows_at_once_on_postgres() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.nodes[..] else {
        panic!("two nodes")
    };
    for round in 0..3 {
        let (declared, asked) = (format!("declared-{round}"), format!("asked-{round}"));
        let worker = format!("w{round}");
        let schema = json!({"type": "object", "required": ["x"]});
        let declare = json!({"method": declared, "limit": 1, "input_schema": schema});
        one.api.call("workers.declare", declare).await;
        let task = |method: &str, inputs: Value| json!({"tasks": [{"name": "a", "schemas": {"method": method}, "inputs": inputs}]});
        let unfit = other
            .api
            .refusal("tasks.execute", task(&declared, json!({})))
            .await;
        assert_eq!(unfit.code, -32602, "{unfit:?}");
        for node in [one, other] {
            for _ in 0..3 {
                let fit = task(&declared, json!({"x": 1}));
                node.api.call("tasks.execute", fit).await;
            }
        }
        let mut held = 0;
        for node in [other, one, other] {
            let wanted = json!({"methods": [declared], "worker": worker, "max": 5});
            let claims = node.api.call("tasks.claim", wanted).await;
            held += claims["claims"].as_array().unwrap().len();
        }
        assert_eq!(held, 1, "the limit of all nodes");
        // Nothing waits for the other node here, which hears of it with the call that needs it.
        let wanted = json!({"methods": [asked], "worker": format!("asks-{worker}")});
        one.api.call("tasks.claim", wanted).await;
        let unlimited = task(&asked, json!({}));
        other.api.call("tasks.execute", unlimited).await;
        let stranger = json!({"methods": ["more"], "worker": format!("drained-{worker}")});
        one.api.call("tasks.claim", stranger).await;
        let drain = json!({"worker": format!("drained-{worker}")});
        let drained = other.api.call("workers.drain", drain).await;
        assert_eq!(drained["present"], true, "{drained}");
    }
    for node in cluster.nodes {
        node.stop().await;
    }
}

/// A task of a method, ready for a worker.
async fn ready(api: &Api, method: &str) {
    let task = json!({"name": "work", "schemas": {"method": method, "type": "remote"}});
    let create = json!({"tasks": [task]});
    let id = api.call("tasks.create", create).await["id"].take();
    api.call("tasks.execute", json!({"task_id": id})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_over_all_nodes_on_postgres() {
    const LIMIT: usize = 3;
    const TASKS: usize = 30;
    let cluster = Cluster::of(2).await;
    limited(&cluster.nodes, "few", LIMIT as u64).await;
    for n in 0..TASKS {
        ready(&cluster.nodes[n % 2].api, "few").await;
    }
    let (in_hand, most, done) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let worker = async |api: &Api, name: usize| {
        let claim =
            json!({"methods": ["few"], "worker": format!("w{name}"), "max": 2, "wait_seconds": 1});
        while done.load(Ordering::SeqCst) < TASKS {
            let claims = api.call("tasks.claim", claim.clone()).await["claims"].take();
            let claims = claims.as_array().unwrap().clone();
            let held_now = in_hand.fetch_add(claims.len(), Ordering::SeqCst) + claims.len();
            most.fetch_max(held_now, Ordering::SeqCst);
            sleep(Duration::from_millis(20)).await;
            for claim in &claims {
                in_hand.fetch_sub(1, Ordering::SeqCst);
                let output = held(claim, json!({"output": {"n": 1}}));
                api.call("tasks.complete", output).await;
                done.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let workers = (0..6).map(|n| worker(&cluster.nodes[n % 2].api, n));
    join_all(workers).await;
    assert_eq!(done.load(Ordering::SeqCst), TASKS);
    // The first claims are three at once, whoever gets them.
    assert_eq!(most.load(Ordering::SeqCst), LIMIT);
    for node in cluster.nodes {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_counts_attempts_that_began_before_it_on_postgres() {
    let cluster = Cluster::of(2).await;
    for n in 0..8 {
        ready(&cluster.nodes[n % 2].api, "late").await;
    }
    let claim = |max: usize, wait: u64| json!({"methods": ["late"], "worker": "w", "max": max, "wait_seconds": wait});
    let mut claims = Vec::new();
    while claims.len() < 2 {
        let more = claim(2 - claims.len(), 5);
        let more = cluster.nodes[0].api.call("tasks.claim", more).await["claims"].take();
        claims.extend(more.as_array().unwrap().clone());
    }
    limited(&cluster.nodes, "late", 2).await;
    // Tickets of what is under way are written beside the change of the limit.
    sleep(Duration::from_secs(1)).await;
    for node in &cluster.nodes {
        let none = node.api.call("tasks.claim", claim(1, 1)).await;
        assert_eq!(none["claims"], json!([]), "{none}");
    }
    let output = held(&claims[0], json!({"output": {"n": 1}}));
    cluster.nodes[1].api.call("tasks.complete", output).await;
    let next = cluster.nodes[1].api.call("tasks.claim", claim(5, 30)).await;
    assert_eq!(next["claims"].as_array().unwrap().len(), 1, "{next}");
    for node in cluster.nodes {
        node.stop().await;
    }
}
