//! Tasks that take inputs from results, declare outputs and ask people, while servers are killed at random moments.
//!
//! Afterwards the log is read: every flow has completed, each task has one result, which keeps its declaration and
//! is what was acknowledged; each attempt was given what the results before it say; each question was asked once
//! and has one answer, the one that was acknowledged; and nothing waits.

use crate::faults::seed;
use crate::faults::workers::{END, NOT_HELD, PAUSE, Shared};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::log::{self, Event};
use taskledger_testkit::random::Random;
use taskledger_testkit::server::{Api, FAILED, Folder, NoResult, Refusal, Server, TOO_BUSY};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

const WORKERS: u64 = 6;
/// People, each of whom answers whatever is asked.
const PEOPLE: u64 = 2;
const FLOWS: usize = 50;
/// The shortest lease that there is.
const LEASE_SECONDS: u64 = 5;
/// Kills of the only server.
const KILLS: usize = 8;
/// Kills of one of two: each time the other one waits for seconds until leases of partitions are over.
const KILLS_OF_NODES: usize = 3;
/// Outcomes and answers between two kills, at most.
const STEPS_MAX: u64 = 30;
/// For them: longer than flows of a node that was killed wait for another one.
const STEPS_TIMEOUT: Duration = Duration::from_secs(20);
/// After the last of them, at most, until the kill.
const MOMENT_MAX_MICROS: u64 = 60_000;
/// A result lacks what is declared; has another type.
const MISSING_OUTPUT: i64 = -31024;
const OTHER_TYPE: i64 = -31025;
/// The task does not wait for this answer.
const NOT_SUSPENDED: i64 = -31011;
const METHODS: [&str; 3] = ["fetch", "ask", "book"];

/// An attempt, by its task and number.
type Attempt = (String, u64);

/// What workers and people were told.
#[derive(Debug, Default)]
struct Told {
    /// What attempts were given.
    inputs: Vec<(Attempt, Value)>,
    /// Results that were acknowledged, by task.
    results: Vec<(String, Value)>,
    /// Results that were refused for what is declared.
    rejected: usize,
    /// Waits that were acknowledged, by task.
    waits: Vec<(String, String)>,
    /// Answers that were acknowledged, by wait.
    answers: Vec<(String, Value)>,
    /// Answers that came after another one.
    refused: Vec<(String, Value)>,
}

/// Somebody who works or answers, until it is over.
struct Caller {
    name: String,
    random: Random,
    shared: Arc<Shared>,
    told: Told,
}

fn passes(refusal: &Refusal) -> bool {
    matches!(refusal.code, TOO_BUSY | FAILED)
}

