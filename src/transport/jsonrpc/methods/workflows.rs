//! The methods `workflows.*`.

pub mod create;
pub mod delete;
pub mod diff;
pub mod dry_run;
pub mod get;
mod kinds;
pub mod list;
pub mod progress;
pub mod run;
pub mod save;
pub mod schemas;
pub mod validate;
pub mod versions;

use crate::application::Service;
use crate::application::api::Error;
use crate::application::api::workflows::UnfitWorkflow;
use crate::transport::jsonrpc::methods::answer;
use crate::transport::jsonrpc::table::Method;
use crate::transport::jsonrpc::{RpcError, refusals};
use serde_json::value::RawValue;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        validate::method(),
        dry_run::method(),
        create::method(),
        save::method(),
        get::method(),
        list::method(),
        versions::method(),
        diff::method(),
        delete::method(),
        run::method(),
        schemas::method(),
        progress::method(),
    ]
}

/// A result, or its refusal.
type Answer = Result<Box<RawValue>, RpcError>;

/// What was found, or why it was not.
fn fit<T>(
    service: &Service,
    asked: Result<Result<T, UnfitWorkflow>, Error>,
) -> Result<T, RpcError> {
    answer(service, asked)?.map_err(|unfit| refusals::unfit_workflow(&unfit))
}
