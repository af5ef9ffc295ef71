//! Workers outside the servers, some of which stall or die, while servers are killed or stand still.
//!
//! Afterwards the log is read: every outcome that a worker was told of is there, no attempt has two, none
//! begins before the one before it has ended, every claim that a worker was told of was its own, and nothing
//! is left in progress.

use crate::faults::seed;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::log::{self, Event};
use taskledger_testkit::random::Random;
use taskledger_testkit::server::{Api, FAILED, Folder, NoResult, Server, TOO_BUSY};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const WORKERS: u64 = 12;
/// Flows, each with a group of [`TASKS`].
const FLOWS: usize = 60;
const TASKS: usize = 5;
/// The shortest lease that there is.
const LEASE_SECONDS: u64 = 5;
/// Longer than a lease, also than one whose server has come in the meantime, with the time in which its end
/// is noticed.
const STALL: Duration = Duration::from_millis(11_500);
/// Outcomes between two faults.
const OUTCOMES: usize = 50;
/// Before somebody else is asked.
pub(super) const PAUSE: Duration = Duration::from_millis(20);
/// Within which everything must be done after the last fault: leases of dead workers end, some of them a
/// while after a server has come.
pub(super) const END: Duration = Duration::from_secs(60);
/// The lease is not held.
pub(super) const NOT_HELD: i64 = -31010;

/// An attempt, by its task and number.
type Attempt = (String, u64);

/// What a worker says of an attempt.
#[derive(Debug, Clone, PartialEq)]
enum Word {
    Complete(Value),
    Fail(String),
    Release,
}

/// What a worker was told.
#[derive(Debug, Default)]
struct Told {
    /// Claims, each with the name of the worker.
    claims: Vec<(Attempt, String)>,
    /// Outcomes that were acknowledged.
    outcomes: Vec<(Attempt, Word)>,
    /// Leases that were lost when it came with an outcome.
    late: usize,
}

/// What workers and the test share.
#[derive(Debug)]
pub(super) struct Shared {
    nodes: RwLock<Vec<Api>>,
    /// Workers stall and die no more.
    is_calm: AtomicBool,
    pub(super) is_over: AtomicBool,
    pub(super) outcomes: AtomicUsize,
}

impl Shared {
    pub(super) fn over(nodes: Vec<Api>) -> Arc<Self> {
        Arc::new(Self {
            nodes: RwLock::new(nodes),
            is_calm: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            outcomes: AtomicUsize::new(0),
        })
    }

    pub(super) fn meet(&self, nodes: Vec<Api>) {
        *self.nodes.write().unwrap() = nodes;
    }

    pub(super) fn any(&self, random: &mut Random) -> Api {
        let nodes = self.nodes.read().unwrap();
        nodes[random.index(&nodes)].clone()
    }

    /// Waits until so many more outcomes were acknowledged.
    pub(super) async fn more(&self, outcomes: usize) {
        let before = self.outcomes.load(Ordering::Relaxed);
        let until = Instant::now() + END;
        while self.outcomes.load(Ordering::Relaxed) < before + outcomes {
            assert!(Instant::now() < until, "the workers get on");
            sleep(PAUSE).await;
        }
    }
}

struct Worker {
    name: String,
    random: Random,
    shared: Arc<Shared>,
    told: Told,
}

impl Worker {
    /// Works until it is over.
    async fn work(mut self) -> Told {
        while !self.shared.is_over.load(Ordering::Relaxed) {
            let api = self.shared.any(&mut self.random);
            let max = self.random.below(3) + 1;
            let claim = json!({"worker": self.name, "methods": ["m"], "max": max,
                "lease_seconds": LEASE_SECONDS, "wait_seconds": 1});
            match api.try_call("tasks.claim", claim, None).await {
                Ok(mut claimed) => {
                    for claim in claimed["claims"].as_array_mut().unwrap() {
                        self.attempt(claim.take()).await;
                    }
                }
                Err(NoResult::Broken) => sleep(PAUSE).await,
                Err(NoResult::Refused(refusal)) => {
                    assert!(matches!(refusal.code, TOO_BUSY | FAILED), "{refusal:?}");
                    sleep(PAUSE).await;
                }
            }
        }
        self.told
    }

    async fn attempt(&mut self, claim: Value) {
        let task = claim["task"]["id"].as_str().unwrap().to_owned();
        let number = claim["lease"]["attempt"].as_u64().unwrap();
        let lease = claim["lease"]["token"].clone();
        let attempt = (task, number);
        self.told.claims.push((attempt.clone(), self.name.clone()));
        let is_calm = self.shared.is_calm.load(Ordering::Relaxed);
        let result = Word::Complete(json!({"by": self.name, "attempt": number}));
        match self.random.below(100) {
            // It dies: nobody hears of it again.
            0..4 if !is_calm => {}
            // It stalls, and then goes on as if nothing had happened.
            4..8 if !is_calm => {
                sleep(STALL).await;
                self.say(&attempt, &lease, result).await;
            }
            8..20 => {
                let word = Word::Fail(format!("{} could not", self.name));
                self.say(&attempt, &lease, word).await;
            }
            20..28 => self.say(&attempt, &lease, Word::Release).await,
            28..40 => {
                for _ in 0..3 {
                    sleep(PAUSE * 5).await;
                    self.renew(&attempt, &lease).await;
                }
                self.say(&attempt, &lease, result).await;
            }
            _ => self.say(&attempt, &lease, result).await,
        }
    }

