//! `tasks.explain`: why a task is not running, or why it ended as it did, in one answer.
//!
//! The state says the reasons (`domain::flow::explain`), the log names and errors, the slots who is
//! ahead, the read models the attempts. Each list is bounded, and says how many it leaves out. The words
//! are those of the door that asks.

mod facts;
mod finding;
mod queues;

use super::App;
use super::api::{Explained, Lineage};
use super::context::Context;
use super::error::Error;
use super::guard::sees;
use super::known_executors::KnownExecutors;
use super::queries::Consistency;
use super::readings::failed;
use super::sending::engine_metadata;
use super::task_names::TaskNames;
pub use facts::{Facts, TaskEnd, TaskOutcome};
pub use queues::{Ahead, AwaitedWorkers, Queue, SlotHolder};
use std::sync::Arc;
use taskledger_auth::Reach;
use taskledger_domain::flow::explain::{Again, Explanation, Reason};
use taskledger_domain::flow::{Argument, Refusal};
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, TaskId};
use taskledger_projections::{Attempt, RunSummary};

/// Attempts shown, the latest ones.
pub const ATTEMPTS_MAX: u32 = 20;
/// Tasks of other flows that [`AwaitedWorkers`] counts.
const TASKS_AHEAD_MAX: usize = 1000;

impl App {
    /// Why a task stands as it does. Cost: that of [`Flow::explain`](taskledger_domain::flow::Flow::explain), in
    /// the flow's turn; the rest is bounded.
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a task that does not exist (any more).
    pub async fn explain(&self, context: &Context, task: TaskId) -> Result<Explained, Error> {
        let flow = self.flow_of(Argument::Task, task).await?;
        let (now, slots) = (self.clock.now(), self.flows.slots().clone());
        let reach = context.caller.reach();
        let look = move |state: &taskledger_domain::flow::Flow| {
            if !sees(&reach, state) {
                return None;
            }
            let explanation = state.explain(task, now, &slots.view(state.owner()))?;
            Some((explanation, state.owner().map(Arc::<str>::from)))
        };
        let found = self.flows.look(flow, engine_metadata(), look).await?;
        let Some((mut explanation, owner)) = found else {
            return Err(self.missing(context, Argument::Task, task, flow).await);
        };
        self.name_references(flow, &mut explanation).await?;
        let facts = self.explained_facts(flow, &explanation).await?;
        let attempts = self.attempts_of(&explanation).await?;
        let last_run = self.last_run(&explanation).await?;
        let skipped = self.skipped_of(&explanation).await?;
        let queue = self
            .queue_of(context, (flow, owner.as_deref()), &explanation)
            .await?;
        let workers = self.workers_of(context, (flow, owner.as_ref()), &explanation);
        let lineage = self.lineage_of(flow, &explanation).await?;
        let (lineage, input) = lineage.map_or((None, None), |it| (Some(it.origins), it.input));
        Ok(Explained {
            flow,
            facts,
            attempts,
            last_run,
            queue,
            workers,
            lineage,
            input,
            skipped,
            executors: self.known_beside(&explanation),
            explanation,
            is_draining: self.flows.slots().is_held_back(),
            is_stopping: self.flows.slots().is_stopping(),
        })
    }

    /// The executors that there are, for a task that names one that there is not, or would run one that does. Cost:
    /// that of [`KnownExecutors::beside`].
    fn known_beside(&self, e: &Explanation) -> Option<KnownExecutors> {
        let executors = self.validation.executors();
        let unknown: Vec<&str> = e.reasons.iter().find_map(|reason| unknown_of(e, reason))?;
        Some(KnownExecutors::beside(&*executors, unknown.into_iter()))
    }

