//! The timeline of attempts: one row for each time a task was started.

use crate::TaskRow;
use std::sync::Arc;
use taskledger_domain::flow::{CancelReason, Event, FailureReason};
use taskledger_domain::{Recorded, RunId, Timestamp};
use taskledger_sql::Args;

/// An attempt as it is written.
pub(super) struct AttemptRow {
    run_id: Option<RunId>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    outcome: Option<&'static str>,
    reason: Option<&'static str>,
    error: Option<Arc<str>>,
}

impl AttemptRow {
    /// The attempt that `recorded` begins or ends, with its number. `task` is the row before the
    /// event: what an ending does not say, the row knows.
    pub(super) fn of(recorded: &Recorded, task: &TaskRow) -> Option<(u32, Self)> {
        let ended = |outcome, reason, error: Option<&str>| Self {
            run_id: task.run_id,
            started_at: task.started_at,
            ended_at: Some(recorded.time),
            outcome: Some(outcome),
            reason,
            error: error.map(Arc::from),
        };
        Some(match recorded.event.as_ref() {
            Event::TaskStarted(e) => (
                e.attempt,
                Self {
                    run_id: Some(e.run_id),
                    started_at: Some(recorded.time),
                    ended_at: None,
                    outcome: None,
                    reason: None,
                    error: None,
                },
            ),
            // What it had asked may complete it yet.
            Event::TaskSuspended(e) => (e.attempt, ended("suspended", None, None)),
            Event::TaskCompleted(e) => (e.attempt, ended("completed", None, None)),
            Event::TaskFailed(e) => (
                e.attempt,
                ended("failed", Some(failure(e.reason)), Some(&e.error)),
            ),
            Event::TaskCancelled(e) => (
                e.attempt?,
                ended("cancelled", Some(cancel(e.reason)), Some(&e.error)),
            ),
            Event::TaskCreated(_)
            | Event::TaskRenamed(_)
            | Event::PriorityChanged(_)
            | Event::LabelsChanged(_)
            | Event::UserChanged(_)
            | Event::TaskMoved(_)
            | Event::DependenciesChanged(_)
            | Event::TaskRespecified(_)
            | Event::TaskDeleted(_)
            | Event::RunStarted(_)
            | Event::MessageReceived(_)
            | Event::TaskProgressed(_)
            | Event::TaskOutputAppended(_)
            | Event::TaskClaimRejected(_)
            | Event::TaskCompletionRejected(_)
            | Event::TaskReminded(_)
            | Event::TaskAnswered(_)
            | Event::TaskSuspensionExpired(_)
            | Event::TaskRequeued(_)
            | Event::TaskDeferred(_)
            | Event::RunEnded(_)
            | Event::FlowArchived(_) => return None,
        })
    }

    pub(super) fn bind(&self, args: &mut Args) {
        args.opt_id(self.run_id.map(|id| id.0));
        args.time(self.started_at);
        args.time(self.ended_at);
        args.name(self.outcome);
        args.name(self.reason);
        args.text(self.error.clone());
    }
}

const fn failure(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::Executor => "executor",
        FailureReason::Timeout => "timeout",
        FailureReason::Deadline => "deadline",
        FailureReason::ExecutorNotFound => "executor_not_found",
        FailureReason::Interrupted => "interrupted",
        FailureReason::InvalidInputs => "invalid_inputs",
        FailureReason::InvalidResult => "invalid_result",
        FailureReason::Group => "group",
        FailureReason::Released => "released",
        FailureReason::NotRetryable => "not_retryable",
        FailureReason::NotStarted => "not_started",
        FailureReason::Unanswered => "unanswered",
        FailureReason::Declined => "declined",
        FailureReason::Rejected => "rejected",
    }
}

const fn cancel(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Requested => "requested",
        CancelReason::Deadline => "deadline",
    }
}
