//! A model of what one client has done to its own tasks, and what it may therefore expect.

use crate::found::Found;
use crate::random::Random;
use crate::server::{Api, FAILED, NoResult, TOO_BUSY};
use serde_json::{Value, json};

/// Tasks of a tree that is created in one call, its root included, at most.
const TREE_LEN_MAX: u64 = 9;
/// Times that a command in doubt is sent to a server that may be busy right after its start; each
/// time takes as long as a call waits for the read models.
const REPEATS_MAX: usize = 20;

/// A command on its way.
#[derive(Debug, Clone)]
pub struct Command {
    /// The method of the call.
    pub method: &'static str,
    /// The `params` of the call.
    pub params: Value,
    /// The idempotency key under which it is repeated.
    pub key: String,
    effect: Effect,
    /// It was sent before, and may have taken effect then.
    in_doubt: bool,
}

/// What a command changes.
#[derive(Debug, Clone)]
enum Effect {
    /// A flow of so many tasks, which all have names that begin with the mark.
    Created {
        mark: String,
        len: usize,
        runs: bool,
    },
    Renamed {
        flow: usize,
        task: usize,
        name: String,
    },
    Executed {
        flow: usize,
    },
    Cancelled {
        flow: usize,
        task: usize,
    },
    Deleted {
        flow: usize,
        task: usize,
    },
}

/// A flow of this client.
#[derive(Debug)]
struct Flow {
    root: String,
    mark: String,
    tasks: Vec<Task>,
    /// Ids of its acknowledged runs.
    runs: Vec<String>,
}

#[derive(Debug, Clone)]
struct Task {
    id: String,
    /// The acknowledged one.
    name: String,
    cancelled: bool,
    deleted: bool,
}

/// Counts of the answers that a client was given, by kind.
#[derive(Debug, Default, Clone, Copy)]
pub struct Told {
    /// Carried out.
    pub done: usize,
    /// Refused by a rule.
    pub refused: usize,
    /// Put off.
    pub busy: usize,
    /// Failed on the side of the server.
    pub failed: usize,
    /// Answered with "unknown".
    pub unknown: usize,
    /// Not answered.
    pub nothing: usize,
    /// Reads.
    pub shown: usize,
    /// Reads that were put off or not answered.
    pub not_shown: usize,
}

impl Told {
    /// Both together.
    pub const fn and(self, other: Self) -> Self {
        Self {
            done: self.done + other.done,
            refused: self.refused + other.refused,
            busy: self.busy + other.busy,
            failed: self.failed + other.failed,
            unknown: self.unknown + other.unknown,
            nothing: self.nothing + other.nothing,
            shown: self.shown + other.shown,
            not_shown: self.not_shown + other.not_shown,
        }
    }
}

/// A client, which changes only its own flows, one command after the other.
#[derive(Debug)]
pub struct Client {
    number: usize,
    /// Calls may fail because something under the server was broken.
    under_faults: bool,
    /// How its commands were answered, and how often.
    pub told: Told,
    /// Commands that were told, when they were sent for the first time, that nothing was done.
    denied: Vec<Effect>,
    /// Commands that were in doubt and then done, with the answer.
    resolved: Vec<(Command, Value)>,
    random: Random,
    counter: u64,
    flows: Vec<Flow>,
    /// A command without an answer.
    pub open: Option<Command>,
}

impl Client {
    /// A client whose calls all reach a sound server.
    pub fn new(number: usize, seed: u64) -> Self {
        let random = Random::new(seed ^ (number as u64).wrapping_mul(0xd134_2543_de82_ef95));
        Self {
            number,
            under_faults: false,
            told: Told::default(),
            denied: Vec::new(),
            resolved: Vec::new(),
            random,
            counter: 0,
            flows: Vec::new(),
            open: None,
        }
    }

