//! The calls of a worker, and how it acts on their answers.

use super::settings::Settings;
use super::stop::{Stop, say};
use crate::api::TOO_BUSY;
use crate::{Api, ApiError};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taskledger_clock::SharedClock;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Calls at once beside the one that claims: each takes a connection.
pub(super) const CALLS_MAX: usize = 64;

/// State that all attempts of a worker share.
pub(super) struct Shared {
    api: Arc<dyn Api>,
    pub(super) settings: Settings,
    pub(super) clock: SharedClock,
    pub(super) stop: Stop,
    room: Semaphore,
    /// The last call did not reach the server.
    away: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        api: Arc<dyn Api>,
        settings: Settings,
        clock: SharedClock,
        stop: Stop,
    ) -> Self {
        Self {
            api,
            settings,
            clock,
            stop,
            room: Semaphore::new(CALLS_MAX),
            away: AtomicBool::new(false),
        }
    }

    /// Makes a call of an attempt, whose answer may take so long.
    pub(super) async fn call(&self, method: &str, params: Value, limit: Duration) -> Answer {
        let _room = self.room.acquire().await;
        self.call_beside(method, params, limit).await
    }

    /// Makes a call for which there is always room. Tells people when the server goes away and comes back.
    pub(super) async fn call_beside(&self, method: &str, params: Value, limit: Duration) -> Answer {
        let called = timeout(limit, self.api.call(method, params)).await;
        let answer = sorted(called.unwrap_or_else(|_| {
            let text = format!("no answer to `{method}` within {} s", limit.as_secs());
            Err(ApiError::Connection(text))
        }));
        if let Answer::Later(error, _) = &answer {
            if !self.away.swap(true, Ordering::Relaxed) {
                say(&format!("{error}; trying again until it goes well"));
            }
        } else if self.away.swap(false, Ordering::Relaxed) {
            say("the server answers again");
        }
        answer
    }
}

/// The outcome of a call.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Result(Value),
    /// The attempt is not this worker's any more, and why.
    NotHeld(String),
    /// The same call is refused again.
    Refused(ApiError),
    /// The same call may go well later, not before this time.
    Later(ApiError, Option<Duration>),
}

/// Sorts what came of a call.
pub(super) fn sorted(called: Result<Value, ApiError>) -> Answer {
    let error = match called {
        Ok(result) => return Answer::Result(result),
        Err(error) => error,
    };
    match &error {
        ApiError::Refused { code, data, .. } => match *code {
            NOT_HELD => Answer::NotHeld(reason(data)),
            NOT_FOUND => Answer::NotHeld("the task is not there any more".to_owned()),
            FAILED | TOO_BUSY | OVER_QUOTA => {
                let asked = error.retry_after();
                Answer::Later(error, asked)
            }
            _ => Answer::Refused(error),
        },
        ApiError::Denied { .. } => Answer::Refused(error),
        // A proxy in front of a server that restarts does not speak the protocol.
        ApiError::Connection(_) | ApiError::Protocol(_) => Answer::Later(error, None),
    }
}

const NOT_FOUND: i64 = -32001;
const OVER_QUOTA: i64 = -32015;
const FAILED: i64 = -32603;
const NOT_HELD: i64 = -31010;

fn reason(data: &Value) -> String {
    match data.get("reason").and_then(Value::as_str) {
        Some("cancelled") => "the task was cancelled".to_owned(),
        Some("timed_out") => "the attempt has run longer than its time-out".to_owned(),
        Some("deadline") => "the deadline of the task has passed".to_owned(),
        Some("lost") => "the lease has ended, and the attempt with it".to_owned(),
        Some("ended") => "the attempt has another outcome".to_owned(),
        Some(_) | None => "the server does not know the lease".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_may_go_well_later_is_repeated() {
        let refused = |code, data| {
            sorted(Err(ApiError::Refused {
                code,
                message: String::new(),
                data,
            }))
        };
        assert_eq!(sorted(Ok(json!(1))), Answer::Result(json!(1)));
        for code in [-32603, -32013, -32015] {
            assert!(matches!(refused(code, Value::Null), Answer::Later(_, None)));
        }
        let asked = Some(Duration::from_millis(20));
        let busy = refused(-32013, json!({"retry_after_ms": 20}));
        assert!(matches!(busy, Answer::Later(_, pause) if pause == asked));
        for code in [-32602, -32004, -32601] {
            assert!(matches!(refused(code, Value::Null), Answer::Refused(_)));
        }
        let held = refused(-31010, json!({"reason": "cancelled"}));
        assert_eq!(held, Answer::NotHeld("the task was cancelled".to_owned()));
        let late = refused(-31010, json!({"reason": "timed_out"}));
        assert!(matches!(late, Answer::NotHeld(why) if why.contains("its time-out")));
        let away = sorted(Err(ApiError::Connection("x".to_owned())));
        assert!(matches!(away, Answer::Later(..)));
    }
}
