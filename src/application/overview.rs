//! `workflows.progress`: how far everything below a task has come. The state counts, the read models know the names.

use super::App;
use super::api::RunProgress;
use super::api::workflows::{LackingPhase, SuspendedPhase};
use super::context::Context;
use super::error::Error;
use super::guard::sees;
use super::sending::engine_metadata;
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::TaskId;
use taskledger_domain::flow::Argument;
use taskledger_domain::task::wiring::split_source;

/// Names of tasks that one answer looks up; further ones are shown by their ids.
const NAMES_MAX: usize = 1_000;

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
            is_seen.then(|| state.overview(task, now, &slots.view()))?
        };
        let found = self.flows.look(flow, engine_metadata(), look).await?;
        let Some(overview) = found else {
            return Err(self.missing(context, Argument::Root, task, flow).await);
        };
        let mut names = Names {
            app: self,
            known: HashMap::new(),
        };
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
            let mut refs = Vec::with_capacity(stored.len());
            for reference in stored {
                refs.push(names.readable(reference).await?);
            }
            lacking.push(LackingPhase {
                task: task.id,
                name: names.of(task.id).await?,
                refs,
            });
        }
        Ok(RunProgress {
            task,
            status: overview.task.status,
            progress: overview.progress,
            counts: overview.counts,
            suspended,
            more_suspended: overview.suspended.more,
            lacking,
            more_lacking: overview.lacking.more,
        })
    }
}

/// Names of tasks, each looked up once.
struct Names<'a> {
    app: &'a App,
    known: HashMap<TaskId, Option<Arc<str>>>,
}

impl Names<'_> {
    async fn of(&mut self, task: TaskId) -> Result<Option<Arc<str>>, Error> {
        if let Some(known) = self.known.get(&task) {
            return Ok(known.clone());
        }
        if self.known.len() >= NAMES_MAX {
            return Ok(None);
        }
        let name = self.app.name_of(task).await?;
        self.known.insert(task, name.clone());
        Ok(name)
    }

    /// A stored reference with the name of the task in place of its id.
    async fn readable(&mut self, stored: String) -> Result<String, Error> {
        let Some((task, rest)) = split_source(&stored) else {
            return Ok(stored);
        };
        Ok(match self.of(task).await? {
            Some(name) => format!("{name}{rest}"),
            None => stored,
        })
    }
}
