//! Reads of tasks. Any node answers them.

use super::{Access, Service};
use crate::application::api::{
    AsOf, Consistency, Encoded, EventsPage, EventsQuery, Lineage, Page, Then, TreeEncoder,
};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::error::Error;
use std::collections::{HashMap, HashSet};
use taskledger_domain::{FlowId, RunId, TaskId};
use taskledger_projections::{ListFilter, Order, Start, TaskView};

impl Service {
    /// A task as it is.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(
        &self,
        context: &Context,
        task: TaskId,
        consistency: Consistency,
    ) -> Result<TaskView, Error> {
        self.admit(context, UseCase::GetTask)?;
        let view = self.app.get(context, task, consistency).await?;
        let (flow, owner) = (view.row.flow_id, view.row.owner.as_deref());
        self.access.read(context, flow, owner);
        Ok(view)
    }

    /// The same with what its latest attempt worked on, if some of that came from results. Cost: the task's own events,
    /// and the results.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get_with_input(
        &self,
        context: &Context,
        task: TaskId,
        consistency: Consistency,
    ) -> Result<(TaskView, Option<Lineage>), Error> {
        // Counted twice against the rate: it reads more.
        self.admit(context, UseCase::GetTask)?;
        let view = self.get(context, task, consistency).await?;
        let lineage = self.app.lineage_of_task(view.row.flow_id, task).await?;
        Ok((view, lineage))
    }

    /// A task as it was.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get_as_of(
        &self,
        context: &Context,
        task: TaskId,
        at: AsOf,
    ) -> Result<Then, Error> {
        self.admit(context, UseCase::GetTask)?;
        let then = self.app.get_as_of(context, task, at).await?;
        Box::pin(self.was_read(context, task)).await;
        Ok(then)
    }

    /// Tasks that match a filter, page by page.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(
        &self,
        context: &Context,
        filter: ListFilter,
        order: Order,
        start: Start,
        limit: u32,
        consistency: Consistency,
    ) -> Result<Page, Error> {
        self.admit(context, UseCase::ListTasks)?;
        let list = self
            .app
            .list(context, filter, order, start, limit, consistency);
        let page = list.await?;
        if Access::notes_reads(context) {
            let rows = page.tasks.iter().map(|view| &view.row);
            let owners: HashMap<FlowId, Option<&str>> = rows
                .map(|row| (row.flow_id, row.owner.as_deref()))
                .collect();
            for (flow, owner) in owners {
                self.access.read(context, flow, owner);
            }
        }
        Ok(page)
    }

    /// A task with everything below it, as `encoder` writes it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tree(
        &self,
        context: &Context,
        task: TaskId,
        consistency: Consistency,
        encoder: impl TreeEncoder,
    ) -> Result<Encoded, Error> {
        self.admit(context, UseCase::GetTree)?;
        let tree = self.app.tree(context, task, consistency, encoder).await?;
        Box::pin(self.was_read(context, task)).await;
        Ok(tree)
    }

    /// A task with everything below it, as they were, as `encoder` writes it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tree_as_of(
        &self,
        context: &Context,
        task: TaskId,
        at: AsOf,
        encoder: impl TreeEncoder,
    ) -> Result<Encoded, Error> {
        self.admit(context, UseCase::GetTree)?;
        let tree = self.app.tree_as_of(context, task, at, encoder).await?;
        Box::pin(self.was_read(context, task)).await;
        Ok(tree)
    }

    /// The children of a task, as `encoder` writes them.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn children(
        &self,
        context: &Context,
        parent: TaskId,
        consistency: Consistency,
        encoder: impl TreeEncoder,
    ) -> Result<Encoded, Error> {
        self.admit(context, UseCase::GetChildren)?;
        let children = self
            .app
            .children(context, parent, consistency, encoder)
            .await?;
        Box::pin(self.was_read(context, parent)).await;
        Ok(children)
    }

    /// What happened in the flows that the caller sees.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn events(&self, context: &Context, query: EventsQuery) -> Result<EventsPage, Error> {
        self.admit(context, UseCase::QueryEvents)?;
        let page = Box::pin(self.app.events(context, query)).await?;
        let flows = page.events.iter().map(|event| event.flow);
        Box::pin(self.flows_were_read(context, flows)).await;
        Ok(page)
    }

    /// Notes that the flow of a task was read by somebody else than its owner. Cost: nothing for those who see
    /// their own flows only, else as [`Self::flow_was_read`].
    pub(super) async fn was_read(&self, context: &Context, task: TaskId) {
        if !Access::notes_reads(context) {
            return;
        }
        let Ok(Some(flow)) = self.app.directory.flow_of(task).await else {
            return;
        };
        self.flow_was_read(context, flow).await;
    }

    /// The same of flows. Cost: that of each flow.
    pub(super) async fn flows_were_read(
        &self,
        context: &Context,
        flows: impl Iterator<Item = FlowId> + Send,
    ) {
        if !Access::notes_reads(context) {
            return;
        }
        let flows: HashSet<FlowId> = flows.collect();
        for flow in flows {
            self.flow_was_read(context, flow).await;
        }
    }

    /// The same of the flow of a run.
    pub(super) async fn run_was_read(&self, context: &Context, run: RunId) {
        if !Access::notes_reads(context) {
            return;
        }
        if let Ok(row) = self.app.run_row(context, run).await {
            self.flow_was_read(context, row.flow).await;
        }
    }

    /// The same of one flow. Cost: nothing for those who see their own flows only, else a look at the read models, once
    /// they show all that was answered of the flow: its owner is not known before.
    pub(super) async fn flow_was_read(&self, context: &Context, flow: FlowId) {
        if !Access::notes_reads(context) {
            return;
        }
        // If they do not come so far, it is noted rather than passed over.
        let owner = match self.app.await_flow(flow).await {
            Ok(()) => self.app.queries.owner_of(flow).await.ok().flatten(),
            Err(_) => None,
        };
        // A flow that nobody knows the owner of is none of the caller's.
        self.access.read(context, flow, owner.flatten().as_deref());
    }
}
