//! One attempt from start to outcome: whatever an executor does, exactly one outcome comes out.
//!
//! Owns: isolation from panics, time-outs and deadlines, stopping with grace, and the checks that
//! make an executor's answer recordable. Knows neither flows nor the log; the dispatcher calls
//! [`run_attempt`] after the start is durable, or [`run_at_once`] before, and turns the outcome into a
//! command.

#[cfg(test)]
mod tests;

use super::registry::Registered;
use super::{Ended, ExecutorError, Job};
use crate::engine::secrets::Scrubber;
use futures_util::FutureExt;
use serde_json::{Map, Value};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use taskledger_domain::Payload;
use taskledger_domain::contract::{Breach, Broken, OutputFault, Outputs, TooLarge};
use taskledger_domain::flow::{FailureReason, OnAnswer, OnExpiry};
use taskledger_domain::limits::{ERROR_BYTES_MAX, PAYLOAD_BYTES_MAX};
use taskledger_domain::question::{self as suspension, Question};
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

/// How long an executor may clean up after it was told to stop, before it is dropped. Longer than
/// what `command_executor` gives its programs.
pub const STOP_GRACE: Duration = Duration::from_secs(5);
/// How long an executor that was dropped may keep its thread busy before the attempt is given up
/// without it. Only code that blocks without `.await` gets there.
pub const ABORT_GRACE: Duration = Duration::from_secs(1);
/// JSON levels of a result. Readers commonly stop at 128, and a result is read inside of a task.
pub const RESULT_DEPTH_MAX: usize = taskledger_domain::limits::PAYLOAD_DEPTH_MAX;

/// The times at which an attempt ends by itself, counted from its launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeLimits {
    /// `params.timeout_seconds`.
    pub timeout: Option<Duration>,
    /// What is left until the deadline; zero when it has passed.
    pub deadline: Option<Duration>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptOutcome {
    /// With a result.
    Completed(Payload),
    /// Without one.
    Failed {
        /// The kind of failure.
        reason: FailureReason,
        /// For people; not empty, at most [`ERROR_BYTES_MAX`] bytes.
        error: String,
        /// The pause that the other side has asked for.
        retry_after: Option<Duration>,
    },
    /// Without one, because a contract of the task was not kept.
    Breached {
        /// The kind of failure.
        reason: FailureReason,
        /// What was not kept.
        breach: Box<Breach>,
    },
    /// Not yet: a person is asked.
    Asked(Box<Asked>),
    /// The caller cancelled `job.cancel`; what the executor then said does not count.
    Stopped,
}

/// A question, ready to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// As it is stored.
    pub asked: Payload,
    /// The question, parsed.
    pub question: Question,
    /// What follows from an answer.
    pub on_answer: OnAnswer,
    /// What follows without one.
    pub on_expiry: OnExpiry,
}

impl AttemptOutcome {
    fn failed(reason: FailureReason, error: impl Into<String>) -> Self {
        Self::Failed {
            reason,
            error: cut(error.into()),
            retry_after: None,
        }
    }

    /// The end of an attempt whose executor says this, with `error` as its text.
    fn of_error(said: &ExecutorError, error: impl Into<String>) -> Self {
        Self::Failed {
            reason: reason(said),
            error: cut(error.into()),
            retry_after: said.not_before,
        }
    }
}

/// Runs one attempt. The executor gets a token of its own below `job.cancel`, so a time-out stops
/// the executor and not whatever else the caller has hung on its token. Returns at the latest
/// [`STOP_GRACE`] + [`ABORT_GRACE`] after the caller's cancel or the end of the time. Dropping the
/// future drops the executor's at its next `.await`.
pub async fn run_attempt(
    executor: &Registered,
    mut job: Job,
    limits: TimeLimits,
) -> AttemptOutcome {
    let cancelled = job.cancel.clone();
    if cancelled.is_cancelled() {
        return AttemptOutcome::Stopped;
    }
    let (stop, over) = (cancelled.child_token(), job.over.clone());
    job.cancel = stop.clone();
    if let Some(outcome) = asked(executor, &job) {
        return outcome;
    }
    let task_id = job.task_id;
    let scrubber = job.secrets.scrubber().clone();
    let contract = Contract::of(&job);
    let running = std::sync::Arc::clone(executor.executor());
    let mut running =
        AbortOnDropHandle::new(tokio::spawn(async move { running.attempt(job).await }));

    let outcome = tokio::select! {
        biased;
        () = cancelled.cancelled() => AttemptOutcome::Stopped,
        answer = &mut running => {
            return answered(executor.name(), answer, &scrubber, contract);
        }
        outcome = out_of_time(limits) => {
            over.cancel();
            outcome
        }
    };
    stop.cancel();
    if tokio::time::timeout(STOP_GRACE, &mut running)
        .await
        .is_err()
    {
        running.abort();
        if tokio::time::timeout(ABORT_GRACE, &mut running)
            .await
            .is_err()
        {
            tracing::warn!(
                executor.name = executor.name(),
                task.id = %task_id,
                "an executor blocks its thread after it was told to stop; the attempt ends without it"
            );
        }
    }
    outcome
}

