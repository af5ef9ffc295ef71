//! Plays a run without workers: claims and completions with made-up outputs, by the rules of tasks.

use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};
use taskledger_domain::contract::Outputs;
use taskledger_domain::flow::Specification;
use taskledger_domain::task::call::parse_tasks;
use taskledger_domain::task::wiring::{AttemptIds, InputFault, Wiring, split_source};
use taskledger_domain::{RunId, TaskId};

use crate::limits;
use crate::skip::Plan;
use crate::tasks::UnfitTrigger;
use crate::workflow::{Phase, Workflow};

/// The member of a made-up output that says why its attempt fails.
const FAIL: &str = "$fail";

/// Why nothing can be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unplayable {
    /// The run could not be created.
    #[error(transparent)]
    Trigger(#[from] UnfitTrigger),
    /// A phase is not as a task must be: why.
    #[error("the phases cannot become tasks: {0}")]
    Tasks(String),
    /// Outputs are given for a phase that the document has not.
    #[error("there is no phase `{0}`")]
    UnknownPhase(String),
    /// An output is no object.
    #[error("an output of phase `{0}` is not an object; expected an object or a list of objects")]
    NoObject(String),
    /// The outputs take too long to check.
    #[error("the outputs take too long to check against their types")]
    TooCostly,
    /// Inputs and outputs of all steps have more than [`limits::PLAYED_BYTES_MAX`] bytes.
    #[error("the steps hold more than {} bytes", limits::PLAYED_BYTES_MAX)]
    TooLarge,
}

/// The course of a played run: its steps in order, and the end of each phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// `{phase, step, input?, output?, error?}`; `step` is `claim`, `complete`, `reject` or `fail`.
    pub steps: Vec<Value>,
    /// `{phase, status, reason?}` in the order of the document; `reason` says what a phase waits for.
    pub phases: Vec<Value>,
}

impl Workflow {
    /// Plays a run: in each turn the first phase of the document that is ready is claimed and gets its outputs,
    /// `{phase: output | [outputs]}`, one for each completion; `{"$fail": reason}` fails the attempt. Cost: O(size of
    /// the document, the trigger and all steps).
    ///
    /// # Errors
    /// [`Unplayable`]: the caller can mend it.
    pub fn play(
        &self,
        trigger: &Map<String, Value>,
        outputs: &Map<String, Value>,
    ) -> Result<Played, Unplayable> {
        let known = |name: &String| self.phases.iter().any(|phase| phase.name == *name);
        if let Some(name) = outputs.keys().find(|name| !known(name)) {
            return Err(Unplayable::UnknownPhase(crate::node::short(name)));
        }
        let plan = self.plan(trigger).ok_or(UnfitTrigger::TooManySkipped)?;
        let tasks = self.specifications(&plan, trigger)?;
        let mut play = Play::new(self, &plan, tasks);
        while let Some(index) = play.ready.pop_first() {
            let given = match outputs.get(&self.phases[index].name) {
                None => &[],
                Some(Value::Array(list)) => list.as_slice(),
                Some(one) => std::slice::from_ref(one),
            };
            play.phase(index, given)?;
        }
        Ok(play.finish())
    }

    /// Of each phase that is kept, with ids that count the tasks.
    fn specifications(
        &self,
        plan: &Plan,
        trigger: &Map<String, Value>,
    ) -> Result<Vec<Option<(TaskId, Specification)>>, Unplayable> {
        let tasks = Value::Array(self.tasks_of(plan, trigger, None)?);
        let list = parse_tasks(&tasks).map_err(|faults| {
            let first = faults.first();
            let first = first.map(|it| format!("{}: expected {}", it.reason, it.expected));
            Unplayable::Tasks(first.unwrap_or_default())
        })?;
        let mut next = 0_u64;
        let resolved = list.resolve(|_| {
            next += 1;
            let id = TaskId::parse(&format!("00000000-0000-4000-8000-{next:012}"));
            id.expect("twelve digits complete a UUID")
        });
        let resolved = resolved.map_err(|_| Unplayable::Tasks("they are no tree".to_owned()))?;
        let mut by_id: HashMap<_, _> = resolved
            .tasks
            .into_iter()
            .map(|task| (task.id, task.specification))
            .collect();
        // The first is the root.
        let mut ids = resolved.ids.into_iter().skip(1);
        let found = plan.is_skipped.iter().map(|is_skipped| {
            let id = (!is_skipped).then(|| ids.next()).flatten()?;
            Some((id, by_id.remove(&id)?))
        });
        Ok(found.collect())
    }
}

