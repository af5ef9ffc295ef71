//! Random calls of one user: what is answered and told is the same whether another user exists or not. Among them are
//! calls about what users keep beside tasks, and tasks that wait for workers while the other user's wait for the same
//! method.
//!
//! What differs between two plays of one script stays out: secrets of webhooks and tokens, whose texts are random; what
//! nobody's `last asked` tells, so that each task for a worker has a method of its own, which both users use.

use super::world::{Callers, Nodes, World, user, usual};
use crate::alike::normal::Normal;
use serde_json::{Value, json};
use std::ops::Range;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Calls of Bob in one script.
const CALLS: usize = 100;
/// Scripts on SQLite.
const SEEDS: Range<u64> = 0..4;
/// Others, which the nodes of a database play one after the other.
const SEEDS_ON_NODES: Range<u64> = 4..7;
/// Longer than a run of two short tasks takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than nodes take to hear of what another one was told.
const HEARD: Duration = Duration::from_millis(2_500);
/// Calls between two that are about what users keep beside tasks.
const KEPT_EVERY: usize = 7;
/// Calls between two tasks for workers.
const WORK_EVERY: usize = 20;
/// Calls between two questions to people.
const ASK_EVERY: usize = 25;
/// Between looks at whether a task asks its question.
const PAUSE: Duration = Duration::from_millis(20);
/// A workflow document that both users keep.
const DOCUMENT: &str =
    "openintent: \"1.0\"\ninfo: {name: flow of mine}\nworkflow:\n  fetch:\n    assign: agent\n";
/// The name of the task that ends a script.
const LAST: &str = "the last one";

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// A call, about one of these tasks if there is one.
fn call(dice: &mut Dice, tasks: &[Value], other: &str) -> (&'static str, Value) {
    let any = |dice: &mut Dice| tasks.get(dice.below(tasks.len().max(1))).cloned();
    let task = any(dice);
    let about = json!({"task_id": task});
    match (dice.below(21), &task) {
        (18, _) => ("workers.declare", declaration(dice)),
        (19, _) => ("workers.undeclare", json!({"method": method(dice)})),
        (20, _) => ("workers.methods", json!({})),
        (0 | 1, _) | (_, None) => ("tasks.create", new_task(dice)),
        (2, Some(parent)) => (
            "tasks.create",
            json!({"name": "child", "parent_id": parent}),
        ),
        (3, Some(_)) => ("tasks.cancel", about),
        (4, Some(_)) => ("tasks.delete", about),
        (5, Some(task)) => {
            let updates = json!({"name": "renamed", "priority": dice.below(4)});
            ("tasks.update", json!({"task_id": task, "updates": updates}))
        }
        (6, Some(_)) => ("tasks.copy", about),
        (7, Some(_)) => ("tasks.tree", about),
        (8, Some(_)) => ("tasks.history", about),
        (9, Some(parent)) => ("tasks.children", json!({"parent_id": parent})),
        (10, _) => {
            let filters = [
                json!({}),
                json!({"root_only": true}),
                json!({"status": "pending"}),
                json!({"user_id": other}),
                json!({"name": "child"}),
                json!({"limit": 2}),
            ];
            ("tasks.list", filters[dice.below(filters.len())].clone())
        }
        (11 | 12, Some(_)) => ("tasks.execute", about),
        (13, _) => {
            let mut task = new_task(dice);
            task["id"] = json!("new");
            ("tasks.execute", json!({"tasks": [task]}))
        }
        (14, Some(_)) => ("tasks.retry", about),
        (15 | 16, Some(_)) => ("tasks.explain", about),
        (_, Some(_)) => ("tasks.get", about),
    }
}

/// What users keep beside tasks, under the same names.
fn kept(n: usize) -> (&'static str, Value) {
    let named = json!({"name": "mine"});
    let workflow = json!({"name": "flow of mine"});
    let calls = [
        (
            "secrets.set",
            json!({"name": "mine", "value": "long enough"}),
        ),
        ("secrets.list", json!({})),
        (
            "schedules.create",
            json!({"name": "mine", "cron": "@yearly",
                "tasks": [{"name": "a", "schemas": {"method": "echo_executor"}}]}),
        ),
        ("schedules.list", json!({})),
        ("schedules.get", named.clone()),
        ("workflows.save", json!({"document": DOCUMENT})),
        ("workflows.list", json!({})),
        ("workflows.get", workflow.clone()),
        ("events.query", json!({"limit": 5})),
        (
            "webhooks.create",
            json!({"url": "https://receiver.example.com/hook", "labels": {"nobody": "has"}}),
        ),
        ("webhooks.list", json!({})),
        ("workflows.delete", workflow),
        ("schedules.delete", named.clone()),
        ("secrets.delete", named),
    ];
    calls[n % calls.len()].clone()
}

