//! SEMANTICS.md once more, as plainly as can be: maps, lists, and loops that begin anew each time.
//!
//! Each file follows one section of the document. Ids are symbols (see `script`), times are
//! microseconds, and an answer is a pattern: `@x` stands for the id behind the symbol `x`, and
//! [`ANY_TEXT`] for a text that is not empty.

mod contract;
mod fields;
mod groups;
mod ids;
mod inputs;
mod methods;
mod params;
mod people;
mod reads;
mod runs;
mod slots;
mod timers;
mod together;
mod wires;
mod work;

use crate::differential::gate;
use crate::differential::script::{Call, Outcome};
pub(crate) use people::answers;
use people::{Question, Turn};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use taskledger_domain::Timestamp;
use timers::Timing;
pub(crate) use wires::is_wired;
use work::Lease;
pub(crate) use work::State;

/// Stands for a text that the documents leave open.
pub(crate) const ANY_TEXT: &str = "@@any";

/// Stands for a number that the documents leave open.
pub(crate) const ANY_NUMBER: &str = "@@number";

/// Symbol of a task or a run, without `@`.
pub(crate) type Symbol = String;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Pending,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}
use Status::{Cancelled, Completed, Failed, InProgress, Pending};

impl Status {
    pub(crate) const ALL: [Self; 5] = [Pending, InProgress, Completed, Failed, Cancelled];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Pending => "pending",
            InProgress => "in_progress",
            Completed => "completed",
            Failed => "failed",
            Cancelled => "cancelled",
        }
    }

    fn is_terminal(self) -> bool {
        matches!(self, Completed | Failed | Cancelled)
    }
}

/// When a dependency is satisfied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Completed,
    Ended,
    Always,
}

impl When {
    /// As a client writes it.
    pub(crate) fn of(dependency: &Value) -> Self {
        if dependency["when"] == "always" {
            Self::Always
        } else if dependency["required"] == false {
            Self::Ended
        } else {
            Self::Completed
        }
    }

    /// As a server shows a dependency on the task with this id.
    pub(crate) fn shown(self, id: Value) -> Value {
        let mut shown = json!({"id": id, "required": self == Self::Completed});
        if self == Self::Always {
            shown["when"] = json!("always");
        }
        shown
    }
}

/// A task, with the members of the data model and what a scheduler must remember.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) parent: Option<Symbol>,
    pub(crate) flow: Symbol,
    pub(crate) user: Option<String>,
    pub(crate) name: String,
    pub(crate) priority: u64,
    pub(crate) inputs: Value,
    /// Null for a group.
    pub(crate) schemas: Value,
    pub(crate) params: Value,
    /// Null for none.
    pub(crate) start_at: Value,
    /// An object.
    pub(crate) labels: Value,
    pub(crate) dependencies: Vec<(Symbol, When)>,
    pub(crate) status: Status,
    pub(crate) result: Value,
    pub(crate) error: Option<String>,
    pub(crate) progress: f64,
    pub(crate) created: i64,
    pub(crate) started: Option<i64>,
    pub(crate) updated: i64,
    pub(crate) completed: Option<i64>,
    pub(crate) attempt: u32,
    /// When it may start again after a failure.
    pub(crate) next_attempt: Option<i64>,
    /// What its timers have come to in its run.
    timing: Timing,
    /// Since when it could run.
    pub(crate) ready: Option<i64>,
    /// Keys of wired inputs that a result turned out not to have when it was recorded.
    absent: BTreeSet<String>,
    /// What it waits for, if it is suspended.
    pub(crate) question: Option<Question>,
    /// What was asked and answered in its run.
    pub(crate) turns: Vec<Turn>,
}

impl Task {
    pub(crate) fn is_group(&self) -> bool {
        self.schemas.is_null()
    }

    /// Whether workers carry it out, and nobody else.
    pub(crate) fn is_remote(&self) -> bool {
        self.schemas["type"] == "remote" && gate::executor(self.method()).is_none()
    }

    /// Whether nobody carries it out.
    pub(crate) fn is_unknown(&self) -> bool {
        !self.is_group() && !self.is_remote() && gate::executor(self.method()).is_none()
    }