/// How far a phase has come.
#[derive(Clone)]
enum State {
    Pending(Option<String>),
    InProgress,
    Completed(Map<String, Value>),
    Failed,
    Skipped,
}

struct Play<'w> {
    workflow: &'w Workflow,
    /// By phase; `None` for those that are skipped.
    tasks: Vec<Option<(TaskId, Specification)>>,
    by_id: HashMap<TaskId, usize>,
    states: Vec<State>,
    /// Dependencies that have not completed.
    waits: Vec<usize>,
    depends_on: &'w [Vec<usize>],
    dependents: Vec<Vec<usize>>,
    ready: BTreeSet<usize>,
    steps: Vec<Value>,
    bytes_left: usize,
    /// For checks of outputs.
    steps_left: u64,
}

impl<'w> Play<'w> {
    fn new(
        workflow: &'w Workflow,
        plan: &'w Plan,
        tasks: Vec<Option<(TaskId, Specification)>>,
    ) -> Self {
        let count = workflow.phases.len();
        let mut dependents = vec![Vec::new(); count];
        for (i, on) in plan.depends_on.iter().enumerate() {
            on.iter().for_each(|on| dependents[*on].push(i));
        }
        let waits: Vec<usize> = plan.depends_on.iter().map(Vec::len).collect();
        let by_id = tasks.iter().enumerate();
        let by_id = by_id.filter_map(|(i, task)| Some((task.as_ref()?.0, i)));
        let states = plan.is_skipped.iter().map(|is_skipped| match is_skipped {
            true => State::Skipped,
            false => State::Pending(None),
        });
        let is_ready = |i: &usize| waits[*i] == 0 && !plan.is_skipped[*i];
        Self {
            workflow,
            by_id: by_id.collect(),
            states: states.collect(),
            ready: (0..count).filter(is_ready).collect(),
            waits,
            depends_on: &plan.depends_on,
            dependents,
            steps: Vec::new(),
            bytes_left: limits::PLAYED_BYTES_MAX,
            steps_left: limits::VALUE_STEPS_MAX,
            tasks,
        }
    }

    /// Claims a phase, and again after each failure while attempts are left.
    fn phase(&mut self, index: usize, given: &[Value]) -> Result<(), Unplayable> {
        let workflow = self.workflow;
        let phase = &workflow.phases[index];
        let Some((_, specification)) = &self.tasks[index] else {
            return Ok(());
        };
        let declared = specification.schemas.as_ref();
        let declared = declared.and_then(Outputs::of);
        let mut attempts_left = phase.retry.as_ref().map_or(1, |retry| retry.max_attempts);
        let mut given = given.iter();
        for attempt in 1.. {
            self.states[index] = self.claim(index, phase, attempt)?;
            if !matches!(self.states[index], State::InProgress) {
                return Ok(());
            }
            let failure = loop {
                let Some(output) = given.next() else {
                    return Ok(());
                };
                let Some(output) = output.as_object() else {
                    return Err(Unplayable::NoObject(phase.name.clone()));
                };
                if let Some(reason) = output.get(FAIL) {
                    break reason;
                }
                let left = &mut self.steps_left;
                let contract = declared.as_ref();
                let fault = contract.and_then(|it| it.check_within(output, left).err());
                if self.steps_left == 0 {
                    return Err(Unplayable::TooCostly);
                }
                let Some(fault) = fault else {
                    self.step(json!({"phase": phase.name, "step": "complete", "output": output}))?;
                    self.complete(index, output.clone());
                    return Ok(());
                };
                let mut error = json!(fault);
                error["error"] = Value::from(fault.name());
                error["message"] = Value::from(fault.message());
                self.step(json!({
                    "phase": phase.name, "step": "reject", "output": output, "error": error,
                }))?;
            };
            self.step(json!({"phase": phase.name, "step": "fail", "error": failure}))?;
            attempts_left = attempts_left.saturating_sub(1);
            if attempts_left == 0 {
                self.states[index] = State::Failed;
                return Ok(());
            }
        }
        Ok(())
    }