/// Runs an attempt of an executor that is pure, on this thread. `None`: it wanted to wait for something,
/// so it is not pure, and is not taken for it again; the attempt was dropped where it waited.
pub fn run_at_once(executor: &Registered, job: Job) -> Option<AttemptOutcome> {
    if let Some(outcome) = asked(executor, &job) {
        return Some(outcome);
    }
    let scrubber = job.secrets.scrubber().clone();
    let contract = Contract::of(&job);
    let running = AssertUnwindSafe(|| executor.executor().execute(job).now_or_never());
    Some(match catch_unwind(running) {
        Ok(None) => {
            executor.takes_time();
            return None;
        }
        Ok(Some(answer)) => {
            let answer = answer.map(Ended::Result);
            answered(executor.name(), Ok(answer), &scrubber, contract)
        }
        Err(panic) => panicked(executor.name(), &*panic, &scrubber),
    })
}

/// What an executor asks in place of running; `None`: it asks nothing.
fn asked(executor: &Registered, job: &Job) -> Option<AttemptOutcome> {
    let asks = match executor.executor().asks(&job.inputs) {
        Ok(None) => return None,
        Ok(Some(asks)) => asks,
        Err(error) => return Some(AttemptOutcome::of_error(&error, &*error.text)),
    };
    let outputs = Outputs::of_map(&job.schemas);
    let on_answer = match asks.declines {
        true => OnAnswer::CompleteOrDecline,
        false => OnAnswer::Complete,
    };
    let unasked = FailureReason::InvalidInputs;
    Some(question(
        &asks.question,
        on_answer,
        outputs.as_ref(),
        unasked,
    ))
}

/// A question as it is recorded, or why it cannot be asked, which is a failure of this kind.
fn question(
    asked: &Map<String, Value>,
    on_answer: OnAnswer,
    outputs: Option<&Outputs>,
    unasked: FailureReason,
) -> AttemptOutcome {
    match suspension::prepare(asked, on_answer, outputs) {
        Ok((asked, question, on_expiry)) => AttemptOutcome::Asked(Box::new(Asked {
            asked,
            question,
            on_answer,
            on_expiry,
        })),
        Err(faults) => {
            let faults = faults.iter().map(|fault| {
                let (field, reason, expected) = (&fault.field, &fault.reason, &fault.expected);
                format!("`{field}` {reason}, expected {expected}")
            });
            let faults: Vec<String> = faults.collect();
            let error = format!("the question cannot be asked: {}", faults.join("; "));
            AttemptOutcome::failed(unasked, error)
        }
    }
}

/// Ends when the earlier of both limits is reached; never without limits.
async fn out_of_time(limits: TimeLimits) -> AttemptOutcome {
    let timed_out = |timeout: Duration| {
        let text = format!("timed out after {} s", timeout.as_secs_f64());
        AttemptOutcome::failed(FailureReason::Timeout, text)
    };
    let past_deadline =
        || AttemptOutcome::failed(FailureReason::Deadline, "the deadline has passed");
    let (after, outcome) = match (limits.timeout, limits.deadline) {
        (None, None) => std::future::pending().await,
        (Some(timeout), None) => (timeout, timed_out(timeout)),
        (Some(timeout), Some(deadline)) if timeout <= deadline => (timeout, timed_out(timeout)),
        (None | Some(_), Some(deadline)) => (deadline, past_deadline()),
    };
    tokio::time::sleep(after).await;
    outcome
}

/// What the result of a task is held to.
struct Contract {
    name: String,
    outputs: Option<Outputs>,
}

impl Contract {
    fn of(job: &Job) -> Self {
        Self {
            name: job.name.clone(),
            outputs: Outputs::of_map(&job.schemas),
        }
    }

