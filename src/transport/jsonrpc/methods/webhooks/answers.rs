//! Encodes the answers of `webhooks.*`.

use crate::application::Service;
use crate::application::api::Error;
use crate::transport::jsonrpc::{RpcError, refusals};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

pub(super) fn told<T: Serialize>(
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