    /// Puts names of tasks in place of ids into the references that have no value.
    async fn name_references(
        &self,
        flow: FlowId,
        explanation: &mut Explanation,
    ) -> Result<(), Error> {
        for reason in &mut explanation.reasons {
            if let Reason::LacksInputs { refs, .. } = reason {
                *refs = TaskNames::new(self, flow).all_readable(refs).await?;
            }
        }
        Ok(())
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

    /// Where the inputs of the latest attempt came from.
    async fn lineage_of(&self, flow: FlowId, e: &Explanation) -> Result<Option<Lineage>, Error> {
        if e.attempt == 0 {
            return Ok(None);
        }
        self.latest_lineage(flow, e.task.id, e.spec_at).await
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

    /// The pending tasks of an explanation that their run has ended without. Cost: a read for each of them, at most
    /// [`LISTED_MAX`](taskledger_domain::flow::explain::LISTED_MAX) + 1.
    async fn skipped_of(&self, e: &Explanation) -> Result<Vec<TaskId>, Error> {
        let mut pending = Vec::new();
        for reason in &e.reasons {
            if let Reason::NotCovered { .. } = reason {
                pending.push(e.task.id);
            } else if let Reason::Failed { not_done, .. } = reason {
                pending.extend(not_done.items.iter().map(|task| task.id));
            }
        }
        if pending.is_empty() {
            return Ok(pending);
        }
        self.await_task(Argument::Task, e.task.id, Consistency::Strong)
            .await?;
        let mut skipped = Vec::new();
        for task in pending {
            let view = self.queries.get(task).await.map_err(failed)?;
            skipped.extend(view.is_some_and(|view| view.skipped).then_some(task));
        }
        Ok(skipped)
    }

    /// The line that the task stands in.
    async fn queue_of(
        &self,
        context: &Context,
        flow: (FlowId, Option<&str>),
        e: &Explanation,
    ) -> Result<Option<Queue>, Error> {
        let place = e.reasons.iter().find_map(|r| match r {
            Reason::WaitsForSlot(place) => Some(*place),
            Reason::NotCovered { .. }
            | Reason::Blocked(_)
            | Reason::WaitsForDependencies(_)
            | Reason::WaitsForRetry { .. }
            | Reason::WaitsForTime(_)
            | Reason::WaitsForExecutor { .. }
            | Reason::WaitsForWorker { .. }
            | Reason::LacksInputs { .. }
            | Reason::WaitsForDescendants(_)
            | Reason::Running
            | Reason::Suspended(_)
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
            let flow = self.directory.flow_of(*task).await?;
            if !self.is_of_the_caller(context, flow).await? {
                continue;
            }
            let holder = SlotHolder {
                task: *task,
                attempt: *attempt,
                root: flow.map(FlowId::root),
                name: self.name_of(*task).await?,
            };
            holders.push(holder);
        }
        Ok(Some(Queue {
            place,
            limit: line.limit,
            running: Some(line.running),
            flows_ahead: Ahead::Counted {
                count: line.flows_ahead,
                more: line.more_flows_ahead,
            },
            fair_share: line.fair_share,
            holders,
        })
        .map(|queue| match context.caller.reach() {
            Reach::All => queue,
            Reach::Of(_) => queue.in_steps(),
        }))
    }

    /// What this node knows of the workers that the task waits for.
    fn workers_of(
        &self,
        context: &Context,
        (flow, owner): (FlowId, Option<&Arc<str>>),
        e: &Explanation,
    ) -> Option<AwaitedWorkers> {
        let rank = e.reasons.iter().find_map(|reason| {
            if let Reason::WaitsForWorker { place, .. } = reason {
                Some((place.priority, place.since))
            } else {
                None
            }
        })?;
        let slots = self.flows.slots();
        let view = slots.view(owner.map(|owner| &**owner));
        let method = &view.key(e.method.as_deref()?);
        let offers = &self.flows.offers;
        let figures = offers.figures().get(method).copied().unwrap_or_default();
        let ahead = |of: &Reach| {
            let ahead = offers.ahead(method, (rank, flow), of, TASKS_AHEAD_MAX + 1);
            Ahead::Counted {
                count: ahead.min(TASKS_AHEAD_MAX),
                more: ahead > TASKS_AHEAD_MAX,
            }
        };
        let of_all = ahead(&Reach::All);
        let own_ahead = match (context.caller.reach(), owner) {
            (Reach::Of(_), Some(owner)) => ahead(&Reach::Of(owner.clone())),
            (Reach::Of(_), None) | (Reach::All, _) => of_all,
        };
        let limit = slots.claim_limits().get(method).copied();
        let workers = AwaitedWorkers {
            owner: owner.cloned(),
            asking: 0,
            drained: 0,
            last_asked_at: None,
            silent_ms: None,
            running: Some(figures.leased),
            limit,
            tasks_ahead: of_all,
            own_ahead,
            is_full: limit.is_some() && offers.is_full(method),
            fair_share: offers.is_fair(),
        };
        Some(match context.caller.reach() {
            Reach::All => workers,
            Reach::Of(_) => workers.in_steps(),
        })
    }

    /// Whether the caller sees a flow that another one waits for.
    async fn is_of_the_caller(
        &self,
        context: &Context,
        flow: Option<FlowId>,
    ) -> Result<bool, Error> {
        let reach = context.caller.reach();
        match (&reach, flow) {
            (Reach::All, _) => Ok(true),
            (Reach::Of(_), None) => Ok(false),
            (Reach::Of(_), Some(flow)) => {
                let owner = self.queries.owner_of(flow).await.map_err(failed)?;
                Ok(reach.covers(owner.flatten().as_deref()))
            }
        }
    }
}

impl App {
    /// The name of a task that may be of any flow, as it is now; `None` when it was deleted.
    pub(super) async fn name_of(&self, task: TaskId) -> Result<Option<Arc<str>>, Error> {
        if let Some(name) = self.rows.name_of(task) {
            return Ok(Some(name));
        }
        self.await_task(Argument::Task, task, Consistency::Strong)
            .await?;
        let view = self.queries.get(task).await.map_err(failed)?;
        Ok(view.map(|view| view.row.name.clone()))
    }
}

/// The methods that no executor has, if that is what keeps a task from being run.
fn unknown_of<'e>(e: &'e Explanation, reason: &'e Reason) -> Option<Vec<&'e str>> {
    if let Reason::WaitsForExecutor { .. } = reason {
        return e.method.as_deref().map(|method| vec![method]);
    }
    if let Reason::NotCovered { execute } = reason
        && let Again::Refused(Refusal::ExecutorsNotFound(unknown)) = execute
    {
        return Some(unknown.iter().map(|it| &*it.method).collect());
    }
    None
}
