//! Reads of tasks, which any node answers.

use super::Service;
use crate::application::api::{AsOf, Consistency, Encoded, Page, Then, TreeEncoder};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::error::Error;
use taskledger_domain::TaskId;
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
        self.app.get(context, task, consistency).await
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
        self.app.get_as_of(context, task, at).await
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
        self.app
            .list(context, filter, order, start, limit, consistency)
            .await
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
        self.app.tree(context, task, consistency, encoder).await
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
        self.app.tree_as_of(context, task, at, encoder).await
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
        self.app
            .children(context, parent, consistency, encoder)
            .await
    }
}
