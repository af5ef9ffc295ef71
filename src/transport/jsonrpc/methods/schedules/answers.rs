//! Encodes the answers of `schedules.*`.

use crate::application::Service;
use crate::application::api::Error;
use crate::application::api::schedules::{ShownSchedule, UnfitSchedule};
use crate::transport::jsonrpc::methods::answer;
use crate::transport::jsonrpc::{RpcError, refusals, replies};
use serde_json::value::RawValue;

/// A result, or its refusal.
pub(super) type Answer = Result<Box<RawValue>, RpcError>;

/// What was found, or why it was not.
pub(super) fn fit<T>(
    service: &Service,
    asked: Result<Result<T, UnfitSchedule>, Error>,
) -> Result<T, RpcError> {
    answer(service, asked)?.map_err(|unfit| refusals::unfit_schedule(&unfit))
}

pub(super) fn told(
    service: &Service,
    asked: Result<Result<ShownSchedule, UnfitSchedule>, Error>,
) -> Answer {
    Ok(replies::schedule_shown(&fit(service, asked)?))
}
