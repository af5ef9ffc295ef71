//! Turns the end of an attempt into the outcome that its flow records.

use crate::application::ports::Started;
use crate::clock::Clock;
use crate::engine::executor::AttemptOutcome;
use std::time::Duration;
use taskledger_domain::SuspensionId;
use taskledger_domain::flow::{Command, Suspend};
use taskledger_domain::task::Progress;

/// The command that reports how an attempt ended; none for one that was stopped.
pub(super) fn end_of(
    started: &Started,
    outcome: AttemptOutcome,
    progress: Progress,
    clock: &dyn Clock,
) -> Option<Command> {
    let (task, attempt) = (started.launch.task, started.launch.attempt);
    match outcome {
        AttemptOutcome::Completed(result) => Some(Command::Complete {
            task,
            attempt,
            result,
            lease: None,
        }),
        AttemptOutcome::Failed {
            reason,
            error,
            retry_after,
        } => Some(Command::Fail {
            task,
            attempt,
            error,
            reason,
            progress,
            lease: None,
            retry_after_ms: retry_after.map_or(0, milliseconds),
        }),
        AttemptOutcome::Breached { reason, breach } => Some(Command::FailBreached {
            task,
            attempt,
            breach,
            reason,
            progress,
            lease: None,
        }),
        AttemptOutcome::Asked(asked) => Some(Command::Suspend(Suspend {
            task,
            attempt,
            lease: None,
            suspension: SuspensionId(clock.uuid()),
            asked: asked.asked,
            question: asked.question,
            on_answer: asked.on_answer,
            on_expiry: asked.on_expiry,
        })),
        AttemptOutcome::Stopped => None,
    }
}

fn milliseconds(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}