/// A task for a worker begins, under a method of its own.
async fn begins(callers: &Callers, who: &str, n: usize) -> (Value, Value) {
    let task = json!({"id": "new", "name": "by hand", "inputs": {"n": n},
        "schemas": {"type": "remote", "method": format!("by hand {n}")}});
    let params = json!({"tasks": [task]});
    let answer = answered(callers, who, "tasks.execute", &params).await;
    (params, answer)
}

/// A worker of this user takes the task and does it: what is asked and answered.
async fn done(
    callers: &Callers,
    who: &str,
    n: usize,
    task: &Value,
) -> Vec<(&'static str, Value, Value)> {
    let about = json!({"task_id": task});
    let poll = json!({"methods": [format!("by hand {n}")], "wait_seconds": 20});
    let mut shown = Vec::new();
    let mut asked = async |method, params: Value| {
        let answer = answered(callers, who, method, &params).await;
        shown.push((method, params, answer.clone()));
        answer
    };
    asked("tasks.explain", about.clone()).await;
    let claimed = asked("tasks.claim", poll).await;
    let lease = &claimed["result"]["claims"][0]["lease"]["token"];
    assert!(lease.is_string(), "{claimed}");
    let held = json!({"task_id": task, "lease": lease});
    asked("tasks.get", about).await;
    asked("tasks.renew", held.clone()).await;
    let mut outcome = held;
    outcome["output"] = json!({"n": n});
    asked("tasks.complete", outcome.clone()).await;
    asked("tasks.complete", outcome).await;
    shown
}

/// A task of this user asks a question, which somebody else does not see: what is asked and answered.
async fn asks(callers: &Callers, who: &str, other: &str) -> Vec<(&'static str, Value, Value)> {
    let task = json!({"id": "new", "name": "ask", "schemas": {"method": "approval_executor"},
        "inputs": {"question": "Send it?"}});
    let params = json!({"tasks": [task]});
    let begun = answered(callers, who, "tasks.execute", &params).await;
    let task = begun["result"]["root_task_id"].clone();
    let about = json!({"task_id": task});
    let mut shown = vec![("tasks.execute", params, begun)];
    let asked = async {
        loop {
            let task = answered(callers, who, "tasks.get", &about).await;
            let question = &task["result"]["suspension"]["suspension_id"];
            if question.is_string() {
                return question.clone();
            }
            sleep(PAUSE).await;
        }
    };
    let question = timeout(PATIENCE, asked).await.expect("it asks");
    let mut answer = json!({"task_id": task, "suspension_id": question, "value": true});
    let refused = answered(callers, other, "tasks.respond", &answer).await;
    assert_eq!(refused["error"]["code"], -32001, "{refused}");
    for _ in 0..2 {
        let told = answered(callers, who, "tasks.respond", &answer).await;
        shown.push(("tasks.respond", answer.clone(), told));
    }
    answer["value"] = false.into();
    let told = answered(callers, who, "tasks.respond", &answer).await;
    shown.push(("tasks.respond", answer, told));
    shown
}

/// A method that both users may declare.
fn method(dice: &mut Dice) -> &'static str {
    ["pay", "print"][dice.below(2)]
}

/// Most are such that tasks of another user would be refused, changed or kept from workers.
fn declaration(dice: &mut Dice) -> Value {
    let method = method(dice);
    let declarations = [
        json!({"method": method}),
        json!({"method": method, "input_schema": {"type": "object", "required": ["missing"]}}),
        json!({"method": method, "defaults": {"cancel_grace_seconds": 7}, "limit": 1}),
    ];
    declarations[dice.below(declarations.len())].clone()
}

