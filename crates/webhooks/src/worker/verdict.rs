//! What follows from an attempt, for the message and for its endpoint. Pure.

use crate::attempt::Outcome;
use crate::breaker::{self, Ending};
use crate::delivery::{Attempt, AttemptReport, Cause, Due, Health, Next};
use crate::schedule;
use taskledger_domain::Timestamp;

/// What is told of an attempt that ended at `now`.
pub(super) fn told(
    health: &Health,
    seconds: &[u32],
    due: &Due,
    attempt: Attempt,
    outcome: Outcome,
    now: Timestamp,
) -> AttemptReport {
    let (ending, next) = match outcome {
        Outcome::Arrived => (Ending::Arrived, Next::Delivered),
        // A test is over, whatever came of it.
        Outcome::Gone if due.cause == Cause::Test => (Ending::Gone, Next::Dead),
        Outcome::Failed { .. } if due.cause == Cause::Test => (Ending::Failed, Next::Dead),
        // It waits for the endpoint to be enabled again; nothing of its schedule is used.
        Outcome::Gone => (Ending::Gone, Next::Unchanged),
        Outcome::Failed { .. } if due.cause == Cause::Manual => (Ending::Failed, Next::Unchanged),
        Outcome::Failed { retry_after } => {
            let made = due.attempts.saturating_add(1);
            let at = schedule::next(seconds, due.id, made, now, retry_after);
            (Ending::Failed, at.map_or(Next::Dead, Next::RetryAt))
        }
    };
    let verdict = breaker::judge(health, now, ending);
    AttemptReport {
        delivery: due.id,
        attempt,
        next,
        health: verdict.health,
        disable: verdict.disable,
        say: verdict.say,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::DeliveryId;
    use bytes::Bytes;
    use std::sync::Arc;

    #[test]
    fn what_follows_depends_on_what_the_attempt_was_made_for() {
        let now = Timestamp(1_000_000);
        let failed = Outcome::Failed { retry_after: None };
        for (cause, outcome, next) in [
            (Cause::Test, failed, Next::Dead),
            (Cause::Test, Outcome::Gone, Next::Dead),
            (Cause::Test, Outcome::Arrived, Next::Delivered),
            (Cause::Manual, failed, Next::Unchanged),
            (Cause::Scheduled, Outcome::Gone, Next::Unchanged),
            (Cause::Scheduled, failed, Next::RetryAt(now.plus_ms(5_000))),
            (Cause::Recovered, failed, Next::RetryAt(now.plus_ms(5_000))),
        ] {
            let due = Due {
                id: DeliveryId(1),
                message_id: Arc::from("m"),
                task: None,
                flow: None,
                body: Bytes::new(),
                attempts: 0,
                cause,
                traceparent: None,
            };
            let attempt = Attempt {
                at: now,
                duration_ms: 0,
                status: None,
                error: None,
                detail: None,
                remote: None,
                response: None,
                cause,
            };
            let told = told(&Health::default(), &[0, 5], &due, attempt, outcome, now);
            match (told.next, next) {
                // The pause is not exactly that of the schedule.
                (Next::RetryAt(at), Next::RetryAt(about)) => {
                    assert!(at.ms_since(now).abs_diff(about.ms_since(now)) <= 1_000);
                }
                (found, expected) => assert_eq!(found, expected, "{cause:?}, {outcome:?}"),
            }
        }
    }
}
