//! The reads. By default a read sees every write that was answered before it arrived, by anyone.

use super::App;
use super::context::Context;
use super::encoder::TreeEncoder;
use super::error::{Error, Failure};
use super::ownership::Place;
use super::readings::{Encoded, READ_WAIT, failed};
use super::rows::Cached;
use super::sending::engine_metadata;
use crate::store;
use crate::subscription::rebuild;
use taskledger_auth::Reach;
use taskledger_domain::flow::{Argument, Flow, Refusal};
use taskledger_domain::{FlowId, Position, TaskId};
use taskledger_projections::{Cursor, ListFilter, Order, Start, TaskView};

/// The writes that a read must see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consistency {
    /// Everything that was answered before.
    #[default]
    Strong,
    /// Whatever the read models show now.
    Eventual,
}

/// Milliseconds after which a reader may ask again whether rows are filled, which takes seconds or more.
const UNFILLED_RETRY_MS: u64 = 1000;

/// A page of a list of tasks.
#[derive(Debug, Clone)]
pub struct Page {
    /// In the order that was asked for.
    pub tasks: Vec<TaskView>,
    /// Tasks in the whole list.
    pub total: u64,
    /// Tasks in a page at most, as the caller asked for it.
    pub limit: u32,
    /// Tasks of the list before this page; 0 when the page was asked for by a cursor.
    pub offset: u64,
    /// Where the list goes on; `None` at its end.
    pub next_cursor: Option<Cursor>,
}

impl App {
    /// `tasks.get`. spec: interface / tasks.get
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(
        &self,
        context: &Context,
        task: TaskId,
        consistency: Consistency,
    ) -> Result<TaskView, Error> {
        let reach = context.caller.reach();
        let seen = |view: TaskView| match reach.covers(view.row.owner.as_deref()) {
            true => Ok(view),
            false => Err(Refusal::not_found(Argument::Task, task).into()),
        };
        match self.rows.view(task, None) {
            Cached::View(view) if self.decides(view.row.flow_id) => return seen(view),
            Cached::View(_) | Cached::Miss => {}
        }
        if consistency == Consistency::Strong
            && let Some(view) = self.view_in_memory(task).await
        {
            return seen(view);
        }
        let flow = self.await_task(Argument::Task, task, consistency).await?;
        match self.queries.get(task).await.map_err(failed)? {
            Some(view) => {
                let view = seen(view)?;
                self.refuse_damaged(flow)?;
                Ok(view)
            }
            None => {
                // Whose it is cannot be known.
                if matches!(reach, Reach::All) {
                    self.refuse_damaged(flow)?;
                }
                Err(self.missing(context, Argument::Task, task, flow).await)
            }
        }
    }

    /// The view of a task whose flow the read models do not show yet: its row in memory, with the figures that the
    /// flow's state has of other tasks. `None`: the read models must be waited for. Cost: a turn of the flow, and
    /// O(tasks of the run) in it.
    async fn view_in_memory(&self, task: TaskId) -> Option<TaskView> {
        /// Looks at a flow that is changed again and again before its row is read.
        const LOOKS_MAX: usize = 3;
        let flow = self.rows.flow_of(task)?;
        let is_shown = || self.positions.awaited(flow, self.projections.checkpoint()) == 0;
        for _ in 0..LOOKS_MAX {
            if !self.decides(flow) || is_shown() {
                return None;
            }
            let look = move |state: &Flow| state.figures(task);
            let figures = self.flows.look(flow, engine_metadata(), look).await;
            match self.rows.view(task, Some(&figures.ok()??)) {
                Cached::View(view) => return Some(view),
                Cached::Miss => {}
            }
        }
        None
    }

    /// Refuses to show rows that are folded no further, because an event of their flow is damaged.
    fn refuse_damaged(&self, flow: FlowId) -> Result<(), Error> {
        match self.queries.damaged_flows().get(&flow) {
            None => Ok(()),
            Some(damaged) => Err(Failure::Store(store::Error::Corrupt {
                position: damaged.position,
                flow: Some(flow),
                reason: damaged.reason.to_string(),
            })
            .into()),
        }
    }

