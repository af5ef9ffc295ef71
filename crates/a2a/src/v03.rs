//! The wire of Agent2Agent 0.3, for agents that speak nothing newer: its names and forms, and the ways between them and
//! the objects of this crate.
//!
//! Requests become the members that 1.0 has for the same ([`request`]) and are read by the one reader; answers are
//! written from the same objects in the older form ([`answer`], [`card`], [`grpc`]). Errors keep their codes
//! ([`error`]). May not: decide anything that the newer wire does not decide.

pub mod answer;
pub mod card;
pub mod error;
pub mod grpc;
pub mod request;

pub use answer::Answering;
pub use request::ConvertedCall;

use crate::error::{Error, ErrorKind};
use crate::operation::Operation;
use crate::task::TaskState;

/// The version that this is.
pub const SERVED: &str = "0.3";
/// The header with extensions, in and out.
pub const EXTENSIONS: &str = "x-a2a-extensions";
/// Between the namespace and the name of a method.
const SEPARATOR: char = '/';

/// How objects are told apart, and what their members are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// By the member `kind`, as JSON-RPC has them.
    Kinds,
    /// As the JSON of the older .proto, which HTTP+JSON has.
    Proto,
}

/// Methods of JSON-RPC.
const METHODS: [(&str, Operation); 10] = [
    ("message/send", Operation::SendMessage),
    ("message/stream", Operation::SendStreamingMessage),
    ("tasks/get", Operation::GetTask),
    ("tasks/cancel", Operation::CancelTask),
    ("tasks/resubscribe", Operation::SubscribeToTask),
    (
        "tasks/pushNotificationConfig/set",
        Operation::CreateTaskPushNotificationConfig,
    ),
    (
        "tasks/pushNotificationConfig/get",
        Operation::GetTaskPushNotificationConfig,
    ),
    (
        "tasks/pushNotificationConfig/list",
        Operation::ListTaskPushNotificationConfigs,
    ),
    (
        "tasks/pushNotificationConfig/delete",
        Operation::DeleteTaskPushNotificationConfig,
    ),
    (
        "agent/getAuthenticatedExtendedCard",
        Operation::GetExtendedAgentCard,
    ),
];

/// Calls of gRPC, and whether they are answered with a stream.
const CALLS: [(&str, Operation); 10] = [
    ("SendMessage", Operation::SendMessage),
    ("SendStreamingMessage", Operation::SendStreamingMessage),
    ("GetTask", Operation::GetTask),
    ("CancelTask", Operation::CancelTask),
    ("TaskSubscription", Operation::SubscribeToTask),
    (
        "CreateTaskPushNotificationConfig",
        Operation::CreateTaskPushNotificationConfig,
    ),
    (
        "GetTaskPushNotificationConfig",
        Operation::GetTaskPushNotificationConfig,
    ),
    (
        "ListTaskPushNotificationConfig",
        Operation::ListTaskPushNotificationConfigs,
    ),
    (
        "DeleteTaskPushNotificationConfig",
        Operation::DeleteTaskPushNotificationConfig,
    ),
    ("GetAgentCard", Operation::GetExtendedAgentCard),
];

/// Whether a method is named as those of this version are.
#[must_use]
pub fn is_method(name: &str) -> bool {
    name.contains(SEPARATOR)
}

/// The operation of a method of JSON-RPC.
#[must_use]
pub fn operation(method: &str) -> Option<Operation> {
    let found = METHODS.iter().find(|(known, _)| *known == method);
    found.map(|(_, operation)| *operation)
}

/// The names of all methods of JSON-RPC.
#[must_use]
pub fn methods() -> [&'static str; 10] {
    METHODS.map(|(name, _)| name)
}

/// The operation of a call of gRPC.
#[must_use]
pub fn operation_of_call(call: &str) -> Option<Operation> {
    let found = CALLS.iter().find(|(known, _)| *known == call);
    found.map(|(_, operation)| *operation)
}

/// The names of all calls of gRPC.
#[must_use]
pub fn calls() -> [&'static str; 10] {
    CALLS.map(|(name, _)| name)
}

/// Whether the version of a request is this one: 0.3, with any patch behind, or none.
///
/// # Errors
/// `VersionNotSupported`, which names this one.
pub fn served(version: Option<&str>) -> Result<(), Error> {
    let given = version.map(str::trim).unwrap_or_default();
    let patch = given.strip_prefix(SERVED);
    let is_served = given.is_empty()
        || patch.is_some_and(|it| {
            let digits = it.strip_prefix('.');
            it.is_empty()
                || digits.is_some_and(|it| {
                    !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit())
                })
        });
    if is_served {
        return Ok(());
    }
    let given: String = given.chars().take(16).collect();
    let message = format!(
        "version `{given}` is asked for in `A2A-Version`; what is called here is {SERVED}'s"
    );
    Err(Error::new(ErrorKind::VersionNotSupported, message).with("supportedVersions", SERVED))
}

/// A state by the name that this version has for it.
#[must_use]
pub const fn state(state: TaskState, form: Form) -> &'static str {
    match (form, state) {
        (Form::Kinds, TaskState::Submitted) => "submitted",
        (Form::Kinds, TaskState::Working) => "working",
        (Form::Kinds, TaskState::Completed) => "completed",
        (Form::Kinds, TaskState::Failed) => "failed",
        (Form::Kinds, TaskState::Canceled) => "canceled",
        (Form::Kinds, TaskState::InputRequired) => "input-required",
        (Form::Kinds, TaskState::Rejected) => "rejected",
        (Form::Kinds, TaskState::AuthRequired) => "auth-required",
        (Form::Proto, TaskState::Submitted) => "TASK_STATE_SUBMITTED",
        (Form::Proto, TaskState::Working) => "TASK_STATE_WORKING",
        (Form::Proto, TaskState::Completed) => "TASK_STATE_COMPLETED",
        (Form::Proto, TaskState::Failed) => "TASK_STATE_FAILED",
        (Form::Proto, TaskState::Canceled) => "TASK_STATE_CANCELLED",
        (Form::Proto, TaskState::InputRequired) => "TASK_STATE_INPUT_REQUIRED",
        (Form::Proto, TaskState::Rejected) => "TASK_STATE_REJECTED",
        (Form::Proto, TaskState::AuthRequired) => "TASK_STATE_AUTH_REQUIRED",
    }
}
