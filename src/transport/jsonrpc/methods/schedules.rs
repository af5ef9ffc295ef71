//! The methods `schedules.*`.

use super::super::dispatch::{Call, Changes, Method};
use super::super::error::RpcError;
use super::super::params::schedules::{create, delete, get, list, pause, run_now, update};
use super::super::reader::Parameters;
use super::super::{refusals, replies};
use super::{answer, boxed};
use crate::application::Service;
use crate::application::api::Error;
use crate::application::api::schedules::{ShownSchedule, UnfitSchedule};
use crate::transport::openrpc::about::schedules as about;
use serde_json::value::RawValue;

/// A result, or its refusal.
type Answer = Result<Box<RawValue>, RpcError>;

macro_rules! method {
    ($name:literal, $title:literal, $summary:literal, $params:ident, $changes:ident, $handler:ident) => {
        Method {
            name: $name,
            title: $title,
            summary: $summary,
            tags: &["schedule"],
            params: $params::Params::declared(),
            changes: Changes::$changes,
            about: about::$params(),
            handler: |service, call| boxed(async move { $handler(&service, &call).await }),
        }
    };
}

pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        method!(
            "schedules.create",
            "Create Schedule",
            "Start a saved workflow or tasks at given times",
            create,
            Schedules,
            created
        ),
        method!(
            "schedules.list",
            "List Schedules",
            "List schedules",
            list,
            Nothing,
            listed
        ),
        method!(
            "schedules.get",
            "Get Schedule",
            "Show a schedule, its next times and its last runs",
            get,
            Nothing,
            shown
        ),
        method!(
            "schedules.update",
            "Update Schedule",
            "Change a schedule",
            update,
            Schedules,
            updated
        ),
        method!(
            "schedules.pause",
            "Pause Schedule",
            "Pause a schedule, or resume it",
            pause,
            Schedules,
            paused
        ),
        method!(
            "schedules.delete",
            "Delete Schedule",
            "Delete a schedule",
            delete,
            Schedules,
            deleted
        ),
        method!(
            "schedules.run_now",
            "Run Schedule Now",
            "Start a run of a schedule now",
            run_now,
            Flows,
            run
        ),
    ]
}

/// What was found, or why it was not.
fn fit<T>(
    service: &Service,
    asked: Result<Result<T, UnfitSchedule>, Error>,
) -> Result<T, RpcError> {
    answer(service, asked)?.map_err(|unfit| refusals::unfit_schedule(&unfit))
}

fn told(service: &Service, asked: Result<Result<ShownSchedule, UnfitSchedule>, Error>) -> Answer {
    Ok(replies::schedule_shown(&fit(service, asked)?))
}

async fn created(service: &Service, call: &Call) -> Answer {
    let p = create::Params::read(&call.params)?;
    told(service, service.create_schedule(&call.context, p.0).await)
}

async fn listed(service: &Service, call: &Call) -> Answer {
    let p = list::Params::read(&call.params)?;
    let found = service.list_schedules(&call.context, p.owner, p.after, p.limit);
    let found = answer(service, found.await)?;
    Ok(replies::schedules(&found, p.limit))
}

async fn shown(service: &Service, call: &Call) -> Answer {
    let p = get::Params::read(&call.params)?;
    told(service, service.get_schedule(&call.context, p.0).await)
}

async fn updated(service: &Service, call: &Call) -> Answer {
    let p = update::Params::read(&call.params)?;
    let done = service.update_schedule(&call.context, p.named, p.changes, p.expected_version);
    told(service, done.await)
}

async fn paused(service: &Service, call: &Call) -> Answer {
    let p = pause::Params::read(&call.params)?;
    let done = service.pause_schedule(&call.context, p.named, (p.paused, p.note));
    told(service, done.await)
}

async fn deleted(service: &Service, call: &Call) -> Answer {
    let p = delete::Params::read(&call.params)?;
    let done = service.delete_schedule(&call.context, p.named, p.expected_version);
    Ok(replies::schedule_deleted(fit(service, done.await)?))
}

async fn run(service: &Service, call: &Call) -> Answer {
    let p = run_now::Params::read(&call.params)?;
    let done = service
        .run_schedule(&call.context, p.named, p.overlap)
        .await;
    Ok(replies::run_by_hand(&fit(service, done)?))
}
