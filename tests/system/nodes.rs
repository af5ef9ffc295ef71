//! Three servers on one database: calls through any of them, and nodes that come, stop, die and stand
//! still under load.

use crate::log::{self, Event};
use crate::model::{Client, Found};
use crate::server::{Api, Folder, Server};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const NODES: usize = 3;
const CLIENTS: usize = 8;
/// Partitions of flows.
const PARTITIONS: u64 = 256;
/// Commands that each client gets through while something happens.
const COMMANDS: usize = 40;

/// Tasks that each of the writers makes, renames and looks for.
const WRITES: usize = 10;

struct Cluster {
    folder: Folder,
    nodes: Vec<Server>,
}

impl Cluster {
    async fn start() -> Self {
        let folder = Folder::with_database().await;
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(Server::start(&folder).await);
        }
        let cluster = Self { folder, nodes };
        cluster.settled(NODES).await;
        cluster
    }

    fn apis(&self) -> Vec<Api> {
        self.nodes.iter().map(|node| node.api.clone()).collect()
    }

    /// Waits until so many nodes share everything evenly, as each of them sees it.
    async fn settled(&self, nodes: usize) {
        for node in &self.nodes {
            node.api
                .eventually("the nodes share the partitions", async || {
                    settled(&health(&node.api).await, nodes as u64).then_some(())
                })
                .await;
        }
    }

    /// Every run has ended, nothing was lost, and nothing happened twice.
    async fn check(self, clients: &[Client]) -> Vec<Event> {
        let api = &self.nodes[0].api;
        api.eventually("every run has ended", async || {
            let found = Found::in_log(&log::export(&self.folder).await);
            found.runs.values().all(|ended| *ended).then_some(())
        })
        .await;
        let events = log::export(&self.folder).await;
        log::assert_dense(&events);
        log::assert_started_in_order(&events);
        let found = Found::in_log(&events);
        for client in clients {
            client.check(&found);
            for mark in client.marks() {
                assert_eq!(found.flows[mark].len(), 1, "{mark} was created once");
            }
        }
        assert!(found.renamed.values().all(|times| *times == 1));
        let expected: Vec<_> = clients.iter().flat_map(Client::expected).collect();
        for part in expected.chunks(NODES * CLIENTS) {
            let asked = part.iter().enumerate();
            let asked = asked
                .map(|(n, (id, name))| shows(&self.nodes[n % self.nodes.len()].api, id, *name));
            join_all(asked).await;
        }
        for node in self.nodes {
            node.stop().await;
        }
        events
    }
}

async fn health(api: &Api) -> Value {
    api.call("system.health", json!({})).await["node"].take()
}

fn settled(node: &Value, nodes: u64) -> bool {
    let alive = node["alive"].as_array().unwrap();
    let held: Vec<u64> = alive
        .iter()
        .map(|n| n["partitions"].as_u64().unwrap())
        .collect();
    let share = (PARTITIONS + 1).div_ceil(nodes);
    alive.len() as u64 == nodes
        && held.iter().sum::<u64>() == PARTITIONS
        && held.iter().all(|n| *n <= share)
}

async fn shows(api: &Api, id: &str, name: Option<&str>) {
    match name {
        Some(name) => {
            let task = api.call("tasks.get", json!({"task_id": id})).await;
            assert_eq!(task["name"], json!(name), "{task}");
        }
        None => {
            let refusal = api.refusal("tasks.get", json!({"task_id": id})).await;
            assert_eq!(refusal.code, -32001, "{refusal:?}");
        }
    }
}

fn clients(seed: u64) -> Vec<Client> {
    (0..CLIENTS).map(|n| Client::new(n, seed)).collect()
}

/// Clients that work through all nodes in turn, until they are told to stop. A call without an
/// answer is repeated at the next node.
struct Load {
    over: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    working: Vec<tokio::task::JoinHandle<Client>>,
}

