//! Executors of the tests: an attempt waits at the gate until the script says how it ends.

use crate::differential::script::Outcome;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger::engine::executor::{
    Concurrency, Description, Executor, ExecutorError, Job, Registry,
};
use tokio::sync::{mpsc, watch};

/// What the script and the oracle know of an executor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Another name for it.
    pub(crate) alias: Option<&'static str>,
    pub(crate) idempotent: bool,
    /// Attempts at once.
    pub(crate) limit: usize,
    /// Whether `inputs.n` must be an integer.
    pub(crate) wants_integer: bool,
}

/// More than any script starts.
const UNLIMITED: usize = 10_000;

/// All executors there are.
pub(crate) const KINDS: &[Kind] = &[
    kind("free", None, true, UNLIMITED, false),
    kind("one", Some("uno"), true, 1, false),
    kind("pair", None, true, 2, false),
    kind("once", None, false, UNLIMITED, true),
];

const fn kind(
    name: &'static str,
    alias: Option<&'static str>,
    idempotent: bool,
    limit: usize,
    wants_integer: bool,
) -> Kind {
    Kind {
        name,
        alias,
        idempotent,
        limit,
        wants_integer,
    }
}

/// The executor that answers to `method`.
pub(crate) fn executor(method: &str) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|k| k.name == method || k.alias == Some(method))
}

/// A waiting attempt: what it was given, and where its end is told.
type Held = (Value, mpsc::UnboundedSender<Outcome>);

/// Holds all attempts that are running.
#[derive(Debug)]
pub(crate) struct Gate {
    /// By task id.
    held: Mutex<BTreeMap<(String, u32), Held>>,
    /// Counts comings and goings.
    changes: watch::Sender<u64>,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            held: Mutex::default(),
            changes: watch::Sender::new(0),
        })
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<(String, u32), Held>> {
        self.held
            .lock()
            .expect("no code panics while it holds the gate")
    }

    /// Task and attempt of each that waits, with what its executor was given.
    pub(crate) fn waiting(&self) -> Vec<(String, u32, Value)> {
        let held = self.held();
        held.iter()
            .map(|((task, attempt), (given, _))| (task.clone(), *attempt, given.clone()))
            .collect()
    }

    /// Changes whenever an attempt comes or goes.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Lets the task's attempt go on. False when none waits.
    pub(crate) fn tell(&self, task: &str, outcome: &Outcome) -> bool {
        let held = self.held();
        let found = held.iter().find(|((id, _), _)| id == task);
        found.is_some_and(|(_, (_, tell))| tell.send(outcome.clone()).is_ok())
    }

    /// The executors, fresh for a server that starts.
    pub(crate) fn registry(self: &Arc<Self>) -> Registry {
        KINDS
            .iter()
            .try_fold(Registry::builder(), |builder, kind| {
                builder.register(Arc::new(Gatekeeper {
                    kind: *kind,
                    gate: self.clone(),
                }))
            })
            .expect("names differ")
            .build()
            .expect("the executors fit together")
    }
}

/// One executor in front of the gate.
struct Gatekeeper {
    kind: Kind,
    gate: Arc<Gate>,
}

/// Takes the attempt out, however it ends.
struct Place<'a> {
    gate: &'a Gate,
    key: (String, u32),
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.gate.held().remove(&self.key);
        self.gate.changes.send_modify(|n| *n += 1);
    }
}

#[async_trait]
impl Executor for Gatekeeper {
    fn describe(&self) -> Description {
        let integer = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        Description {
            name: self.kind.name.into(),
            aliases: self.kind.alias.map(Into::into).into_iter().collect(),
            summary: "Waits for the script.".into(),
            idempotent: self.kind.idempotent,
            pure: false,
            input_schema: self.kind.wants_integer.then_some(integer),
            concurrency: Concurrency::Fixed(self.kind.limit),
        }
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        let dependencies: Vec<Value> = job
            .dependencies
            .iter()
            .map(|d| json!({"id": d.id, "status": d.status, "result": d.result}))
            .collect();
        let given = json!({
            "name": job.name, "inputs": job.inputs, "params": job.params, "schemas": job.schemas,
            "dependencies": dependencies,
        });
        let (tell, mut told) = mpsc::unbounded_channel();
        let key = (job.task_id.to_string(), job.attempt);
        let _place = Place {
            gate: &self.gate,
            key: key.clone(),
        };
        self.gate.held().insert(key, (given, tell));
        self.gate.changes.send_modify(|n| *n += 1);
        loop {
            let outcome = tokio::select! {
                () = job.cancel.cancelled() => return Err(ExecutorError::new("stopped")),
                told = told.recv() => told.expect("the gate keeps the sender"),
            };
            match outcome {
                Outcome::Return(value) => return Ok(value),
                Outcome::Fail(text) => return Err(ExecutorError::new(text)),
                Outcome::Report(part) => job.progress.report(part),
            }
        }
    }
}
