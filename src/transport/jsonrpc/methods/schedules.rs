//! The methods `schedules.*`.

pub mod create;
pub mod delete;
pub mod get;
mod kinds;
pub mod list;
pub mod pause;
pub mod run_now;
pub mod update;
mod what;

use crate::application::Service;
use crate::application::api::Error;
use crate::application::api::schedules::{ShownSchedule, UnfitSchedule};
use crate::transport::jsonrpc::methods::answer;
use crate::transport::jsonrpc::table::Method;
use crate::transport::jsonrpc::{RpcError, refusals, replies};
use serde_json::value::RawValue;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        create::method(),
        list::method(),
        get::method(),
        update::method(),
        pause::method(),
        delete::method(),
        run_now::method(),
    ]
}

/// A result, or its refusal.
type Answer = Result<Box<RawValue>, RpcError>;

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