    /// `schemas.method`; empty for a group.
    pub(crate) fn method(&self) -> &str {
        self.schemas["method"].as_str().unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunState {
    Running,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) symbol: Symbol,
    pub(crate) root: Symbol,
    pub(crate) covered: BTreeSet<Symbol>,
    pub(crate) state: RunState,
    /// Counts at its end.
    pub(crate) counts: Option<Value>,
    /// Failures of each task within the run, and interruptions by restarts.
    pub(crate) failures: BTreeMap<Symbol, u64>,
    pub(crate) interruptions: BTreeMap<Symbol, u64>,
    /// Milliseconds that a task waits for an executor that does not exist.
    pub(crate) executor_wait_ms: i64,
}

/// An attempt that runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attempt {
    pub(crate) task: Symbol,
    pub(crate) number: u32,
    pub(crate) executor: &'static str,
    /// What its executor was given.
    pub(crate) job: Value,
}

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    /// Paths of the faults, joined with dots; `None` when the documents do not say which.
    pub(crate) paths: Option<BTreeSet<String>>,
}

pub(crate) type Answer = Result<Value, Refusal>;

fn refuse<T>(code: i64) -> Result<T, Refusal> {
    Err(Refusal { code, paths: None })
}

fn invalid<T>(paths: BTreeSet<String>) -> Result<T, Refusal> {
    Err(Refusal {
        code: -32602,
        paths: Some(paths),
    })
}

/// The world as the documents want it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Oracle {
    pub(crate) now: i64,
    pub(crate) tasks: BTreeMap<Symbol, Task>,
    /// Tasks in order of creation.
    pub(crate) order: Vec<Symbol>,
    /// Ids that some task has or had.
    ever: BTreeSet<Symbol>,
    /// In order of their start.
    pub(crate) runs: Vec<Run>,
    /// Attempts that hold a slot.
    pub(crate) slots: Vec<Attempt>,
    /// What workers were given, by the symbol that stands for the token.
    pub(crate) leases: BTreeMap<Symbol, Lease>,
    /// Idempotency keys: the call and its answer.
    keys: BTreeMap<String, (String, Value, Value)>,
    /// Flows that are not looked at: after a restart, until it is their turn.
    asleep: BTreeSet<Symbol>,
}

impl Oracle {
    pub(crate) fn new(now: i64) -> Self {
        Self {
            now,
            tasks: BTreeMap::new(),
            order: Vec::new(),
            ever: BTreeSet::new(),
            runs: Vec::new(),
            slots: Vec::new(),
            leases: BTreeMap::new(),
            keys: BTreeMap::new(),
            asleep: BTreeSet::new(),
        }
    }

    /// Carries a call out. `mark` names what it creates.
    pub(crate) fn call(&mut self, mark: &str, call: &Call) -> Answer {
        let params = params::named(&call.method, &call.params)?;
        let shape = params::check(&call.method, &params);
        if !shape.is_empty() {
            return wires::told(&params, self.faults(&call.method, &params, shape));
        }
        let key = call.key.as_ref().filter(|_| params::changes(&call.method));
        if let Some((method, first, answer)) = key.and_then(|key| self.keys.get(key)) {
            if *method == call.method && *first == Value::Object(params) {
                return Ok(answer.clone());
            }
            return invalid(BTreeSet::from(["metadata.idempotency_key".to_owned()]));
        }
        let mut next = self.clone();
        let answer = next.method(mark, &call.method, &params)?;
        if params::changes(&call.method) {
            next.settle();
            // A call that changed nothing left no trace, so its key is free.
            if let Some(key) = key.filter(|_| next != *self) {
                let entry = (call.method.clone(), Value::Object(params), answer.clone());
                next.keys.insert(key.clone(), entry);
            }
            *self = next;
        }
        Ok(answer)
    }

