//! The tasks of a run, as `tasks.create` takes them.
//!
//! The root is a group whose `inputs` are the trigger. Each phase is a child; tasks name each other by aliases that no
//! name of a phase can be taken for. Static inputs are resolved here. spec: RFC-0024 2.3; notes N12, N15, N17

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use taskledger_domain::task::RetryPolicy;

use crate::fit;
use crate::limits;
use crate::skip::Plan;
use crate::source::found;
use crate::timers::{self, NoTime};
use crate::trigger::{self, LackingValue};
use crate::types::Named;
use crate::workflow::{Backoff, Input, Phase, Retry, Source, Validation, Workflow};

/// The alias of the root.
pub const ROOT: &str = "run";

/// The alias of the phase at `index` of [`Workflow::phases`].
#[must_use]
pub fn alias(index: usize) -> String {
    format!("phase-{}", index + 1)
}

/// The mark of a workflow in the root of a run, a member of its `params`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOf {
    /// Name of the workflow.
    pub name: String,
    /// Its version, as the document says it.
    pub version: String,
    /// SHA-256 of the whole document ([`Workflow::hash`]).
    pub hash: String,
    /// The number of the version, if the document is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_version: Option<u32>,
    /// Names of the phases that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

impl RunOf {
    /// The member of `params`.
    pub const MEMBER: &str = "workflow";

    /// Has the root of a run say which version of a document that is kept it runs.
    pub fn say_version(root: &mut Value, version: u32) {
        root["params"][Self::MEMBER]["saved_version"] = Value::from(version);
    }

    /// What a task says of its document; `None` for a task that is no run of one.
    #[must_use]
    pub fn read(params: &Map<String, Value>) -> Option<Self> {
        Self::deserialize(params.get(Self::MEMBER)?).ok()
    }
}

/// Why a trigger does not fit the workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitTrigger {
    /// It lacks values that phases cannot do without. Each once, in the order of the document,
    /// at most
    /// [`taskledger_domain::limits::VIOLATIONS_MAX`].
    #[error("the trigger has no value for {}", trigger::list(.0))]
    Lacking(Vec<LackingValue>),
    /// The tasks of a run would repeat too much of it: bytes of JSON, with the types of the document more than
    /// [`limits::REPEATED_BYTES_MAX`].
    #[error(
        "the phases take more than {} bytes of values from the trigger",
        limits::REPEATED_BYTES_MAX
    )]
    TooLarge,
    /// A phase that is skipped has the only value of an input.
    #[error(
        "input `{key}` of phase `{phase}`: `{reference}` has no value, because `{skipped}` is skipped; it needs a default or `required: false`"
    )]
    Skipped {
        /// Name of the phase.
        phase: String,
        /// Key of the input.
        key: String,
        /// The reference, as written.
        reference: String,
        /// Name of the phase that is left out.
        skipped: String,
    },
    /// So many phases are skipped that the others would wait for too many, or that it takes too long to tell.
    #[error(
        "so many phases are skipped that what depends on them would have too many dependencies"
    )]
    TooManySkipped,
    /// What a phase names as its `start_at` is no time.
    #[error("`start_at` of phase `{phase}`: `{reference}` must be {expected}, found {found}")]
    NoTime {
        /// Name of the phase.
        phase: String,
        /// The reference, as written.
        reference: String,
        /// What is accepted.
        expected: &'static str,
        /// What it is, shortened.
        found: String,
    },
    /// A value is not of the type that an input declares.
    #[error("input `{key}` of phase `{phase}`: `{reference}` is not of its type: {reason}")]
    Unlike {
        /// Name of the phase.
        phase: String,
        /// Key of the input.
        key: String,
        /// The reference, as written.
        reference: String,
        /// What was expected and found, and where in the value.
        reason: String,
    },
}

impl Workflow {
    /// The root, then one task for each phase that is not skipped, in the order of [`Workflow::phases`]; which one it
    /// is, its [`alias`] says. A static input whose value is there becomes a literal input; one that is absent or null
    /// gets its default; a required one without default that is null, or absent from the initial state, stays in
    /// `schemas.wiring` as written, so that the claim names it. Cost: O(size of document and trigger), and of what
    /// phases repeat.
    ///
    /// # Errors
    /// [`UnfitTrigger`]: the caller can give another trigger.
    pub fn tasks(
        &self,
        trigger: &Map<String, Value>,
        user_id: Option<&str>,
    ) -> Result<Vec<Value>, UnfitTrigger> {
        let plan = self.plan(trigger).ok_or(UnfitTrigger::TooManySkipped)?;
        let lacking = self.lacking(&plan, trigger);
        if !lacking.is_empty() {
            return Err(UnfitTrigger::Lacking(lacking));
        }
        let mut tasks = self.tasks_of(&plan, trigger, user_id)?;
        let of = RunOf {
            name: self.name.clone(),
            version: self.version.clone(),
            hash: self.hash.clone(),
            saved_version: None,
            skipped: self.skipped(&plan),
        };
        tasks[0]["params"] = json!({(RunOf::MEMBER): of});
        Ok(tasks)
    }