impl Load {
    fn start(clients: Vec<Client>, nodes: &[Api]) -> Self {
        let (over, done) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let work = |(n, mut client): (usize, Client)| {
            let (over, done, nodes) = (over.clone(), done.clone(), nodes.to_vec());
            tokio::spawn(async move {
                let mut turn = n;
                while !over.load(Ordering::Relaxed) || client.open.is_some() {
                    turn += 1;
                    let api = &nodes[turn % nodes.len()];
                    let command = match client.open.take() {
                        Some(command) => command,
                        None => client.next(),
                    };
                    if client.send(api, command).await.is_some() {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
                client
            })
        };
        let working = clients.into_iter().enumerate().map(work).collect();
        Self {
            over,
            done,
            working,
        }
    }

    /// Waits until so many more commands were answered.
    async fn more(&self, api: &Api, commands: usize) {
        let before = self.done.load(Ordering::Relaxed);
        api.eventually("commands are answered", async || {
            (self.done.load(Ordering::Relaxed) >= before + commands).then_some(())
        })
        .await;
    }

    async fn stop(self) -> Vec<Client> {
        self.over.store(true, Ordering::Relaxed);
        let done = join_all(self.working).await;
        done.into_iter().map(|client| client.unwrap()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_takes_any_call() {
    let cluster = Cluster::start().await;
    let apis = cluster.apis();
    let node = |n: usize| &apis[n % NODES];
    for n in 0..12 {
        let tree = json!({"tasks": [
            {"id": "root", "name": "root"},
            {"id": "a", "name": "a", "parent_id": "root", "schemas": {"method": "echo_executor"}},
        ]});
        let made = node(n).call("tasks.create", tree).await;
        let (root, task) = (&made["id"], &made["task_ids"]["a"]);
        let updates = json!({"task_id": task, "updates": {"name": format!("task {n}")}});
        node(n + 1).call("tasks.update", updates).await;
        for reader in &apis {
            let shown = reader.call("tasks.get", json!({"task_id": task})).await;
            assert_eq!(shown["name"], json!(format!("task {n}")));
            let tree = reader.call("tasks.tree", json!({"task_id": root})).await;
            assert_eq!(tree["children"][0]["task"]["id"], *task, "{tree}");
            let history = reader.call("tasks.history", json!({"task_id": task})).await;
            assert_eq!(history["events"].as_array().unwrap().len(), 2, "{history}");
            let why = reader.call("tasks.explain", json!({"task_id": task})).await;
            assert_eq!(why["status"], "pending", "{why}");
        }
        let refusal = node(n + 2).refusal(
            "tasks.cancel",
            json!({"task_id": "550e8400-e29b-41d4-a716-446655440000"}),
        );
        assert_eq!(refusal.await.code, -32001);
        let copied = node(n).call(
            "tasks.copy",
            json!({"task_id": root, "copy_children": true}),
        );
        let copied = copied.await["copied_task_id"].take();
        node(n + 1)
            .call("tasks.execute", json!({"task_id": root}))
            .await;
        let refusal = node(n + 2)
            .refusal("tasks.delete", json!({"task_id": root}))
            .await;
        assert_eq!(refusal.code, -32009, "{refusal:?}");
        let run = node(n).run_of(root).await;
        assert_eq!(run["state"], "completed");
        node(n + 2)
            .call("tasks.delete", json!({"task_id": copied, "cascade": true}))
            .await;
        let gone = node(n)
            .refusal("tasks.get", json!({"task_id": copied}))
            .await;
        assert_eq!(gone.code, -32001);
    }
    cluster.check(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_on_any_node_sees_what_any_other_has_answered() {
    let cluster = Cluster::start().await;
    let load = Load::start(clients(1), &cluster.apis());
    let writers = (0..4).map(|writer| {
        let apis = cluster.apis();
        async move {
            for n in 0..WRITES {
                let (here, there) = (&apis[(writer + n) % NODES], &apis[(writer + n + 1) % NODES]);
                let name = format!("w{writer}-{n}.single");
                let made = here
                    .call(
                        "tasks.create",
                        json!({"name": name, "user_id": format!("w{writer}")}),
                    )
                    .await;
                shows(there, made["id"].as_str().unwrap(), Some(&name)).await;
                let list = there.call(
                    "tasks.list",
                    json!({"user_id": format!("w{writer}"), "limit": 1}),
                );
                assert_eq!(list.await["total"], json!(n + 1));
                let name = format!("w{writer}-{n}.renamed");
                let updates = json!({"task_id": made["id"], "updates": {"name": name}});
                there.call("tasks.update", updates).await;
                shows(here, made["id"].as_str().unwrap(), Some(&name)).await;
            }
        }
    });
    join_all(writers).await;
    let clients = load.stop().await;
    cluster.check(&clients).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flows_of_a_node_that_is_killed_go_on_elsewhere() {
    let mut cluster = Cluster::start().await;
    let load = Load::start(clients(2), &cluster.apis());
    load.more(&cluster.nodes[0].api, COMMANDS * CLIENTS).await;
    cluster.nodes.pop().unwrap().kill().await;
    cluster.settled(NODES - 1).await;
    load.more(&cluster.nodes[0].api, COMMANDS * CLIENTS).await;
    let clients = load.stop().await;
    cluster.check(&clients).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stood_still_past_its_leases_writes_nothing_stale() {
    let cluster = Cluster::start().await;
    let load = Load::start(clients(3), &cluster.apis());
    let api = &cluster.nodes[0].api;
    load.more(api, COMMANDS * CLIENTS).await;
    let paused = cluster.nodes.last().unwrap();
    paused.pause();
    api.eventually("the others have its partitions", async || {
        settled(&health(api).await, NODES as u64 - 1).then_some(())
    })
    .await;
    // What others have taken over goes on while it stands still.
    let more = (CLIENTS..2 * CLIENTS).map(|n| Client::new(n, 3)).collect();
    let others = Load::start(more, &cluster.apis()[..NODES - 1]);
    others.more(api, COMMANDS * CLIENTS).await;
    paused.resume();
    load.more(api, COMMANDS * CLIENTS).await;
    cluster.settled(NODES).await;
    let mut clients = load.stop().await;
    clients.extend(others.stop().await);
    cluster.check(&clients).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_hands_its_flows_over_and_one_that_comes_gets_its_share() {
    let mut cluster = Cluster::start().await;
    let apis = cluster.apis();
    let load = Load::start(clients(4), &apis[..NODES - 1]);
    load.more(&apis[0], COMMANDS * CLIENTS).await;
    cluster.nodes.pop().unwrap().stop().await;
    cluster.settled(NODES - 1).await;
    load.more(&apis[0], COMMANDS * CLIENTS).await;
    cluster.nodes.push(Server::start(&cluster.folder).await);
    cluster.settled(NODES).await;
    load.more(&apis[0], COMMANDS * CLIENTS).await;
    let clients = load.stop().await;
    cluster.check(&clients).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_shows_the_nodes() {
    let cluster = Cluster::start().await;
    let mut folding = 0;
    for node in &cluster.nodes {
        let seen = health(&node.api).await;
        let alive = seen["alive"].as_array().unwrap();
        let me = alive.iter().find(|n| n["id"] == seen["id"]).unwrap();
        assert_eq!(me["url"], json!(node.api.url.trim_end_matches('/')));
        assert_eq!(me["partitions"], seen["partitions"]);
        folding += usize::from(seen["folds_read_models"] == true);
    }
    assert_eq!(folding, 1);
    cluster.check(&[]).await;
}
