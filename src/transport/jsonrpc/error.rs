//! The rows of JSON-RPC errors: codes, messages and the form of `data`. Which refusal has which row is said
//! in `refusals`. spec: interface / Error Handling
//!
//! `data` always holds `errors: [{field, reason, expected, actual, path}]`, and for a single
//! fault the same members flat beside it, so that both examples of the protocol hold.
//! Internals never enter an answer: a failure is logged here under an id, and the answer has the id.

use crate::clock::Clock;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt;
use taskledger_domain::json::{OUT_OF_RANGE, OUT_OF_RANGE_EXPECTED};
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::{PathSegment, TaskId, Violation};

/// The field of a fault that is the rate of a caller's calls.
const RATE: &str = "rate";

/// What a caller is told to wait after a request ran out of time, in milliseconds.
pub const RETRY_AFTER_TIMEOUT_MS: u64 = 1000;

/// A row of the error table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// -32700: the body is no JSON.
    ParseError,
    /// -32600: JSON, but no request.
    InvalidRequest,
    /// -32601: no such method.
    MethodNotFound,
    /// -32602: the parameters, or the task in them, are not valid.
    InvalidParams,
    /// -32603: our fault.
    Internal,
    /// -32001: no such task, or not for this caller.
    TaskNotFound,
    /// -32002: a dependency would close a cycle.
    CircularDependency,
    /// -32003: no executor has the task's method.
    ExecutorNotFound,
    /// -32004: the caller may not do this.
    Unauthorized,
    /// -32006: the task's status does not allow this.
    InvalidTransition,
    /// -32008: an active run covers the task.
    AlreadyExecuting,
    /// -32009: not pending, or others hang on it.
    NotDeletable,
    /// -32010: the parent does not exist or cannot be one.
    InvalidParent,
    /// -32011: the dependency is not in the flow.
    InvalidDependency,
    /// -32012: the tasks do not form one tree.
    InvalidTree,
    /// -32013: not now; `data.retry_after_ms` says when.
    Busy,
    /// -32014: no such webhook, or no such delivery.
    WebhookNotFound,
    /// -31012: no workflow is kept by this name, or not this version. Outside the range of the protocol's own errors.
    WorkflowNotFound,
    /// -31013: the newest version of a workflow is not the one that the caller expects; `data.version` is the newest.
    WorkflowChanged,
    /// -31014: no schedule is kept by this name. Outside that range too.
    ScheduleNotFound,
    /// -31015: a schedule of this name is kept, or its version is not the one that the caller expects; `data.version`
    /// is its version.
    ScheduleChanged,
    /// -32015: the caller has as much as it may; `data.limit` and `data.used` say of what there is how much.
    QuotaExceeded,
    /// -31010: the lease under which a worker speaks does not hold any more; `data.reason` says why. Outside the
    /// range of the protocol's own errors.
    LeaseNotHeld,
    /// -31021: inputs of a workflow document name what they may not. Outside that range too, like the next ones, and
    /// named after the errors of RFC-0024.
    InputWiring,
    /// -31022: inputs of a task that is claimed cannot be resolved.
    UnresolvableInput,
    /// -31011: a task does not wait for this answer.
    NotSuspended,
    /// -31023: a result that inputs of a task need waits for a person.
    UpstreamSuspended,
    /// -31024: a result lacks a key that the task declares.
    MissingOutput,
    /// -31025: a value of a result is not of the type that the task declares.
    OutputTypeMismatch,
}

