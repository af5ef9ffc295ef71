//! Agents of the broker that die, stand still and come back, requesters that reconnect, and servers that are killed:
//! what became of every publication is counted from outside.
//!
//! Every publication that was acknowledged has one result at its requester, with the same content however often it is
//! told; a result that an agent was told was taken is the one that the requester has; nobody is told of what it has not
//! published; deadlines hold within a second, but for the time in which no server could act. The log has one end of
//! each task, and on one server agents were given tasks by priority and age (`claims`).
//!
//! `TASKLEDGER_BROKER_TASKS` says how many tasks there are, and `TASKLEDGER_TEST_PROGRAM` names another build of the
//! server. With as many tasks as take longer than tests may, without the limits of nextest:
//!
//!     cargo build --release -p taskledger
//!     TASKLEDGER_BROKER_TASKS=100000 TASKLEDGER_TEST_PROGRAM=target/release/taskledger \
//!         cargo test -p taskledger --test whole -- --nocapture \
//!         faults::broker::nothing_published_is_lost_when_the_server

mod agent;
mod claims;
mod order;
mod requester;

use crate::faults::seed;
use agent::Agent;
use claims::Claims;
use requester::{Publication, Requester};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::error::Error as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use taskledger::clock::{Clock, SystemClock};
use taskledger_eventbus::{EventBusClient, TaskResult, TaskStatus};
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::log::{self, Dense, Started};
use taskledger_testkit::random::Random;
use taskledger_testkit::server::{Api, Folder, Server};
use tokio::time::{Instant, sleep};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

const REQUESTERS: u64 = 8;
const AGENTS: u64 = 16;
/// Tasks of one server, and of three that share a machine and a database.
const TASKS: usize = 2_000;
const TASKS_OF_NODES: usize = 480;
/// Before somebody else is asked.
const PAUSE: Duration = Duration::from_millis(20);
/// For a connection.
const CONNECT: Duration = Duration::from_secs(2);
/// How often it is shown how far things are.
const SHOW_EVERY: Duration = Duration::from_secs(5);
/// Longer than nothing may end while something is left: leases of 30 s, and what is tried again behind them.
const STANDSTILL: Duration = Duration::from_secs(90);
/// How late the end by a deadline may be, in microseconds.
const LATE_US: i64 = 1_000_000;
/// A deadline that is missed by more has been forgotten: a loaded machine alone is not as slow.
const LATE_US_MAX: i64 = 30_000_000;
/// How long after a kill flows are being loaded, or taken over by another node, in microseconds; and for each task.
const RECOVERY_US: i64 = 15_000_000;
const RECOVERY_OF_TASK_US: i64 = 200;

type Client = EventBusClient<Channel>;

/// What all share.
struct World {
    clock: SystemClock,
    urls: RwLock<Vec<String>>,
    is_over: AtomicBool,
    /// Results that requesters have got, each counted once.
    results: AtomicUsize,
    /// Publications that were acknowledged.
    publications: AtomicUsize,
    /// Results that agents were told were taken.
    taken: Mutex<HashMap<String, Content>>,
    /// How long after a kill flows are being loaded, in microseconds.
    recovery_us: i64,
    /// When servers were killed, and when flows were loaded again.
    outages: Mutex<Vec<(i64, i64)>>,
}

/// What an agent says of a task, and its requester is told.
#[derive(Debug, Clone, PartialEq)]
struct Content {
    status: i32,
    result: Option<prost_types::Struct>,
    error: String,
    executor: String,
}

impl Content {
    fn of(result: &TaskResult) -> Self {
        // Whoever has lost a task may cancel it still, and is not the one that had begun it last.
        let is_cancelled = result.status() == TaskStatus::Cancelled;
        let executor = if is_cancelled {
            String::new()
        } else {
            result.executor_agent_id.clone()
        };
        Self {
            status: result.status,
            result: result.result.clone(),
            error: result.error_message.clone(),
            executor,
        }
    }
}

impl World {
    fn over(nodes: &[Api], tasks: usize) -> Arc<Self> {
        let world = Self {
            clock: SystemClock::default(),
            urls: RwLock::default(),
            is_over: AtomicBool::new(false),
            results: AtomicUsize::new(0),
            publications: AtomicUsize::new(0),
            taken: Mutex::default(),
            recovery_us: RECOVERY_US + RECOVERY_OF_TASK_US * i64::try_from(tasks).unwrap(),
            outages: Mutex::default(),
        };
        world.meet(nodes);
        Arc::new(world)
    }

    fn meet(&self, nodes: &[Api]) {
        let urls = nodes
            .iter()
            .map(|api| api.url.trim_end_matches('/').to_owned());
        *self.urls.write().unwrap() = urls.collect();
    }