impl Caller {
    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed)
    }

    /// The first answer of any server to a call that is repeated until there is one.
    async fn say(&mut self, method: &str, params: &Value) -> Result<Value, Refusal> {
        loop {
            let api = self.shared.any(&mut self.random);
            match api.try_call(method, params.clone(), None).await {
                Ok(answer) => return Ok(answer),
                Err(NoResult::Refused(refusal)) if !passes(&refusal) => return Err(refusal),
                Err(NoResult::Refused(_) | NoResult::Broken) => sleep(PAUSE).await,
            }
        }
    }

    async fn work(mut self) -> Told {
        while !self.is_over() {
            let api = self.shared.any(&mut self.random);
            let method = METHODS[self.random.index(&METHODS)];
            let claim = json!({"worker": self.name, "methods": [method], "max": 2,
                "lease_seconds": LEASE_SECONDS});
            match api.try_call("tasks.claim", claim, None).await {
                Ok(mut claimed) => {
                    let claims = claimed["claims"].as_array_mut().unwrap();
                    if claims.is_empty() {
                        sleep(PAUSE).await;
                    }
                    for claim in claims {
                        self.attempt(claim.take()).await;
                    }
                }
                Err(NoResult::Broken) => sleep(PAUSE).await,
                Err(NoResult::Refused(refusal)) => {
                    assert!(passes(&refusal), "{refusal:?}");
                    sleep(PAUSE).await;
                }
            }
        }
        self.told
    }

    async fn attempt(&mut self, claim: Value) {
        let task = claim["task"]["id"].as_str().unwrap().to_owned();
        let number = claim["lease"]["attempt"].as_u64().unwrap();
        let input = &claim["input"];
        self.told
            .inputs
            .push(((task.clone(), number), input.clone()));
        let mut held = json!({"task_id": task, "lease": claim["lease"]["token"]});
        match claim["task"]["name"].as_str().unwrap() {
            "fetch" => {
                let n = self.random.below(1000);
                if self.random.below(3) == 0 {
                    self.is_rejected(&held, json!({"n": n}), MISSING_OUTPUT)
                        .await;
                    let text = json!({"n": n.to_string(), "items": []});
                    self.is_rejected(&held, text, OTHER_TYPE).await;
                }
                let output = json!({"n": n, "items": [format!("first of {n}")], "by": self.name});
                self.complete(held, output).await;
            }
            "ask" => match claim["context"]["answers"].as_array().map(Vec::as_slice) {
                None => {
                    let choices = json!([{"value": "a", "label": "The first"}, {"value": "b"}]);
                    held["request"] = json!({"question": "Which?", "response_type": "choice",
                        "choices": choices, "context": input});
                    self.suspend(task, held).await;
                }
                Some([answer]) => {
                    let output = json!({"choice": answer["value"]});
                    self.complete(held, output).await;
                }
                Some(more) => panic!("{more:?} answers to one question"),
            },
            _ => {
                let output = json!({"text": input.to_string()});
                self.complete(held, output).await;
            }
        }
    }

    /// Unless the lease is lost by now.
    async fn is_rejected(&mut self, held: &Value, output: Value, code: i64) {
        let mut params = held.clone();
        params["output"] = output;
        let refusal = self.say("tasks.complete", &params).await.unwrap_err();
        assert!(
            matches!(refusal.code, c if c == code || c == NOT_HELD),
            "{refusal:?}"
        );
        self.told.rejected += usize::from(refusal.code == code);
    }

    async fn complete(&mut self, mut held: Value, output: Value) {
        held["output"] = output.clone();
        match self.say("tasks.complete", &held).await {
            Ok(answer) => {
                assert_eq!(answer["status"], "completed");
                let task = held["task_id"].as_str().unwrap().to_owned();
                self.told.results.push((task, output));
                self.shared.outcomes.fetch_add(1, Ordering::Relaxed);
            }
            Err(refusal) => assert_eq!(refusal.code, NOT_HELD, "{refusal:?}"),
        }
    }

    async fn suspend(&mut self, task: String, held: Value) {
        match self.say("tasks.suspend", &held).await {
            Ok(waits) => {
                let id = waits["suspension_id"].as_str().unwrap();
                self.told.waits.push((task, id.to_owned()));
                self.shared.outcomes.fetch_add(1, Ordering::Relaxed);
            }
            Err(refusal) => assert_eq!(refusal.code, NOT_HELD, "{refusal:?}"),
        }
    }

    async fn answer(mut self) -> Told {
        while !self.is_over() {
            let open = json!({"suspended": true, "limit": 20});
            let list = self.say("tasks.list", &open).await.unwrap();
            let mut tasks = list["tasks"].as_array().unwrap().clone();
            if tasks.is_empty() {
                sleep(PAUSE).await;
            }
            while !tasks.is_empty() {
                let task = tasks.swap_remove(self.random.index(&tasks));
                self.respond(&task).await;
            }
        }
        self.told
    }

    async fn respond(&mut self, task: &Value) {
        let waits = &task["suspension"];
        let value = match waits["question"]["response_type"].as_str() {
            Some("choice") => json!(["a", "b"][self.random.index(&["a", "b"])]),
            _ => json!(self.random.below(2) == 0),
        };
        let id = waits["suspension_id"].as_str().unwrap().to_owned();
        let params = json!({"task_id": task["id"], "suspension_id": id, "value": value});
        match self.say("tasks.respond", &params).await {
            Ok(answer) => {
                assert_eq!(answer["value"], value);
                self.told.answers.push((id, value));
                self.shared.outcomes.fetch_add(1, Ordering::Relaxed);
            }
            Err(refusal) => {
                assert_eq!(refusal.code, NOT_SUSPENDED, "{refusal:?}");
                self.told.refused.push((id, value));
            }
        }
    }
}