    /// The same for a server under which something is broken: that a call has failed is an answer.
    pub fn under_faults(number: usize, seed: u64) -> Self {
        Self {
            under_faults: true,
            ..Self::new(number, seed)
        }
    }

    /// Acknowledged flows.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Makes up the next command at random.
    pub fn next_command(&mut self) -> Command {
        self.counter += 1;
        let mark = format!("c{}-{}.", self.number, self.counter);
        let kind = if self.flows.is_empty() {
            0
        } else {
            self.random.below(10)
        };
        let (method, params, effect) = match kind {
            0 => {
                let (list, len) = self.tree(&mark);
                (
                    "tasks.create",
                    json!({ "tasks": list }),
                    Effect::Created {
                        mark: mark.clone(),
                        len,
                        runs: false,
                    },
                )
            }
            1 => {
                let name = format!("{mark}single");
                let params = json!({"name": name, "schemas": {"method": "echo_executor"}});
                (
                    "tasks.create",
                    params,
                    Effect::Created {
                        mark: mark.clone(),
                        len: 1,
                        runs: false,
                    },
                )
            }
            2 | 3 => {
                let (list, len) = self.tree(&mark);
                (
                    "tasks.execute",
                    json!({ "tasks": list }),
                    Effect::Created {
                        mark: mark.clone(),
                        len,
                        runs: true,
                    },
                )
            }
            _ => self.change(kind, &mark),
        };
        Command {
            method,
            params,
            key: format!("key-{mark}"),
            effect,
            in_doubt: false,
        }
    }

    /// A command for a task that exists.
    fn change(&mut self, kind: u64, mark: &str) -> (&'static str, Value, Effect) {
        let flow = self.random.index(&self.flows);
        let task = self.random.index(&self.flows[flow].tasks);
        let id = self.flows[flow].tasks[task].id.clone();
        match kind {
            4 | 5 => {
                let name = format!("{mark}renamed");
                let params = json!({"task_id": id, "updates": {"name": name}});
                ("tasks.update", params, Effect::Renamed { flow, task, name })
            }
            6 | 7 => (
                "tasks.execute",
                json!({"task_id": self.flows[flow].root}),
                Effect::Executed { flow },
            ),
            8 => (
                "tasks.cancel",
                json!({"task_id": id}),
                Effect::Cancelled { flow, task },
            ),
            _ => (
                "tasks.delete",
                json!({"task_id": id}),
                Effect::Deleted { flow, task },
            ),
        }
    }

    /// A group with tasks that sleep or echo, some of which wait for the one before.
    fn tree(&mut self, mark: &str) -> (Vec<Value>, usize) {
        let len = 2 + self.random.below(TREE_LEN_MAX - 1);
        let mut list = vec![json!({"id": "t0", "name": format!("{mark}0")})];
        for i in 1..len {
            let waits = i > 1 && self.random.below(2) == 0;
            let method = if self.random.below(2) == 0 {
                "echo_executor"
            } else {
                "sleep_executor"
            };
            list.push(json!({
                "id": format!("t{i}"), "parent_id": "t0", "name": format!("{mark}{i}"),
                "schemas": {"method": method}, "inputs": {"duration_ms": self.random.below(30)},
                "params": {"retry_count": self.random.below(3)},
                "dependencies": if waits { json!([{"id": format!("t{}", i - 1)}]) } else { json!([]) },
            }));
        }
        let count = list.len();
        (list, count)
    }

