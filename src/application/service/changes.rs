//! Writes changes of tasks and runs to the audit log.
//!
//! What callers do to their own tasks is in the log of events, with who did it. What a caller with `users:any` does to
//! those of somebody else has a row too, written by the node that was called before anything is changed, so that the
//! audit log alone shows all that was done to others.

use super::Service;
use super::audited::{Audited, changed};
use super::auth::Access;
use crate::application::api::{Error, Recorded, Request, Target};
use crate::application::context::Context;
use crate::application::sending::engine_metadata;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use taskledger_auth::Action;
use taskledger_domain::task::call::TaskList;
use taskledger_domain::task::spec::{GivenId, Updates};
use taskledger_domain::{FlowId, RunId, TaskId};
use uuid::Uuid;

/// The tasks or run that a request changes.
enum Changed<'r> {
    /// The flows of these tasks; the object is the first.
    Tasks([Option<TaskId>; 2]),
    /// The flow of a run.
    Run(RunId),
    /// A flow of its own, or the one that it joins.
    New(&'r TaskList),
    /// Nothing, or what is noted elsewhere.
    Nothing,
}

impl<'r> Changed<'r> {
    /// What it is of; a request that is not here does not compile.
    const fn by(request: &'r Request) -> Self {
        match request {
            Request::Create(list) => Self::New(list),
            Request::Execute(execute) => Self::target(&execute.target),
            Request::StartRun(start) => Self::target(&start.target),
            Request::CancelRun(cancel) => Self::Run(cancel.run),
            Request::FollowUp(message) => Self::Run(message.run),
            Request::Retry(retry) => Self::Tasks([Some(retry.task), None]),
            Request::Update(update) => Self::Tasks([Some(update.task), None]),
            Request::Delete(delete) => Self::Tasks([Some(delete.task), None]),
            Request::Cancel(cancel) => Self::Tasks([Some(cancel.task), None]),
            Request::Copy(copy) => Self::Tasks([Some(copy.task), copy.parent]),
            Request::Respond(respond) => Self::Tasks([Some(respond.task), None]),
            // Work under the lease of a claim.
            Request::Claim(_)
            | Request::Renew(_)
            | Request::Complete(_)
            | Request::Fail(_)
            | Request::Release(_)
            | Request::Suspend(_) => Self::Nothing,
            // Reads.
            Request::Explain(_)
            | Request::Overview(_)
            | Request::History(_)
            | Request::SiblingOutput(_)
            | Request::Lease(_)
            | Request::Hint(_)
            | Request::HeldHere
            | Request::TasksHeld(_)
            | Request::MethodFigures => Self::Nothing,
        }
    }

    const fn target(target: &'r Target) -> Self {
        match target {
            Target::New(list) => Self::New(list),
            Target::Stored(task) => Self::Tasks([Some(*task), None]),
        }
    }

    /// The task or run that the call names.
    fn object(&self) -> Option<Uuid> {
        match self {
            Self::Tasks([task, _]) => task.map(|task| task.0),
            Self::Run(run) => Some(run.0),
            Self::New(list) => joined(list).map(|task| task.0),
            Self::Nothing => None,
        }
    }
}

/// As what a request is noted that is refused for lack of a scope; `None` for a read. Cost: O(1).
pub(super) fn refused_as(request: &Request) -> Option<(Action, Option<Uuid>)> {
    let action = action(request)?;
    let object = match Changed::by(request) {
        // Whether it joins a flow is not worth a look at every task.
        Changed::New(_) => None,
        named @ (Changed::Tasks(_) | Changed::Run(_) | Changed::Nothing) => named.object(),
    };
    Some((action, object))
}

/// The action of a request that changes something.
fn action(request: &Request) -> Option<Action> {
    if let Request::Update(update) = request
        && update.updates.user_id.is_some()
    {
        return Some(Action::FlowOwner);
    }
    request.use_case().recorded().change()
}

