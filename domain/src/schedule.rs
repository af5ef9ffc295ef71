//! The process manager: it adds what follows from the state of a flow without a command.
//!
//! `settle` runs inside the flow's own turn, before the append, so that an outcome and the
//! starts that it makes possible become durable together. [`react`] says what an event, once
//! durable, asks of the outside world; [`resume`] says from the state alone what should be running,
//! which is how a flow that is loaded finds the attempts that a restart has ended. Pure like
//! everything here: time and free slots are given.

pub(crate) mod groups;
mod outside;
mod settle;

use crate::flow::state::{Line, Standing, Task};
use crate::flow::{Capacity, Event, Flow, Turn};
use crate::task::Status;
use crate::{LeaseId, RunId, TaskId, Timestamp, Version};
pub use outside::{Offered, Outside, Waiting};
pub(crate) use settle::{due, gives_up_at, settle};

/// An action that the engine must take because of durable events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Run an attempt.
    Launch(Launch),
    /// Keep the lease of an attempt that a worker outside the server has begun.
    Hold(Leased),
    /// Stop the executor of an attempt that has ended otherwise.
    Stop {
        /// Its executor may have ended by itself meanwhile.
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// Stop whatever an attempt has left outside when it asked something: its task has ended before anybody answered.
    GiveUp {
        /// The attempt that has asked, as it was launched.
        launch: Box<Launch>,
        /// Version of the event with the question.
        asked_at: Version,
    },
}

/// An attempt that is recorded as started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// In progress, unless a later append has ended it already.
    pub task: TaskId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The run that the attempt belongs to.
    pub run_id: RunId,
    /// Name of the executor.
    pub method: String,
    /// Version of the event with the specification.
    pub spec_at: Version,
    /// Version of the event with the name.
    pub name_at: Version,
    /// For each dependency that has ended, which one that is blocked has not: task, version of the event with its name,
    /// version of the one with its outcome.
    pub dependencies: Vec<(TaskId, Version, Version)>,
    /// When the attempt must end at the latest.
    pub deadline: Option<Timestamp>,
    /// The user of the flow's root, to whom the flow belongs.
    pub owner: Option<String>,
}

/// An attempt that is under way outside the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leased {
    /// The task that is held.
    pub task: TaskId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The executor, whose slot it has.
    pub method: String,
    /// Identifies the lease that its worker must present.
    pub lease: LeaseId,
    /// Its worker, by its name.
    pub worker: String,
    /// The principal that may use it; `None` for anybody.
    pub holder: Option<String>,
    /// Until when it holds at least.
    pub expires_at: Timestamp,
    /// When the attempt must have ended, ancestors' deadlines included.
    pub deadline: Option<Timestamp>,
    /// Milliseconds that it holds after a renewal that does not say it.
    pub lease_ms: u64,
    /// Milliseconds that the worker has to stop after a cancel; `None` for the default.
    pub cancel_grace_ms: Option<u64>,
    /// What it has asked people in earlier attempts of the run, and was answered.
    pub turns: Vec<Turn>,
    /// The dependencies that have completed, with the versions of the events that hold their results; the first
    /// [`LEASED_RESULTS_MAX`].
    pub results: Vec<(TaskId, Version)>,
    /// The event that holds the message with which its run began, if it began with one.
    pub origin_at: Option<Version>,
}

/// Results that a lease knows of.
pub const LEASED_RESULTS_MAX: usize = 1_000;