    fn broken(self, fault: OutputFault) -> AttemptOutcome {
        AttemptOutcome::Breached {
            reason: FailureReason::InvalidResult,
            breach: Box::new(Breach {
                phase_name: Some(self.name),
                broken: Broken::Output(fault),
            }),
        }
    }
}

/// Why a result cannot be recorded.
enum Unrecordable {
    /// What it is.
    Is(String),
    TooLarge(TooLarge),
}

/// What an executor said, without the secrets that it was given.
fn answered(
    name: &str,
    answer: Result<Result<Ended, ExecutorError>, JoinError>,
    scrubber: &Scrubber,
    contract: Contract,
) -> AttemptOutcome {
    match answer {
        Ok(Ok(Ended::Asks(asked))) => {
            let Value::Object(asked) = scrubber.value(Value::Object(asked)) else {
                unreachable!("what is removed from an object leaves an object");
            };
            let (outputs, unasked) = (contract.outputs.as_ref(), FailureReason::Executor);
            question(&asked, OnAnswer::Continue, outputs, unasked)
        }
        Ok(Ok(Ended::Result(result))) => match checked(result, scrubber) {
            Ok((payload, object)) => {
                let outputs = contract.outputs.as_ref();
                match outputs.map(|outputs| outputs.check(&object)) {
                    Some(Err(fault)) => contract.broken(fault),
                    Some(Ok(())) | None => AttemptOutcome::Completed(payload),
                }
            }
            Err(Unrecordable::TooLarge(large)) => contract.broken(OutputFault::of_size(large)),
            Err(Unrecordable::Is(error)) => AttemptOutcome::failed(
                FailureReason::InvalidResult,
                format!("executor `{name}` returned {error}"),
            ),
        },
        Ok(Err(error)) if error.text.trim().is_empty() => AttemptOutcome::of_error(
            &error,
            format!("executor `{name}` failed without saying why"),
        ),
        Ok(Err(error)) => AttemptOutcome::of_error(&error, scrubber.text(&error.text)),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => panicked(name, &*panic, scrubber),
            // Nobody but this module aborts it; a runtime that shuts down does.
            Err(_) => AttemptOutcome::failed(
                FailureReason::Executor,
                format!("executor `{name}` was dropped by the server"),
            ),
        },
    }
}

/// Why an attempt of which an executor says this has failed.
const fn reason(error: &ExecutorError) -> FailureReason {
    if error.is_rejected() {
        FailureReason::Rejected
    } else if error.is_retryable() {
        FailureReason::Executor
    } else {
        FailureReason::NotRetryable
    }
}

fn panicked(name: &str, panic: &(dyn Any + Send), scrubber: &Scrubber) -> AttemptOutcome {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let text = format!("executor `{name}` panicked: {text}");
    AttemptOutcome::failed(FailureReason::Executor, scrubber.text(&text))
}

/// A result that can be recorded and read again, as text and as it is.
fn checked(
    result: Value,
    scrubber: &Scrubber,
) -> Result<(Payload, Map<String, Value>), Unrecordable> {
    let no_object = |what: &str| {
        let text = format!("{what}, expected a JSON object");
        Err(Unrecordable::Is(text))
    };
    let object = match result {
        Value::Object(object) => object,
        Value::Null => return no_object("null"),
        Value::Bool(_) => return no_object("a boolean"),
        Value::Number(_) => return no_object("a number"),
        Value::String(_) => return no_object("a string"),
        Value::Array(_) => return no_object("an array"),
    };
    let mut open: Vec<_> = object.values().map(|value| (value, 2)).collect();
    while let Some((value, level)) = open.pop() {
        if !value.is_array() && !value.is_object() {
            continue;
        }
        if level > RESULT_DEPTH_MAX {
            return Err(Unrecordable::Is(format!(
                "a result nested more than {RESULT_DEPTH_MAX} levels deep"
            )));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|v| (v, level + 1))),
            Value::Object(members) => open.extend(members.values().map(|v| (v, level + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let Value::Object(object) = scrubber.value(Value::Object(object)) else {
        unreachable!("what is removed from an object leaves an object");
    };
    let payload = Payload::from_map(&object);
    let bytes = payload.as_str().len();
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(Unrecordable::TooLarge(TooLarge::of(&object, bytes)));
    }
    Ok((payload, object))
}

/// `text`, cut to [`ERROR_BYTES_MAX`] bytes with a mark where something is missing.
fn cut(mut text: String) -> String {
    const MARK: &str = "…";
    if text.len() > ERROR_BYTES_MAX {
        let mut end = ERROR_BYTES_MAX - MARK.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(MARK);
    }
    text
}
