//! Repeats reads of a command for a while when the server is too busy to answer.
//!
//! Commands that change something, and those that follow a flow, have a pace of their own.

use crate::ApiError;
use crate::api::TOO_BUSY;
use crate::following::say;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a read is made again: longer than other nodes need to carry on what a lost one did.
const BUSY_MAX: Duration = Duration::from_secs(10);
/// The pause where the server names none.
const PAUSE: Duration = Duration::from_millis(250);
/// How long nothing is said of it.
const QUIET: Duration = Duration::from_secs(2);
/// The fault of a refusal that is about the server, not about what one caller may ask.
const OF_SERVER: &str = "server";
/// Reads whose commands take `--consistency`.
const CONSISTENT: [&str; 4] = ["tasks.children", "tasks.get", "tasks.list", "tasks.tree"];

/// Reads until the server has answered, or was too busy for [`BUSY_MAX`].
pub(crate) async fn read<F>(method: &str, call: impl Fn() -> F) -> Result<Value, ApiError>
where
    F: Future<Output = Result<Value, ApiError>>,
{
    let (begun, mut is_told) = (Instant::now(), false);
    loop {
        let error = match call().await {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let Some(pause) = pause(&error) else {
            return Err(error);
        };
        if begun.elapsed() + pause > BUSY_MAX {
            return Err(advised(method, error));
        }
        if begun.elapsed() >= QUIET && !std::mem::replace(&mut is_told, true) {
            say("the server is too busy to answer; trying again for up to 10 s");
        }
        sleep(pause).await;
    }
}

/// When to come again, if the server is too busy now.
fn pause(error: &ApiError) -> Option<Duration> {
    let is_busy = matches!(error, ApiError::Refused { code: TOO_BUSY, .. });
    is_busy.then(|| error.retry_after().unwrap_or(PAUSE))
}

/// The same refusal with what helps.
fn advised(method: &str, mut error: ApiError) -> ApiError {
    let ApiError::Refused { data, .. } = &mut error else {
        return error;
    };
    let is_of_server = data.pointer("/errors/0/field").and_then(Value::as_str) == Some(OF_SERVER);
    if let Some(data) = data.as_object_mut().filter(|_| is_of_server)
        && !data.contains_key("hint")
    {
        let mut hint = "the server may be starting, or another node may have been lost, whose work others take over within \
                        seconds; `system.health` shows the nodes"
            .to_owned();
        if CONSISTENT.contains(&method) {
            hint.push_str(
                ". `--consistency eventual` answers at once, perhaps without the latest changes",
            );
        }
        data.insert("hint".to_owned(), hint.into());
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn busy(field: &str, retry_after_ms: u64) -> ApiError {
        ApiError::Refused {
            code: TOO_BUSY,
            message: "Too busy, retry later".to_owned(),
            data: json!({"retry_after_ms": retry_after_ms, "errors": [{"field": field, "reason": "behind",
                "expected": "the same call again after `retry_after_ms`"}]}),
        }
    }

    /// What a server answers that is too busy so many times, how often it was asked, and for how long.
    async fn asked(
        method: &str,
        times: usize,
        error: &ApiError,
    ) -> (Result<Value, ApiError>, usize, Duration) {
        let (calls, begun) = (AtomicUsize::new(0), Instant::now());
        let answer = read(method, || async {
            match calls.fetch_add(1, Ordering::Relaxed) < times {
                true => Err(error.clone()),
                false => Ok(json!(1)),
            }
        });
        let answer = answer.await;
        (answer, calls.into_inner(), begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_is_made_again_when_the_server_says() {
        let (answer, calls, took) = asked("tasks.tree", 3, &busy(OF_SERVER, 2_000)).await;
        assert_eq!((answer, calls), (Ok(json!(1)), 4));
        assert_eq!(took.as_secs(), 6);
        let other = ApiError::Connection("gone".to_owned());
        let (answer, calls, _) = asked("tasks.tree", 1, &other).await;
        assert_eq!((answer, calls), (Err(other), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_too_busy_is_told_of_with_what_helps() {
        let (answer, calls, took) = asked("tasks.tree", 999, &busy(OF_SERVER, 250)).await;
        let said = answer.unwrap_err().to_string();
        // Timers are late by up to a millisecond.
        assert!((38..=41).contains(&calls), "{calls}");
        assert!((9..=10).contains(&took.as_secs()), "{took:?}");
        assert_eq!(
            said,
            "Too busy, retry later (-32013)\n  server: behind, expected the same call again in 250 ms\n  the server may be \
             starting, or another node may have been lost, whose work others take over within seconds; `taskledger \
             health` shows the nodes. `--consistency eventual` answers at once, perhaps without the latest changes"
        );
        let (answer, ..) = asked("events.query", 999, &busy(OF_SERVER, 250)).await;
        let said = answer.unwrap_err().to_string();
        assert!(
            said.ends_with("`taskledger health` shows the nodes"),
            "{said}"
        );
        // A caller that asks too much waits itself.
        let (answer, ..) = asked("tasks.tree", 999, &busy("rate", 60_000)).await;
        let said = answer.unwrap_err().to_string();
        assert!(said.ends_with("again in 1 min 0 s"), "{said}");
    }
}