/// What `event` asks for, seen from the state right after the append that holds it: a start that
/// the same append already ended asks for nothing. Cost: O(dependencies of the task).
#[must_use]
pub fn react(flow: &Flow, event: &Event) -> Option<Effect> {
    match event {
        Event::TaskStarted(e) if e.lease.is_some() => {
            let leased = held(flow, flow.live(e.task_id)?)?;
            (leased.attempt == e.attempt).then_some(Effect::Hold(leased))
        }
        Event::TaskStarted(e) => launch(flow, e.task_id, e.attempt).map(Effect::Launch),
        Event::TaskFailed(e) => Some(ends(flow, e.task_id, e.attempt)),
        // It has ended by itself, unless it was an executor of this process that has not noticed.
        Event::TaskSuspended(e) => Some(Effect::Stop {
            task: e.task_id,
            attempt: e.attempt,
        }),
        Event::TaskCancelled(e) => e.attempt.map(|attempt| ends(flow, e.task_id, attempt)),
        Event::TaskCompleted(e) => given_up(flow, e.task_id, e.attempt),
        Event::TaskCreated(_)
        | Event::TaskRenamed(_)
        | Event::PriorityChanged(_)
        | Event::LabelsChanged(_)
        | Event::UserChanged(_)
        | Event::TaskMoved(_)
        | Event::DependenciesChanged(_)
        | Event::TaskRespecified(_)
        | Event::TaskDeleted(_)
        | Event::RunStarted(_)
        | Event::MessageReceived(_)
        | Event::TaskProgressed(_)
        | Event::TaskOutputAppended(_)
        | Event::TaskClaimRejected(_)
        | Event::TaskCompletionRejected(_)
        | Event::TaskReminded(_)
        | Event::TaskAnswered(_)
        | Event::TaskSuspensionExpired(_)
        | Event::TaskRequeued(_)
        | Event::TaskDeferred(_)
        | Event::RunEnded(_)
        | Event::FlowArchived(_) => None,
    }
}

/// Every attempt that is under way outside the server, from the state alone. Cost: O(result).
pub fn leased(flow: &Flow) -> impl Iterator<Item = Leased> {
    flow.leases.keys().filter_map(|i| held(flow, *i))
}

fn held(flow: &Flow, i: u32) -> Option<Leased> {
    let (task, held) = (flow.at(i), flow.leases.get(&i)?);
    Some(Leased {
        task: task.id,
        attempt: task.attempt,
        method: flow.methods.text(task.method)?.to_owned(),
        lease: held.id,
        worker: held.worker.as_ref().to_owned(),
        holder: held.holder.as_deref().map(str::to_owned),
        expires_at: held.expires_at,
        deadline: Some(task.effective_deadline).filter(|d| *d != Timestamp::FAR_FUTURE),
        lease_ms: held.lease_ms,
        cancel_grace_ms: held.cancel_grace_ms,
        turns: flow.turns(task.id).to_vec(),
        results: completed(flow, task),
        origin_at: flow.runs.get(&task.run).and_then(|run| run.origin_at),
    })
}

fn completed(flow: &Flow, task: &Task) -> Vec<(TaskId, Version)> {
    let dependencies = task.dependencies.iter().map(|edge| flow.at(edge.task));
    let completed = dependencies.filter(|it| it.status == Status::Completed);
    let results = completed.map(|it| (it.id, it.outcome_at));
    results.take(LEASED_RESULTS_MAX).collect()
}

/// Every attempt that should be running in this process, from the state alone. Cost: O(members of active runs).
#[must_use]
pub fn resume(flow: &Flow) -> Vec<Effect> {
    let members = flow
        .runs
        .iter()
        .flat_map(|(key, run)| run.members.iter().map(move |&i| (*key, i)));
    members
        .filter(|&(key, i)| flow.at(i).run == key && !flow.at(i).deleted)
        .filter_map(|(_, i)| launch(flow, flow.at(i).id, flow.at(i).attempt))
        .map(Effect::Launch)
        .collect()
}

/// Whether tasks of the flow wait for nothing but an executor. Cost: O(1).
#[must_use]
pub fn has_ready(flow: &Flow) -> bool {
    !flow.ready.is_empty()
}

/// An attempt has ended otherwise than by itself.
fn ends(flow: &Flow, task: TaskId, attempt: u32) -> Effect {
    given_up(flow, task, attempt).unwrap_or(Effect::Stop { task, attempt })
}

