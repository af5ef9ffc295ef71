//! Writes changes of tasks and runs to the audit log.
//!
//! What callers do to their own tasks is in the log of events, with who did it. What a caller with `users:any` does to
//! those of somebody else has a row too, written by the node that was called before anything is changed, so that the
//! audit log alone shows all that was done to others. The flow compares whose it is by then (`noted.rs`).

use super::Service;
use super::audited::{Audited, changed};
use super::auth::Access;
use crate::application::api::{Copy, Cost, Error, Recorded, Reply, Request, Target};
use crate::application::context::Context;
use crate::application::noted::Noted;
use crate::application::sending::engine_metadata;
use serde_json::json;
use std::sync::Arc;
use taskledger_auth::Action;
use taskledger_domain::flow::Outdated;
use taskledger_domain::task::call::{Place, TaskList};
use taskledger_domain::task::spec::{GivenId, Updates};
use taskledger_domain::{FlowId, RunId, TaskId};
use uuid::Uuid;

/// How often a change is noted whose flow gets another owner each time.
const ROUNDS_MAX: usize = 8;
/// What a caller is told to wait after that, in milliseconds.
const GIVEN_AWAY_RETRY_MS: u64 = 100;

/// The members of a row that say whose flow is changed, and whose a copy is put into.
const OWNER: &str = "owner";
const PARENT_OWNER: &str = "parent_owner";

/// The tasks or run that a request changes.
enum Changed<'r> {
    /// The flow of a task.
    Task(TaskId),
    /// The flow that a copy of a task is put into: that of a parent, or one of its own, which is then of the same user.
    Copy { task: TaskId, below: Option<TaskId> },
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
            Request::Retry(retry) => Self::Task(retry.task),
            Request::Update(update) => Self::Task(update.task),
            Request::Delete(delete) => Self::Task(delete.task),
            Request::Cancel(cancel) => Self::Task(cancel.task),
            Request::Copy(copy) => Self::Copy {
                task: copy.task,
                below: copy.parent,
            },
            Request::Respond(respond) => Self::Task(respond.task),
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
            Target::Stored(task) => Self::Task(*task),
        }
    }

    /// The task or run that the call names; of new tasks the parent that is stored, or else the root if its id was
    /// chosen.
    fn object(&self) -> Option<Uuid> {
        match self {
            Self::Task(task) | Self::Copy { task, .. } => Some(task.0),
            Self::Run(run) => Some(run.0),
            Self::New(list) => match list.place()? {
                Place::Below(parent) => Some(parent.0),
                Place::Root(root) => match &root.id {
                    Some(GivenId::Stored(id)) => Some(id.0),
                    Some(GivenId::Alias(_)) | None => None,
                },
            },
            Self::Nothing => None,
        }
    }
}

/// As what a change is noted that is refused for lack of a scope.
pub(super) struct Refusable {
    action: Action,
    object: Option<Uuid>,
    /// The task whose user an update sets.
    labelled: Option<TaskId>,
}

impl Refusable {
    /// `None` for a read. Cost: O(1).
    pub(super) fn of(request: &Request) -> Option<Self> {
        let object = match Changed::by(request) {
            // Where they go is not worth a look at every task.
            Changed::New(_) => None,
            named @ (Changed::Task(_)
            | Changed::Copy { .. }
            | Changed::Run(_)
            | Changed::Nothing) => named.object(),
        };
        Some(Self {
            action: request.use_case().recorded().change()?,
            object,
            labelled: labelled(request),
        })
    }
}

/// The task whose user an update sets.
fn labelled(request: &Request) -> Option<TaskId> {
    let Request::Update(update) = request else {
        return None;
    };
    update.updates.user_id.as_ref().map(|_| update.task)
}

/// A change of what may be somebody else's, as it is about to be made.
struct Noticed<'a> {
    /// Whose flows may be changed.
    noted: Noted,
    /// Its row, which is written; absent where only what is the caller's own may be changed.
    audited: Option<Audited<'a>>,
}

impl Service {
    /// Carries out a change for a caller who acts for all users, behind its row in the audit log if it is of somebody
    /// else. Who that is may change until the flow decides: then nothing is changed, and it is noted anew.
    ///
    /// # Errors
    /// [`Error`]; also: the row is not written, or it cannot be told whose flow it is.
    pub(super) async fn change(
        &self,
        context: &Context,
        request: Request,
        refusable: Option<Refusable>,
    ) -> Result<Reply, Error> {
        let Recorded::OfOthers(_) = request.use_case().recorded() else {
            let done = self.carried_out(context, request).await;
            return self.refusal_noted(context, refusable, done).await;
        };
        for _ in 0..ROUNDS_MAX {
            let Noticed { noted, audited } = self.noticed(context, &request).await?;
            let call = audited.as_ref().map(|_| self.app.clock.uuid());
            let context = &context.noting(noted, call);
            let done = self.carried_out(context, request.clone()).await;
            let is_over = !matches!(done, Err(Error::Outdated(Outdated::Owner)));
            // One row says why nothing was changed.
            let done = match &audited {
                Some(audited) => {
                    if done.is_ok() && self.has_repeated(context, &request).await {
                        audited.refused().await;
                    }
                    audited.ended(done).await
                }
                None if is_over => return self.refusal_noted(context, refusable, done).await,
                None => done,
            };
            if is_over {
                return done;
            }
        }
        Err(Error::Busy {
            reason: "the flow is being given to other users; nothing was changed".to_owned(),
            retry_after_ms: GIVEN_AWAY_RETRY_MS,
        })
    }

