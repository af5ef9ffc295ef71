//! Claims about one attempt. Time is paused wherever it matters.

use super::*;
use crate::engine::executor::test_support::{acting, job, registered};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;

fn failure(outcome: AttemptOutcome) -> (FailureReason, String) {
    match outcome {
        AttemptOutcome::Failed { reason, error, .. } => (reason, error),
        AttemptOutcome::Breached { reason, breach } => (reason, breach.failure()),
        AttemptOutcome::Completed(_) | AttemptOutcome::Asked(_) | AttemptOutcome::Stopped => {
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
    let outcome = run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
    let expected = Payload::parse(r#"{"a":[1,{"b":null}]}"#).unwrap();
    assert_eq!(outcome, AttemptOutcome::Completed(expected));
}

#[test]
fn a_pure_executor_answers_without_a_runtime_or_not_at_all() {
    let run = |executor| run_at_once(&executor, job(json!({})));
    let executor = registered(acting(|_| async { Ok(json!({"a": 1})) }));
    let expected = Payload::parse(r#"{"a":1}"#).unwrap();
    assert_eq!(run(executor), Some(AttemptOutcome::Completed(expected)));
    let waits = registered(acting(|_| async {
        std::future::pending::<()>().await;
        Ok(json!({}))
    }));
    assert_eq!(run(waits), None);
    let panics = registered(acting(|_| async { panic!("at once") }));
    let (reason, error) = failure(run(panics).unwrap());
    assert_eq!(reason, FailureReason::Executor);
    assert_eq!(error, "executor `acting` panicked: at once");
    let wrong = registered(acting(|_| async { Ok(json!(1)) }));
    let (reason, _) = failure(run(wrong).unwrap());
    assert_eq!(reason, FailureReason::InvalidResult);
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
        let executor =
            acting(
                move |_| async move { Ok(json!({"t": "x".repeat(bytes - r#"{"t":""}"#.len())})) },
            );
        let outcome =
            run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
        match outcome {
            AttemptOutcome::Completed(payload) => {
                assert!(fits);
                assert_eq!(payload.as_str().len(), bytes);
            }
            AttemptOutcome::Breached { reason, breach } => {
                assert!(!fits);
                assert_eq!(reason, FailureReason::InvalidResult);
                let Broken::Output(fault) = &breach.broken else {
                    panic!("{breach:?}");
                };
                let large = TooLarge {
                    key: Some("t".to_owned()),
                    key_bytes: (bytes - r#"{"t":}"#.len()) as u64,
                    bytes: bytes as u64,
                    limit: PAYLOAD_BYTES_MAX as u64,
                };
                assert_eq!(fault.too_large, Some(large));
                let error = breach.failure();
                assert!(
                    error.starts_with("OutputTooLargeError: ") && error.contains("1048577"),
                    "{error}"
                );
            }
            other @ (AttemptOutcome::Failed { .. }
            | AttemptOutcome::Asked(_)
            | AttemptOutcome::Stopped) => panic!("{other:?}"),
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
            other @ (AttemptOutcome::Breached { .. }
            | AttemptOutcome::Asked(_)
            | AttemptOutcome::Stopped) => panic!("{other:?}"),
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
            async { Err(ExecutorError::new(text)) }
        });
        let outcome =
            run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
        assert_eq!(failure(outcome), (FailureReason::Executor, expected));
    }
    let executor = acting(|_| async { Err(ExecutorError::new("ä".repeat(ERROR_BYTES_MAX))) });
    let outcome = run_attempt(&registered(executor), job(json!({})), TimeLimits::default()).await;
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

/// Asks what its input `question` is.
struct Asking;

#[async_trait::async_trait]
impl crate::engine::executor::Executor for Asking {
    fn describe(&self) -> crate::engine::executor::Description {
        crate::engine::executor::Description {
            name: "asking".into(),
            aliases: Vec::new(),
            summary: "for tests".into(),
            idempotent: true,
            pure: false,
            input_schema: None,
            concurrency: crate::engine::executor::Concurrency::Waiting,
        }
    }

    async fn execute(&self, _job: Job) -> Result<Value, ExecutorError> {
        Err(ExecutorError::new("it asks"))
    }

    async fn attempt(&self, job: Job) -> Result<Ended, ExecutorError> {
        Ok(Ended::Asks(job.inputs))
    }
}

#[tokio::test]
async fn an_attempt_may_end_with_a_question_and_fails_with_one_that_cannot_be_asked() {
    let run = |inputs| async {
        let limits = TimeLimits::default();
        run_attempt(&registered(Asking), job(inputs), limits).await
    };
    let AttemptOutcome::Asked(asked) = run(json!({"question": "Which?"})).await else {
        panic!("it asks")
    };
    assert_eq!(asked.question.text, "Which?");
    assert_eq!(asked.on_answer, OnAnswer::Continue);
    let (reason, error) = failure(run(json!({"question": 1})).await);
    assert_eq!(reason, FailureReason::Executor);
    assert!(
        error.starts_with("the question cannot be asked: `question`"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_out_of_time_is_over_and_one_that_is_stopped_may_go_on() {
    let waits = || {
        acting(|job: Job| async move {
            job.cancel.cancelled().await;
            Err(ExecutorError::new("stopped"))
        })
    };
    let late = job(json!({}));
    let over = late.over.clone();
    run_attempt(&registered(waits()), late, within(Some(10), None)).await;
    assert!(over.is_cancelled());
    let stopped = job(json!({}));
    let (over, cancel) = (stopped.over.clone(), stopped.cancel.clone());
    let executor = registered(waits());
    let running = run_attempt(&executor, stopped, TimeLimits::default());
    let (outcome, ()) = tokio::join!(running, async { cancel.cancel() });
    assert_eq!(outcome, AttemptOutcome::Stopped);
    assert!(!over.is_cancelled());
}
