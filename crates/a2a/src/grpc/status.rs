//! Errors as gRPC statuses with details.

use crate::error::{DOMAIN, Edition, Error, OWN_DOMAIN};
use prost::Message;
use prost_types::{Any, Duration};
use std::collections::HashMap;
use tonic::{Code, Status};

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

/// `google.rpc.BadRequest`.
#[derive(Clone, PartialEq, Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    field_violations: Vec<FieldViolation>,
}

/// `google.rpc.BadRequest.FieldViolation`.
#[derive(Clone, PartialEq, Message)]
struct FieldViolation {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, tag = "2")]
    description: String,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Duration>,
}

fn any<M: Message>(name: &str, message: &M) -> Any {
    Any {
        type_url: format!("type.googleapis.com/google.rpc.{name}"),
        value: message.encode_to_vec(),
    }
}

/// The status of an error: its details are those of [`Error::details`], in the same order.
#[must_use]
pub fn of(error: &Error, edition: Edition) -> Status {
    with_code(error, error.kind.grpc_code(edition).0)
}

/// The same with the code that another version has for it.
#[must_use]
pub fn with_code(error: &Error, code: i32) -> Status {
    let metadata = error.metadata.iter();
    let info = ErrorInfo {
        reason: error.kind.reason().to_owned(),
        domain: DOMAIN.to_owned(),
        metadata: metadata.map(|(k, v)| (k.clone(), v.clone())).collect(),
    };
    let mut details = vec![any("ErrorInfo", &info)];
    if !error.faults.is_empty() {
        let faults = error.faults.listed.iter().map(|fault| FieldViolation {
            field: fault.field.clone(),
            description: fault.description.clone(),
        });
        let field_violations = faults.collect();
        details.push(any("BadRequest", &BadRequest { field_violations }));
    }
    if let Some(own) = error.own {
        let info = ErrorInfo {
            reason: own.to_owned(),
            domain: OWN_DOMAIN.to_owned(),
            metadata: HashMap::new(),
        };
        details.push(any("ErrorInfo", &info));
    }
    if let Some(ms) = error.retry_after_ms {
        let delay = Duration {
            seconds: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
            nanos: i32::try_from(ms % 1000).unwrap_or_default() * 1_000_000,
        };
        let retry_delay = Some(delay);
        details.push(any("RetryInfo", &RetryInfo { retry_delay }));
    }
    let status = RpcStatus {
        code,
        message: error.message.clone(),
        details,
    };
    let bytes = status.encode_to_vec();
    Status::with_details(Code::from_i32(code), error.message.clone(), bytes.into())
}

/// The reasons in the details of a status, with their domains, in order.
#[must_use]
pub fn reasons(status: &Status) -> Vec<(String, String)> {
    let Ok(decoded) = RpcStatus::decode(status.details()) else {
        return Vec::new();
    };
    let infos = decoded.details.iter();
    let infos = infos.filter(|it| it.type_url.ends_with("/google.rpc.ErrorInfo"));
    infos
        .filter_map(|it| ErrorInfo::decode(&*it.value).ok())
        .map(|it| (it.reason, it.domain))
        .collect()
}

/// The faults in the details of a status.
#[must_use]
pub fn faults(status: &Status) -> Vec<crate::read::Fault> {
    let Ok(decoded) = RpcStatus::decode(status.details()) else {
        return Vec::new();
    };
    let found = decoded.details.iter();
    let found = found.filter(|it| it.type_url.ends_with("/google.rpc.BadRequest"));
    found
        .filter_map(|it| BadRequest::decode(&*it.value).ok())
        .flat_map(|it| it.field_violations)
        .map(|it| crate::read::Fault::new(it.field, it.description))
        .collect()
}
