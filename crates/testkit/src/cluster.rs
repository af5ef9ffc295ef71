//! Servers on one database, load on all of them, and what must hold afterwards.

use crate::found::Found;
use crate::log::{self, Event};
use crate::model::{Client, Told};
use crate::patience::ACQUIRE_TIMEOUT;
use crate::server::{Api, Folder, Server, TOO_BUSY};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use taskledger_clock::SystemClock;
use taskledger_log::postgres::{Options as LogOptions, PostgresStore};
use taskledger_projections::{Options, ReadModels};
use taskledger_subscription::rebuild::beside;

/// Partitions of flows.
const PARTITIONS: u64 = 256;
/// Before a client asks again that was given no answer: load, and not a wait for something.
const PAUSE: Duration = Duration::from_millis(20);

/// Commands at full speed beyond those that a test waits for: what breaks soon after them breaks in the middle of
/// calls.
const SURPLUS: usize = 50;
/// Before a client sends its next command after those: what goes on while a test waits for a lease to end or for
/// partitions to be shared is load all the same, and most of the time of the processors is left to other tests.
const PACE: Duration = Duration::from_millis(100);

/// Tasks asked for in one batch.
const BATCH_LEN: usize = 50;
/// For the answers to what was asked last: a call may take 30 s before it is told that its outcome
/// is unknown, and is then asked again.
const LAST_ANSWERS: Duration = Duration::from_secs(90);

/// Servers on one database.
pub struct Cluster {
    /// Where the database is.
    pub folder: Folder,
    /// The servers, in the order in which they were started.
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// So many servers on a fresh database.
    pub async fn of(nodes: usize) -> Self {
        Self::start(Folder::with_database().await, nodes, &[]).await
    }

    /// Starts servers in a place, with more arguments.
    pub async fn start(folder: Folder, nodes: usize, arguments: &[&str]) -> Self {
        let mut cluster = Self {
            folder,
            nodes: Vec::new(),
        };
        for _ in 0..nodes {
            let node = Server::start_with(&cluster.folder, arguments).await;
            cluster.nodes.push(node);
        }
        cluster.settled(nodes).await;
        cluster
    }

    /// Calls to each server.
    pub fn apis(&self) -> Vec<Api> {
        self.nodes.iter().map(|node| node.api.clone()).collect()
    }

    /// Waits until so many nodes share everything evenly, as each of them sees it.
    pub async fn settled(&self, nodes: usize) {
        for node in &self.nodes {
            settled(&node.api, nodes).await;
        }
    }

    /// Every run has ended, nothing was lost, nothing happened twice, each node shows what all have
    /// acknowledged, and the read models are what a replay of the log makes. Stops the nodes.
    pub async fn check(self, clients: &[Client]) -> Vec<Event> {
        let api = &self.nodes[0].api;
        join_all(clients.iter().map(|client| client.confirm(api))).await;
        let running = json!({"status": "in_progress", "limit": 1});
        api.eventually("nothing is in progress", async || {
            let list = api.call("tasks.list", running.clone()).await;
            (list["total"] == 0).then_some(())
        })
        .await;
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
            assert!(client.open.is_none(), "every command has an answer");
            client.check(&found);
            for mark in client.marks() {
                assert_eq!(found.flows[mark].len(), 1, "{mark} was created once");
            }
        }
        assert!(found.renamed.values().all(|times| *times == 1));
        let expected: Vec<_> = clients.iter().flat_map(Client::expected).collect();
        for parts in expected.chunks(BATCH_LEN * self.nodes.len()) {
            let parts = self.nodes.iter().zip(parts.chunks(BATCH_LEN));
            join_all(parts.map(|(node, part)| all_show(&node.api, part))).await;
        }
        for node in &self.nodes {
            node.api.caught_up().await;
        }
        for node in self.nodes {
            node.stop().await;
        }
        assert_rows_equal_a_replay(&self.folder).await;
        events
    }
}

/// The rows that the nodes left are those that folding the whole log makes, byte for byte.
async fn assert_rows_equal_a_replay(folder: &Folder) {
    let connect = sqlx::postgres::PgConnectOptions::from_str(folder.url().unwrap()).unwrap();
    let mut log = LogOptions::new(connect, Arc::new(SystemClock::default()));
    log.acquire_timeout = ACQUIRE_TIMEOUT;
    let store = Arc::new(PostgresStore::open(log).await.unwrap());
    let (rows, _) = ReadModels::open(&folder.rows()).await.unwrap();
    let kept = rows.dump().await.unwrap();
    let place = folder.path().join("replay.db");
    let (replay, _) = ReadModels::open(&Options::new(place)).await.unwrap();
    let replay = Arc::new(replay);
    let reached = beside(store.clone(), &replay, |_, _| ()).await.unwrap();
    let replayed = replay.dump().await.unwrap();
    assert!(
        kept == replayed,
        "the rows differ from a replay of {reached} events"
    );
    store.close().await;
    rows.close().await.unwrap();
    Arc::into_inner(replay).unwrap().close().await.unwrap();
}

/// Waits until so many nodes share everything evenly, as this one sees it.
pub async fn settled(api: &Api, nodes: usize) {
    api.eventually("the nodes share the partitions", async || {
        is_settled(&health(api).await, nodes as u64).then_some(())
    })
    .await;
}

