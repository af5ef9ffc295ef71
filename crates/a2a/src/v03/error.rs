//! Errors of 0.3. Their codes of JSON-RPC are those of 1.0; statuses of HTTP and codes of gRPC are those that its
//! servers send, which its definition leaves open.

use crate::error::{Edition, Error, ErrorKind};
use crate::operation::Operation;
use serde_json::{Value, json};

/// Codes of gRPC that differ from those of 1.0.
const NOT_FOUND: i32 = 5;
const UNIMPLEMENTED: i32 = 12;

/// An error of an operation as 0.3 knows it: a card for callers with credentials that is not there has a code of its
/// own.
#[must_use]
pub fn of(operation: Operation, error: Error) -> Error {
    match (operation, error.kind) {
        (Operation::GetExtendedAgentCard, ErrorKind::UnsupportedOperation) => Error {
            kind: ErrorKind::ExtendedAgentCardNotConfigured,
            ..error
        },
        _ => error,
    }
}

/// The status of HTTP.
#[must_use]
pub const fn http_status(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::TaskNotCancelable => 409,
        ErrorKind::PushNotificationNotSupported | ErrorKind::UnsupportedOperation => 501,
        ErrorKind::ContentTypeNotSupported => 415,
        ErrorKind::InvalidAgentResponse => 502,
        ErrorKind::ExtendedAgentCardNotConfigured => 404,
        ErrorKind::TaskNotFound
        | ErrorKind::ExtensionSupportRequired
        | ErrorKind::VersionNotSupported
        | ErrorKind::Parse
        | ErrorKind::InvalidRequest
        | ErrorKind::MethodNotFound
        | ErrorKind::InvalidParams
        | ErrorKind::Internal
        | ErrorKind::Unauthenticated
        | ErrorKind::Forbidden
        | ErrorKind::Unavailable
        | ErrorKind::ResourceExhausted => kind.http_status(Edition::V1_0_1),
    }
}

/// What servers of 0.3 write over gRPC: the name of the error, then its message. Clients tell errors that share a code
/// apart by it.
#[must_use]
pub fn to_grpc(error: Error) -> Error {
    let Some(name) = name(error.kind) else {
        return error;
    };
    Error {
        message: format!("{name}: {}", error.message),
        ..error
    }
}

/// The name of an error; `None`: 0.3 has none for it.
const fn name(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::TaskNotFound => Some("TaskNotFoundError"),
        ErrorKind::TaskNotCancelable => Some("TaskNotCancelableError"),
        ErrorKind::PushNotificationNotSupported => Some("PushNotificationNotSupportedError"),
        ErrorKind::UnsupportedOperation => Some("UnsupportedOperationError"),
        ErrorKind::ContentTypeNotSupported => Some("ContentTypeNotSupportedError"),
        ErrorKind::InvalidAgentResponse => Some("InvalidAgentResponseError"),
        ErrorKind::ExtendedAgentCardNotConfigured => {
            Some("AuthenticatedExtendedCardNotConfiguredError")
        }
        ErrorKind::Parse => Some("JSONParseError"),
        ErrorKind::InvalidRequest => Some("InvalidRequestError"),
        ErrorKind::MethodNotFound => Some("MethodNotFoundError"),
        ErrorKind::InvalidParams => Some("InvalidParamsError"),
        ErrorKind::Internal => Some("InternalError"),
        ErrorKind::ExtensionSupportRequired
        | ErrorKind::VersionNotSupported
        | ErrorKind::Unauthenticated
        | ErrorKind::Forbidden
        | ErrorKind::Unavailable
        | ErrorKind::ResourceExhausted => None,
    }
}

/// The code of gRPC.
#[must_use]
pub const fn grpc_code(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::TaskNotCancelable
        | ErrorKind::PushNotificationNotSupported
        | ErrorKind::UnsupportedOperation
        | ErrorKind::ContentTypeNotSupported => UNIMPLEMENTED,
        ErrorKind::ExtendedAgentCardNotConfigured => NOT_FOUND,
        ErrorKind::TaskNotFound
        | ErrorKind::InvalidAgentResponse
        | ErrorKind::ExtensionSupportRequired
        | ErrorKind::VersionNotSupported
        | ErrorKind::Parse
        | ErrorKind::InvalidRequest
        | ErrorKind::MethodNotFound
        | ErrorKind::InvalidParams
        | ErrorKind::Internal
        | ErrorKind::Unauthenticated
        | ErrorKind::Forbidden
        | ErrorKind::Unavailable
        | ErrorKind::ResourceExhausted => kind.grpc_code(Edition::V1_0_1).0,
    }
}

/// The body of an answer over HTTP+JSON: the error as JSON-RPC has it.
#[must_use]
pub fn to_rest(error: &Error) -> Value {
    json!({
        "code": error.kind.rpc_code(),
        "message": error.message,
        "data": error.details(),
    })
}
