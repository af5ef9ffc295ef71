//! Plays a script to the server and to the oracle, and compares everything that can be seen.
//!
//! Where the documents leave an order open (which flow is looked at first after a restart; whether a
//! slot is free a moment before or after the end of its attempt is known) the oracle has several
//! worlds, and the server must be in one of them.

use crate::differential::compare::{Names, is_of_a_later_family};
use crate::differential::gate::Gate;
use crate::differential::oracle::{Answer, Oracle};
use crate::differential::place::{Backend, Place};
use crate::differential::script::{Action, Call, Outcome, Step};
use crate::differential::server::Server;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskledger::clock::ManualClock;
use taskledger_domain::Timestamp;

/// When scripts begin: 2026-01-01T00:00:00Z, in microseconds.
pub(crate) const START: i64 = 1_767_225_600_000_000;
/// Calls in one batch.
const BATCH_MAX: usize = 100;
/// More flows with running runs have too many orders of recovery to look at.
const RESTART_FLOWS_MAX: usize = 3;

/// Where the server is not what the oracle says.
#[derive(Debug)]
pub(crate) struct Difference(pub(crate) String);

/// A server, and the worlds in which it may be.
pub(crate) struct Driver {
    place: Place,
    clock: Arc<ManualClock>,
    gate: Arc<Gate>,
    server: Option<Server>,
    worlds: Vec<Oracle>,
    names: Names,
    /// The answer to the last step that called.
    told: Value,
    /// How long the server may take to do what it must.
    patience: Duration,
}

impl Driver {
    pub(crate) async fn start(patience: Duration, backend: Backend) -> Self {
        let place = Place::on(backend).await;
        let clock = Arc::new(ManualClock::at(Timestamp(START)));
        let gate = Gate::new();
        let server = Server::open(place.storage(), &clock, &gate).await;
        Self {
            place,
            clock,
            gate,
            server: Some(server),
            worlds: vec![Oracle::new(START)],
            names: Names::default(),
            told: Value::Null,
            patience,
        }
    }

    /// One of the worlds in which the server may be.
    pub(crate) fn oracle(&self) -> &Oracle {
        &self.worlds[0]
    }

    /// All of them.
    pub(crate) fn worlds(&self) -> &[Oracle] {
        &self.worlds
    }

    /// What the server said to the last step that called.
    pub(crate) fn told(&self) -> &Value {
        &self.told
    }

    /// The answer to one more call, which is not a step.
    pub(crate) async fn ask(&mut self, call: &Call) -> Value {
        let params = self.names.write(&call.params);
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": call.method, "params": params});
        self.server().post(&body).await
    }

    pub(crate) async fn stop(mut self) {
        if let Some(server) = self.server.take() {
            server.close().await;
        }
    }

    pub(crate) fn server(&mut self) -> &mut Server {
        self.server.as_mut().expect("the server runs between steps")
    }

