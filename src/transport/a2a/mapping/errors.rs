//! Maps refusals and failures to errors of the protocol, in two total functions with the same wording as all doors.

use super::plan::Source;
use super::views::camel_of;
use crate::application::api::{Error as Refused, Failure};
use crate::clock::Clock;
use crate::transport::jsonrpc::{RpcError, told};
use serde_json::Value;
use taskledger_a2a::{Error, ErrorKind, Fault, Faults};
use taskledger_domain::PathSegment;
use taskledger_domain::flow::Kind;

/// What was being done.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Doing<'a> {
    /// A message begins a run, or says something to one.
    Sending(&'a Source),
    /// A run is cancelled.
    Cancelling,
    /// Something is read.
    Reading,
    /// It is said where a run is reported, or asked.
    Reporting,
}

/// What a caller is told. A failure is logged, under an id that the error has.
pub(crate) fn of(clock: &dyn Clock, error: Refused, doing: Doing<'_>) -> Error {
    let kind = kind_of(&error, doing);
    let own = own_name(&error);
    let words = told(clock, error);
    let message = words
        .data
        .pointer("/errors/0/reason")
        .and_then(Value::as_str);
    let mut told = if kind == ErrorKind::InvalidParams {
        Error::invalid(faults(&words, doing))
    } else {
        let message = message.unwrap_or(words.message);
        match doing {
            Doing::Sending(_) if is_of_run(&words) => Error::new(kind, not_taken(message)),
            Doing::Sending(_) | Doing::Cancelling | Doing::Reading | Doing::Reporting => {
                Error::new(kind, message)
            }
        }
    };
    if let Some(own) = own {
        told = told.named(own);
    }
    if let Some(scope) = words.data.get("scope").and_then(Value::as_str) {
        told = told.with("scope", scope);
    }
    if let Some(quota) = words.data.get("quota").and_then(Value::as_str) {
        told = told.with("quota", quota);
        for name in ["limit", "used", "requested"] {
            if let Some(amount) = words.data.get(name).and_then(Value::as_u64) {
                told = told.with(name, amount.to_string());
            }
        }
    }
    if let Some(id) = words.data.get("error_id").and_then(Value::as_str) {
        told = told.with("errorId", id);
    }
    let wait = words.data.get("retry_after_ms").and_then(Value::as_u64);
    match wait {
        Some(wait) => told.after(wait),
        None => told,
    }
}

/// Whether a run is at fault, which a message names by its `taskId`.
fn is_of_run(words: &RpcError) -> bool {
    let field = words.data.pointer("/errors/0/field");
    field.and_then(Value::as_str) == Some("run_id")
}

/// Why a run does not take a message, and what its sender can do.
fn not_taken(reason: &str) -> String {
    format!(
        "message.taskId: {reason}; to say more, send a new message with the same `contextId` and this task in \
         `referenceTaskIds`"
    )
}

/// The kinds.
fn kind_of(error: &Refused, doing: Doing<'_>) -> ErrorKind {
    match error {
        Refused::Refused(refused) => of_refusal(refused.refusal.kind(), doing),
        Refused::Busy { .. } | Refused::Elsewhere(_) => ErrorKind::Unavailable,
        Refused::RateLimited { .. } | Refused::QuotaExceeded { .. } => ErrorKind::ResourceExhausted,
        Refused::Forbidden { .. } => ErrorKind::Forbidden,
        Refused::OutOfTime { changes: false } => ErrorKind::Unavailable,
        Refused::OutOfTime { changes: true }
        | Refused::OutcomeUnknown
        | Refused::Unanswered { .. }
        | Refused::Outdated(_) => ErrorKind::Internal,
        Refused::UnknownWebhook { .. } => ErrorKind::TaskNotFound,
        Refused::LeaseNotHeld { .. } => ErrorKind::UnsupportedOperation,
        Refused::ContractBroken { .. } => ErrorKind::InvalidParams,
        Refused::Failed(failure) => of_failure(failure),
    }
}

/// Faults of ours.
const fn of_failure(failure: &Failure) -> ErrorKind {
    match failure {
        Failure::ShuttingDown => ErrorKind::Unavailable,
        Failure::Store(_)
        | Failure::ReadModel(_)
        | Failure::Webhooks(_)
        | Failure::OfNode { .. }
        | Failure::UnreadableAnswer(_)
        | Failure::Workflows(_)
        | Failure::Schedules(_)
        | Failure::Secrets(_)
        | Failure::Tokens(_)
        | Failure::Broken(_) => ErrorKind::Internal,
    }
}

/// What the caller can act on.
const fn of_refusal(kind: Kind, doing: Doing<'_>) -> ErrorKind {
    match kind {
        Kind::NotFound => ErrorKind::TaskNotFound,
        Kind::Invalid
        | Kind::InvalidTree
        | Kind::InvalidParent
        | Kind::InvalidDependency
        | Kind::Circular
        | Kind::ExecutorNotFound => ErrorKind::InvalidParams,
        Kind::AlreadyExecuting | Kind::CannotDelete => ErrorKind::UnsupportedOperation,
        Kind::InvalidTransition => match doing {
            Doing::Cancelling => ErrorKind::TaskNotCancelable,
            Doing::Sending(_) | Doing::Reading | Doing::Reporting => {
                ErrorKind::UnsupportedOperation
            }
        },
    }
}

/// What this server calls it, where the protocol has one word for several.
const fn own_name(error: &Refused) -> Option<&'static str> {
    let Refused::Refused(refused) = error else {
        return None;
    };
    match refused.refusal.kind() {
        Kind::InvalidTree => Some("INVALID_TASK_TREE"),
        Kind::InvalidParent => Some("INVALID_PARENT"),
        Kind::InvalidDependency => Some("INVALID_DEPENDENCY"),
        Kind::Circular => Some("CIRCULAR_DEPENDENCY"),
        Kind::ExecutorNotFound => Some("EXECUTOR_NOT_FOUND"),
        Kind::AlreadyExecuting => Some("ALREADY_EXECUTING"),
        Kind::NotFound | Kind::Invalid | Kind::InvalidTransition | Kind::CannotDelete => None,
    }
}

/// What is wrong, with the paths of the message that was sent.
fn faults(words: &RpcError, doing: Doing<'_>) -> Faults {
    let mut faults = Faults::default();
    let listed = words.data.get("errors").and_then(Value::as_array);
    for error in listed.map(Vec::as_slice).unwrap_or_default() {
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = error.get("path").and_then(Value::as_array);
        let path: Vec<PathSegment> = path
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .filter_map(segment)
            .collect();
        let description = match text("expected") {
            "" => text("reason").to_owned(),
            expected => format!("{}, expected {expected}", text("reason")),
        };
        faults.note(match doing {
            Doing::Sending(source) => source.fault(&path, description),
            // Secrets are those of the receiver.
            Doing::Reporting if text("field") == "secret" => {
                Fault::new("authentication", description)
            }
            Doing::Cancelling | Doing::Reading | Doing::Reporting => {
                Fault::new(camel_of(text("field")), description)
            }
        });
    }
    faults
}

fn segment(value: &Value) -> Option<PathSegment> {
    match value {
        Value::String(key) => Some(PathSegment::Key(key.clone())),
        Value::Number(index) => {
            let index = index.as_u64().and_then(|it| usize::try_from(it).ok());
            index.map(PathSegment::Index)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