    /// Whether another call with the same idempotency key, at the same moment, has made the change. One that came
    /// before is found before there is a row.
    async fn has_repeated(&self, context: &Context, request: &Request) -> bool {
        let repeated = self.app.has_repeated(context, request.use_case()).await;
        repeated.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether a call was a repetition is missing in the audit log");
            false
        })
    }

    /// Notes that a change was refused for lack of a scope.
    ///
    /// # Errors
    /// The same.
    pub(super) async fn refusal_noted<T>(
        &self,
        context: &Context,
        refusable: Option<Refusable>,
        done: Result<T, Error>,
    ) -> Result<T, Error> {
        let (Some(refusable), Err(Error::Forbidden { .. })) = (refusable, &done) else {
            return done;
        };
        let action = match self.gives_away(refusable.labelled).await {
            Ok(true) => Action::FlowOwner,
            Ok(false) | Err(_) => refusable.action,
        };
        let object = refusable.object.map(|id| Arc::from(id.to_string()));
        self.access.noted(context, (action, object), done)
    }

    /// Writes the row about a change of what is not the caller's own.
    async fn noticed<'a>(
        &'a self,
        context: &'a Context,
        request: &Request,
    ) -> Result<Noticed<'a>, Error> {
        let only_own = || Noticed {
            noted: Noted::of(context.caller.owner(), []),
            audited: None,
        };
        let Some(action) = request.use_case().recorded().change() else {
            return Ok(only_own());
        };
        if is_faulty(request) {
            return Ok(only_own());
        }
        // It changes nothing again; if it does after all, because the key has just expired, the flow refuses it.
        if self.app.is_repeated(context, request.use_case()).await? {
            return Ok(only_own());
        }
        let is_given = self.gives_away(labelled(request)).await?;
        let action = if is_given { Action::FlowOwner } else { action };
        let changed = Changed::by(request);
        let owners = self.owners_of(context, &changed).await?;
        // Whoever gives a flow away has taken it before, or could have.
        let is_noted = |(_, owner): &(_, Option<Arc<str>>)| {
            is_given || Access::reads_of_others(context, owner.as_deref())
        };
        if !owners.iter().any(is_noted) {
            return Ok(only_own());
        }
        let mut detail = json!({});
        for (whose, owner) in &owners {
            detail[whose] = json!(owner);
        }
        if let Request::Update(update) = request {
            detail["changed"] = json!(changed_fields(&update.updates));
            if is_given {
                detail["user_id"] = json!(update.updates.user_id);
            }
        }
        if let Request::Copy(Copy {
            parent: Some(parent),
            ..
        }) = request
        {
            detail["parent"] = json!(parent);
        }
        let (of, object) = ((&self.access, context), changed.object());
        let object = object.map(|id| Arc::from(id.to_string()));
        let mut audited = Audited::new(of, action, object, detail);
        if request.use_case().cost() == Cost::Free {
            self.limits.rate_audited(context)?;
        }
        audited.begin().await?;
        let owners = owners.into_iter().map(|(_, owner)| owner);
        let noted = Noted::of(context.caller.owner(), owners);
        Ok(Noticed {
            noted,
            audited: Some(audited),
        })
    }

    /// Whether a flow gets another owner when the user of this task is set: that of a root is the owner, that of any
    /// other task a label.
    async fn gives_away(&self, labelled: Option<TaskId>) -> Result<bool, Error> {
        let Some(task) = labelled else {
            return Ok(false);
        };
        let flow = self.app.directory.flow_of(task).await?;
        Ok(flow.is_some_and(|flow| flow.root() == task))
    }

    /// The owners of the flows that are changed, each with the member of the row that names it; none for a flow that
    /// does not exist, which is not changed.
    async fn owners_of(
        &self,
        context: &Context,
        changed: &Changed<'_>,
    ) -> Result<Vec<(&'static str, Option<Arc<str>>)>, Error> {
        let owner = match changed {
            Changed::Task(task) => self.owner_of_task(*task).await?,
            Changed::Copy { task, below } => {
                let (of_task, below) = (self.owner_of_task(*task).await?, *below);
                let below = match below {
                    Some(parent) => self.owner_of_task(parent).await?,
                    None => None,
                };
                let of_task = of_task.map(|owner| (OWNER, owner));
                let below = below.map(|owner| (PARENT_OWNER, owner));
                return Ok(of_task.into_iter().chain(below).collect());
            }
            Changed::Run(run) => match self.app.run_row(context, *run).await {
                Ok(row) => self.owner_of(row.flow).await?,
                Err(Error::Refused(_)) => None,
                Err(error) => return Err(error),
            },
            Changed::New(list) => match list.place() {
                Some(Place::Below(parent)) => self.owner_of_task(parent).await?,
                Some(Place::Root(root)) => {
                    let own = || context.caller.owner().clone();
                    let named = root.user_id.as_deref().map(Arc::from);
                    Some(Some(named.unwrap_or_else(own)))
                }
                // Refused for certain.
                None => None,
            },
            Changed::Nothing => None,
        };
        Ok(owner.map(|owner| (OWNER, owner)).into_iter().collect())
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

/// Whether a request is refused for certain, because of what was read: nothing is changed by it.
fn is_faulty(request: &Request) -> bool {
    if let Request::Update(update) = request {
        return !update.updates.faults.is_empty();
    }
    match Changed::by(request) {
        Changed::New(list) => list.is_faulty(),
        Changed::Task(_) | Changed::Copy { .. } | Changed::Run(_) | Changed::Nothing => false,
    }
}
