//! The reads. By default a read sees every write that was answered before it arrived, by anyone.

use super::App;
use super::commands::{Answer, raw};
use super::error::{Error, Failure};
use super::ownership::Place;
use super::readings::{Text, failed};
use super::rows::Cached;
use crate::subscription::rebuild;
use serde::Serialize;
use std::time::Duration;
use taskledger_domain::flow::Argument;
use taskledger_domain::{FlowId, Position, TaskId};
use taskledger_projections::{ListFilter, Order, Start, TaskView};

/// How long a read waits for the read models before it is answered `Busy`.
pub(super) const READ_WAIT: Duration = Duration::from_secs(2);

/// The answer to a read that may be long.
pub type LongAnswer = Result<Text, Error>;

/// What a read must see.
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

#[derive(Serialize)]
struct Page {
    tasks: Vec<TaskView>,
    total: u64,
    limit: u32,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl App {
    /// `tasks.get`. spec: interface / tasks.get
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(&self, task: TaskId, consistency: Consistency) -> Answer {
        match self.rows.view(task) {
            Cached::View(view) if self.decides(view.row.flow_id) => return Ok(raw(&view)),
            Cached::View(_) | Cached::Miss => {}
        }
        let flow = self.await_task(Argument::Task, task, consistency).await?;
        match self.queries.get(task).await.map_err(failed)? {
            Some(view) => Ok(raw(&view)),
            None => Err(self.missing(Argument::Task, task, flow).await),
        }
    }

    /// `tasks.children`. spec: interface / tasks.children
    ///
    /// # Errors
    /// [`Error`].
    pub async fn children(&self, parent: TaskId, consistency: Consistency) -> LongAnswer {
        let flow = self
            .await_task(Argument::Parent, parent, consistency)
            .await?;
        match self.readings.read(|| self.queries.children(parent)).await? {
            Some(text) => Ok(text),
            None => Err(self.missing(Argument::Parent, parent, flow).await),
        }
    }

    /// `tasks.tree`. spec: interface / tasks.tree
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tree(&self, task: TaskId, consistency: Consistency) -> LongAnswer {
        let flow = self.await_task(Argument::Task, task, consistency).await?;
        match self.readings.read(|| self.queries.tree(task)).await? {
            Some(text) => Ok(text),
            None => Err(self.missing(Argument::Task, task, flow).await),
        }
    }

    /// `tasks.list`. spec: interface / tasks.list
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(
        &self,
        filter: ListFilter,
        order: Order,
        start: Start,
        limit: u32,
        consistency: Consistency,
    ) -> Answer {
        match consistency {
            Consistency::Strong => {
                let head = self.head().await?;
                self.await_position(head).await?;
            }
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
        let next_cursor = list.next_cursor.map(|c| c.to_string());
        Ok(raw(&Page {
            tasks: list.tasks,
            total: list.total,
            limit,
            offset,
            next_cursor,
        }))
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
            Consistency::Strong => {
                let end = if self.flows.ownership().is_shared() {
                    // Any node may have written it, and answered.
                    let end = self.store.stream_head(flow).await?;
                    end.map_or(0, |(_, position)| position)
                } else {
                    self.positions.awaited(flow, self.projections.checkpoint())
                };
                self.await_position(end).await?;
            }
            Consistency::Eventual => self.refuse_unfilled()?,
        }
        Ok(flow)
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
    fn decides(&self, flow: FlowId) -> bool {
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

    async fn await_position(&self, position: Position) -> Result<(), Error> {
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