    /// Names of the phases that are left out.
    fn skipped(&self, plan: &Plan) -> Vec<String> {
        let phases = self.phases.iter().zip(&plan.is_skipped);
        let skipped = phases.filter(|(_, is_skipped)| **is_skipped);
        skipped.map(|(phase, _)| phase.name.clone()).collect()
    }

    /// The root, then one task for each phase that is kept.
    pub(crate) fn tasks_of(
        &self,
        plan: &Plan,
        trigger: &Map<String, Value>,
        user_id: Option<&str>,
    ) -> Result<Vec<Value>, UnfitTrigger> {
        let mut root = json!({"id": ROOT, "name": self.name, "inputs": trigger});
        if let Some(user_id) = user_id {
            root["user_id"] = Value::from(user_id);
        }
        let names = self.phases.iter().enumerate();
        let names = names.map(|(i, phase)| (phase.name.as_str(), i)).collect();
        let upstream = Upstream { names, plan };
        let (types, _) = Named::of(self.types.as_ref());
        let mut left = Left {
            bytes: limits::REPEATED_BYTES_MAX,
            steps: limits::VALUE_STEPS_MAX,
        };
        let mut tasks = Vec::with_capacity(self.phases.len() + 1);
        tasks.push(root);
        for (i, phase) in self.phases.iter().enumerate() {
            if plan.is_skipped[i] {
                continue;
            }
            let wired = Wired::of(phase, trigger, &upstream, &types, &mut left)?;
            let mut task = self.task(phase, alias(i), wired, &plan.depends_on[i]);
            phase.put_off(&mut task, trigger)?;
            tasks.push(task);
        }
        Ok(tasks)
    }

    fn task(&self, phase: &Phase, id: String, wired: Wired, depends_on: &[usize]) -> Value {
        let on = depends_on.iter();
        let dependencies = on.map(|index| json!({"id": alias(*index), "required": true}));
        let mut task = json!({
            "id": id,
            "parent_id": ROOT,
            "name": phase.name,
            "dependencies": dependencies.collect::<Vec<_>>(),
            "inputs": wired.inputs,
            "schemas": {
                "type": "remote",
                "method": phase.assign,
                "wiring": wired.wiring,
                "workflow": {
                    "name": self.name,
                    "version": self.version,
                    "hash": self.hash,
                    "phase": phase.name,
                    "title": phase.title,
                    "description": phase.description,
                    "constraints": phase.constraints,
                    "initial_state": phase.initial_state,
                    "kept": phase.kept,
                },
            },
        });
        let schemas = &mut task["schemas"];
        if phase.inputs.len() > 1 {
            let keys = phase.inputs.iter().map(|(key, _)| key.as_str());
            schemas["workflow"]["inputs"] = keys.collect();
        }
        if let Some(types) = self.types.as_ref().filter(|_| phase.is_typed()) {
            schemas["types"] = Value::from(types.clone());
        }
        if let Some(outputs) = &phase.outputs {
            schemas["outputs"] = Value::from(outputs.clone());
            if self.validation == Validation::Shallow {
                schemas["validation"] = Value::from("shallow");
            }
        }
        if let Some(retry) = &phase.retry {
            task["params"] = json!({"retry": retry.params()});
        }
        if let Some(seconds) = phase.delay_seconds.filter(|seconds| *seconds > 0.0) {
            task["params"]["delay_seconds"] = timers::seconds(seconds);
        }
        task
    }
}

/// The phases that inputs name.
struct Upstream<'w> {
    names: HashMap<&'w str, usize>,
    plan: &'w Plan,
}

/// What the tasks of a run may still take.
struct Left {
    /// Bytes of JSON that tasks may still repeat.
    bytes: usize,
    /// For checks of the trigger.
    steps: u64,
}

/// The inputs of a task.
#[derive(Default)]
struct Wired {
    /// Literal.
    inputs: Map<String, Value>,
    /// From results.
    wiring: Map<String, Value>,
}

impl Wired {
    fn of(
        phase: &Phase,
        trigger: &Map<String, Value>,
        upstream: &Upstream<'_>,
        types: &Named,
        left: &mut Left,
    ) -> Result<Self, UnfitTrigger> {
        let mut wired = Self::default();
        for (key, input) in &phase.inputs {
            let value = match &input.source {
                Source::Phase { phase: from, .. }
                    if upstream.plan.is_skipped[upstream.names[from.as_str()]] =>
                {
                    if input.needs_value() {
                        return Err(UnfitTrigger::Skipped {
                            phase: phase.name.clone(),
                            key: key.clone(),
                            reference: input.reference.clone(),
                            skipped: from.clone(),
                        });
                    }
                    None
                }
                Source::Phase {
                    phase,
                    key: output,
                    pointer,
                } => {
                    let pointer = pointer.as_ref().map(|pointer| format!("#{pointer}"));
                    let from = format!(
                        "{}.{output}{}",
                        alias(upstream.names[phase.as_str()]),
                        pointer.unwrap_or_default()
                    );
                    wired.wiring.insert(key.clone(), input.wire(from));
                    continue;
                }
                Source::Trigger { .. } | Source::InitialState { .. } => {
                    input.fixed(trigger, &phase.initial_state)
                }
            };
            if let Some(value) = value {
                check(phase, key, input, value, (types, &mut left.steps))?;
            }
            if let Some(value) = value.or(input.default.as_ref()) {
                // Counted before it is copied.
                let bytes = bytes(value);
                let bytes_left = left.bytes.checked_sub(bytes);
                left.bytes = bytes_left.ok_or(UnfitTrigger::TooLarge)?;
                wired.inputs.insert(key.clone(), value.clone());
            } else if input.required {
                let from = Value::from(input.reference.as_str());
                wired.wiring.insert(key.clone(), from);
            }
        }
        Ok(wired)
    }
}

