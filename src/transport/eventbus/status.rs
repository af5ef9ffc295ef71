//! Maps errors of the application to gRPC statuses.

use crate::application::api::Error;
use crate::clock::Clock;
use crate::transport::jsonrpc::{ErrorKind, RpcError, told};
use std::time::Duration;
use taskledger_eventbus::status_with_retry;
use tonic::{Code, Status};

/// What a caller is told of an error. A failure is logged, under an id that the status has.
pub(super) fn of(clock: &dyn Clock, error: Error) -> Status {
    of_members(clock, error, |field, _| Called::Name(field))
}

/// What the caller calls a member of a task, by its name and by that of the member of the task in which it stands.
pub(super) type Member = for<'a> fn(&'a str, &str) -> Called<'a>;

/// What is said of a member of a task.
pub(super) enum Called<'a> {
    /// By the name that the caller gave it: the fault follows.
    Name(&'a str),
    /// Name and fault in words of the broker: those of other doors would name what its callers cannot give.
    Fault(&'static str),
}

/// The same, with what the caller calls members of a task.
pub(super) fn of_members(clock: &dyn Clock, error: Error, member: Member) -> Status {
    const UNKNOWN: &str = "the outcome is unknown; publish it again with the same ids";
    if let Error::OutcomeUnknown = &error {
        return Status::unavailable(UNKNOWN);
    }
    if let Error::Unanswered { retry_after_ms } = &error {
        let after = Duration::from_millis(*retry_after_ms);
        return status_with_retry(Code::Unavailable, UNKNOWN, after);
    }
    let limited = matches!(
        error,
        Error::RateLimited { .. } | Error::QuotaExceeded { .. }
    );
    let error = told(clock, error);
    let code = match (limited, error.kind) {
        (true, _) => Code::ResourceExhausted,
        (false, kind) => code_of(kind),
    };
    let message = message(&error, member);
    match retry_after_ms(&error) {
        Some(ms) => status_with_retry(code, &message, Duration::from_millis(ms)),
        None => Status::new(code, message),
    }
}

/// The code of gRPC for a refusal.
const fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::InvalidParams
        | ErrorKind::CircularDependency
        | ErrorKind::InvalidParent
        | ErrorKind::InvalidDependency
        | ErrorKind::InvalidTree
        | ErrorKind::InputWiring
        | ErrorKind::MissingOutput
        | ErrorKind::OutputTypeMismatch => Code::InvalidArgument,
        ErrorKind::TaskNotFound
        | ErrorKind::WebhookNotFound
        | ErrorKind::WorkflowNotFound
        | ErrorKind::ScheduleNotFound => Code::NotFound,
        ErrorKind::Unauthorized => Code::PermissionDenied,
        ErrorKind::ExecutorNotFound
        | ErrorKind::InvalidTransition
        | ErrorKind::AlreadyExecuting
        | ErrorKind::NotDeletable
        | ErrorKind::LeaseNotHeld
        | ErrorKind::NotSuspended
        | ErrorKind::UnresolvableInput
        | ErrorKind::UpstreamSuspended
        | ErrorKind::WorkflowChanged
        | ErrorKind::ScheduleChanged => Code::FailedPrecondition,
        ErrorKind::Busy => Code::Unavailable,
        ErrorKind::QuotaExceeded => Code::ResourceExhausted,
        // The first three are about the body of a call of JSON-RPC: none comes from the application.
        ErrorKind::ParseError
        | ErrorKind::InvalidRequest
        | ErrorKind::MethodNotFound
        | ErrorKind::Internal => Code::Internal,
    }
}

/// When the same call may be made again, if that is known.
fn retry_after_ms(error: &RpcError) -> Option<u64> {
    error.data.get("retry_after_ms")?.as_u64()
}

/// The first fault in words, which begin with the member that is wrong.
fn message(error: &RpcError, member: Member) -> String {
    let path = error.data.pointer("/errors/0/path");
    let path = path.and_then(serde_json::Value::as_array);
    let mut names = path.into_iter().flatten().filter_map(|it| it.as_str());
    let within = names.find(|it| *it != "tasks").unwrap_or_default();
    let text = |name: &str| {
        let at = error.data.pointer(&format!("/errors/0/{name}"));
        at.and_then(serde_json::Value::as_str).unwrap_or_default()
    };
    if let Some(ms) = retry_after_ms(error)
        && !text("reason").is_empty()
    {
        let reason = text("reason");
        return format!("{reason}; make the same call again after {ms} ms");
    }
    let (reason, expected) = (text("reason"), text("expected"));
    let name = match text("field") {
        "" if reason.is_empty() => return error.message.to_owned(),
        "" => return format!("{}: {reason}", error.message),
        field => match member(field, within) {
            Called::Name(name) => name,
            Called::Fault(fault) => return fault.to_owned(),
        },
    };
    match expected {
        "" => format!("{name}: {reason}"),
        expected => format!("{name}: {reason}, expected {expected}"),
    }
}
