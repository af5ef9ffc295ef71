//! Errors of the application as gRPC statuses.

use crate::application::api::Error;
use crate::clock::Clock;
use crate::transport::jsonrpc::{RpcError, told};
use tonic::{Code, Status};

/// What a caller is told of an error. A failure is logged, under an id that the status has.
pub(super) fn of(clock: &dyn Clock, error: Error) -> Status {
    if let Error::OutcomeUnknown | Error::Unanswered { .. } = &error {
        return Status::unavailable("the outcome is unknown; publish it again with the same ids");
    }
    let limited = matches!(
        error,
        Error::RateLimited { .. } | Error::QuotaExceeded { .. }
    );
    let error = told(clock, error);
    let code = match (limited, error.code) {
        (true, _) => Code::ResourceExhausted,
        (false, code) => code_of(code),
    };
    Status::new(code, message(&error))
}

/// The codes of the protocol, by those of JSON-RPC.
fn code_of(code: i64) -> Code {
    match code {
        -32602 | -32002 | -32012..=-32010 | -31024 | -31025 => Code::InvalidArgument,
        -32001 | -32014 | -31012 => Code::NotFound,
        -32004 => Code::PermissionDenied,
        -32003 | -32006 | -32008 | -32009 | -31010 | -31011 | -31022 | -31023 => {
            Code::FailedPrecondition
        }
        -32013 => Code::Unavailable,
        -32015 => Code::ResourceExhausted,
        _ => Code::Internal,
    }
}

/// The first fault in words.
fn message(error: &RpcError) -> String {
    let text = |name: &str| {
        let at = error.data.pointer(&format!("/errors/0/{name}"));
        at.and_then(serde_json::Value::as_str).unwrap_or_default()
    };
    match (text("field"), text("reason"), text("expected")) {
        ("", "", _) => error.message.to_owned(),
        (field, reason, "") => format!("{}: {field}: {reason}", error.message),
        (field, reason, expected) => {
            format!("{}: {field}: {reason}, expected {expected}", error.message)
        }
    }
}
