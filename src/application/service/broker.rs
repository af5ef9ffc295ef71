//! What the agent broker needs beyond tasks: which task an agent means, which methods have waiting tasks, and inboxes.

use super::Service;
use super::secrets::failed;
use crate::application::api::broker::{Attempt, Ended, Running};
use crate::application::api::{Error, Recorded, Reply, Request};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::inbox::{Inbox, caught_up};
use crate::application::new_methods::NewMethods;
use crate::application::published_ids::PublishedIds;
use crate::application::queries::Consistency;
use std::collections::BTreeSet;
use std::sync::Arc;
use taskledger_auth::Scope;
use taskledger_auth::store::OwnKey;
use taskledger_broker::{Outcome, Owner, Published};
use taskledger_domain::TaskId;
use taskledger_projections::TaskView;
use taskledger_workers::MethodKey;

/// Tasks that a worker is asked about: as many as a stream of the broker may hold.
const TASKS_HELD_MAX: usize = 1_000;

/// What the key is for among those of the server's own.
const IDS_KEY: &str = "published task ids";

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
        self.access.authorize(context, UseCase::RenewLease, None)?;
        let (owner, id) = (owner(context), Arc::from(external_id));
        let ids = |found: Vec<Published>| found.into_iter().map(|it| it.task_id).collect();
        let found = self.broker.by_external_id(&owner, None, &id).await?;
        if !found.is_empty() {
            return Ok(ids(found));
        }
        caught_up(&self.app, &self.broker).await?;
        Ok(ids(self.broker.by_external_id(&owner, None, &id).await?))
    }

    /// The ids under which tasks are stored that the caller's principal publishes. Cost: O(1), a query in the first
    /// call of a server.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn published_ids(&self, context: &Context) -> Result<PublishedIds, Error> {
        // A step of what a requester publishes, which is counted.
        self.access
            .authorize(context, UseCase::ExecuteTasks, None)?;
        let key = self.ids_key.get_or_try_init(|| self.find_ids_key()).await?;
        let actor = context.caller.actor().clone();
        Ok(PublishedIds::of(key.value.clone(), actor))
    }

    /// The task that is stored under an id that the caller publishes, or has published, if it is within reach. Needs no
    /// right to read: nothing of it is told but that it is the same task.
    ///
    /// # Errors
    /// [`Error`]: whether there is one is not known.
    pub async fn published_task(
        &self,
        context: &Context,
        task: TaskId,
    ) -> Result<Option<TaskView>, Error> {
        // A step of what a requester publishes, which is counted.
        self.access
            .authorize(context, UseCase::ExecuteTasks, None)?;
        match self.app.get(context, task, Consistency::Strong).await {
            Ok(view) => {
                let (flow, owner) = (view.row.flow_id, view.row.owner.as_deref());
                self.access.read(context, flow, owner);
                Ok(Some(view))
            }
            Err(Error::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn find_ids_key(&self) -> Result<OwnKey, Error> {
        let known = self.secrets.own_key(IDS_KEY).await.map_err(failed)?;
        if let Some(key) = known {
            return Ok(key);
        }
        self.secrets.make_own_key(IDS_KEY).await.map_err(failed)
    }

    /// The tasks that a worker of the caller's principal holds on all nodes that answer, at most
    /// `TASKS_HELD_MAX` of each. Cost: O(leases); asks the other nodes.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tasks_held(
        &self,
        context: &Context,
        worker: &Arc<str>,
    ) -> Result<Vec<TaskId>, Error> {
        // A step of what a worker says of its task.
        self.access.authorize(context, UseCase::RenewLease, None)?;
        let mut held = self.tasks_held_here(context, worker);
        let others = Request::TasksHeld(worker.clone());
        for reply in self.ask_others(context, &others).await {
            if let Reply::TasksHeld(tasks) = reply {
                held.extend(tasks);
            }
        }
        Ok(held)
    }

    /// The same of the flows of this node.
    pub(super) fn tasks_held_here(&self, context: &Context, worker: &str) -> Vec<TaskId> {
        let leases = &self.app.flows.leases;
        leases.tasks_of_worker(worker, context.caller.actor(), TASKS_HELD_MAX)
    }

    /// The methods that tasks wait for which the caller sees, known to workers or not. Cost: O(methods); asks the
    /// other nodes.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn waiting_methods(&self, context: &Context) -> Result<Vec<Arc<str>>, Error> {
        // A step of what a worker waits for, which was counted.
        self.access.authorize(context, UseCase::ListMethods, None)?;
        let figures = self.figures(context).await.into_iter();
        let allowed = context.caller.methods();
        let is_allowed = |method: &MethodKey| allowed.is_none_or(|it| it.contains(&method.name));
        let waiting = figures.filter(|(method, (_, waiting))| *waiting > 0 && is_allowed(method));
        let waiting = waiting.map(|(method, _)| method.name);
        let waiting: BTreeSet<Arc<str>> = waiting.collect();
        Ok(waiting.into_iter().collect())
    }

    /// Tells of methods from now on that tasks wait for which the caller sees, when there were none before.
    ///
    /// # Errors
    /// [`Error`].
    pub fn new_methods(&self, context: &Context) -> Result<NewMethods, Error> {
        // A step of what a worker waits for, which was counted.
        self.access.authorize(context, UseCase::ListMethods, None)?;
        Ok(NewMethods {
            caller: context.caller.clone(),
            appearing: self.app.flows.offers.appearing(),
        })
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

    /// How a task of an inbox ended, as [`Inbox`] finds it. Whoever published for somebody else reads that user's
    /// result by it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn end_in_inbox(
        &self,
        inbox: &Inbox,
        outcome: &Outcome,
    ) -> Result<Option<Ended>, Error> {
        // A step of a stream that was counted.
        self.access
            .authorize(&inbox.context, UseCase::ReadInbox, None)?;
        let ended = inbox.end_of(outcome).await?;
        if ended.is_some() {
            Box::pin(self.flow_was_read(&inbox.context, outcome.flow)).await;
        }
        Ok(ended)
    }

    /// The tasks of an inbox that are in progress, which are read like their ends.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn running_in_inbox(&self, inbox: &Inbox) -> Result<Vec<Running>, Error> {
        // A step of a stream that was counted.
        self.access
            .authorize(&inbox.context, UseCase::ReadInbox, None)?;
        let running = inbox.running().await?;
        let flows = running.iter().map(|(flow, _)| *flow);
        Box::pin(self.flows_were_read(&inbox.context, flows)).await;
        Ok(running.into_iter().map(|(_, running)| running).collect())
    }

    /// The worker of an attempt whose progress an inbox tells from now on; `None`: it runs in the server.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn worker_in_inbox(
        &self,
        inbox: &Inbox,
        attempt: Attempt,
    ) -> Result<Option<Arc<str>>, Error> {
        // A step of a stream that was counted.
        self.access
            .authorize(&inbox.context, UseCase::ReadInbox, None)?;
        let worker = inbox.worker_of(attempt).await?;
        Box::pin(self.flow_was_read(&inbox.context, attempt.flow)).await;
        Ok(worker)
    }

    /// Whether the caller may speak for an agent of the broker when it asks for this. That it may not is noted, with
    /// the agent as the object. Cost: O(agents of the credential).
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn speaks_for(
        &self,
        context: &Context,
        agent: &str,
        use_case: UseCase,
    ) -> Result<(), Error> {
        if context.caller.speaks_for(agent) {
            return Ok(());
        }
        // Only `users:any` speaks for any agent.
        let (scope, field) = (Scope::UsersAny, None);
        let refused = Err(Error::Forbidden { scope, field });
        match use_case.recorded() {
            Recorded::Always(action)
            | Recorded::OfOthers(action)
            | Recorded::Refusals(action)
            | Recorded::Reads(action) => {
                let change = (action, Some(Arc::from(agent)));
                self.access.noted(context, change, refused)
            }
            Recorded::Nothing => refused,
        }
    }
}

fn owner(context: &Context) -> Owner {
    Owner {
        tenant: context.caller.tenant().clone(),
        actor: context.caller.actor().clone(),
    }
}