    fn method(&mut self, mark: &str, method: &str, params: &Map<String, Value>) -> Answer {
        match method {
            "tasks.create" => self.create(mark, params),
            "tasks.update" => self.update(params),
            "tasks.delete" => self.delete(params),
            "tasks.execute" => self.execute(mark, params),
            "tasks.cancel" => self.cancel(params),
            "tasks.copy" => self.copy(mark, params),
            "tasks.retry" => self.retry(mark, params),
            "tasks.get" => self.get(params),
            "tasks.tree" => self.tree(params),
            "tasks.children" => self.children_of(params),
            "tasks.list" => self.list(params),
            "tasks.claim" => self.claim(params),
            "tasks.renew" => self.renew(params),
            "tasks.complete" | "tasks.fail" | "tasks.release" => self.say(method, params),
            "tasks.suspend" => self.suspend(params),
            "tasks.respond" => self.respond(params),
            _ => refuse(-32601),
        }
    }

    /// The worlds in which an attempt may have ended: its slot is free a moment before or after its
    /// end is known. `None` when no attempt of the task runs.
    pub(crate) fn attempt(&self, task: &str, outcome: &Outcome) -> Option<Vec<Self>> {
        let held = self.slots.iter().find(|a| a.task == task)?.clone();
        if let Outcome::Report(part) = outcome {
            let mut next = self.clone();
            next.change(task, |t| t.progress = *part);
            return Some(vec![next]);
        }
        let mut before = self.clone();
        before.slots.retain(|a| *a != held);
        let mut after = before.clone();
        before.start_ready();
        for world in [&mut before, &mut after] {
            world.end(task, outcome);
            world.settle();
        }
        let limited = gate::executor(held.executor).is_some_and(|k| k.limit < 10);
        Some(if limited && before != after {
            vec![before, after]
        } else {
            vec![after]
        })
    }

    pub(crate) fn task(&self, symbol: &str) -> &Task {
        &self.tasks[symbol]
    }

    /// Changes a task and notes the time.
    fn change(&mut self, symbol: &str, change: impl FnOnce(&mut Task)) {
        let now = self.now;
        let task = self.tasks.get_mut(symbol).expect("only live tasks change");
        change(task);
        task.updated = now;
    }

    /// Direct children in order of creation.
    pub(crate) fn children(&self, symbol: &str) -> Vec<Symbol> {
        let below = |s: &&Symbol| self.tasks[*s].parent.as_deref() == Some(symbol);
        self.order.iter().filter(below).cloned().collect()
    }

    /// The task and all its descendants, parents first.
    pub(crate) fn subtree(&self, symbol: &str) -> Vec<Symbol> {
        let mut found = vec![symbol.to_owned()];
        let mut at = 0;
        while at < found.len() {
            let below = self.children(&found[at]);
            found.extend(below);
            at += 1;
        }
        found
    }

    /// Parents of the task, nearest first.
    pub(crate) fn ancestors(&self, symbol: &str) -> Vec<Symbol> {
        let mut found = Vec::new();
        let mut at = self.tasks[symbol].parent.clone();
        while let Some(parent) = at {
            at = self.tasks[&parent].parent.clone();
            found.push(parent);
        }
        found
    }

    /// Tasks that depend on this one, and when that is satisfied.
    pub(crate) fn dependents(&self, symbol: &str) -> Vec<(Symbol, When)> {
        let mut found = Vec::new();
        for other in &self.order {
            for (dependency, when) in &self.tasks[other].dependencies {
                if dependency == symbol {
                    found.push((other.clone(), *when));
                }
            }
        }
        found
    }

    fn stored(&self, reference: &Value) -> Result<Symbol, Refusal> {
        let symbol = ids::symbol(reference.as_str().unwrap_or_default());
        match symbol.filter(|s| self.tasks.contains_key(s)) {
            Some(symbol) => Ok(symbol),
            None => refuse(-32001),
        }
    }
}

/// A time as the protocol writes it.
pub(crate) fn time(micros: i64) -> Value {
    json!(Timestamp(micros).to_string())
}

/// The symbol that a parameter names.
pub(crate) fn symbol(value: &Value) -> Option<Symbol> {
    ids::symbol(value.as_str()?)
}

/// The parameters of a method that can be given by position.
pub(crate) fn parameter_names(method: &str) -> &'static [&'static str] {
    params::names(method)
}
