//! The one function from what the application refuses, or fails at, to a row of the table of errors.

use super::dispatch::RETRY_AFTER_TIMEOUT_MS;
use super::error::{ErrorKind, RpcError};
use crate::application::api::{Error, Failure};
use crate::clock::Clock;
use crate::engine::executor::command;
use serde_json::Value;
use taskledger_domain::flow::{Kind, Rejection};
use taskledger_domain::violation::Violation;

/// Milliseconds after which a call that met a server on its way down may find its successor.
const SHUT_DOWN_RETRY_MS: u64 = 1000;
/// What a caller is told to wait when a flow has no owner, in milliseconds: the next one is found
/// within seconds.
const RETRY_AFTER_MOVE_MS: u64 = 500;

/// What a caller is told of an error. A failure is logged here, under an id that the answer has.
pub(crate) fn told(clock: &dyn Clock, error: Error) -> RpcError {
    match error {
        Error::Refused(rejection) => refused(*rejection),
        Error::Busy {
            reason,
            retry_after_ms,
        } => RpcError::busy(&reason, retry_after_ms),
        Error::Elsewhere(_) => RpcError::busy(
            "the flow is changing over to another server",
            RETRY_AFTER_MOVE_MS,
        ),
        Error::OutcomeUnknown => {
            RpcError::internal_answer("outcome unknown; retry with the same idempotency key")
        }
        Error::Unanswered { retry_after_ms } => {
            RpcError::internal_answer("outcome unknown; retry with the same idempotency key")
                .with("retry_after_ms", retry_after_ms)
        }
        Error::OutOfTime { changes } => out_of_time(changes),
        Error::UnknownWebhook { field } => RpcError::webhook_not_found(field, &Value::Null),
        Error::Failed(Failure::ShuttingDown) => {
            RpcError::busy("the server is shutting down", SHUT_DOWN_RETRY_MS)
        }
        Error::Failed(Failure::OfNode { id, reason }) => {
            RpcError::internal_as(reason.as_deref(), id)
        }
        Error::Failed(failure) => match failure.for_the_caller() {
            Some(reason) => RpcError::internal_because(clock, &failure, &reason),
            None => RpcError::internal(clock, &failure),
        },
    }
}

/// A read may simply be repeated; of a change nobody knows whether it happened.
pub(super) fn out_of_time(changes: bool) -> RpcError {
    if changes {
        RpcError::internal_answer(
            "the call ran out of time and its outcome is unknown; retry with the same idempotency key",
        )
        .with("retry_after_ms", RETRY_AFTER_TIMEOUT_MS)
    } else {
        RpcError::busy("the call ran out of time", RETRY_AFTER_TIMEOUT_MS)
    }
}

/// The row of the error table for each family of refusals.
fn refused(rejection: Rejection) -> RpcError {
    let kind = match rejection.kind {
        Kind::NotFound => ErrorKind::TaskNotFound,
        Kind::Invalid => ErrorKind::InvalidParams,
        Kind::InvalidTree => ErrorKind::InvalidTree,
        Kind::InvalidParent => ErrorKind::InvalidParent,
        Kind::InvalidDependency => ErrorKind::InvalidDependency,
        Kind::Circular => ErrorKind::CircularDependency,
        Kind::ExecutorNotFound => ErrorKind::ExecutorNotFound,
        Kind::AlreadyExecuting => ErrorKind::AlreadyExecuting,
        Kind::InvalidTransition => ErrorKind::InvalidTransition,
        Kind::CannotDelete => ErrorKind::NotDeletable,
        // Neither leaves the engine and the application; if one does, it is our fault.
        Kind::StaleAttempt | Kind::SpecificationMoved => ErrorKind::Internal,
    };
    let off = |v: &Violation| v.actual == command::NAME;
    let hint = kind == ErrorKind::ExecutorNotFound && rejection.violations.iter().any(off);
    let mut error = RpcError::new(kind, rejection.violations);
    if hint {
        let text = "command_executor is off; the server allows programs with --allow-command";
        error = error.with("hint", text);
    }
    rejection
        .details
        .into_iter()
        .fold(error, |error, (member, value)| error.with(&member, value))
}