impl ErrorKind {
    /// All rows.
    pub const ALL: [Self; 29] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::CircularDependency,
        Self::ExecutorNotFound,
        Self::Unauthorized,
        Self::InvalidTransition,
        Self::AlreadyExecuting,
        Self::NotDeletable,
        Self::InvalidParent,
        Self::InvalidDependency,
        Self::InvalidTree,
        Self::Busy,
        Self::WebhookNotFound,
        Self::WorkflowNotFound,
        Self::WorkflowChanged,
        Self::ScheduleNotFound,
        Self::ScheduleChanged,
        Self::QuotaExceeded,
        Self::LeaseNotHeld,
        Self::NotSuspended,
        Self::InputWiring,
        Self::UnresolvableInput,
        Self::UpstreamSuspended,
        Self::MissingOutput,
        Self::OutputTypeMismatch,
    ];

    /// Code and message on the wire.
    #[must_use]
    pub const fn row(self) -> (i64, &'static str) {
        match self {
            Self::ParseError => (-32700, "Parse error"),
            Self::InvalidRequest => (-32600, "Invalid Request"),
            Self::MethodNotFound => (-32601, "Method not found"),
            Self::InvalidParams => (-32602, "Invalid params"),
            Self::Internal => (-32603, "Internal error"),
            Self::TaskNotFound => (-32001, "Task not found"),
            Self::CircularDependency => (-32002, "Circular dependency detected"),
            Self::ExecutorNotFound => (-32003, "Executor not found"),
            Self::Unauthorized => (-32004, "Unauthorized"),
            Self::InvalidTransition => (-32006, "Invalid state transition"),
            Self::AlreadyExecuting => (-32008, "Task is already executing"),
            Self::NotDeletable => (-32009, "Task cannot be deleted"),
            Self::InvalidParent => (-32010, "Invalid parent"),
            Self::InvalidDependency => (-32011, "Invalid dependency"),
            Self::InvalidTree => (-32012, "Invalid task tree"),
            Self::Busy => (-32013, "Too busy, retry later"),
            Self::WebhookNotFound => (-32014, "Webhook not found"),
            Self::WorkflowNotFound => (-31012, "Workflow not found"),
            Self::WorkflowChanged => (-31013, "Workflow has changed"),
            Self::ScheduleNotFound => (-31014, "Schedule not found"),
            Self::ScheduleChanged => (-31015, "Schedule has changed"),
            Self::QuotaExceeded => (-32015, "Quota exceeded"),
            Self::LeaseNotHeld => (-31010, "Lease is not held"),
            Self::InputWiring => (-31021, "Invalid input wiring"),
            Self::UnresolvableInput => (-31022, "Unresolvable input"),
            Self::NotSuspended => (-31011, "Task is not suspended"),
            Self::UpstreamSuspended => (-31023, "Upstream task is suspended"),
            Self::MissingOutput => (-31024, "Missing output"),
            Self::OutputTypeMismatch => (-31025, "Output type mismatch"),
        }
    }
}

/// The `error` member of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RpcError {
    /// The row.
    #[serde(skip)]
    pub kind: ErrorKind,
    /// The number of the row.
    pub code: i64,
    /// The text of the row, the same for every error of its kind.
    pub message: &'static str,
    /// What is wrong here; always an object with `errors`.
    pub data: Value,
}

impl RpcError {
    /// An error of `kind` with what is wrong. The first [`VIOLATIONS_MAX`] faults are listed, the
    /// rest is counted in `data.more`. Cost: O(violations).
    #[must_use]
    pub fn new(kind: ErrorKind, mut violations: Vec<Violation>) -> Self {
        let more = violations.len().saturating_sub(VIOLATIONS_MAX);
        violations.truncate(VIOLATIONS_MAX);
        let mut errors: Vec<Value> = violations.iter().map(|v| json!(v)).collect();
        let mut data = match errors.as_mut_slice() {
            [Value::Object(only)] => only.clone(),
            _ => Map::new(),
        };
        data.insert("errors".to_owned(), Value::Array(errors));
        if more > 0 {
            data.insert("more".to_owned(), more.into());
        }
        let (code, message) = kind.row();
        Self {
            kind,
            code,
            message,
            data: Value::Object(data),
        }
    }