    /// Sends a command; `None` when nobody knows what became of it, and then it stays open. A refusal
    /// that the state of a task explains is an answer without an effect.
    pub async fn send(&mut self, api: &Api, command: Command) -> Option<Result<Value, i64>> {
        let (method, params) = (command.method, command.params.clone());
        match api.try_call(method, params, Some(&command.key)).await {
            Ok(result) => {
                self.told.done += 1;
                self.acknowledge(&command, &result);
                if command.in_doubt {
                    self.resolved.push((command, result.clone()));
                }
                Some(Ok(result))
            }
            Err(NoResult::Refused(refusal)) if refusal.is_unknown() => {
                self.told.unknown += 1;
                self.leave_open(command)
            }
            Err(NoResult::Refused(refusal)) if refusal.code == TOO_BUSY => {
                self.told.busy += 1;
                self.deny(command, refusal.code)
            }
            Err(NoResult::Refused(refusal)) if self.under_faults && refusal.code == FAILED => {
                self.told.failed += 1;
                self.deny(command, refusal.code)
            }
            Err(NoResult::Refused(refusal)) => {
                let explained = matches!(
                    (command.method, refusal.code),
                    ("tasks.execute", -32006 | -32008 | -32001)
                        | ("tasks.cancel", -32006 | -32001)
                        | ("tasks.delete", -32009 | -32001)
                        | ("tasks.update", -32001)
                );
                assert!(explained, "{command:?}: {refusal:?}");
                self.told.refused += 1;
                Some(Err(refusal.code))
            }
            Err(NoResult::Broken) => {
                self.told.nothing += 1;
                self.leave_open(command)
            }
        }
    }

    fn leave_open(&mut self, command: Command) -> Option<Result<Value, i64>> {
        self.open = Some(Command {
            in_doubt: true,
            ..command
        });
        None
    }

    /// This time nothing was done. Whether it was done before is another question.
    fn deny(&mut self, command: Command, code: i64) -> Option<Result<Value, i64>> {
        if command.in_doubt {
            return self.leave_open(command);
        }
        self.denied.push(command.effect);
        Some(Err(code))
    }

    /// Looks at one of its tasks, which nobody else changes: an answer shows what was acknowledged.
    pub async fn look(&mut self, api: &Api) {
        let flow = self.random.index(&self.flows);
        let task = self.random.index(&self.flows[flow].tasks);
        let task = &self.flows[flow].tasks[task];
        match api
            .try_call("tasks.get", json!({"task_id": task.id}), None)
            .await
        {
            Ok(shown) => {
                assert!(!task.deleted, "{task:?}: {shown}");
                assert_eq!(shown["name"], json!(task.name), "{task:?} at {}", api.url);
                self.told.shown += 1;
            }
            Err(NoResult::Refused(refusal)) if refusal.code == -32001 => {
                assert!(task.deleted, "{task:?} at {}: {refusal:?}", api.url);
            }
            Err(NoResult::Refused(refusal)) => {
                let passes = refusal.code == TOO_BUSY || refusal.code == FAILED;
                assert!(self.under_faults && passes, "{task:?}: {refusal:?}");
                self.told.not_shown += 1;
            }
            Err(NoResult::Broken) => self.told.not_shown += 1,
        }
    }

    /// What was done once is not done again, and is answered as it was.
    pub async fn confirm(&self, api: &Api) {
        for (command, answer) in &self.resolved {
            let again = api
                .try_call(command.method, command.params.clone(), Some(&command.key))
                .await;
            let again = again.unwrap_or_else(|error| panic!("{command:?}: {error:?}"));
            for member in ["id", "task_ids", "root_task_id", "run_id"] {
                assert_eq!(again[member], answer[member], "{command:?}");
            }
        }
    }

    /// Sends the command that had no answer again, twice: one effect, one answer.
    pub async fn repeat(&mut self, api: &Api) {
        let Some(command) = self.open.take() else {
            return;
        };
        let mut first = None;
        for _ in 0..REPEATS_MAX {
            if first.is_none() {
                first = self.send(api, command.clone()).await;
            }
        }
        let first = first.expect("a server that runs answers");
        self.open = None;
        let known = self.flows.len();
        let again = api
            .try_call(command.method, command.params.clone(), Some(&command.key))
            .await;
        match (first, again) {
            (Ok(first), Ok(again)) => assert_eq!(first, again, "{command:?}"),
            (Err(_), Err(NoResult::Refused(_))) => {}
            // The run that was in the way has ended meanwhile. A refusal is not kept under a key.
            (Err(-32008), Ok(again)) => self.acknowledge(&command, &again),
            (first, again) => panic!("{command:?}: {first:?}, then {again:?}"),
        }
        assert_eq!(self.flows.len(), known);
    }