    /// Plays one step.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<(), Difference> {
        self.pass_time(1).await?;
        match &step.action {
            Action::Call(calls) => self.call(step.number, calls).await?,
            Action::Attempt(task, outcome) => self.end_attempt(task, outcome),
            Action::Advance(ms) => self.pass_time(*ms).await?,
            Action::Restart => self.restart().await,
            Action::Pages(params) => self.pages(params).await?,
        }
        self.agree().await
    }

    async fn call(&mut self, number: usize, calls: &[Call]) -> Result<(), Difference> {
        let mut bodies = Vec::new();
        for (i, call) in calls.iter().enumerate() {
            let mut body = json!({"jsonrpc": "2.0", "method": call.method});
            body["params"] = self.names.write(&call.params);
            if !call.silent {
                body["id"] = json!(i);
            }
            if let Some(key) = &call.key {
                body["metadata"] = json!({"idempotency_key": key});
            }
            bodies.push(body);
        }
        let alone = bodies.len() == 1;
        let body = if alone {
            bodies.remove(0)
        } else {
            Value::Array(bodies)
        };
        self.told = self.posted(number, calls, &body).await;
        let mut answers = match self.told.clone() {
            Value::Array(answers) => answers,
            Value::Null => Vec::new(),
            one @ (Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
                vec![one]
            }
        };
        answers.reverse();
        let mut kept = Vec::new();
        let mut faults = Vec::new();
        let mut learned = None;
        for world in &self.worlds {
            let mut world = world.clone();
            let (mut names, mut found) = (self.names.clone(), Vec::new());
            let mut answers = answers.clone();
            for (i, call) in calls.iter().enumerate() {
                let mark = if i == 0 {
                    number.to_string()
                } else {
                    format!("{number}x{i}")
                };
                let expected = world.call(&mark, call);
                if !call.silent {
                    let actual = answers.pop().unwrap_or(Value::Null);
                    judge(&mut names, &expected, &actual, i, &mut found);
                }
            }
            if !answers.is_empty() {
                found.push(format!("{} answers too many", answers.len()));
            }
            if found.is_empty() {
                kept.push(world);
                learned = learned.or(Some(names));
            } else {
                faults = found;
            }
        }
        match learned {
            Some(names) => {
                (self.worlds, self.names) = (kept, names);
                Ok(())
            }
            None => Err(Difference(format!("the answer: {}", faults.join("\n")))),
        }
    }

    fn end_attempt(&mut self, task: &str, outcome: &Outcome) {
        let next: Vec<_> = self
            .worlds
            .iter()
            .filter_map(|w| w.attempt(task, outcome))
            .collect();
        if next.is_empty() {
            return;
        }
        self.replace(next.concat());
        let id = self.names.id(task);
        self.gate.tell(&id, outcome);
    }

    fn replace(&mut self, worlds: Vec<Oracle>) {
        self.worlds.clear();
        for world in worlds {
            if !self.worlds.contains(&world) {
                self.worlds.push(world);
            }
        }
    }

    /// Moves the clock, stopping wherever something is due.
    async fn pass_time(&mut self, ms: u64) -> Result<(), Difference> {
        let micros = i64::try_from(ms * 1000).expect("scripts are short");
        let end = self.oracle().now + micros;
        loop {
            let due = self.worlds.iter().filter_map(Oracle::next_time).min();
            let due = due.filter(|(at, _)| *at <= end);
            let at = due.as_ref().map_or(end, |(at, _)| *at);
            let step = u64::try_from(at - self.oracle().now).expect("time goes on");
            self.clock.advance_ms(step / 1000);
            self.worlds.iter_mut().for_each(|w| w.pass_time(at));
            let Some((_, flow)) = due else {
                return Ok(());
            };
            let id = self.names.id(&flow);
            self.server().look_at(&id).await;
            self.agree().await?;
        }
    }

    async fn restart(&mut self) {
        if self.oracle().running_flows().len() > RESTART_FLOWS_MAX {
            return;
        }
        let next: Vec<_> = self.worlds.iter().map(Oracle::restart).collect();
        self.replace(next.concat());
        if let Some(server) = self.server.take() {
            server.close().await;
        }
        self.server = Some(Server::open(self.place.storage(), &self.clock, &self.gate).await);
    }

    /// All pages of a list by cursor hold what the list holds, each task once.
    async fn pages(&mut self, params: &Value) -> Result<(), Difference> {
        let map = params.as_object().cloned().unwrap_or_default();
        let expected: Vec<Value> = self
            .oracle()
            .matching(&map)
            .iter()
            .map(|s| format!("@{s}").into())
            .collect();
        let mut found = Vec::new();
        let mut params = self.names.write(params);
        for _ in 0..=expected.len() {
            let body = json!({"jsonrpc": "2.0", "id": 0, "method": "tasks.list", "params": params});
            let page = self.server().post(&body).await;
            let tasks = page["result"]["tasks"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            found.extend(tasks.iter().map(|t| t["id"].clone()));
            if page["result"]["total"] != json!(expected.len()) {
                return Err(Difference(format!(
                    "total of {} tasks: {page}",
                    expected.len()
                )));
            }
            let Some(cursor) = page["result"].get("next_cursor") else {
                break;
            };
            params["cursor"] = cursor.clone();
        }
        let mut faults = Vec::new();
        self.names.fit(
            &Value::Array(expected),
            &Value::Array(found),
            "pages",
            &mut faults,
        );
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Difference(faults.join("\n")))
        }
    }

    /// Waits until what can be seen is what one of the worlds says.
    async fn agree(&mut self) -> Result<(), Difference> {
        let mut head = self.server().head();
        let mut gate = self.gate.watch();
        let give_up = tokio::time::Instant::now() + self.patience;
        loop {
            head.borrow_and_update();
            gate.borrow_and_update();
            let difference = match self.look().await {
                Ok(()) => return Ok(()),
                Err(difference) => difference,
            };
            let changed = async {
                tokio::select! {
                    changed = head.changed() => changed.is_ok(),
                    changed = gate.changed() => changed.is_ok(),
                }
            };
            if tokio::time::timeout_at(give_up, changed).await.is_err() {
                return Err(difference);
            }
        }
    }

    /// Compares the running attempts, and then all reads.
    async fn look(&mut self) -> Result<(), Difference> {
        let waiting = self.gate.waiting();
        let mut faults = Vec::new();
        let mut fitting = Vec::new();
        self.learn_names().await;
        for world in self.worlds.clone() {
            let found = self.compare_attempts(&world, &waiting);
            if found.is_empty() {
                fitting.push(world);
            } else {
                faults = found;
            }
        }
        let mut kept = Vec::new();
        for world in fitting {
            let (names, found) = self.compare_reads(&world).await;
            if found.is_empty() {
                self.names = names;
                kept.push(world);
            } else {
                faults = found;
            }
        }
        if kept.is_empty() {
            return Err(Difference(faults.join("\n")));
        }
        self.worlds = kept;
        Ok(())
    }

    /// Names tasks that no answer has named: they stand in the list in order of creation.
    async fn learn_names(&mut self) {
        let order = self.oracle().order.clone();
        if order.iter().all(|s| self.names.knows(s)) {
            return;
        }
        let params = json!({"order": "asc", "limit": 1000});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "tasks.list", "params": params});
        let list = self.server().post(&body).await;
        let tasks = list["result"]["tasks"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for (symbol, task) in order.iter().zip(tasks) {
            // What does not fit is found when reads are compared.
            let pattern = Value::from(format!("@{symbol}"));
            self.names.fit(&pattern, &task["id"], "", &mut Vec::new());
        }
    }

    fn compare_attempts(&self, world: &Oracle, waiting: &[(String, u32, Value)]) -> Vec<String> {
        let mut names = self.names.clone();
        let mut faults = Vec::new();
        let mut expected: Vec<_> = world
            .slots
            .iter()
            .map(|a| (names.id(&a.task), a.number, a.job.clone()))
            .collect();
        expected.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        let list = |list: &[(String, u32, Value)]| -> Vec<String> {
            let mut list: Vec<_> = list
                .iter()
                .map(|(id, n, _)| format!("{} attempt {n}", names.symbol(id)))
                .collect();
            list.sort();
            list
        };
        let (wanted, running) = (list(&expected), list(waiting));
        if wanted != running {
            return vec![format!("running: expected {wanted:?}, found {running:?}")];
        }
        for (wanted, found) in expected.iter().zip(waiting) {
            names.fit(
                &wanted.2,
                &found.2,
                &format!("job of {}", names.symbol(&wanted.0)),
                &mut faults,
            );
        }
        faults
    }

    /// Everything that the reading methods show, against what the world says.
    async fn compare_reads(&mut self, world: &Oracle) -> (Names, Vec<String>) {
        let mut names = self.names.clone();
        let mut faults = Vec::new();
        let mut calls = vec![Call::new(
            "tasks.list",
            json!({"order": "asc", "limit": 1000}),
        )];
        for symbol in &world.order {
            let id = format!("@{symbol}");
            calls.push(Call::new("tasks.get", json!({"task_id": id})));
            if world.task(symbol).parent.is_none() {
                calls.push(Call::new("tasks.tree", json!({"task_id": id})));
            }
            if !world.children(symbol).is_empty() {
                calls.push(Call::new("tasks.children", json!({"parent_id": id})));
            }
        }
        // The first answer names what calls without an answer have created.
        let (first, rest) = calls.split_at(1);
        for calls in std::iter::once(first).chain(rest.chunks(BATCH_MAX)) {
            let bodies: Vec<_> = calls.iter().map(|call| {
                json!({"jsonrpc": "2.0", "id": 0, "method": call.method, "params": names.write(&call.params)})
            }).collect();
            let answers = self.server().post(&Value::Array(bodies)).await;
            for (i, call) in calls.iter().enumerate() {
                let expected = world.clone().call("", call);
                let mut found = Vec::new();
                judge(&mut names, &expected, &answers[i], 0, &mut found);
                faults.extend(
                    found
                        .into_iter()
                        .map(|f| format!("{} {}: {f}", call.method, call.params)),
                );
            }
            if !faults.is_empty() {
                break;
            }
        }
        (names, faults)
    }
}