    /// The same error with one more member in `data`.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        if let Value::Object(data) = &mut self.data {
            data.insert(member.to_owned(), value.into());
        }
        self
    }

    /// The same error with the faults of another one behind its own.
    #[must_use]
    pub fn beside(mut self, mut other: Self) -> Self {
        if let Some(Value::Array(errors)) = other.data.get_mut("errors") {
            self.list(std::mem::take(errors));
        }
        self
    }

    /// The same error with further faults behind its own.
    #[must_use]
    pub fn listing(mut self, more: &[Violation]) -> Self {
        self.list(more.iter().map(|v| json!(v)).collect());
        self
    }

    /// Adds faults, at most [`VIOLATIONS_MAX`] together.
    fn list(&mut self, more: Vec<Value>) {
        if let Value::Object(data) = &mut self.data
            && let Some(Value::Array(errors)) = data.get_mut("errors")
            && !more.is_empty()
        {
            let room = VIOLATIONS_MAX.saturating_sub(errors.len());
            errors.extend(more.into_iter().take(room));
            // A single fault stood flat beside the list.
            for member in ["field", "reason", "expected", "actual", "path"] {
                data.remove(member);
            }
        }
    }

    /// -32700; `reason` says where the parser stopped.
    #[must_use]
    pub fn parse_error(reason: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::ParseError,
            vec![Violation::of(
                "body",
                reason.to_string(),
                "JSON text in UTF-8, nested at most 127 levels deep",
                &Value::Null,
            )],
        )
    }

    /// -32700 for a number at this place that is beyond all doubles.
    #[must_use]
    pub fn number_out_of_range(path: &[PathSegment]) -> Self {
        let fault = Violation::new(path, OUT_OF_RANGE, OUT_OF_RANGE_EXPECTED, &Value::Null);
        Self::new(ErrorKind::ParseError, vec![fault])
    }

    /// -32600.
    #[must_use]
    pub fn invalid_request(violations: Vec<Violation>) -> Self {
        Self::new(ErrorKind::InvalidRequest, violations)
    }

    /// -32601; `accepted` is shown as what would be accepted.
    #[must_use]
    pub fn method_not_found(method: &str, accepted: impl Into<String>) -> Self {
        let found = Value::from(method);
        let named = Violation::of("method", "no such method", accepted, &found);
        let shown = named.actual.clone();
        Self::new(ErrorKind::MethodNotFound, vec![named]).with("method", shown)
    }

    /// -32602.
    #[must_use]
    pub fn invalid_params(violations: Vec<Violation>) -> Self {
        Self::new(ErrorKind::InvalidParams, violations)
    }

    /// -32603. Writes `cause` to the log under a fresh id; the answer has only the id.
    #[must_use]
    pub fn internal(clock: &dyn Clock, cause: &dyn fmt::Display) -> Self {
        Self::internal_as(None, logged(clock, cause))
    }

    /// -32603 for a failure that is in the log under this id, with a reason that is fit for the caller, if
    /// there is one.
    #[must_use]
    pub(crate) fn internal_as(reason: Option<&str>, error_id: String) -> Self {
        let nothing = "the server failed; its log has the cause under `error_id`";
        Self::internal_answer(reason.unwrap_or(nothing)).with("error_id", error_id)
    }

    /// As [`Self::internal`], with a reason that is fit for the caller.
    #[must_use]
    pub fn internal_because(clock: &dyn Clock, cause: &dyn fmt::Display, reason: &str) -> Self {
        Self::internal_answer(reason).with("error_id", logged(clock, cause))
    }

    /// -32603 whose reason is fit for the caller. Logged by whoever makes it.
    #[must_use]
    pub fn internal_answer(reason: &str) -> Self {
        Self::new(
            ErrorKind::Internal,
            vec![Violation::of(
                "server",
                reason,
                "the same call once what the reason names is mended",
                &Value::Null,
            )],
        )
    }

    /// -32001 for the member `field` that names the task.
    #[must_use]
    pub fn task_not_found(field: &str, id: TaskId) -> Self {
        Self::of(
            ErrorKind::TaskNotFound,
            field,
            "no such task",
            "the id of a stored task",
            &id.to_string().into(),
        )
    }

    /// -32004: the credentials do not allow it; `data.scope` says what they must allow. `field` is the member
    /// whose value needs it.
    #[must_use]
    pub fn forbidden(scope: &str, field: &str) -> Self {
        // Tokens of workers may be narrowed to methods: then the scope alone does not do.
        let is_method = scope == "worker" && field != "credentials";
        let what = if is_method { " for this method" } else { "" };
        Self::of(
            ErrorKind::Unauthorized,
            field,
            "the credentials do not allow this",
            &format!("credentials with the scope `{scope}`{what}"),
            &Value::Null,
        )
        .with("scope", scope)
    }

    /// -32004: no credentials, or none that hold.
    #[must_use]
    pub fn unauthorized(reason: &str) -> Self {
        Self::of(
            ErrorKind::Unauthorized,
            "authorization",
            reason,
            "the header `Authorization: Bearer <token>`",
            &Value::Null,
        )
    }

    /// -32013; try again in `retry_after_ms` milliseconds.
    #[must_use]
    pub fn busy(reason: &str, retry_after_ms: u64) -> Self {
        Self::of(
            ErrorKind::Busy,
            "server",
            reason,
            "the same call again after `retry_after_ms`",
            &Value::Null,
        )
        .with("retry_after_ms", retry_after_ms)
    }

    /// -32013: the caller calls faster than it may; try again in `retry_after_ms` milliseconds.
    #[must_use]
    pub fn rate_limited(retry_after_ms: u64) -> Self {
        Self::of(
            ErrorKind::Busy,
            RATE,
            "more calls than this caller may make",
            "the same call again after `retry_after_ms`",
            &Value::Null,
        )
        .with("retry_after_ms", retry_after_ms)
    }

    /// The milliseconds that a caller has to wait who called faster than it may.
    #[must_use]
    pub fn rate_limited_ms(&self) -> Option<u64> {
        let is_rate = self.data.get("field").and_then(Value::as_str) == Some(RATE);
        let ms = self.data.get("retry_after_ms").and_then(Value::as_u64);
        ms.filter(|_| is_rate && self.kind == ErrorKind::Busy)
    }

    /// -32015: the caller has `used` of `limit` of something, and asks for so many more.
    #[must_use]
    pub fn quota_exceeded(quota: &str, limit: u64, (used, requested): (u64, u64)) -> Self {
        let expected = if requested > limit {
            format!("at most {limit}, of which this call alone asks for {requested}")
        } else {
            format!(
                "at most {limit}, and this call asks for {requested} more; what ends or is deleted makes room"
            )
        };
        Self::of(
            ErrorKind::QuotaExceeded,
            quota,
            "more than this caller may have",
            &expected,
            &used.into(),
        )
        .with("quota", quota)
        .with("limit", limit)
        .with("used", used)
        .with("requested", requested)
    }

    /// -32014 for the member `field` that names the webhook or the delivery.
    #[must_use]
    pub fn webhook_not_found(field: &str, actual: &Value) -> Self {
        let reason = "does not exist";
        let expected = "the id of a webhook, or of one of its deliveries";
        Self::of(ErrorKind::WebhookNotFound, field, reason, expected, actual)
    }

    /// -31010: nobody holds the task under this lease any more. `reason` is one word for programs, `text` says
    /// the same to people.
    #[must_use]
    pub fn lease_not_held(task: TaskId, reason: &str, text: &str) -> Self {
        let expected = "a valid lease of a claim; the worker must stop, and nothing was changed";
        Self::of(
            ErrorKind::LeaseNotHeld,
            "lease",
            text,
            expected,
            &Value::Null,
        )
        .with("task_id", task.to_string())
        .with("reason", reason)
    }

    pub(super) fn of(
        kind: ErrorKind,
        field: &str,
        reason: &str,
        expected: &str,
        actual: &Value,
    ) -> Self {
        Self::new(kind, vec![Violation::of(field, reason, expected, actual)])
    }
}

/// Puts a failure into the log, and gives the id under which it is there.
pub(crate) fn logged(clock: &dyn Clock, cause: &dyn fmt::Display) -> String {
    let error_id = clock.uuid().to_string();
    tracing::error!(error.id = %error_id, error.cause = %cause, "a call failed inside the server");
    error_id
}

impl From<Vec<Violation>> for RpcError {
    /// -32602: what a reader of parameters found.
    fn from(violations: Vec<Violation>) -> Self {
        Self::invalid_params(violations)
    }
}

#[cfg(test)]
mod tests;