/// A tree in which each task uses what others have found or people have said.
fn flow() -> Value {
    let remote = |name: &str, wiring: Value, outputs: Value, on: &[&str]| {
        let on: Vec<Value> = on.iter().map(|id| json!({"id": id})).collect();
        json!({"id": name, "name": name, "parent_id": "flow", "dependencies": on,
            "inputs": {"literal": name},
            "schemas": {"method": name, "type": "remote", "wiring": wiring, "outputs": outputs}})
    };
    json!([
        {"id": "flow", "name": "flow"},
        remote("fetch", json!({}), json!({"n": "integer", "items": "array"}), &[]),
        remote("ask", json!({"n": "fetch.n", "first": "fetch.items#/0",
            "note": {"from": "fetch.note", "default": "none"}}), json!({"choice": "string"}), &["fetch"]),
        {"id": "approve", "name": "approve", "parent_id": "flow", "dependencies": [{"id": "fetch"}],
         "inputs": {"question": "Go on?", "response_type": "confirm", "on_reject": "complete"},
         "schemas": {"method": "approval_executor", "wiring": {"context": "fetch#"},
            "outputs": {"approved": "boolean", "responded_by": "string"}}},
        remote("book", json!({"n": "fetch.n", "choice": "ask.choice", "approved": "approve.approved",
            "left_out": {"from": "ask.other", "required": false}}),
            json!({"text": "string", "seat": {"type": "integer", "required": false}}),
            &["fetch", "ask", "approve"]),
    ])
}

/// The flows, and who works on them.
struct World {
    seed: u64,
    shared: Arc<Shared>,
    working: Vec<JoinHandle<Told>>,
    /// Names and ids of the tasks of each flow.
    flows: Vec<BTreeMap<String, String>>,
}

impl World {
    async fn begin(nodes: Vec<Api>) -> Self {
        let seed = seed();
        let api = nodes[0].clone();
        let shared = Shared::over(nodes);
        let mut flows = Vec::new();
        for _ in 0..FLOWS {
            let made = api.call("tasks.execute", json!({"tasks": flow()})).await;
            flows.push(serde_json::from_value(made["task_ids"].clone()).unwrap());
        }
        let caller = |n: u64| Caller {
            name: format!("caller {n}"),
            random: Random::new(seed.wrapping_add(n.wrapping_mul(0x9e37_79b9))),
            shared: shared.clone(),
            told: Told::default(),
        };
        let workers = (0..WORKERS).map(|n| tokio::spawn(caller(n).work()));
        let people = (WORKERS..WORKERS + PEOPLE).map(|n| tokio::spawn(caller(n).answer()));
        Self {
            seed,
            working: workers.chain(people).collect(),
            shared,
            flows,
        }
    }

    /// Lets some work be done, up to a random moment; waits no longer when little is left.
    async fn until_a_moment(&self, random: &mut Random) {
        let steps = 1 + random.below(STEPS_MAX);
        let steps = self.shared.more(usize::try_from(steps).unwrap());
        let _ = timeout(STEPS_TIMEOUT, steps).await;
        sleep(Duration::from_micros(random.below(MOMENT_MAX_MICROS))).await;
    }

    /// Lets them finish, and looks at what is left.
    async fn finish(self, folder: &Folder, api: &Api) {
        let until = Instant::now() + END;
        let events = loop {
            let events = log::export(folder).await;
            let ended = events.iter().filter(|event| event.kind == "RunEnded");
            if ended.count() == FLOWS {
                break events;
            }
            if Instant::now() > until {
                self.shared.is_over.store(true, Ordering::Relaxed);
                let left = api
                    .call("tasks.list", json!({"status": "in_progress"}))
                    .await;
                panic!("not every run has ended: {left}");
            }
            sleep(PAUSE * 10).await;
        };
        for left in [json!({"suspended": true}), json!({"status": "in_progress"})] {
            assert_eq!(api.call("tasks.list", left).await["total"], 0);
        }
        self.shared.is_over.store(true, Ordering::Relaxed);
        let mut told = Vec::new();
        for caller in self.working {
            told.push(caller.await.unwrap());
        }
        check(&events, &self.flows, &told);
    }
}

/// What the log says of tasks and questions.
#[derive(Default)]
struct Found<'a> {
    results: HashMap<&'a str, &'a Value>,
    /// Task and question of each wait.
    waits: HashMap<&'a str, (&'a str, &'a Value)>,
    answers: HashMap<&'a str, &'a Value>,
    starts: HashSet<(&'a str, u64)>,
    rejected: usize,
}

impl<'a> Found<'a> {
    fn in_log(events: &'a [Event]) -> Self {
        let mut found = Self::default();
        for event in events {
            match event.kind.as_str() {
                "TaskStarted" => {
                    let attempt = event.data["attempt"].as_u64().unwrap();
                    found.starts.insert((event.task(), attempt));
                }
                "TaskCompleted" => {
                    let before = found.results.insert(event.task(), &event.data["result"]);
                    assert_eq!(before, None, "a second result: {event:?}");
                }
                "TaskSuspended" => {
                    let asked = (event.task(), &event.data["question"]);
                    let before = found.waits.insert(event.text("suspension_id"), asked);
                    assert_eq!(before, None, "asked twice: {event:?}");
                }
                "TaskAnswered" => {
                    let answer = &event.data["answer"]["value"];
                    let before = found.answers.insert(event.text("suspension_id"), answer);
                    assert_eq!(before, None, "a second answer: {event:?}");
                }
                "TaskCompletionRejected" => found.rejected += 1,
                "RunEnded" => assert_eq!(event.data["state"], "completed", "{event:?}"),
                _ => {}
            }
        }
        found
    }

