//! `tasks.explain`: why a task is not running, or why it ended as it did, in one answer.
//!
//! The state says the reasons (`domain::flow::explain`), the log names and errors, the slots who is
//! ahead, the read models the attempts. Each list is bounded, and says how many it leaves out.

mod facts;
mod reasons;
mod steps;

use super::App;
use super::commands::{Answer, raw};
use super::error::Error;
use super::queries::Consistency;
use super::readings::failed;
use super::sending::engine_metadata;
use facts::Facts;
use reasons::{Said, Speaker};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::flow::explain::{Explanation, Place, Reason};
use taskledger_domain::flow::{Argument, Refusal};
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, TaskId};
use taskledger_projections::{Attempt, RunSummary};

/// How the door words why a run would be refused.
pub type Wording = fn(&Refusal) -> String;

/// Attempts shown, the latest ones.
pub const ATTEMPTS_MAX: u32 = 20;

#[derive(Serialize)]
struct Explained<'a> {
    task_id: TaskId,
    root_task_id: TaskId,
    name: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    executor: Option<&'a str>,
    summary: String,
    reasons: Vec<Said>,
    attempt: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<Attempt>,
    #[serde(skip_serializing_if = "is_zero")]
    more_attempts: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl App {
    /// `tasks.explain`. Cost: that of [`Flow::explain`](taskledger_domain::flow::Flow::explain), in
    /// the flow's turn; the rest is bounded. `wording` is for steps that would be refused now.
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a task that does not exist (any more).
    pub async fn explain(&self, task: TaskId, wording: Wording) -> Answer {
        let flow = self.flow_of(Argument::Task, task).await?;
        let (now, slots) = (self.clock.now(), self.flows.slots().clone());
        let look =
            move |state: &taskledger_domain::flow::Flow| state.explain(task, now, &slots.view());
        let found = self.flows.look(flow, engine_metadata(), look).await?;
        let Some(explanation) = found else {
            return Err(self.missing(Argument::Task, task, flow).await);
        };
        let facts = self.explained_facts(flow, &explanation).await?;
        let attempts = self.attempts_of(&explanation).await?;
        let last_run = self.last_run(&explanation).await?;
        let line = self.line_of(flow, &explanation).await?;
        let speaker = Speaker {
            e: &explanation,
            facts: &facts,
            attempt: attempts.last(),
            last_run: last_run.as_ref(),
            line: line.as_ref(),
            wording,
        };
        let reasons = speaker.reasons();
        Ok(raw(&explained(
            flow,
            &explanation,
            &facts,
            reasons,
            attempts,
        )))
    }

    /// The attempts that the explanation knows of: later ones belong to a later state.
    async fn attempts_of(&self, e: &Explanation) -> Result<Vec<Attempt>, Error> {
        if e.attempt == 0 {
            return Ok(Vec::new());
        }
        self.await_task(Argument::Task, e.task.id, Consistency::Strong)
            .await?;
        let found = self.queries.attempts(e.task.id, ATTEMPTS_MAX).await;
        let mut attempts = found.map_err(failed)?;
        attempts.retain(|a| a.attempt <= e.attempt);
        if let Some(latest) = attempts.last_mut()
            && e.task.status == Status::InProgress
        {
            // It may have ended since.
            (latest.ended_at, latest.outcome) = (None, None);
            (latest.reason, latest.error) = (None, None);
        }
        Ok(attempts)
    }

    /// The latest run that covered a task which no run covers now.
    async fn last_run(&self, e: &Explanation) -> Result<Option<RunSummary>, Error> {
        let uncovered = |r: &Reason| matches!(r, Reason::NotCovered { .. });
        if !e.reasons.iter().any(uncovered) {
            return Ok(None);
        }
        self.await_task(Argument::Task, e.task.id, Consistency::Strong)
            .await?;
        let view = self.queries.get(e.task.id).await.map_err(failed)?;
        match view.and_then(|view| view.row.run_id) {
            Some(run) => self.queries.run(run).await.map_err(failed),
            None => Ok(None),
        }
    }

    /// The line that the task stands in, in words for the answer.
    async fn line_of(&self, flow: FlowId, e: &Explanation) -> Result<Option<Queue>, Error> {
        let place = e.reasons.iter().find_map(|r| match r {
            Reason::WaitsForSlot(place) => Some(*place),
            Reason::NotCovered { .. }
            | Reason::Blocked(_)
            | Reason::WaitsForDependencies(_)
            | Reason::WaitsForRetry { .. }
            | Reason::WaitsForExecutor { .. }
            | Reason::WaitsForWorker { .. }
            | Reason::WaitsForDescendants(_)
            | Reason::Running
            | Reason::Completed
            | Reason::Failed { .. }
            | Reason::Cancelled { .. } => None,
        });
        let (Some(place), Some(method)) = (place, e.method.as_deref()) else {
            return Ok(None);
        };
        let rank = (place.priority, place.since);
        let line = self.flows.slots().line(method, flow, rank);
        let mut holders = Vec::with_capacity(line.holders.len());
        for (task, attempt) in &line.holders {
            let mut holder = json!({"task_id": task, "attempt": attempt});
            if let Some(flow) = self.directory.flow_of(*task).await? {
                holder["root_task_id"] = json!(flow.root());
            }
            if let Some(name) = self.holder_name(*task).await? {
                holder["name"] = json!(&*name);
            }
            holders.push(holder);
        }
        Ok(Some(Queue {
            place,
            limit: line.limit,
            running: line.running,
            flows_ahead: line.flows_ahead,
            more_flows_ahead: line.more_flows_ahead,
            holders,
        }))
    }
}

impl App {
    /// The name of a task that may be of any flow; `None` when it was deleted meanwhile.
    async fn holder_name(&self, task: TaskId) -> Result<Option<Arc<str>>, Error> {
        if let Some(name) = self.rows.name_of(task) {
            return Ok(Some(name));
        }
        self.await_task(Argument::Task, task, Consistency::Strong)
            .await?;
        let view = self.queries.get(task).await.map_err(failed)?;
        Ok(view.map(|view| view.row.name.clone()))
    }
}

/// The line for an executor.
#[derive(Debug)]
struct Queue {
    place: Place,
    limit: usize,
    running: usize,
    flows_ahead: usize,
    more_flows_ahead: bool,
    holders: Vec<Value>,
}

fn explained<'a>(
    flow: FlowId,
    e: &'a Explanation,
    facts: &'a Facts,
    reasons: Vec<Said>,
    attempts: Vec<Attempt>,
) -> Explained<'a> {
    let name = facts.name(&e.task);
    let first = reasons.first().map_or("", |r| &*r.message);
    Explained {
        task_id: e.task.id,
        root_task_id: flow.root(),
        name,
        status: e.task.status,
        executor: e.method.as_deref(),
        summary: format!("`{name}` {first}"),
        reasons,
        attempt: e.attempt,
        more_attempts: e
            .attempt
            .saturating_sub(u32::try_from(attempts.len()).unwrap_or(u32::MAX)),
        attempts,
    }
}
