//! `workflows.progress`: the progress of everything below a task. The state counts, the read models know the names.

use super::App;
use super::api::RunProgress;
use super::api::workflows::{LackingPhase, RunOf, SuspendedPhase};
use super::context::Context;
use super::error::Error;
use super::guard::sees;
use super::queries::Consistency;
use super::sending::engine_metadata;
use super::task_names::TaskNames;
use taskledger_domain::flow::Argument;
use taskledger_domain::{Payload, TaskId};

impl App {
    /// How far everything below a task has come. Cost: O(tasks below it), in the flow's turn, and a look-up for each
    /// name, at most 1,000.
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a task that does not exist (any more).
    pub async fn overview(&self, context: &Context, task: TaskId) -> Result<RunProgress, Error> {
        let flow = self.flow_of(Argument::Root, task).await?;
        let (now, slots) = (self.clock.now(), self.flows.slots().clone());
        let reach = context.caller.reach();
        let look = move |state: &taskledger_domain::flow::Flow| {
            let is_seen = sees(&reach, state);
            is_seen.then(|| state.overview(task, now, &slots.view(state.owner())))?
        };
        let found = self.flows.look(flow, engine_metadata(), look).await?;
        let Some(overview) = found else {
            return Err(self.missing(context, Argument::Root, task, flow).await);
        };
        let mut names = TaskNames::new(self, flow);
        let mut suspended = Vec::with_capacity(overview.suspended.items.len());
        for (task, waits) in overview.suspended.items {
            suspended.push(SuspendedPhase {
                task: task.id,
                name: names.of(task.id).await?,
                waits,
            });
        }
        let mut lacking = Vec::with_capacity(overview.lacking.items.len());
        for (task, stored) in overview.lacking.items {
            lacking.push(LackingPhase {
                task: task.id,
                name: names.of(task.id).await?,
                refs: names.all_readable(&stored).await?,
            });
        }
        let view = self.get(context, task, Consistency::Strong).await?;
        let params = view.row.params.as_ref().map(Payload::to_map);
        Ok(RunProgress {
            task,
            status: overview.task.status,
            progress: overview.progress,
            counts: overview.counts,
            suspended,
            more_suspended: overview.suspended.more,
            lacking,
            more_lacking: overview.lacking.more,
            skipped: view.run.and_then(|run| run.skipped()),
            run_of: params.and_then(|params| RunOf::read(&params)),
        })
    }
}
