//! What the agent broker asks beyond tasks: which of them an agent means, which methods wait, and inboxes.

use super::Service;
use crate::application::api::Error;
use crate::application::authorize::{UseCase, authorize};
use crate::application::context::Context;
use crate::application::inbox::{Inbox, caught_up};
use std::sync::Arc;
use taskledger_broker::{Owner, Published};
use taskledger_domain::TaskId;

impl Service {
    /// The tasks that the caller's principal has published under an id, newest first. Cost: O(rows of the answer); it
    /// waits until the store shows what was answered before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn published_as(
        &self,
        context: &Context,
        external_id: &str,
    ) -> Result<Vec<TaskId>, Error> {
        // A step of what a worker says of its task.
        authorize(context, UseCase::RenewLease)?;
        let (owner, id) = (owner(context), Arc::from(external_id));
        let ids = |found: Vec<Published>| found.into_iter().map(|it| it.task_id).collect();
        let found = self.broker.by_external_id(&owner, None, &id).await?;
        if !found.is_empty() {
            return Ok(ids(found));
        }
        caught_up(&self.app, &self.broker).await?;
        Ok(ids(self.broker.by_external_id(&owner, None, &id).await?))
    }

    /// The methods that tasks wait for which the caller sees, known to workers or not. Cost: O(methods); asks the
    /// other nodes.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn waiting_methods(&self, context: &Context) -> Result<Vec<Arc<str>>, Error> {
        // A step of what a worker waits for, which was counted.
        authorize(context, UseCase::ListMethods)?;
        let figures = self.figures(context).await.into_iter();
        let waiting = figures.filter(|(_, (_, waiting))| *waiting > 0);
        Ok(waiting.map(|(method, _)| method).collect())
    }

    /// The inbox of an agent of the caller.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn inbox(&self, context: &Context, requester: Arc<str>) -> Result<Inbox, Error> {
        self.admit(context, UseCase::ReadInbox)?;
        Ok(Inbox {
            _place: self.limits.stream(context)?,
            app: self.app.clone(),
            store: self.broker.clone(),
            owner: owner(context),
            context: context.clone(),
            requester,
        })
    }
}

fn owner(context: &Context) -> Owner {
    Owner {
        tenant: context.caller.tenant().clone(),
        actor: context.caller.actor().clone(),
    }
}