    /// The answer to the only question of a task.
    fn answer(&self, task: &str) -> &'a Value {
        let asked = self.waits.iter().filter(|(_, (of, _))| *of == task);
        let [(wait, _)] = asked.collect::<Vec<_>>()[..] else {
            panic!("{task} was not asked once");
        };
        self.answers[wait]
    }
}

fn check(events: &[Event], flows: &[BTreeMap<String, String>], told: &[Told]) {
    log::assert_dense(events);
    log::assert_started_in_order(events);
    let found = Found::in_log(events);
    let mut given: HashMap<&str, Value> = HashMap::new();
    for flow in flows {
        let task = |name: &str| flow[name].as_str();
        let result = |name: &str| found.results[task(name)];
        let fetched = result("fetch");
        let (choice, approved) = (found.answer(task("ask")), found.answer(task("approve")));
        assert!(
            fetched["n"].is_u64() && fetched["items"].is_array(),
            "{fetched}"
        );
        assert_eq!(result("ask"), &json!({"choice": choice}));
        assert_eq!(&result("approve")["approved"], approved);
        given.insert(task("fetch"), json!({"literal": "fetch"}));
        let asks = json!({"literal": "ask", "n": fetched["n"], "first": fetched["items"][0],
            "note": "none"});
        given.insert(task("ask"), asks.clone());
        let books = json!({"literal": "book", "n": fetched["n"], "choice": choice,
            "approved": approved});
        assert_eq!(result("book"), &json!({"text": books.to_string()}));
        given.insert(task("book"), books);
        let questions = |name: &str| {
            let mut waits = found.waits.values();
            waits.find(|(of, _)| *of == task(name)).unwrap().1
        };
        assert_eq!(questions("ask")["context"], asks);
        assert_eq!(&questions("approve")["context"], fetched);
    }
    assert_eq!(found.answers.len(), found.waits.len());
    for told in told {
        for ((task, attempt), input) in &told.inputs {
            assert!(found.starts.contains(&(task.as_str(), *attempt)));
            assert_eq!(input, &given[task.as_str()], "{task} attempt {attempt}");
        }
        for (task, result) in &told.results {
            assert_eq!(result, found.results[task.as_str()], "{task}");
        }
        for (task, wait) in &told.waits {
            assert_eq!(task, found.waits[wait.as_str()].0);
        }
        for (wait, answer) in &told.answers {
            assert_eq!(answer, found.answers[wait.as_str()], "{wait}");
        }
        for (wait, answer) in &told.refused {
            assert_ne!(answer, found.answers[wait.as_str()], "{wait}");
        }
    }
    let sum = |of: fn(&Told) -> usize| told.iter().map(of).sum::<usize>();
    let rejected = sum(|told| told.rejected);
    assert!(found.rejected >= rejected, "each refusal is in the log");
    println!(
        "{} events, {rejected} results rejected, {} answers acknowledged, {} refused",
        events.len(),
        sum(|told| told.answers.len()),
        sum(|told| told.refused.len())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_results_and_declarations_outlive_kills_of_their_server() {
    let folder = Folder::new();
    let mut server = Server::start(&folder).await;
    let world = World::begin(vec![server.api.clone()]).await;
    let mut random = Random::new(world.seed);
    for _ in 0..KILLS {
        world.until_a_moment(&mut random).await;
        server.kill().await;
        server = Server::start(&folder).await;
        world.shared.meet(vec![server.api.clone()]);
    }
    world.finish(&folder, &server.api).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_results_and_declarations_outlive_kills_of_their_nodes() {
    let mut cluster = Cluster::of(2).await;
    let world = World::begin(cluster.apis()).await;
    let mut random = Random::new(world.seed);
    for _ in 0..KILLS_OF_NODES {
        world.until_a_moment(&mut random).await;
        let victim = random.index(&cluster.nodes);
        cluster.nodes.remove(victim).kill().await;
        world.shared.meet(cluster.apis());
        cluster.nodes.push(Server::start(&cluster.folder).await);
        world.shared.meet(cluster.apis());
    }
    world.finish(&cluster.folder, &cluster.nodes[0].api).await;
    for node in cluster.nodes {
        node.stop().await;
    }
}
