//! Reads of tasks, which any node answers.

use super::Service;
use crate::application::api::{AsOf, Consistency};
use crate::application::authorize::{UseCase, authorize};
use crate::application::commands::Answer;
use crate::application::context::Context;
use crate::application::queries::LongAnswer;
use taskledger_domain::TaskId;
use taskledger_projections::{ListFilter, Order, Start};

impl Service {
    /// A task as it is.
    ///
    /// # Errors
    /// [`Error`](crate::application::Error).
    pub async fn get(&self, context: &Context, task: TaskId, consistency: Consistency) -> Answer {
        authorize(context, UseCase::GetTask)?;
        self.app.get(task, consistency).await
    }

    /// A task as it was.
    ///
    /// # Errors
    /// [`Error`](crate::application::Error).
    pub async fn get_as_of(&self, context: &Context, task: TaskId, at: AsOf) -> Answer {
        authorize(context, UseCase::GetTask)?;
        self.app.get_as_of(task, at).await
    }

    /// Tasks that match a filter, page by page.
    ///
    /// # Errors
    /// [`Error`](crate::application::Error).
    pub async fn list(
        &self,
        context: &Context,
        filter: ListFilter,
        order: Order,
        start: Start,
        limit: u32,
        consistency: Consistency,
    ) -> Answer {
        authorize(context, UseCase::ListTasks)?;
        self.app
            .list(filter, order, start, limit, consistency)
            .await
    }

    /// A task with everything below it.
    ///
    /// # Errors
    /// [`Error`](crate::application::Error).
    pub async fn tree(
        &self,
        context: &Context,
        task: TaskId,
        consistency: Consistency,
    ) -> LongAnswer {
        authorize(context, UseCase::GetTree)?;
        self.app.tree(task, consistency).await
    }

    /// A task with everything below it, as they were.
    ///
    /// # Errors
    /// [`Error`](crate::application::Error).
    pub async fn tree_as_of(&self, context: &Context, task: TaskId, at: AsOf) -> LongAnswer {
        authorize(context, UseCase::GetTree)?;
        self.app.tree_as_of(task, at).await
    }

    /// The children of a task.
    ///
    /// # Errors
    /// [`Error`](crate::application::Error).
    pub async fn children(
        &self,
        context: &Context,
        parent: TaskId,
        consistency: Consistency,
    ) -> LongAnswer {
        authorize(context, UseCase::GetChildren)?;
        self.app.children(parent, consistency).await
    }
}