/// One that succeeds, that fails because its result is not what it should be, that nobody can run, or that waits for a
/// worker for a second if its method is declared. None tells of its
/// progress, which would depend on the time that it takes.
fn new_task(dice: &mut Dice) -> Value {
    if dice.below(8) == 0 {
        return json!({"name": "for a worker", "inputs": {"n": dice.below(5)},
            "schemas": {"method": method(dice)}, "params": {"schedule_to_start_seconds": 1}});
    }
    let schemas = match dice.below(6) {
        0..=2 => json!({"method": "echo_executor"}),
        3 | 4 => json!({"method": "echo_executor", "outputs": {"missing": "string"}}),
        _ => json!({"method": "no_such_executor"}),
    };
    json!({"name": format!("task {}", dice.below(5)), "inputs": {"n": dice.below(5)},
        "schemas": schemas})
}

/// What a user is told of all his flows.
struct Notices {
    response: reqwest::Response,
    read: String,
    /// Name and data of each.
    told: Vec<(String, Value)>,
}

impl Notices {
    async fn open(callers: &Callers, name: &str) -> Self {
        let request = callers.client.get(format!("{}/events", callers.url()));
        let response = callers.as_caller(request, Some(name)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self {
            response,
            read: String::new(),
            told: Vec::new(),
        }
    }

    /// Reads on until a notice is it.
    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) {
        let soon = timeout(PATIENCE, self.read_until(is_it));
        soon.await.expect("it is told");
    }