/// Whether a value from the trigger is of the type that its input declares. That of `initial_state` has been checked.
fn check(
    phase: &Phase,
    key: &str,
    input: &Input,
    value: &Value,
    (types, steps_left): (&Named, &mut u64),
) -> Result<(), UnfitTrigger> {
    let declared = input.type_.as_ref().filter(|_| is_of_trigger(input));
    let compiled = declared.and_then(|declared| types.type_of(declared).ok().flatten());
    let mismatches = compiled.map(|of| of.mismatches_within(value, steps_left));
    let Some(mismatch) = mismatches.iter().flatten().next() else {
        return Ok(());
    };
    Err(UnfitTrigger::Unlike {
        phase: phase.name.clone(),
        key: key.to_owned(),
        reference: input.reference.clone(),
        reason: fit::told(mismatch),
    })
}

fn is_of_trigger(input: &Input) -> bool {
    matches!(input.source, Source::Trigger { .. })
}

/// Bytes of its JSON text.
pub(crate) fn bytes(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, part: &[u8]) -> std::io::Result<usize> {
            self.0 += part.len();
            Ok(part.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("JSON can always be written to memory");
    counter.0
}

impl Phase {
    /// Has its task begin not before its `start_at`.
    fn put_off(&self, task: &mut Value, trigger: &Map<String, Value>) -> Result<(), UnfitTrigger> {
        let Some(start_at) = &self.start_at else {
            return Ok(());
        };
        match start_at.resolved(trigger, &self.initial_state) {
            Ok(None) => {}
            Ok(Some(at)) => task["start_at"] = json!(at),
            Err(NoTime { expected, found }) => {
                return Err(UnfitTrigger::NoTime {
                    phase: self.name.clone(),
                    reference: start_at.reference().unwrap_or_default().to_owned(),
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    /// Whether its task has the types of the document: it declares outputs, or of which types its inputs from
    /// phases are.
    pub(crate) fn is_typed(&self) -> bool {
        let mut inputs = self.inputs.iter().map(|(_, input)| input);
        let is_typed =
            |input: &Input| input.type_.is_some() && matches!(input.source, Source::Phase { .. });
        self.outputs.is_some() || inputs.any(is_typed)
    }
}

impl Input {
    /// The value that is known when the run is created; `None` where there is none, or null.
    pub(crate) fn fixed<'v>(
        &self,
        trigger: &'v Map<String, Value>,
        initial_state: &'v Map<String, Value>,
    ) -> Option<&'v Value> {
        match &self.source {
            Source::Phase { .. } => None,
            Source::Trigger { key, pointer } => found(trigger, key, pointer.as_deref()),
            Source::InitialState { key, pointer } => found(initial_state, key, pointer.as_deref()),
        }
    }

    /// As a member of `schemas.wiring`.
    fn wire(&self, from: String) -> Value {
        if self.required && self.default.is_none() && self.type_.is_none() {
            return Value::from(from);
        }
        let mut wire = json!({"from": from, "required": self.required});
        if let Some(declared) = &self.type_ {
            wire["type"] = declared.clone();
        }
        if let Some(default) = &self.default {
            wire["default"] = default.clone();
        }
        wire
    }
}

impl Retry {
    /// Whether `params.retry` can say it: it has no delays that grow by a sum.
    pub(crate) fn is_exact(&self) -> bool {
        self.backoff != Backoff::Linear || self.max_attempts <= 2
    }

    /// As `params.retry`. Linear growth becomes none, the delays that it begins with.
    pub(crate) fn params(&self) -> Value {
        let multiplier = match self.backoff {
            Backoff::Constant | Backoff::Linear => 1.0,
            Backoff::Exponential => 2.0,
        };
        let initial = self
            .initial_delay_ms
            .unwrap_or(RetryPolicy::INITIAL_DELAY_MS_DEFAULT);
        let max = self
            .max_delay_ms
            .unwrap_or(initial.max(RetryPolicy::MAX_DELAY_MS_DEFAULT));
        json!({
            "max_attempts": self.max_attempts,
            "initial_delay_ms": initial,
            "multiplier": multiplier,
            "max_delay_ms": max,
        })
    }
}