    fn now(&self) -> i64 {
        self.clock.now().0
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// A connection to some node.
    async fn connect(&self, random: &mut Random) -> Client {
        loop {
            let url = {
                let urls = self.urls.read().unwrap();
                urls[random.index(&urls)].clone()
            };
            let endpoint = Endpoint::from_shared(url).unwrap().connect_timeout(CONNECT);
            if let Ok(channel) = endpoint.connect().await {
                return EventBusClient::new(channel);
            }
            sleep(PAUSE).await;
        }
    }

    /// An agent was told that this was taken.
    fn is_taken(&self, result: &TaskResult) {
        let content = Content::of(result);
        let mut taken = self.taken.lock().unwrap();
        let first = taken.entry(result.task_id.clone());
        let first = first.or_insert_with(|| content.clone());
        assert_eq!(*first, content, "two results of {}", result.task_id);
    }

    /// When the end by a deadline is due: later if nobody could act.
    fn due(&self, deadline: i64) -> i64 {
        let outages = self.outages.lock().unwrap();
        let mut within = outages
            .iter()
            .filter(|(from, to)| (from - LATE_US..=*to).contains(&deadline));
        within.next_back().map_or(deadline, |(_, to)| *to)
    }

    /// Waits until so many publications were acknowledged.
    async fn published(&self, publications: usize) {
        Self::reach(&self.publications, publications).await;
    }

    /// Waits until so many results have arrived.
    async fn told(&self, results: usize) {
        Self::reach(&self.results, results).await;
    }

    async fn reach(count: &AtomicUsize, wanted: usize) {
        let (mut seen, mut since) = (0, Instant::now());
        let mut shown = Instant::now();
        loop {
            let now = count.load(Ordering::Relaxed);
            if shown.elapsed() > SHOW_EVERY {
                println!("{now} of {wanted}");
                shown = Instant::now();
            }
            if now >= wanted {
                return;
            }
            if now > seen {
                (seen, since) = (now, Instant::now());
            }
            assert!(
                since.elapsed() < STANDSTILL,
                "{now} of {wanted} have arrived"
            );
            sleep(PAUSE).await;
        }
    }
}

/// Whether a call may be made again: nobody knows what became of it, or the server has no time. Faults of the server
/// itself may not be.
fn passes(status: &Status) -> bool {
    status.source().is_some()
        || matches!(
            status.code(),
            Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Cancelled
        )
}

fn tasks(unless_given: usize) -> usize {
    let given = std::env::var("TASKLEDGER_BROKER_TASKS");
    given.map_or(unless_given, |text| text.parse().expect("a number"))
}

/// When a server is killed.
#[derive(Debug, Clone, Copy)]
enum When {
    /// Half of the tasks are published.
    Publishing,
    /// Half of the results are told.
    Working,
}

/// Who is at work.
struct Running {
    world: Arc<World>,
    tasks: usize,
    begun: Instant,
    agents: Vec<tokio::task::JoinHandle<usize>>,
    requesters: Vec<Requester>,
}

impl Running {
    fn begin(nodes: &[Api], tasks: usize) -> Self {
        let (world, seed) = (World::over(nodes, tasks), seed());
        // Neighbouring seeds would give the same numbers, one later.
        let random = |n: u64| Random::new(seed ^ Random::new(n).next());
        let agents = (0..AGENTS).map(|n| {
            let agent = Agent::new(n, random(n), world.clone());
            tokio::spawn(agent.work())
        });
        let agents = agents.collect();
        let each = tasks / REQUESTERS as usize;
        let requesters = (0..REQUESTERS).map(|n| {
            let random = random(AGENTS + n);
            Requester::begin(n, each, random, world.clone())
        });
        Self {
            requesters: requesters.collect(),
            tasks: each * REQUESTERS as usize,
            begun: Instant::now(),
            agents,
            world,
        }
    }

    async fn reach(&self, when: When) {
        match when {
            When::Publishing => self.world.published(self.tasks / 2).await,
            When::Working => self.world.told(self.tasks / 2).await,
        }
    }

    /// Notes that no server, or not every one, could act.
    fn was_away(&self, since: i64) {
        let outage = (since, self.world.now() + self.world.recovery_us);
        self.world.outages.lock().unwrap().push(outage);
    }

