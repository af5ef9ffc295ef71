//! What follows from an attempt, for the message and for its endpoint. Pure.

use crate::webhooks::attempt::Outcome;
use crate::webhooks::breaker::{self, Ending};
use crate::webhooks::delivery::{Attempt, Due, Health, Next, Told};
use crate::webhooks::schedule;
use taskledger_domain::Timestamp;

/// What is told of an attempt that ended at `now`.
pub(super) fn told(
    health: &Health,
    seconds: &[u32],
    due: &Due,
    attempt: Attempt,
    outcome: Outcome,
    now: Timestamp,
) -> Told {
    let (ending, next) = match outcome {
        Outcome::Arrived => (Ending::Arrived, Next::Delivered),
        // It waits for the endpoint to be enabled again; nothing of its schedule is used.
        Outcome::Gone => (Ending::Gone, Next::Unchanged),
        Outcome::Failed { .. } if due.by_hand => (Ending::Failed, Next::Unchanged),
        Outcome::Failed { retry_after } => {
            let made = due.attempts.saturating_add(1);
            let at = schedule::next(seconds, due.id, made, now, retry_after);
            (Ending::Failed, at.map_or(Next::Dead, Next::RetryAt))
        }
    };
    let verdict = breaker::judge(health, now, ending);
    Told {
        delivery: due.id,
        attempt,
        next,
        health: verdict.health,
        disable: verdict.disable,
        say: verdict.say,
    }
}