    fn acknowledge(&mut self, command: &Command, result: &Value) {
        let run = || {
            result["run_id"]
                .as_str()
                .expect("a run has an id")
                .to_owned()
        };
        match command.effect.clone() {
            Effect::Created { mark, len, runs } => {
                let root = if runs {
                    &result["root_task_id"]
                } else {
                    &result["id"]
                };
                let root = root.as_str().unwrap().to_owned();
                let mut tasks = Vec::new();
                for i in 0..len {
                    let (id, name) = if len == 1 {
                        (root.clone(), format!("{mark}single"))
                    } else {
                        let id = result["task_ids"][format!("t{i}")].as_str().unwrap();
                        (id.to_owned(), format!("{mark}{i}"))
                    };
                    tasks.push(Task {
                        id,
                        name,
                        cancelled: false,
                        deleted: false,
                    });
                }
                let runs = if runs { vec![run()] } else { Vec::new() };
                self.flows.push(Flow {
                    root,
                    mark,
                    tasks,
                    runs,
                });
            }
            Effect::Renamed { flow, task, name } => self.flows[flow].tasks[task].name = name,
            Effect::Executed { flow } => self.flows[flow].runs.push(run()),
            Effect::Cancelled { flow, task } => self.flows[flow].tasks[task].cancelled = true,
            Effect::Deleted { flow, task } => self.flows[flow].tasks[task].deleted = true,
        }
    }

    /// Everything acknowledged is in the log, what was denied is not, and what has no answer is there
    /// whole or not at all.
    pub fn check(&self, log: &Found) {
        for effect in &self.denied {
            match effect {
                Effect::Created { mark, .. } => assert!(!log.created.contains_key(mark), "{mark}"),
                Effect::Renamed { name, .. } => assert!(!log.renamed.contains_key(name), "{name}"),
                Effect::Executed { .. } | Effect::Cancelled { .. } | Effect::Deleted { .. } => {}
            }
        }
        for flow in &self.flows {
            assert_eq!(
                log.created.get(&flow.mark),
                Some(&flow.tasks.len()),
                "{flow:?}"
            );
            for run in &flow.runs {
                assert!(log.runs.contains_key(run), "run {run} of {flow:?}");
            }
            for task in &flow.tasks {
                let found = &log.tasks[&task.id];
                let on_its_way = match self.open.as_ref().map(|open| &open.effect) {
                    Some(Effect::Renamed { name, .. }) => Some(name),
                    _ => None,
                };
                let named = found.name == task.name || Some(&found.name) == on_its_way;
                assert!(named, "{task:?}: {found:?}, open {:?}", self.open);
                assert!(found.cancelled || !task.cancelled, "{task:?}: {found:?}");
                assert!(found.deleted || !task.deleted, "{task:?}: {found:?}");
            }
        }
        if let Some(Command {
            effect: Effect::Created { mark, len, .. },
            ..
        }) = &self.open
        {
            let found = log.created.get(mark);
            assert!(
                found.is_none_or(|found| found == len),
                "{found:?} of {len} tasks of {mark}"
            );
        }
    }

    /// Each task as the server shows it: ids with the names that they must have, `None` if deleted.
    pub fn expected(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let tasks = self.flows.iter().flat_map(|flow| &flow.tasks);
        tasks.map(|task| {
            (
                task.id.as_str(),
                (!task.deleted).then_some(task.name.as_str()),
            )
        })
    }

    /// The marks of its flows.
    pub fn marks(&self) -> impl Iterator<Item = &str> {
        self.flows.iter().map(|flow| flow.mark.as_str())
    }
}
