//! What a caller may put into tasks: whose they become, and which executors they name.

use super::App;
use super::context::Context;
use super::error::Error;
use super::guard::not_local;
use std::borrow::Cow;
use taskledger_auth::{Kind, Scope};
use taskledger_domain::task::call::NewTask;
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