impl Service {
    /// Writes the row about a change of what is not the caller's own; `None` for what is.
    ///
    /// # Errors
    /// [`Error`]: it is not written, or it cannot be told whose it is, so it must not be done.
    pub(super) async fn change_of_others<'a>(
        &'a self,
        context: &'a Context,
        request: &Request,
    ) -> Result<Option<Audited<'a>>, Error> {
        let (Recorded::OfOthers(_), Some(action)) =
            (request.use_case().recorded(), action(request))
        else {
            return Ok(None);
        };
        let changed = Changed::by(request);
        // Whoever gives a flow away has taken it before, or could have.
        let is_given = action == Action::FlowOwner;
        let owners = self.owners_of(context, &changed).await?;
        let is_noted = |owner: &&Option<Arc<str>>| {
            is_given || Access::reads_of_others(context, owner.as_deref())
        };
        let Some(owner) = owners.iter().find(is_noted) else {
            return Ok(None);
        };
        let mut detail = json!({"owner": owner});
        if let Request::Update(update) = request {
            detail["changed"] = json!(changed_fields(&update.updates));
            if let Some(user) = &update.updates.user_id {
                detail["user_id"] = json!(user);
            }
        }
        let (of, object) = ((&self.access, context), changed.object());
        let object = object.map(|id| Arc::from(id.to_string()));
        let mut audited = Audited::new(of, action, object, detail);
        audited.begin().await?;
        Ok(Some(audited))
    }

    /// The owners of the flows that are changed; none for a flow that does not exist, which is not changed.
    async fn owners_of(
        &self,
        context: &Context,
        changed: &Changed<'_>,
    ) -> Result<Vec<Option<Arc<str>>>, Error> {
        let mut owners = Vec::new();
        match changed {
            Changed::Tasks(tasks) => {
                for task in tasks.iter().flatten() {
                    owners.extend(self.owner_of_task(*task).await?);
                }
            }
            Changed::Run(run) => {
                let read = self.app.run_row(context, *run).await;
                match read {
                    Ok(row) => owners.extend(self.owner_of(row.flow).await?),
                    Err(Error::Refused(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Changed::New(list) => match joined(list) {
                Some(parent) => owners.extend(self.owner_of_task(parent).await?),
                None => {
                    let own = || context.caller.owner().clone();
                    let named = list.first_user().map(Arc::from);
                    owners.push(Some(named.unwrap_or_else(own)));
                }
            },
            Changed::Nothing => {}
        }
        Ok(owners)
    }

    async fn owner_of_task(&self, task: TaskId) -> Result<Option<Option<Arc<str>>>, Error> {
        match self.app.directory.flow_of(task).await? {
            Some(flow) => self.owner_of(flow).await,
            None => Ok(None),
        }
    }

    /// The owner of a flow now, by the log; `None`: there is no such flow.
    async fn owner_of(&self, flow: FlowId) -> Result<Option<Option<Arc<str>>>, Error> {
        let flows = &self.app.flows;
        let owner = flows.look_anywhere(flow, engine_metadata(), |flow| {
            (flow.version() > 0).then(|| flow.owner().map(Arc::from))
        });
        owner.await
    }
}

/// The stored task below which new ones are put: a parent that is none of them. Cost: O(tasks).
fn joined(list: &TaskList) -> Option<TaskId> {
    let given = list.fields().filter_map(|(task, _)| match &task.id {
        Some(GivenId::Stored(id)) => Some(*id),
        Some(GivenId::Alias(_)) | None => None,
    });
    let given: HashSet<TaskId> = given.collect();
    let parents = list
        .fields()
        .filter_map(|(task, _)| task.parent.as_ref()?.id());
    let mut stored = parents.filter(|parent| !given.contains(parent));
    stored.next()
}

/// The members that an update names, as callers write them.
fn changed_fields(updates: &Updates) -> Vec<&'static str> {
    let Updates {
        name,
        user_id,
        parent,
        priority,
        dependencies,
        inputs,
        schemas,
        params,
        start_at,
        status,
        labels,
        faults: _,
    } = updates;
    changed([
        (name.is_some(), "name"),
        (user_id.is_some(), "user_id"),
        (parent.is_some(), "parent_id"),
        (priority.is_some(), "priority"),
        (dependencies.is_some(), "dependencies"),
        (inputs.is_some(), "inputs"),
        (schemas.is_some(), "schemas"),
        (params.is_some(), "params"),
        (start_at.is_some(), "start_at"),
        (status.is_some(), "status"),
        (labels.is_some(), "labels"),
    ])
}