    /// One claim, and how the phase stands then.
    fn claim(&mut self, index: usize, phase: &Phase, attempt: u32) -> Result<State, Unplayable> {
        let Some((task, specification)) = &self.tasks[index] else {
            return Ok(State::Skipped);
        };
        let result = |id: TaskId| match &self.states[*self.by_id.get(&id)?] {
            State::Completed(output) => Some(output),
            State::Pending(_) | State::InProgress | State::Failed | State::Skipped => None,
        };
        // A run that is played has no id: that of its first phase stands for it.
        let first = self.tasks.iter().flatten().next();
        let attempt = AttemptIds {
            task: *task,
            run: RunId(first.map_or(task.0, |(first, _)| first.0)),
            attempt,
        };
        let inputs = Wiring::of(specification).inputs(&specification.inputs, attempt, result);
        match inputs {
            Ok(inputs) => {
                let input = inputs.to_map();
                self.step(json!({"phase": phase.name, "step": "claim", "input": input}))?;
                Ok(State::InProgress)
            }
            Err(InputFault::Unresolvable(refs)) => {
                let refs: Vec<String> = refs.iter().map(|text| self.as_written(text)).collect();
                let reason = format!("no value for {}", refs.join(", "));
                let error = json!({
                    "error": "UnresolvableInputError",
                    "message": reason,
                    "unresolvable_refs": refs,
                });
                self.step(json!({"phase": phase.name, "step": "reject", "error": error}))?;
                Ok(State::Pending(Some(reason)))
            }
            // Another attempt would get the same inputs, so that retries do not count.
            Err(fault @ (InputFault::Unlike(_) | InputFault::Unfit(_))) => {
                let error = fault.to_string();
                self.step(json!({"phase": phase.name, "step": "fail", "error": error}))?;
                Ok(State::Failed)
            }
        }
    }

    /// A reference with the name of the phase in place of its id.
    fn as_written(&self, text: &str) -> String {
        let source = split_source(text);
        let found = source.and_then(|(id, rest)| Some((self.by_id.get(&id)?, rest)));
        match found {
            Some((index, rest)) => format!("{}{rest}", self.workflow.phases[*index].name),
            None => text.to_owned(),
        }
    }

    fn complete(&mut self, index: usize, output: Map<String, Value>) {
        self.states[index] = State::Completed(output);
        for next in std::mem::take(&mut self.dependents[index]) {
            self.waits[next] -= 1;
            if self.waits[next] == 0 {
                self.ready.insert(next);
            }
        }
    }

    fn step(&mut self, step: Value) -> Result<(), Unplayable> {
        let left = self.bytes_left.checked_sub(crate::tasks::bytes(&step));
        self.bytes_left = left.ok_or(Unplayable::TooLarge)?;
        self.steps.push(step);
        Ok(())
    }

    fn finish(self) -> Played {
        let is_open = |on: &&usize| !matches!(self.states[**on], State::Completed(_));
        let phases = self.workflow.phases.iter().zip(&self.states).enumerate();
        let phases = phases.map(|(index, (phase, state))| {
            let (status, reason) = match state {
                State::Completed(_) => ("completed", None),
                State::Failed => ("failed", None),
                State::Skipped => ("skipped", None),
                State::InProgress => ("in_progress", Some("no further output is given".to_owned())),
                State::Pending(Some(reason)) => ("pending", Some(reason.clone())),
                State::Pending(None) => {
                    let open = self.depends_on[index].iter().find(is_open);
                    let open = open.map(|on| &self.workflow.phases[*on].name);
                    let reason = open.map(|name| format!("phase `{name}` has not completed"));
                    ("pending", reason)
                }
            };
            let mut shown = json!({"phase": phase.name, "status": status});
            if let Some(reason) = reason {
                shown["reason"] = Value::from(reason);
            }
            shown
        });
        Played {
            phases: phases.collect(),
            steps: self.steps,
        }
    }
}
