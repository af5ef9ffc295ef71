//! Checks, when a task is changed, whether results that exist already hold the values that it needs: a task that lacks
//! a value is offered to no worker. What comes later is looked at where it is recorded (`domain/src/flow/wires.rs`).

use super::App;
use super::api::Consistency;
use super::context::Context;
use super::error::Error;
use super::sending::engine_metadata;
use taskledger_domain::flow::{Flow, Looked, Specification, Update};
use taskledger_domain::task::Status;
use taskledger_domain::task::wiring::{self, Wiring};
use taskledger_domain::{FlowId, TaskId, Version};

impl App {
    /// Looks for what a task needs, as it will be, in the results of dependencies that have completed; `None` for one
    /// whose inputs are all literal, or whose references name no dependencies, which the rules refuse. Cost: a turn of
    /// the flow, and a read of each such result, one at a time.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn look_into_results(
        &self,
        context: &Context,
        flow: FlowId,
        current: Option<&(Version, Specification)>,
        update: &Update,
    ) -> Result<Option<Looked>, Error> {
        let Some((_, specification)) = current else {
            return Ok(None);
        };
        let specification = specification.clone().updated(&update.updates);
        if !wiring::is_wired(&specification) {
            return Ok(None);
        }
        let (task, given) = (update.task, update.dependencies.clone());
        let look = move |state: &Flow| given.clone().or_else(|| state.dependencies_of(task));
        let Some(dependencies) = self.flows.look(flow, engine_metadata(), look).await? else {
            return Ok(None);
        };
        let id = |text: &str| TaskId::parse(text).ok();
        let Ok(Some(resolved)) = wiring::resolve(&specification, &dependencies, id) else {
            return Ok(None);
        };
        let wiring = Wiring::of(&resolved);
        let sources: Vec<TaskId> = wiring.sources().collect();
        let look = move |state: &Flow| -> Vec<TaskId> {
            let completed = |id: &TaskId| {
                let task = state.task(*id);
                task.is_some_and(|task| task.status == Status::Completed)
            };
            sources.iter().copied().filter(completed).collect()
        };
        let completed = self.flows.look(flow, engine_metadata(), look).await?;
        let mut looked = Looked::default();
        for source in completed {
            let row = match self.get(context, source, Consistency::Strong).await {
                Ok(view) => view.row,
                // It is gone; a claim finds out what follows.
                Err(Error::Refused(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            let Some(result) = &row.result else {
                return Ok(None);
            };
            let result = result.to_map();
            let absent = wiring.absent(|id| (id == source).then_some(&result));
            looked.absent.extend(absent);
            looked.at.push(source);
        }
        Ok(Some(looked))
    }
}
