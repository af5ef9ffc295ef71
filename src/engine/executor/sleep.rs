//! `sleep_executor`: waits without using a core. For pauses between steps, and for load tests.

use super::{Concurrency, Description, Executor, ExecutorError, Job};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_domain::limits::DELAY_MS_MAX;
use tokio::time::{Instant, sleep_until};

/// Sleeps for `duration_ms` milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct SleepExecutor;

/// Milliseconds that one task may sleep: as long as an attempt may last.
const DURATION_MS_MAX: u64 = DELAY_MS_MAX;
/// Progress reports of one sleep at most; more would differ by less than a percent.
const REPORTS_MAX: u32 = 100;
/// Time between two progress reports at least; nobody looks more often.
const REPORT_EVERY_MIN: Duration = Duration::from_millis(100);

#[async_trait]
impl Executor for SleepExecutor {
    fn describe(&self) -> Description {
        Description {
            name: "sleep_executor".to_owned(),
            aliases: Vec::new(),
            summary: "Sleeps for `duration_ms` milliseconds.".to_owned(),
            idempotent: true,
            pure: false,
            input_schema: Some(json!({
                "type": "object",
                "required": ["duration_ms"],
                "properties": {
                    "duration_ms": {"type": "number", "minimum": 0, "maximum": DURATION_MS_MAX}
                }
            })),
            concurrency: Concurrency::Waiting,
        }
    }

    fn params(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        let asked = job.inputs.get("duration_ms").cloned().unwrap_or_default();
        let ms = asked
            .as_f64()
            .filter(|ms| (0.0..=DURATION_MS_MAX as f64).contains(ms))
            .ok_or_else(|| {
                ExecutorError::new(format!(
                    "`duration_ms` is {asked}, expected a number from 0 to {DURATION_MS_MAX}"
                ))
            })?;
        let whole = Duration::from_secs_f64(ms / 1000.0);
        let step = (whole / REPORTS_MAX).max(REPORT_EVERY_MIN);
        let start = Instant::now();
        let end = start + whole;
        while Instant::now() < end {
            let next = end.min(Instant::now() + step);
            tokio::select! {
                biased;
                () = job.cancel.cancelled() => {
                    return Err(ExecutorError::new("stopped before the time was over"));
                }
                () = sleep_until(next) => {}
            }
            job.progress
                .report(start.elapsed().as_secs_f64() / whole.as_secs_f64());
        }
        Ok(json!({"slept_ms": asked}))
    }
}

#[cfg(test)]
mod tests {
    use super::{DURATION_MS_MAX, SleepExecutor};
    use crate::engine::executor::test_support::{job, takes};
    use crate::engine::executor::{Executor as _, ProgressReporter};
    use serde_json::json;
    use std::time::Duration;
    use taskledger_domain::task::Progress;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn it_sleeps_as_long_as_it_is_told() {
        for (asked, ms) in [
            (json!(0), 0),
            (json!(250), 250),
            (json!(0.5), 1),
            (json!(86_400_000), 86_400_000),
        ] {
            let started = Instant::now();
            let result = SleepExecutor
                .execute(job(json!({"duration_ms": asked})))
                .await;
            assert_eq!(result, Ok(json!({"slept_ms": asked})));
            let took = started.elapsed().as_millis();
            assert!((ms..=ms + 2).contains(&took), "{asked} took {took} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_reports_how_far_it_is() {
        let mut sleeper = job(json!({"duration_ms": 1000}));
        let (progress, mut seen) = ProgressReporter::new();
        sleeper.progress = progress;
        let running = tokio::spawn(SleepExecutor.execute(sleeper));
        seen.changed().await.unwrap();
        let first = seen.borrow_and_update().fraction();
        assert!((0.1..0.2).contains(&first), "{first}");
        running.await.unwrap().unwrap();
        assert_eq!(*seen.borrow(), Progress::DONE);
    }

    #[tokio::test(start_paused = true)]
    async fn it_stops_at_once() {
        let sleeper = job(json!({"duration_ms": DURATION_MS_MAX}));
        let cancel = sleeper.cancel.clone();
        let started = Instant::now();
        let running = tokio::spawn(SleepExecutor.execute(sleeper));
        tokio::time::advance(Duration::from_secs(10)).await;
        cancel.cancel();
        assert!(running.await.unwrap().is_err());
        assert!(started.elapsed() < Duration::from_secs(11));
    }

    #[tokio::test]
    async fn impossible_durations_are_refused() {
        for asked in [
            json!(-1),
            json!("5"),
            json!(null),
            json!(DURATION_MS_MAX + 1),
            json!(1e300),
        ] {
            let inputs = json!({"duration_ms": asked});
            assert!(!takes(SleepExecutor, &inputs), "{asked}");
            let error = SleepExecutor.execute(job(inputs)).await.unwrap_err();
            assert!(
                error.to_string().contains("expected a number from 0 to"),
                "{error}"
            );
        }
        assert!(!takes(SleepExecutor, &json!({})));
        assert!(takes(SleepExecutor, &json!({"duration_ms": 0.25})));
        assert!(takes(
            SleepExecutor,
            &json!({"duration_ms": DURATION_MS_MAX})
        ));
    }
}