/// The attempt has asked something that nobody will answer any more.
fn given_up(flow: &Flow, id: TaskId, attempt: u32) -> Option<Effect> {
    let i = flow.live(id)?;
    let unheard = flow.dialogues.get(&i)?.unheard?;
    if flow.at(i).attempt != attempt {
        return None;
    }
    Some(Effect::GiveUp {
        launch: Box::new(described(flow, i, unheard.run)?),
        asked_at: unheard.asked_at,
    })
}

fn launch(flow: &Flow, id: TaskId, attempt: u32) -> Option<Launch> {
    let i = flow.live(id)?;
    let task = flow.at(i);
    let under_way = task.status == Status::InProgress && task.attempt == attempt;
    if !under_way || flow.leases.contains_key(&i) || flow.open_question(i).is_some() {
        return None;
    }
    described(flow, i, flow.runs.get(&task.run)?.id)
}

fn described(flow: &Flow, i: u32, run_id: RunId) -> Option<Launch> {
    let task = flow.at(i);
    let method = flow.methods.text(task.method)?;
    let targets = task.dependencies.iter().map(|e| flow.at(e.task));
    let ended = targets.filter(|target| target.status.is_terminal());
    let dependencies = ended.map(|target| (target.id, target.name_at, target.outcome_at));
    Some(Launch {
        task: task.id,
        attempt: task.attempt,
        run_id,
        method: method.to_owned(),
        spec_at: task.spec_at,
        name_at: task.name_at,
        dependencies: dependencies.collect(),
        deadline: Some(task.effective_deadline).filter(|d| *d != Timestamp::FAR_FUTURE),
        owner: flow.owner().map(str::to_owned),
    })
}

/// When the flow must be looked at again although nothing happens: a deadline, a time-out of an attempt
/// outside the server, a retry or a start that is
/// due, an executor that has been waited for long enough. `settled_at` is the time of the flow's
/// last turn: what has become due since then is returned, what was ready then waits for a slot.
/// Cost: O(methods with ready tasks); when runs wait differently long, O(tasks that wait for an
/// executor).
#[must_use]
pub fn next_due(flow: &Flow, settled_at: Timestamp, capacity: &dyn Capacity) -> Option<Timestamp> {
    let deadline = flow.deadlines.first().map(|(at, _)| *at);
    let time_out = flow.time_outs.first().map(|(at, _)| *at);
    let start_limit = flow.start_limits.first().map(|(at, _)| *at);
    let suspension = flow.suspension_dues.first().map(|(at, _)| *at);
    let deadline = deadline.into_iter().chain(time_out).chain(start_limit);
    let group = flow.ready_groups.first().map(|(since, _)| *since);
    let deadline = deadline.chain(suspension).chain(group);
    let deadline = deadline.min();
    let unknown = |line: &Line| flow.standing(*line, capacity) == Standing::Unknown;
    if settle::waits_differ(flow) {
        let queues = flow.ready.iter().filter(|(line, _)| unknown(line));
        let gives_up =
            queues.flat_map(|(_, queue)| queue.iter().map(|r| settle::gives_up_at(flow, *r)));
        let delayed = flow
            .ready
            .values()
            .flat_map(settle::firsts)
            .map(|r| r.since);
        return gives_up
            .chain(delayed)
            .chain(deadline)
            .filter(|at| *at > settled_at)
            .min();
    }
    let ready = flow.ready.iter().flat_map(|(line, queue)| {
        let unknown = unknown(line);
        settle::firsts(queue).filter_map(move |rank| {
            if rank.since > settled_at {
                Some(rank.since)
            } else if unknown {
                Some(settle::gives_up_at(flow, rank))
            } else {
                None // It waits for a slot, and a free slot wakes the flow.
            }
        })
    });
    ready.chain(deadline).min()
}
