//! Converts errors to gRPC statuses with details.

use crate::error::{DOMAIN, Edition, Error, OWN_DOMAIN};
use std::collections::HashMap;
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::{BadRequest, ErrorDetail, ErrorInfo, FieldViolation, RetryInfo, StatusExt};

/// The status of an error: its details are those of [`Error::details`], in the same order.
#[must_use]
pub fn of(error: &Error, edition: Edition) -> Status {
    with_code(error, error.kind.grpc_code(edition).0)
}

/// The same with the code that another version has for it.
#[must_use]
pub fn with_code(error: &Error, code: i32) -> Status {
    let metadata: HashMap<String, String> = error.metadata.clone().into_iter().collect();
    let mut details: Vec<ErrorDetail> =
        vec![ErrorInfo::new(error.kind.reason(), DOMAIN, metadata).into()];
    if !error.faults.is_empty() {
        let faults = error.faults.listed.iter();
        let faults = faults.map(|fault| FieldViolation::new(&fault.field, &fault.description));
        details.push(BadRequest::new(faults.collect::<Vec<_>>()).into());
    }
    if let Some(own) = error.own {
        details.push(ErrorInfo::new(own, OWN_DOMAIN, HashMap::new()).into());
    }
    if let Some(ms) = error.retry_after_ms {
        details.push(RetryInfo::new(Some(Duration::from_millis(ms))).into());
    }
    Status::with_error_details_vec(Code::from_i32(code), &error.message, details)
}

/// The reasons in the details of a status, with their domains, in order.
#[must_use]
pub fn reasons(status: &Status) -> Vec<(String, String)> {
    let details = status.get_error_details_vec().into_iter();
    let infos = details.filter_map(|it| {
        let ErrorDetail::ErrorInfo(info) = it else {
            return None;
        };
        Some((info.reason, info.domain))
    });
    infos.collect()
}

/// The faults in the details of a status.
#[must_use]
pub fn faults(status: &Status) -> Vec<crate::read::Fault> {
    let details = status.get_error_details_vec().into_iter();
    let requests = details.filter_map(|it| {
        let ErrorDetail::BadRequest(request) = it else {
            return None;
        };
        Some(request.field_violations)
    });
    requests
        .flatten()
        .map(|it| crate::read::Fault::new(it.field, it.description))
        .collect()
}
