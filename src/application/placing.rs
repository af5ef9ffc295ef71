//! Finds the flow of a call, and checks that the ids that the call chooses are free.

use super::App;
use super::context::Context;
use super::error::Error;
use super::guard::sees;
use super::readings::failed;
use super::sending::engine_metadata;
use taskledger_auth::Reach;
use taskledger_domain::flow::{Archived, Argument, CallTask, Event, Flow, ParentFault, Refusal};
use taskledger_domain::task::call::{Fresh, ResolvedTasks, TaskList};
use taskledger_domain::{FlowId, Recorded, TaskId, Version};

/// What a caller is told to wait while the read models catch up after the start, in milliseconds.
const CATCHING_UP_RETRY_MS: u64 = 500;

impl App {
    /// A new id; that of a new flow is one that this node decides about, if it can be.
    pub(super) fn fresh(&self, place: Fresh) -> TaskId {
        let clock = &self.clock;
        TaskId(match place {
            Fresh::Root => self.flows.ownership().mint(&|| clock.uuid()),
            Fresh::Below => clock.uuid(),
        })
    }

    /// The flow of a stored task, given as `argument`.
    pub(super) async fn flow_of(&self, argument: Argument, task: TaskId) -> Result<FlowId, Error> {
        self.directory
            .flow_of(task)
            .await?
            .ok_or_else(|| Refusal::not_found(argument, task).into())
    }

    /// Why a task that was looked for in its flow is not there. Where archived flows have gone is told to
    /// those who see the flows of all users. Cost: one look at the log.
    pub(super) async fn missing(
        &self,
        context: &Context,
        argument: Argument,
        task: TaskId,
        flow: FlowId,
    ) -> Error {
        if let Some(position) = self.projections.catching_up_to() {
            return Error::Busy {
                reason: format!(
                    "the read models have not caught up since the start; they follow the log to position {position}"
                ),
                retry_after_ms: CATCHING_UP_RETRY_MS,
            };
        }
        if context.caller.reach() != Reach::All {
            return Refusal::not_found(argument, task).into();
        }
        match self.archived(flow).await {
            Ok(Some(archived)) => Refusal::archived(argument, task, &archived).into(),
            Ok(None) => Refusal::not_found(argument, task).into(),
            Err(error) => error,
        }
    }

    /// Refuses a task of somebody else's flow as if it did not exist. To be called when the read models show
    /// what the caller may have to see. Cost: O(1), nothing for callers who see all flows.
    ///
    /// # Errors
    /// `Refused`; `Failed` when the read models cannot be read.
    pub(super) async fn is_seen(
        &self,
        context: &Context,
        argument: Argument,
        task: TaskId,
        flow: FlowId,
    ) -> Result<(), Error> {
        let reach = context.caller.reach();
        if reach == Reach::All {
            return Ok(());
        }
        if self.projections.catching_up_to().is_some() {
            // The rows may lack the flow.
            let foreign = || Refusal::not_found(argument, task);
            return self.is_owned(context, flow, foreign).await;
        }
        let owner = self.queries.owner_of(flow).await.map_err(failed)?;
        if reach.covers(owner.flatten().as_deref()) {
            return Ok(());
        }
        Err(Refusal::not_found(argument, task).into())
    }

    /// The same by the log: also for flows whose tasks were deleted, on any node. Cost: a look at the flow,
    /// nothing for callers who see all flows.
    ///
    /// # Errors
    /// As [`Self::is_seen`].
    pub(super) async fn is_owned(
        &self,
        context: &Context,
        flow: FlowId,
        foreign: impl FnOnce() -> Refusal,
    ) -> Result<(), Error> {
        let Some(look) = ownership(context) else {
            return Ok(());
        };
        let seen = self.flows.look_anywhere(flow, engine_metadata(), look);
        seen.await?.then_some(()).ok_or_else(|| foreign().into())
    }

    /// The same for a command, on the node that owns the flow.
    ///
    /// # Errors
    /// As [`Self::is_owned`]; `Elsewhere`.
    pub(super) async fn is_owned_here(
        &self,
        context: &Context,
        flow: FlowId,
        foreign: impl FnOnce() -> Refusal,
    ) -> Result<(), Error> {
        let Some(look) = ownership(context) else {
            return Ok(());
        };
        let seen = self.flows.look(flow, engine_metadata(), look);
        seen.await?.then_some(()).ok_or_else(|| foreign().into())
    }

    /// Where a flow has gone, if it was archived. Cost: one look at the log.
    pub(super) async fn archived(&self, flow: FlowId) -> Result<Option<Archived>, Error> {
        let last = self
            .store
            .read_stream_back(flow, Version::MAX, 1, usize::MAX);
        let last = last.await?;
        Ok(last.first().and_then(|recorded| archived(recorded)))
    }

    /// The flow that new tasks begin or join.
    pub(super) async fn flow_for(&self, resolved: &ResolvedTasks) -> Result<FlowId, Error> {
        let Some(parent) = resolved.joins else {
            return Ok(resolved.tasks[0].id.as_flow());
        };
        self.flow_of_parent(parent).await
    }

    /// The flow of a stored task that is to have new children.
    pub(super) async fn flow_of_parent(&self, parent: TaskId) -> Result<FlowId, Error> {
        let flow = self.directory.flow_of(parent).await?;
        let unknown = || Refusal::InvalidParent(vec![ParentFault::NotStored { parent }]).into();
        flow.ok_or_else(unknown)
    }

    /// The ids of the caller's choice that a task has or ever had. Asked before the tasks are
    /// put into a tree: what is wrong in itself is told before faults of the tree.
    pub(super) async fn taken(&self, list: &TaskList) -> Result<Vec<(CallTask, TaskId)>, Error> {
        let mut taken = Vec::new();
        for (task, id) in list.chosen_ids() {
            if self.directory.flow_of(id).await?.is_some() {
                taken.push((task, id));
            }
        }
        Ok(taken)
    }
}

/// A look at whether a flow is within reach; `None` for callers who see all flows.
fn ownership(context: &Context) -> Option<impl Fn(&Flow) -> bool + Clone + Send + 'static> {
    let reach = context.caller.reach();
    (reach != Reach::All).then_some(move |state: &Flow| sees(&reach, state))
}

/// What the last event of an archived flow says.
pub(super) fn archived(recorded: &Recorded) -> Option<Archived> {
    let Event::FlowArchived(copy) = &*recorded.event else {
        return None;
    };
    Some(Archived {
        at: recorded.time,
        copy: copy.clone(),
    })
}