    /// Waits for the rest, and compares what everybody was told.
    async fn check(self, api: &Api) {
        let world = &self.world;
        world.told(self.tasks).await;
        let seconds = self.begun.elapsed().as_secs_f64();
        world.is_over.store(true, Ordering::Relaxed);
        let (mut published, mut results) = (HashMap::new(), HashMap::new());
        let (mut repeated, mut sent) = (0, 0);
        for requester in self.requesters {
            let told = requester.end().await;
            repeated += told.repeated;
            sent += told.sent;
            for (id, result) in told.results {
                assert!(told.published.contains_key(&id), "{id} is somebody else's");
                results.insert(id, result);
            }
            published.extend(told.published);
        }
        let mut given = 0;
        for agent in self.agents {
            given += agent.await.unwrap();
        }
        let lost: Vec<&String> = published
            .keys()
            .filter(|id| !results.contains_key(*id))
            .collect();
        assert!(lost.is_empty(), "{} are lost: {lost:?}", lost.len());
        let taken = world.taken.lock().unwrap().clone();
        for (id, content) in &taken {
            assert_eq!(Content::of(&results[id]), *content, "{id}");
        }
        let mut ended_late = 0;
        let mut latest = 0;
        for (id, publication) in &published {
            if let Some(late) = lateness(world, publication, &results[id]) {
                ended_late += 1;
                latest = latest.max(late);
            }
        }
        let of_agents: HashSet<&String> = taken.keys().collect();
        println!(
            "{} tasks in {seconds:.1} s; {sent} publications sent, {given} deliveries, {} results taken, {repeated} \
             results told again, {ended_late} deadlines, the latest {latest} us behind",
            published.len(),
            of_agents.len()
        );
        let left = json!({"status": "in_progress", "limit": 1});
        assert_eq!(api.call("tasks.list", left).await["total"], 0);
        let all = api.call("tasks.list", json!({"limit": 1})).await;
        assert_eq!(all["total"], published.len());
    }
}

/// How far behind its deadline a task was ended by it, in microseconds; `None`: it was not.
fn lateness(world: &World, publication: &Publication, result: &TaskResult) -> Option<i64> {
    let deadline = publication.deadline?;
    let at = result.completed_at.unwrap();
    let at = at.seconds * 1_000_000 + i64::from(at.nanos) / 1000;
    if result.status() != TaskStatus::Failed || result.error_message != "DEADLINE_EXCEEDED" {
        assert!(at <= deadline + LATE_US_MAX, "{result:?} came too late");
        return None;
    }
    // One that had passed already ends when it is published.
    let deadline = deadline.max(publication.acknowledged_at);
    let due = world.due(deadline);
    assert!(
        at <= due + LATE_US_MAX,
        "{result:?} is {} us late",
        at - deadline
    );
    Some(if due == deadline { at - deadline } else { 0 })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_published_is_lost_when_the_server_is_killed() {
    let folder = Folder::new();
    let mut server = Server::start(&folder).await;
    let running = Running::begin(std::slice::from_ref(&server.api), tasks(TASKS));
    for kill in [When::Publishing, When::Working] {
        running.reach(kill).await;
        let since = running.world.now();
        server.kill().await;
        server = Server::start(&folder).await;
        running.world.meet(std::slice::from_ref(&server.api));
        running.was_away(since);
    }
    let world = running.world.clone();
    running.check(&server.api).await;
    server.stop().await;
    let mut claims = Claims::of(&world);
    each_ended_once(&folder, |event| claims.check(event)).await;
    println!("{}", claims.end());
}

/// Each task that was created has one end in the log, and no attempt is there twice. `also` is told of each event.
async fn each_ended_once(folder: &Folder, mut also: impl FnMut(&log::Event)) {
    let (mut dense, mut started) = (Dense::default(), Started::default());
    let mut ends: HashMap<String, usize> = HashMap::new();
    log::read(folder, |event| {
        dense.check(&event);
        started.check(&event);
        also(&event);
        let ends = match event.kind.as_str() {
            "TaskCreated" => ends.entry(event.task().to_owned()).or_default(),
            "TaskCompleted" | "TaskFailed" | "TaskCancelled" => {
                ends.get_mut(event.task()).expect("it was created before")
            }
            _ => return,
        };
        let will_retry = event.data["will_retry"].as_bool().unwrap_or_default();
        *ends += usize::from(event.kind != "TaskCreated" && !will_retry);
    })
    .await;
    for (task, ends) in ends {
        assert_eq!(ends, 1, "{task}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_published_is_lost_when_two_of_three_nodes_are_killed_on_postgres() {
    let mut cluster = Cluster::of(3).await;
    let running = Running::begin(&cluster.apis(), tasks(TASKS_OF_NODES));
    for kill in [When::Publishing, When::Working] {
        running.reach(kill).await;
        let since = running.world.now();
        cluster.nodes.pop().unwrap().kill().await;
        running.world.meet(&cluster.apis());
        running.was_away(since);
    }
    let api = cluster.nodes[0].api.clone();
    running.check(&api).await;
    each_ended_once(&cluster.folder, |_| ()).await;
    for node in cluster.nodes {
        node.stop().await;
    }
}