    /// `tasks.children`, written by `encoder`. spec: interface / tasks.children
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
        let flow = self
            .await_task(Argument::Parent, parent, consistency)
            .await?;
        self.is_seen(context, Argument::Parent, parent, flow)
            .await?;
        self.refuse_damaged(flow)?;
        let open = || self.queries.children(parent);
        match self.readings.read(open, encoder).await? {
            Some(answer) => Ok(answer),
            None => Err(self.missing(context, Argument::Parent, parent, flow).await),
        }
    }

    /// `tasks.tree`, written by `encoder`. spec: interface / tasks.tree
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
        let flow = self.await_task(Argument::Task, task, consistency).await?;
        self.is_seen(context, Argument::Task, task, flow).await?;
        self.refuse_damaged(flow)?;
        let open = || self.queries.tree(task);
        match self.readings.read(open, encoder).await? {
            Some(answer) => Ok(answer),
            None => Err(self.missing(context, Argument::Task, task, flow).await),
        }
    }

    /// `tasks.list`. spec: interface / tasks.list
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(
        &self,
        context: &Context,
        mut filter: ListFilter,
        order: Order,
        start: Start,
        limit: u32,
        consistency: Consistency,
    ) -> Result<Page, Error> {
        filter.owner = context.caller.reach().owner().cloned();
        match consistency {
            Consistency::Strong => self.await_seen(context).await?,
            Consistency::Eventual => self.refuse_unfilled()?,
        }
        let offset = match &start {
            Start::Offset(offset) => *offset,
            Start::After(_) => 0,
        };
        let list = self
            .queries
            .list(&filter, order, limit, start)
            .await
            .map_err(failed)?;
        Ok(Page {
            tasks: list.tasks,
            total: list.total,
            limit,
            offset,
            next_cursor: list.next_cursor,
        })
    }

    /// Waits until the read models show all of the flow of a task that was ever created.
    pub(super) async fn await_task(
        &self,
        argument: Argument,
        task: TaskId,
        consistency: Consistency,
    ) -> Result<FlowId, Error> {
        let flow = self.flow_of(argument, task).await?;
        match consistency {
            Consistency::Strong => self.await_flow(flow).await?,
            Consistency::Eventual => self.refuse_unfilled()?,
        }
        Ok(flow)
    }

    /// Waits until the read models show all that was answered of a flow.
    pub(super) async fn await_flow(&self, flow: FlowId) -> Result<(), Error> {
        let end = if self.flows.ownership().is_shared() {
            // Any node may have written it, and answered.
            let end = self.store.stream_head(flow).await?;
            end.map_or(0, |(_, position)| position)
        } else {
            self.positions.awaited(flow, self.projections.checkpoint())
        };
        self.await_position(end).await
    }

    /// Waits until the read models show all that was answered of flows that the caller sees. What is written to flows
    /// of others meanwhile makes nobody wait who does not see it.
    pub(super) async fn await_seen(&self, context: &Context) -> Result<(), Error> {
        let end = match context.caller.reach() {
            Reach::Of(owner) if !self.flows.ownership().is_shared() => {
                let checkpoint = self.projections.checkpoint();
                self.positions.awaited_of(&owner, checkpoint)
            }
            // Any node may have written it, and answered.
            Reach::Of(_) | Reach::All => self.head().await?,
        };
        self.await_position(end).await
    }

    /// What is empty until it is filled would say that tasks do not exist.
    fn refuse_unfilled(&self) -> Result<(), Error> {
        if !self.projections.is_unfilled() {
            return Ok(());
        }
        Err(Error::Busy {
            reason: "the read models are being filled from the log".to_owned(),
            retry_after_ms: UNFILLED_RETRY_MS,
        })
    }

    /// Whether the flow's commands are decided here, so that nobody has written past the rows in
    /// memory.
    pub(super) fn decides(&self, flow: FlowId) -> bool {
        matches!(self.flows.ownership().of(flow), Place::Here(_))
    }

    /// The end of the log: of everything that was answered before, by any server.
    ///
    /// # Errors
    /// `Failed`: the log cannot be read.
    pub async fn head(&self) -> Result<Position, Error> {
        Ok(self.store.head().await?)
    }

    /// `system.rebuild`: makes the read models anew, while they serve. Answers with the position of the
    /// last event so far.
    ///
    /// # Errors
    /// `Busy` while one is under way.
    pub async fn rebuild_read_models(&self) -> Result<Position, Error> {
        self.rebuilds.start().await.map_err(|error| match error {
            rebuild::Error::Store(error) => error.into(),
            rebuild::Error::ReadModels(error) => failed(error),
            rebuild::Error::NotSwapped(_) => Failure::ReadModel(error.to_string()).into(),
        })
    }

    pub(super) async fn await_position(&self, position: Position) -> Result<(), Error> {
        if position <= self.projections.checkpoint() {
            return Ok(());
        }
        self.projections
            .wait_for(position, READ_WAIT)
            .await
            .map_err(|lagging| Error::Busy {
                reason: lagging.to_string(),
                retry_after_ms: 250,
            })
    }
}
