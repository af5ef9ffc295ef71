//! One attempt from start to outcome: whatever an executor does, exactly one outcome comes out.
//!
//! Owns: isolation from panics, time-outs and deadlines, stopping with grace, and the checks that
//! make an executor's answer recordable. Knows neither flows nor the log; the dispatcher calls
//! [`run_attempt`] after the start is durable and turns the outcome into a command.

use super::registry::Registered;
use super::{ExecutorError, Job};
use serde_json::Value;
use std::any::Any;
use std::time::Duration;
use taskledger_domain::Payload;
use taskledger_domain::flow::FailureReason;
use taskledger_domain::limits::{ERROR_BYTES_MAX, PAYLOAD_BYTES_MAX};
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

/// How long an executor may clean up after it was told to stop, before it is dropped. Longer than
/// what `command_executor` gives its programs.
pub const STOP_GRACE: Duration = Duration::from_secs(5);
/// How long an executor that was dropped may keep its thread busy before the attempt is given up
/// without it. Only code that blocks without `.await` gets there.
pub const ABORT_GRACE: Duration = Duration::from_secs(1);
/// JSON levels of a result. Readers commonly stop at 128, and a result is read inside of a task.
pub const RESULT_DEPTH_MAX: usize = 100;

/// When an attempt ends by itself, counted from its launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeLimits {
    /// `params.timeout_seconds`.
    pub timeout: Option<Duration>,
    /// What is left until the deadline; zero when it has passed.
    pub deadline: Option<Duration>,
}

/// How an attempt ended.
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
    },
    /// The caller cancelled `job.cancel`; what the executor then said does not count.
    Stopped,
}