/// Compares an answer with what the oracle says.
fn judge(
    names: &mut Names,
    expected: &Answer,
    actual: &Value,
    id: usize,
    faults: &mut Vec<String>,
) {
    let shape: Vec<_> = actual
        .as_object()
        .map(Map::keys)
        .into_iter()
        .flatten()
        .collect();
    if actual["jsonrpc"] != "2.0" || actual["id"] != json!(id) || shape.len() != 3 {
        faults.push(format!("no answer to call {id}: {actual}"));
    }
    match (expected, actual.get("result"), actual.get("error")) {
        (Ok(expected), Some(result), None) => names.fit(expected, result, "", faults),
        (Err(refusal), None, Some(error)) => {
            if error["code"] != json!(refusal.code) {
                faults.push(format!(
                    "expected error {}, found {}",
                    refusal.code,
                    names.read(error)
                ));
            }
            let listed = error["data"]["errors"].as_array().into_iter().flatten();
            let listed = listed.filter(|fault| !is_of_a_later_family(fault));
            let step = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
            let paths = listed.map(|e| {
                let steps = e["path"].as_array().into_iter().flatten();
                steps.map(step).collect::<Vec<_>>().join(".")
            });
            let paths = paths.collect();
            if refusal
                .paths
                .as_ref()
                .is_some_and(|expected| *expected != paths)
            {
                faults.push(format!(
                    "expected faults at {:?}, found them at {paths:?}: {}",
                    refusal.paths,
                    names.read(error)
                ));
            }
        }
        (Ok(expected), _, _) => {
            faults.push(format!("expected {expected}, found {}", names.read(actual)));
        }
        (Err(refusal), _, _) => {
            faults.push(format!(
                "expected error {} at {:?}, found {}",
                refusal.code,
                refusal.paths,
                names.read(actual)
            ));
        }
    }
}
