//! The methods `webhooks.*`.

pub mod callback;
pub mod create;
pub mod delete;
pub mod deliveries;
pub mod disable;
pub mod enable;
pub mod get;
mod kinds;
pub mod list;
pub mod one;
pub mod recover;
pub mod redeliver;
pub mod rotate_secret;
pub mod secret;
pub mod test;
pub mod update;

use crate::application::Service;
use crate::application::api::Error;
use crate::transport::jsonrpc::table::Method;
use crate::transport::jsonrpc::{RpcError, refusals};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        create::method(),
        get::method(),
        list::method(),
        update::method(),
        delete::method(),
        enable::method(),
        disable::method(),
        rotate_secret::method(),
        secret::method(),
        test::method(),
        deliveries::method(),
        redeliver::method(),
        recover::method(),
    ]
}

fn told<T: Serialize>(
    service: &Service,
    params: &Map<String, Value>,
    told: Result<T, Error>,
) -> Result<Box<RawValue>, RpcError> {
    let clock = &**service.clock();
    let told = told.map_err(|error| match error {
        Error::UnknownWebhook { field } => {
            RpcError::webhook_not_found(field, params.get(field).unwrap_or(&Value::Null))
        }
        error @ (Error::Refused(_)
        | Error::Outdated(_)
        | Error::Busy { .. }
        | Error::RateLimited { .. }
        | Error::QuotaExceeded { .. }
        | Error::Forbidden { .. }
        | Error::Elsewhere(_)
        | Error::LeaseNotHeld { .. }
        | Error::ContractBroken { .. }
        | Error::OutcomeUnknown
        | Error::Unanswered { .. }
        | Error::OutOfTime { .. }
        | Error::Failed(_)) => refusals::told(clock, error),
    })?;
    to_raw_value(&told).map_err(|error| RpcError::internal(clock, &error))
}