    async fn renew(&mut self, (task, _): &Attempt, lease: &Value) {
        let api = self.shared.any(&mut self.random);
        let renew = json!({"task_id": task, "lease": lease});
        match api.try_call("tasks.renew", renew, None).await {
            Ok(renewed) => assert_eq!(renewed["cancel_requested"], false),
            Err(NoResult::Broken) => {}
            Err(NoResult::Refused(refusal)) => {
                assert!(
                    matches!(refusal.code, NOT_HELD | TOO_BUSY | FAILED),
                    "{refusal:?}"
                );
            }
        }
    }

    /// Says it until somebody answers; then perhaps once more, and something else.
    async fn say(&mut self, attempt: &Attempt, lease: &Value, word: Word) {
        let Some(first) = self.answer(attempt, lease, &word).await else {
            self.told.late += 1;
            return;
        };
        self.told.outcomes.push((attempt.clone(), word.clone()));
        self.shared.outcomes.fetch_add(1, Ordering::Relaxed);
        if self.random.below(4) == 0 {
            let again = self.answer(attempt, lease, &word).await;
            // The task remembers how its last attempt ended, and may have had another one by now.
            if matches!(word, Word::Complete(_)) {
                assert_eq!(again, Some(first), "{attempt:?} {word:?} was acknowledged");
            }
            let other = Word::Complete(json!({"other": true}));
            let other = self.answer(attempt, lease, &other).await;
            assert_eq!(other, None, "{attempt:?} {word:?} was acknowledged");
        }
    }

    /// The first answer; nothing when the lease was not held.
    async fn answer(&mut self, attempt: &Attempt, lease: &Value, word: &Word) -> Option<Value> {
        let mut params = json!({"task_id": attempt.0, "lease": lease});
        let method = match word {
            Word::Complete(output) => {
                params["output"] = output.clone();
                "tasks.complete"
            }
            Word::Fail(error) => {
                params["error"] = json!(error);
                "tasks.fail"
            }
            Word::Release => "tasks.release",
        };
        loop {
            let api = self.shared.any(&mut self.random);
            match api.try_call(method, params.clone(), None).await {
                Ok(answer) => return Some(answer),
                Err(NoResult::Refused(refusal)) if refusal.code == NOT_HELD => return None,
                Err(NoResult::Refused(refusal)) => {
                    let passes = matches!(refusal.code, TOO_BUSY | FAILED);
                    assert!(passes, "{method} {params}: {refusal:?}");
                }
                Err(NoResult::Broken) => {}
            }
            sleep(PAUSE).await;
        }
    }
}

/// Starts workers, and flows for them.
async fn begin(nodes: Vec<Api>) -> (Arc<Shared>, Vec<JoinHandle<Told>>) {
    let seed = seed();
    let api = nodes[0].clone();
    let shared = Shared::over(nodes);
    for _ in 0..FLOWS {
        let task = |n: usize| {
            json!({"name": format!("task {n}"), "schemas": {"method": "m", "type": "remote"},
                "params": {"retry": {"max_attempts": 50, "initial_delay_ms": 20, "max_delay_ms": 100}}})
        };
        let children: Vec<Value> = (0..TASKS).map(task).collect();
        let flow = json!({"name": "flow.", "children": children});
        api.call("tasks.execute", json!({"tasks": [flow]})).await;
    }
    let workers = (0..WORKERS).map(|n| Worker {
        name: format!("worker {n}"),
        random: Random::new(seed.wrapping_add(n.wrapping_mul(0x9e37_79b9))),
        shared: shared.clone(),
        told: Told::default(),
    });
    let working = workers.map(|worker| tokio::spawn(worker.work())).collect();
    (shared, working)
}

/// Lets the workers finish, and looks at what is left.
async fn finish(folder: &Folder, shared: Arc<Shared>, working: Vec<JoinHandle<Told>>) {
    shared.is_calm.store(true, Ordering::Relaxed);
    let until = Instant::now() + END;
    let events = loop {
        let events = log::export(folder).await;
        let ended = events.iter().filter(|event| event.kind == "RunEnded");
        if ended.count() == FLOWS {
            break events;
        }
        if Instant::now() > until {
            shared.is_over.store(true, Ordering::Relaxed);
            panic!("not every run has ended: {:?}", in_progress(&events));
        }
        sleep(PAUSE * 10).await;
    };
    shared.is_over.store(true, Ordering::Relaxed);
    let mut told = Vec::new();
    for worker in working {
        told.push(worker.await.unwrap());
    }
    check(&events, &told);
}

