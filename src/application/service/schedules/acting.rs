//! Under which principal and with which scopes a schedule acts.

use crate::application::api::schedules::{Run, Schedule};
use crate::application::api::{Error, Failure};
use crate::application::context::Context;
use std::sync::Arc;
use taskledger_auth::{Caller, Scope, Scopes};

/// The caller in whose name a schedule acts. Events of the run have its name and time as their correlation.
pub(super) fn acting_for(schedule: &Schedule, run: &Run) -> Result<Context, Error> {
    let scopes = scopes_of(&schedule.scopes, &schedule.actor)?;
    acting_with(scopes, schedule, run)
}

/// The same for a document that its actor has not seen, as anybody who writes for the owner can have saved it since: no
/// programs on the server's machine, and for others only for the owner, to whom its root belongs (see `rooted`).
pub(super) fn acting_for_unknown(schedule: &Schedule, run: &Run) -> Result<Context, Error> {
    let scopes = scopes_of(&schedule.scopes, &schedule.actor)?.without(Scope::ExecLocal);
    let scopes = match schedule.owner.user {
        Some(_) => scopes,
        None => scopes.without(Scope::UsersAny),
    };
    acting_with(scopes, schedule, run)
}

fn acting_with(scopes: Scopes, schedule: &Schedule, run: &Run) -> Result<Context, Error> {
    let correlation = format!("schedule/{}/{}", schedule.name, run.scheduled_at);
    let tenant = &schedule.owner.tenant;
    acting(&schedule.actor, tenant, scopes, Arc::from(correlation))
}

/// The scopes that are kept of a caller.
pub(super) fn scopes_of(scopes: &str, actor: &str) -> Result<Scopes, Error> {
    let scopes = scopes.split_whitespace().map(str::parse::<Scope>);
    let scopes = scopes.collect::<Result<Vec<_>, _>>().map(Scopes::of);
    scopes.map_err(|_| no_caller(actor))
}

fn no_caller(actor: &str) -> Error {
    Failure::Schedules(format!("`{actor}` is no caller with scopes")).into()
}

/// A caller with these scopes.
pub(super) fn acting(
    actor: &Arc<str>,
    tenant: &Arc<str>,
    scopes: Scopes,
    correlation: Arc<str>,
) -> Result<Context, Error> {
    let caller = Caller::described(actor, tenant, scopes, None, None, None);
    let caller = caller.ok_or_else(|| no_caller(actor))?;
    Ok(Context::of(Arc::new(caller), correlation))
}
