//! Encodes the answers of `workflows.*`.

use crate::application::Service;
use crate::application::api::Error;
use crate::application::api::workflows::UnfitWorkflow;
use crate::transport::jsonrpc::methods::answer;
use crate::transport::jsonrpc::{RpcError, refusals};
use serde_json::value::RawValue;

/// A result, or its refusal.
pub(super) type Answer = Result<Box<RawValue>, RpcError>;

/// What was found, or why it was not.
pub(super) fn fit<T>(
    service: &Service,
    asked: Result<Result<T, UnfitWorkflow>, Error>,
) -> Result<T, RpcError> {
    answer(service, asked)?.map_err(|unfit| refusals::unfit_workflow(&unfit))
}