/// Tasks that are in progress, with their last attempts.
fn in_progress(events: &[Event]) -> HashMap<&str, u64> {
    let mut running = HashMap::new();
    for event in events {
        match event.kind.as_str() {
            "TaskStarted" => {
                let attempt = event.data["attempt"].as_u64().unwrap();
                let before = running.insert(event.task(), attempt);
                assert_eq!(before, None, "an attempt is under way: {event:?}");
            }
            "TaskCompleted" | "TaskFailed" => {
                let attempt = event.data["attempt"].as_u64().unwrap();
                let ended = running.remove(event.task());
                assert_eq!(ended, Some(attempt), "{event:?}");
            }
            _ => {}
        }
    }
    running
}

fn check(events: &[Event], told: &[Told]) {
    log::assert_dense(events);
    log::assert_started_in_order(events);
    assert_eq!(in_progress(events), HashMap::new());
    let mut starts: HashMap<Attempt, &str> = HashMap::new();
    let (mut leases, mut groups) = (HashSet::new(), 0);
    let mut ends: HashMap<Attempt, &Event> = HashMap::new();
    for event in events {
        let attempt = || {
            let number = event.data["attempt"].as_u64().unwrap();
            (event.task().to_owned(), number)
        };
        match event.kind.as_str() {
            "TaskStarted" => {
                let lease = &event.data["lease"];
                let Some(id) = lease["id"].as_str() else {
                    groups += 1;
                    continue;
                };
                assert!(leases.insert(id), "a lease for two attempts: {event:?}");
                starts.insert(attempt(), lease["worker"].as_str().unwrap());
            }
            "TaskCompleted" | "TaskFailed" => _ = ends.insert(attempt(), event),
            _ => {}
        }
    }
    assert_eq!(groups, FLOWS, "every task began under a lease");
    let mut claimed = HashSet::new();
    for (attempt, worker) in told.iter().flat_map(|told| &told.claims) {
        assert_eq!(starts.get(attempt).copied(), Some(&**worker), "{attempt:?}");
        assert!(claimed.insert(attempt), "{attempt:?} was given twice");
    }
    let mut acknowledged = HashSet::new();
    for (attempt, word) in told.iter().flat_map(|told| &told.outcomes) {
        assert!(acknowledged.insert(attempt), "{attempt:?} has two outcomes");
        let end = ends[attempt];
        match word {
            Word::Complete(output) => {
                assert_eq!(end.kind, "TaskCompleted", "{end:?}");
                assert_eq!(&end.data["result"], output);
            }
            Word::Fail(error) => {
                assert_eq!(
                    (end.kind.as_str(), end.text("error")),
                    ("TaskFailed", &**error)
                );
            }
            Word::Release => assert_eq!(end.text("reason"), "released", "{end:?}"),
        }
    }
    let lost = ends
        .values()
        .filter(|end| end.text("reason") == "interrupted");
    let late: usize = told.iter().map(|told| told.late).sum();
    println!(
        "{} attempts, {} acknowledged outcomes, {} leases lost, {late} outcomes too late",
        starts.len(),
        acknowledged.len(),
        lost.count()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_lose_nothing_when_their_server_is_killed() {
    let folder = Folder::new();
    let mut server = Server::start(&folder).await;
    let (shared, working) = begin(vec![server.api.clone()]).await;
    for _ in 0..3 {
        shared.more(OUTCOMES).await;
        server.kill().await;
        server = Server::start(&folder).await;
        shared.meet(vec![server.api.clone()]);
    }
    finish(&folder, shared, working).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_lose_nothing_when_a_node_is_killed() {
    let mut cluster = Cluster::of(3).await;
    let (shared, working) = begin(cluster.apis()).await;
    shared.more(OUTCOMES).await;
    cluster.nodes.pop().unwrap().kill().await;
    shared.meet(cluster.apis());
    shared.more(OUTCOMES).await;
    cluster.nodes.push(Server::start(&cluster.folder).await);
    shared.meet(cluster.apis());
    finish(&cluster.folder, shared, working).await;
    for node in cluster.nodes {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_lose_nothing_when_a_node_stands_still_past_its_leases() {
    let cluster = Cluster::of(3).await;
    let (shared, working) = begin(cluster.apis()).await;
    shared.more(OUTCOMES).await;
    let apis = cluster.apis();
    cluster.nodes[2].pause();
    shared.meet(apis[..2].to_vec());
    taskledger_testkit::cluster::settled(&apis[0], 2).await;
    shared.more(OUTCOMES).await;
    cluster.nodes[2].resume();
    cluster.settled(3).await;
    shared.meet(apis);
    finish(&cluster.folder, shared, working).await;
    for node in cluster.nodes {
        node.stop().await;
    }
}