impl AttemptOutcome {
    fn failed(reason: FailureReason, error: impl Into<String>) -> Self {
        Self::Failed {
            reason,
            error: cut(error.into()),
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
    let stop = cancelled.child_token();
    job.cancel = stop.clone();
    let task_id = job.task_id;
    let running = std::sync::Arc::clone(executor.executor());
    let mut running =
        AbortOnDropHandle::new(tokio::spawn(async move { running.execute(job).await }));

    let outcome = tokio::select! {
        biased;
        () = cancelled.cancelled() => AttemptOutcome::Stopped,
        answer = &mut running => return answered(executor.name(), answer),
        outcome = out_of_time(limits) => outcome,
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

fn answered(name: &str, answer: Result<Result<Value, ExecutorError>, JoinError>) -> AttemptOutcome {
    match answer {
        Ok(Ok(result)) => match checked(result) {
            Ok(payload) => AttemptOutcome::Completed(payload),
            Err(error) => AttemptOutcome::failed(
                FailureReason::InvalidResult,
                format!("executor `{name}` returned {error}"),
            ),
        },
        Ok(Err(ExecutorError(text))) if text.trim().is_empty() => AttemptOutcome::failed(
            FailureReason::Executor,
            format!("executor `{name}` failed without saying why"),
        ),
        Ok(Err(ExecutorError(text))) => AttemptOutcome::failed(FailureReason::Executor, text),
        Err(error) => AttemptOutcome::failed(
            FailureReason::Executor,
            match error.try_into_panic() {
                Ok(panic) => format!("executor `{name}` panicked: {}", panic_text(&*panic)),
                // Nobody but this module aborts it; a runtime that shuts down does.
                Err(_) => format!("executor `{name}` was dropped by the server"),
            },
        ),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// A result that can be recorded and read again.
fn checked(result: Value) -> Result<Payload, String> {
    let object = match result {
        Value::Object(object) => object,
        Value::Null => return Err("null, expected a JSON object".to_owned()),
        Value::Bool(_) => return Err("a boolean, expected a JSON object".to_owned()),
        Value::Number(_) => return Err("a number, expected a JSON object".to_owned()),
        Value::String(_) => return Err("a string, expected a JSON object".to_owned()),
        Value::Array(_) => return Err("an array, expected a JSON object".to_owned()),
    };
    let mut open: Vec<_> = object.values().map(|value| (value, 2)).collect();
    while let Some((value, level)) = open.pop() {
        if !value.is_array() && !value.is_object() {
            continue;
        }
        if level > RESULT_DEPTH_MAX {
            return Err(format!(
                "a result nested more than {RESULT_DEPTH_MAX} levels deep"
            ));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|v| (v, level + 1))),
            Value::Object(members) => open.extend(members.values().map(|v| (v, level + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let payload = Payload::from_map(&object);
    let bytes = payload.as_str().len();
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(format!(
            "a result of {bytes} bytes, at most {PAYLOAD_BYTES_MAX} are kept"
        ));
    }
    Ok(payload)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::executor::test_support::{acting, job, registered};
    use serde_json::json;
    use std::sync::Arc;
    use tokio::sync::Notify;

    fn failure(outcome: AttemptOutcome) -> (FailureReason, String) {
        match outcome {
            AttemptOutcome::Failed { reason, error } => (reason, error),
            AttemptOutcome::Completed(_) | AttemptOutcome::Stopped => {
                panic!("not a failure: {outcome:?}")
            }
        }
    }

    fn within(timeout: Option<u64>, deadline: Option<u64>) -> TimeLimits {
        TimeLimits {
            timeout: timeout.map(Duration::from_millis),
            deadline: deadline.map(Duration::from_millis),
        }
    }

    #[tokio::test]
    async fn an_object_completes_the_attempt() {
        let executor = acting(|_| async { Ok(json!({"a": [1, {"b": null}]})) });
        let outcome =
            run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
        let expected = Payload::parse(r#"{"a":[1,{"b":null}]}"#).unwrap();
        assert_eq!(outcome, AttemptOutcome::Completed(expected));
    }

    #[tokio::test]
    async fn anything_but_an_object_is_no_result() {
        for (value, kind) in [
            (json!(null), "null"),
            (json!(true), "a boolean"),
            (json!(1), "a number"),
            (json!("x"), "a string"),
            (json!([]), "an array"),
        ] {
            let executor = acting(move |_| {
                let value = value.clone();
                async { Ok(value) }
            });
            let outcome =
                run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
            assert_eq!(
                failure(outcome),
                (
                    FailureReason::InvalidResult,
                    format!("executor `acting` returned {kind}, expected a JSON object")
                )
            );
        }
    }

    #[tokio::test]
    async fn a_result_has_a_largest_size() {
        for (bytes, fits) in [(PAYLOAD_BYTES_MAX, true), (PAYLOAD_BYTES_MAX + 1, false)] {
            let executor = acting(move |_| async move {
                Ok(json!({"t": "x".repeat(bytes - r#"{"t":""}"#.len())}))
            });
            let outcome =
                run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
            match outcome {
                AttemptOutcome::Completed(payload) => {
                    assert!(fits);
                    assert_eq!(payload.as_str().len(), bytes);
                }
                AttemptOutcome::Failed { reason, error } => {
                    assert!(!fits);
                    assert_eq!(reason, FailureReason::InvalidResult);
                    assert!(error.contains("a result of 1048577 bytes"), "{error}");
                }
                AttemptOutcome::Stopped => panic!("nobody stopped it"),
            }
        }
    }

    #[tokio::test]
    async fn a_result_has_a_largest_depth_and_can_be_read_again() {
        for (levels, fits) in [(RESULT_DEPTH_MAX, true), (RESULT_DEPTH_MAX + 1, false)] {
            let executor = acting(move |_| async move {
                Ok((1..levels).fold(json!({}), |inner, _| json!({"x": inner})))
            });
            let outcome =
                run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
            match outcome {
                AttemptOutcome::Completed(payload) => {
                    assert!(fits);
                    assert_eq!(payload.to_map().len(), 1);
                }
                AttemptOutcome::Failed { error, .. } => {
                    assert!(!fits);
                    assert!(error.contains("nested more than 100 levels"), "{error}");
                }
                AttemptOutcome::Stopped => panic!("nobody stopped it"),
            }
        }
    }

    #[tokio::test]
    async fn an_error_is_never_empty_and_never_long() {
        for (text, expected) in [
            ("broken".to_owned(), "broken".to_owned()),
            (
                " \n".to_owned(),
                "executor `acting` failed without saying why".to_owned(),
            ),
        ] {
            let executor = acting(move |_| {
                let text = text.clone();
                async { Err(ExecutorError(text)) }
            });
            let outcome =
                run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
            assert_eq!(failure(outcome), (FailureReason::Executor, expected));
        }
        let executor = acting(|_| async { Err(ExecutorError("ä".repeat(ERROR_BYTES_MAX))) });
        let outcome =
            run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
        let (_, error) = failure(outcome);
        assert!(error.len() <= ERROR_BYTES_MAX && error.len() > ERROR_BYTES_MAX - 4);
        assert!(error.ends_with("ä…"));
    }

    #[tokio::test]
    async fn a_panic_fails_the_attempt_and_nothing_else() {
        let executor = acting(|job: Job| async move {
            assert!(job.attempt > 1, "attempt {} is unlucky", job.attempt);
            Ok(json!({}))
        });
        let executor = registered(executor);
        let outcome = run_attempt(&executor, job(json!({})), TimeLimits::default()).await;
        assert_eq!(
            failure(outcome),
            (
                FailureReason::Executor,
                "executor `acting` panicked: attempt 1 is unlucky".to_owned()
            )
        );
        let mut second = job(json!({}));
        second.attempt = 2;
        assert!(matches!(
            run_attempt(&executor, second, TimeLimits::default()).await,
            AttemptOutcome::Completed(_)
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_of_time_out_and_deadline_ends_the_attempt() {
        let started = tokio::time::Instant::now();
        let executor = registered(acting(|job: Job| async move {
            job.cancel.cancelled().await;
            Ok(json!({"too": "late"}))
        }));
        for (limits, reason, text, ms) in [
            (
                within(Some(1500), None),
                FailureReason::Timeout,
                "timed out after 1.5 s",
                1500,
            ),
            (
                within(Some(900), Some(1000)),
                FailureReason::Timeout,
                "timed out after 0.9 s",
                900,
            ),
            (
                within(Some(1000), Some(900)),
                FailureReason::Deadline,
                "the deadline has passed",
                900,
            ),
            (
                within(None, Some(0)),
                FailureReason::Deadline,
                "the deadline has passed",
                0,
            ),
        ] {
            let before = started.elapsed();
            let job = job(json!({}));
            let callers = job.cancel.clone();
            let outcome = run_attempt(&executor, job, limits).await;
            assert_eq!(failure(outcome), (reason, text.to_owned()));
            let took = (started.elapsed() - before).as_millis();
            assert!((ms..ms + 5).contains(&took), "{took} ms instead of {ms}");
            assert!(!callers.is_cancelled());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_executor_that_ends_in_time_is_not_late() {
        let executor = acting(|_| async {
            tokio::time::sleep(Duration::from_millis(999)).await;
            Ok(json!({}))
        });
        let outcome = run_attempt(
            &registered(executor),
            job(json!({})),
            within(Some(1000), None),
        )
        .await;
        assert!(matches!(outcome, AttemptOutcome::Completed(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_executor_that_ignores_the_signal_is_dropped_after_the_grace() {
        struct Dropped(Arc<Notify>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let dropped = Arc::new(Notify::new());
        let seen = Arc::clone(&dropped);
        let executor = acting(move |_| {
            let held = Dropped(Arc::clone(&dropped));
            async move {
                let _held = held;
                std::future::pending().await
            }
        });
        let started = tokio::time::Instant::now();
        let outcome = run_attempt(
            &registered(executor),
            job(json!({})),
            within(Some(100), None),
        )
        .await;
        assert_eq!(failure(outcome).0, FailureReason::Timeout);
        seen.notified().await;
        let took = started.elapsed();
        assert!(
            took >= STOP_GRACE && took < STOP_GRACE + ABORT_GRACE,
            "{took:?}"
        );
    }

    #[tokio::test]
    async fn a_cancelled_attempt_is_stopped_whatever_the_executor_says() {
        let started = Arc::new(Notify::new());
        let running = Arc::clone(&started);
        let executor = registered(acting(move |job: Job| {
            let started = Arc::clone(&started);
            async move {
                started.notify_one();
                job.cancel.cancelled().await;
                Ok(json!({"too": "late"}))
            }
        }));
        let job = job(json!({}));
        let cancel = job.cancel.clone();
        let attempt =
            tokio::spawn(async move { run_attempt(&executor, job, TimeLimits::default()).await });
        running.notified().await;
        cancel.cancel();
        assert_eq!(attempt.await.unwrap(), AttemptOutcome::Stopped);
    }

    #[tokio::test]
    async fn an_attempt_that_was_cancelled_before_it_began_does_not_begin() {
        let executor = registered(acting(|_| async { panic!("it began") }));
        let job = job(json!({}));
        job.cancel.cancel();
        assert_eq!(
            run_attempt(&executor, job, TimeLimits::default()).await,
            AttemptOutcome::Stopped
        );
    }
}
