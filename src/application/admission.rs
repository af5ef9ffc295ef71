//! Decides what a caller may put into new tasks: the owner they get, and the executors they may name.

use super::App;
use super::context::Context;
use super::error::Error;
use super::guard::not_local;
use super::readings::failed;
use std::borrow::Cow;
use std::sync::Arc;
use taskledger_auth::{Kind, Reach, Scope};
use taskledger_domain::FlowId;
use taskledger_domain::flow::Handover;
use taskledger_domain::task::call::{NewTask, Place, TaskList};
use taskledger_domain::task::spec::Updates;

impl App {
    /// Lets the root of a new flow belong to its caller unless it names somebody else, and refuses what the
    /// credentials do not allow. Cost: O(tasks) for callers who may not start programs, else O(1).
    ///
    /// # Errors
    /// `Forbidden`.
    pub(super) fn admit(&self, context: &Context, tasks: &mut [NewTask]) -> Result<(), Error> {
        let caller = &context.caller;
        let is_known = match caller.kind() {
            Kind::Anonymous => false,
            Kind::User | Kind::Service => true,
        };
        if is_known && let Some(root) = tasks.iter_mut().find(|task| task.parent.is_none()) {
            let owner = &**caller.owner();
            match &root.user_id {
                None => root.user_id = Some(owner.to_owned()),
                Some(user) if user == owner || caller.may(Scope::UsersAny) => {}
                Some(_) => return Err(not_for_others("user_id")),
            }
        }
        if caller.may(Scope::ExecLocal) {
            return Ok(());
        }
        tasks.iter().try_for_each(|task| {
            self.admit_method(
                context,
                task.specification.method.as_deref(),
                "schemas.method",
            )
        })
    }

    /// The owner, now or once the call has run, of the flow that a call adds tasks to: this user's own declarations of
    /// methods hold for the tasks. Cost: O(1) but for a caller who acts for all users, while somebody has declared
    /// something: O(tasks), and a look at the flow of a stored task that they are added to.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn owner_of_call(
        &self,
        context: &Context,
        list: &TaskList,
    ) -> Result<Option<Arc<str>>, Error> {
        if !self.validation.executors().has_owners() {
            return Ok(None);
        }
        let caller = &context.caller;
        if let Reach::Of(owner) = caller.reach() {
            return Ok(Some(owner));
        }
        let own = match caller.kind() {
            Kind::Anonymous => None,
            Kind::User | Kind::Service => Some(caller.owner().clone()),
        };
        match list.place() {
            Some(Place::Root(root)) => Ok(root.user_id.as_deref().map(Arc::from).or(own)),
            Some(Place::Below(parent)) => match self.directory.flow_of(parent).await? {
                Some(flow) => self.declaring_owner(context, flow).await,
                None => Ok(own),
            },
            None => Ok(own),
        }
    }

    /// The owner of a stored flow that the caller sees, whose declarations of methods hold for it. Cost: as above.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn declaring_owner(
        &self,
        context: &Context,
        flow: FlowId,
    ) -> Result<Option<Arc<str>>, Error> {
        if !self.validation.executors().has_owners() {
            return Ok(None);
        }
        if let Reach::Of(owner) = context.caller.reach() {
            return Ok(Some(owner));
        }
        match self.rows.owner_of(flow) {
            Some(owner) => Ok(owner),
            None => Ok(self.queries.owner_of(flow).await.map_err(failed)?.flatten()),
        }
    }

    /// Refuses a method that starts programs unless the credentials allow it. `field`: what names it.
    ///
    /// # Errors
    /// `Forbidden`.
    pub(super) fn admit_method(
        &self,
        context: &Context,
        method: Option<&str>,
        field: &'static str,
    ) -> Result<(), Error> {
        let is_allowed = context.caller.may(Scope::ExecLocal);
        match method {
            Some(method) if !is_allowed && self.validation.executors().starts_programs(method) => {
                Err(not_local(field))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// When a caller may give flows to others: one who acts for all users also when they have ended. While
    /// authentication is off, nobody is known to, and an update answers as the protocol says.
    pub(super) fn handover_by(context: &Context) -> Handover {
        let caller = &context.caller;
        match caller.kind() {
            Kind::Anonymous => Handover::WhilePending,
            Kind::User | Kind::Service if caller.may(Scope::UsersAny) => Handover::WhileIdle,
            Kind::User | Kind::Service => Handover::WhilePending,
        }
    }

    /// Refuses to give a flow to somebody else, unless the caller acts for all users.
    ///
    /// # Errors
    /// `Forbidden`.
    pub(super) fn keep_owner(context: &Context, updates: &Updates) -> Result<(), Error> {
        let caller = &context.caller;
        match &updates.user_id {
            Some(user)
                if !caller.may(Scope::UsersAny) && user.as_deref() != Some(&**caller.owner()) =>
            {
                Err(not_for_others("updates.user_id"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Only those who act for all users may name another owner.
fn not_for_others(field: &'static str) -> Error {
    Error::Forbidden {
        scope: Scope::UsersAny,
        field: Some(Cow::from(field)),
    }
}
