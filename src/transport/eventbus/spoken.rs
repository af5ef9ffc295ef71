//! Resolves which task an agent refers to, and by which lease it holds the task.

use super::held::Agent;
use super::published::Published;
use super::words::Given;
use super::{Bus, status};
use crate::application::Context;
use crate::application::api::work::LeaseOf;
use crate::application::api::{Consistency, Reply, Request};
use taskledger_domain::{LeaseId, TaskId, Timestamp};
use tonic::Status;

/// A task that an agent speaks of.
pub(super) struct Spoken {
    pub(super) task: TaskId,
    pub(super) agent: Agent,
    /// The lease by which it holds the task, if it does.
    pub(super) lease: Option<LeaseId>,
    /// When it was given it, if this server gave it.
    given_at: Option<Timestamp>,
}

impl Spoken {
    /// What this server did not give it, or does not remember to have given it.
    const fn held_by(agent: Agent, task: TaskId, lease: Option<LeaseId>) -> Self {
        Self {
            task,
            agent,
            lease,
            given_at: None,
        }
    }
}

impl Bus {
    /// The task that an agent means.
    pub(super) async fn spoken(
        &self,
        context: &Context,
        external_id: &str,
        executor: &str,
    ) -> Result<Spoken, Status> {
        let agent = Agent {
            principal: context.caller.actor().clone(),
            name: executor.into(),
        };
        if let Some(held) = self.held.meant(&agent, external_id) {
            return Ok(Spoken {
                task: held.task,
                lease: Some(held.lease),
                given_at: Some(held.given_at),
                agent,
            });
        }
        // Also if another principal has published it. Another server may have given it to the agent again.
        if let Some(task) = self.held.past(&agent, external_id) {
            let lease = self.lease(context, &agent, task).await?;
            return Ok(Spoken::held_by(agent, task, lease));
        }
        let unknown = || Status::not_found("task_id: no such task");
        let candidates = self.candidates(context, external_id).await?;
        let mut spoken = None;
        for task in candidates {
            let lease = self.lease(context, &agent, task).await?;
            if lease.is_some() {
                return Ok(Spoken::held_by(agent, task, lease));
            }
            spoken.get_or_insert(task);
        }
        if let Some((task, lease)) = self.held_as(context, &agent, external_id).await? {
            return Ok(Spoken::held_by(agent, task, Some(lease)));
        }
        let task = spoken.ok_or_else(unknown)?;
        Ok(Spoken::held_by(agent, task, None))
    }

    /// The lease by which an agent holds a task, whichever server gave it.
    async fn lease(
        &self,
        context: &Context,
        agent: &Agent,
        task: TaskId,
    ) -> Result<Option<LeaseId>, Status> {
        let of = LeaseOf {
            task,
            worker: agent.name.clone(),
        };
        match self.service.call(context, Request::Lease(of)).await {
            Ok(Reply::Lease(held)) => Ok(held.map(|held| held.lease)),
            Ok(_) => Ok(None),
            Err(error) => Err(status::of(&*self.clock, error)),
        }
    }

    /// What the agent works on, if it holds the task. Cost: a read of the task where another server gave it.
    pub(super) async fn given(
        &self,
        context: &Context,
        spoken: &Spoken,
    ) -> Result<Option<Given>, Status> {
        let Some(lease) = spoken.lease else {
            return Ok(None);
        };
        let at = match spoken.given_at {
            Some(at) => Some(at),
            None => self.row(context, spoken.task).await?.started_at,
        };
        Ok(at.map(|at| Given {
            task: spoken.task,
            lease,
            at,
        }))
    }

    /// The task that an agent holds under an id that another principal has given it, when this server does not
    /// remember that: leases say which tasks these are. Cost: a look at each task that the agent holds.
    async fn held_as(
        &self,
        context: &Context,
        agent: &Agent,
        external_id: &str,
    ) -> Result<Option<(TaskId, LeaseId)>, Status> {
        let held = self.service.tasks_held(context, &agent.name).await;
        for task in held.map_err(|error| status::of(&*self.clock, error))? {
            let found = self.service.get(context, task, Consistency::Strong).await;
            let Ok(view) = found else { continue };
            let published = Published::of(&view.row);
            if published.is_none_or(|it| it.task_id != external_id) {
                continue;
            }
            if let Some(lease) = self.lease(context, agent, task).await? {
                return Ok(Some((task, lease)));
            }
        }
        Ok(None)
    }
}