/// What `system.health` says of the node that is asked.
pub async fn health(api: &Api) -> Value {
    api.call("system.health", json!({})).await["node"].take()
}

fn is_settled(node: &Value, nodes: u64) -> bool {
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

/// The same of many tasks, in one batch.
async fn all_show(api: &Api, tasks: &[(&str, Option<&str>)]) {
    let calls = tasks.iter().enumerate().map(|(i, (id, _))| {
        json!({"jsonrpc": "2.0", "id": i, "method": "tasks.get", "params": {"task_id": id}})
    });
    let calls = Value::Array(calls.collect());
    let (_, answers) = api.post(calls.to_string()).await.unwrap();
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), tasks.len(), "each call is answered");
    for answer in answers {
        let number = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
        let (id, name) = tasks[number];
        match (name, answer["error"]["code"].as_i64()) {
            // It is asked for again, until the node is less busy.
            (name, Some(TOO_BUSY)) => shows(api, id, name).await,
            (Some(name), None) => assert_eq!(answer["result"]["name"], json!(name), "{answer}"),
            (None, code) => assert_eq!(code, Some(-32001), "{answer}"),
            (Some(_), Some(_)) => panic!("{id}: {answer}"),
        }
    }
}

/// The task has this name, or none when it was deleted.
pub async fn shows(api: &Api, id: &str, name: Option<&str>) {
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

/// Clients that work through all nodes in turn, until they are told to stop: as fast as they can while a test waits for
/// their commands, then at a pace. A call without an answer is repeated at the next node.
pub struct Load {
    state: Arc<LoadState>,
    working: Vec<tokio::task::JoinHandle<Client>>,
}

/// What a test and its clients tell each other.
#[derive(Default)]
struct LoadState {
    over: AtomicBool,
    /// Commands that were carried out or refused.
    done: AtomicUsize,
    /// Commands that were put off or have failed.
    denied: AtomicUsize,
    /// Commands that a test has waited for.
    awaited: AtomicUsize,
    /// The test is at something that calls are to be in the middle of, or that only more commands bring about.
    hurries: AtomicBool,
}

impl LoadState {
    /// After a command was carried out or refused.
    async fn keep_pace(&self) {
        let enough = self.awaited.load(Ordering::Relaxed) + SURPLUS;
        let is_enough = self.done.load(Ordering::Relaxed) > enough;
        if is_enough && !self.hurries.load(Ordering::Relaxed) {
            tokio::time::sleep(PACE).await;
        }
    }
}

impl Load {
    /// Lets each client work, from another node on than its neighbours.
    pub fn start(clients: Vec<Client>, nodes: &[Api]) -> Self {
        let state = Arc::<LoadState>::default();
        let work = |(n, client): (usize, Client)| {
            tokio::spawn(work(client, n, nodes.to_vec(), state.clone()))
        };
        let working = clients.into_iter().enumerate().map(work).collect();
        Self { state, working }
    }

    /// Waits until a client was told to come back, or that its command has failed.
    pub async fn denied(&self, api: &Api) {
        self.hurry(api.eventually("a command is denied", async || {
            (self.state.denied.load(Ordering::Relaxed) > 0).then_some(())
        }))
        .await;
    }

    /// Does something while clients are as fast as they can.
    pub async fn hurry<T>(&self, what: impl Future<Output = T>) -> T {
        self.state.hurries.store(true, Ordering::Relaxed);
        let done = what.await;
        self.state.hurries.store(false, Ordering::Relaxed);
        done
    }

    /// Waits until so many more commands were carried out or refused.
    pub async fn more(&self, api: &Api, commands: usize) {
        let awaited = self.state.done.load(Ordering::Relaxed) + commands;
        self.state.awaited.store(awaited, Ordering::Relaxed);
        api.eventually("commands are answered", async || {
            (self.state.done.load(Ordering::Relaxed) >= awaited).then_some(())
        })
        .await;
    }

    /// Ends it when every command has an answer.
    pub async fn stop(self) -> Vec<Client> {
        self.state.over.store(true, Ordering::Relaxed);
        let done = tokio::time::timeout(LAST_ANSWERS, join_all(self.working)).await;
        let done = done.expect("every command is answered in the end");
        let clients: Vec<Client> = done.into_iter().map(|client| client.unwrap()).collect();
        let told = clients.iter().map(|client| client.told);
        println!("{:?}", told.fold(Told::default(), Told::and));
        clients
    }
}

async fn work(
    mut client: Client,
    mut turn: usize,
    nodes: Vec<Api>,
    state: Arc<LoadState>,
) -> Client {
    while !state.over.load(Ordering::Relaxed) || client.open.is_some() {
        turn += 1;
        let api = &nodes[turn % nodes.len()];
        let command = match client.open.take() {
            Some(command) => command,
            None => client.next_command(),
        };
        let before = client.told;
        let answer = client.send(api, command).await;
        let denied = client.told.busy + client.told.failed > before.busy + before.failed;
        if denied {
            state.denied.fetch_add(1, Ordering::Relaxed);
        }
        if answer.is_none() || denied {
            tokio::time::sleep(PAUSE).await;
        } else {
            state.done.fetch_add(1, Ordering::Relaxed);
            // At another node than the one that has answered.
            if client.flows() > 0 {
                client.look(&nodes[(turn + 1) % nodes.len()]).await;
            }
            state.keep_pace().await;
        }
    }
    client
}