    async fn read_until(&mut self, is_it: impl Fn(&Value) -> bool) {
        loop {
            while let Some((event, rest)) = self.read.split_once("\n\n") {
                let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let notice = line("event: ").zip(line("data: "));
                let notice = notice.map(|(name, data)| {
                    (
                        name.to_owned(),
                        serde_json::from_str::<Value>(data).unwrap(),
                    )
                });
                self.read = rest.to_owned();
                let Some(notice) = notice else { continue };
                let is_last = is_it(&notice.1);
                self.told.push(notice);
                if is_last {
                    return;
                }
            }
            let piece = self.response.chunk().await.unwrap();
            let piece = piece.expect("the stream goes on");
            self.read.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

/// What a call is answered, without a secret.
async fn answered(callers: &Callers, name: &str, method: &str, params: &Value) -> Value {
    let (_, text) = callers.ask(Some(name), method, params).await;
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    if let Some(result) = answer["result"].as_object_mut() {
        result.remove("secret");
    }
    answer
}

/// The tasks that an answer has made.
fn made(answer: &Value) -> impl Iterator<Item = Value> {
    let result = &answer["result"];
    let of_run = result.get("run_id").and(result.get("root_task_id"));
    result.get("id").or(of_run).cloned().into_iter()
}

/// Plays a script of Bob, with Ann doing things in between or not, and shows what he is answered and told.
async fn played(callers: &Callers, seed: u64, with_ann: bool) -> Vec<String> {
    let (me, other) = (bob(seed), ann(seed));
    let (mut bob, mut ann) = (Dice(seed), Dice(seed + 1000));
    let (mut own, mut hers) = (Vec::new(), Vec::new());
    let mut normal = Normal::new(&me);
    let mut shown = Vec::new();
    let mut notices = Notices::open(callers, &me).await;
    for n in 0..CALLS {
        if n % KEPT_EVERY == 0 {
            let (method, params) = kept(n / KEPT_EVERY);
            if with_ann {
                answered(callers, &other, method, &params).await;
            }
            let answer = answered(callers, &me, method, &params).await;
            let asked = normal.value(params);
            shown.push(format!("{method} {asked}: {}", normal.value(answer)));
        }
        if n % WORK_EVERY == 0 {
            let mut waiting = Value::Null;
            if with_ann {
                let (_, begun) = begins(callers, &other, n).await;
                waiting = begun["result"]["root_task_id"].clone();
            }
            let (params, answer) = begins(callers, &me, n).await;
            let (task, run) = (
                &answer["result"]["root_task_id"],
                answer["result"]["run_id"].clone(),
            );
            let mut calls = done(callers, &me, n, task).await;
            notices.until(|told| told["run"]["id"] == run).await;
            calls.insert(0, ("tasks.execute", params, answer));
            for (method, params, answer) in calls {
                let asked = normal.value(params);
                shown.push(format!("{method} {asked}: {}", normal.value(answer)));
            }
            if with_ann {
                done(callers, &other, n, &waiting).await;
            }
        }
        if n % ASK_EVERY == 0 {
            if with_ann {
                asks(callers, &other, &me).await;
            }
            let calls = asks(callers, &me, &other).await;
            let run = calls[0].2["result"]["run_id"].clone();
            notices.until(|told| told["run"]["id"] == run).await;
            for (method, params, answer) in calls {
                let asked = normal.value(params);
                shown.push(format!("{method} {asked}: {}", normal.value(answer)));
            }
        }
        if with_ann {
            let (method, params) = call(&mut ann, &hers, &me);
            let answer = answered(callers, &other, method, &params).await;
            hers.extend(made(&answer));
        }
        let (method, params) = call(&mut bob, &own, &other);
        let answer = answered(callers, &me, method, &params).await;
        if matches!(method, "workers.declare" | "workers.undeclare") && callers.nodes() > 1 {
            // The next call is of another node, which hears of it.
            sleep(HEARD).await;
        }
        let fresh: Vec<_> = made(&answer).filter(|id| !own.contains(id)).collect();
        own.extend(fresh);
        // His next call finds everything at rest, as it does in each play.
        if answer["result"]["run_id"].is_string() {
            let run = &answer["result"]["run_id"];
            let ends = |told: &Value| told["run"]["id"] == *run;
            notices.until(ends).await;
        }
        let asked = normal.value(params);
        let asked = asked.to_string().replace(&other, "<other>");
        shown.push(format!("{method} {asked}: {}", normal.value(answer)));
    }
    let last = json!({"name": LAST});
    let last = callers.call(&me, "tasks.create", last).await["id"].take();
    notices.until(|told| told["task_id"] == last).await;
    for (name, data) in notices.told {
        shown.push(format!("told {name}: {}", normal.value(data)));
    }
    shown
}

fn bob(seed: u64) -> String {
    format!("bob-of-{seed}")
}

fn ann(seed: u64) -> String {
    format!("ann-of-{seed}")
}

fn given_users(world: &World, seed: u64) {
    for name in [bob(seed), ann(seed)] {
        world.known.put(&name, user(&name, usual()));
    }
}

fn assert_alike(alone: &[String], beside: &[String], seed: u64) {
    for (alone, beside) in alone.iter().zip(beside) {
        assert_eq!(alone, beside, "seed {seed}");
    }
    assert_eq!(alone.len(), beside.len(), "seed {seed}");
    // Each kind of call was made, and something was told of what came of it.
    for part in [
        "tasks.execute ",
        "tasks.retry ",
        "tasks.explain ",
        "workers.declare ",
        "workers.methods ",
        "tasks.claim ",
        "tasks.complete ",
        "tasks.respond ",
        "webhooks.create ",
        "events.query ",
        "schedules.get ",
        "secrets.list ",
        "workflows.get ",
        "told task_completed",
        "told run_failed",
    ] {
        assert!(
            alone.iter().any(|line| line.starts_with(part)),
            "{part}, seed {seed}"
        );
    }
}

/// What Bob is answered and told on a server on which nobody else is.
async fn alone(seed: u64) -> Vec<String> {
    let world = World::start().await;
    given_users(&world, seed);
    let played = played(&world, seed, false).await;
    world.close().await;
    played
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_user_is_answered_and_told_does_not_depend_on_another_one() {
    for seed in SEEDS {
        let beside = World::start().await;
        given_users(&beside, seed);
        let (expected, found) = tokio::join!(alone(seed), played(&beside, seed, true));
        assert_alike(&expected, &found, seed);
        beside.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_user_is_answered_and_told_by_any_node_on_postgres_does_not_depend_on_another_one()
{
    let mut nodes = Nodes::start().await;
    let scopes: Vec<_> = usual().iter().map(taskledger_auth::Scope::as_str).collect();
    for seed in SEEDS_ON_NODES {
        for name in [bob(seed), ann(seed)] {
            let new = json!({"kind": "user", "name": name, "scopes": scopes});
            let made = nodes.call("chief", "tokens.create", new).await;
            nodes.know(&name, made["token"].as_str().unwrap());
        }
        let (expected, found) = tokio::join!(alone(seed), played(&nodes, seed, true));
        assert_alike(&expected, &found, seed);
    }
    nodes.close().await;
}
