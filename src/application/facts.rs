//! Facts that single events hold, looked up by the event's version.

use taskledger_domain::flow::{Event, Specification};
use taskledger_domain::task::Labels;

/// The specification that the event gave its task.
#[must_use]
pub fn specification(event: &Event) -> Option<&Specification> {
    if let Event::TaskCreated(e) = event {
        Some(&e.specification)
    } else if let Event::TaskRespecified(e) = event {
        Some(&e.specification)
    } else {
        None
    }
}

/// The name that the event gave its task.
#[must_use]
pub fn name(event: &Event) -> Option<&str> {
    if let Event::TaskCreated(e) = event {
        Some(&e.name)
    } else if let Event::TaskRenamed(e) = event {
        Some(&e.name)
    } else {
        None
    }
}

/// The labels that the event gave its task.
#[must_use]
pub fn labels(event: &Event) -> Option<&Labels> {
    if let Event::TaskCreated(e) = event {
        Some(&e.labels)
    } else if let Event::LabelsChanged(e) = event {
        Some(&e.labels)
    } else {
        None
    }
}

/// Bytes that the event holds, roughly.
#[must_use]
pub fn bytes(event: &Event) -> usize {
    /// Ids, times and the like.
    const FIXED: usize = 256;
    FIXED
        + match event {
            Event::TaskCreated(e) => {
                e.specification.bytes()
                    + e.name.len()
                    + e.dependencies.len() * 24
                    + e.labels.bytes()
            }
            Event::TaskRespecified(e) => e.specification.bytes(),
            Event::TaskRenamed(e) => e.name.len(),
            Event::DependenciesChanged(e) => e.dependencies.len() * 24,
            Event::RunStarted(e) => {
                let message = e.origin.as_ref().and_then(|it| it.message.as_ref());
                e.covers.len() * 8 + message.map_or(0, |message| message.as_str().len())
            }
            Event::MessageReceived(e) => e.message.as_str().len(),
            Event::TaskCompleted(e) => e.result.as_str().len(),
            Event::TaskOutputAppended(e) => e.part.bytes(),
            Event::TaskSuspended(e) => e.question.as_str().len() + e.on_expiry.bytes(),
            Event::TaskAnswered(e) => e.answer.as_str().len(),
            Event::TaskSuspensionExpired(e) => e.policy.bytes(),
            Event::TaskFailed(e) => e.error.len(),
            Event::TaskCancelled(e) => e.error.len(),
            Event::LabelsChanged(e) => e.labels.bytes(),
            Event::PriorityChanged(_)
            | Event::UserChanged(_)
            | Event::TaskMoved(_)
            | Event::TaskDeleted(_)
            | Event::TaskStarted(_)
            | Event::TaskProgressed(_)
            | Event::TaskClaimRejected(_)
            | Event::TaskCompletionRejected(_)
            | Event::TaskReminded(_)
            | Event::TaskRequeued(_)
            | Event::TaskDeferred(_)
            | Event::RunEnded(_)
            | Event::FlowArchived(_) => 0,
        }
}
