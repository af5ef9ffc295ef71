//! The members that each kind of event has in a history.

use super::data::{Data, Members, Transition, change};
use taskledger_domain::Payload;
use taskledger_domain::flow::{
    DependenciesChanged, FlowArchived, LabelsChanged, MessageReceived, OnExpiry, PriorityChanged,
    Remarks, RequeueReason, RunEnded, RunStarted, TaskAnswered, TaskCancelled, TaskClaimRejected,
    TaskCompleted, TaskCompletionRejected, TaskCreated, TaskDeferred, TaskDeleted, TaskFailed,
    TaskMoved, TaskOutputAppended, TaskProgressed, TaskReminded, TaskRenamed, TaskRequeued,
    TaskRespecified, TaskStarted, TaskSuspended, TaskSuspensionExpired, UserChanged,
};
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};

fn data_of(remarks: Option<&Remarks>) -> Option<&Payload> {
    remarks.and_then(|it| it.data.as_ref())
}

fn execution_of(remarks: Option<&Remarks>) -> Option<&Payload> {
    remarks.and_then(|it| it.execution.as_ref())
}

impl<'a> From<&'a TaskCreated> for Data<'a> {
    fn from(e: &'a TaskCreated) -> Self {
        Self::Created {
            status: Transition {
                from: None,
                to: Some(Pending),
            },
            name: &e.name,
            parent_id: e.parent_id,
            user_id: e.user_id.as_deref(),
            priority: e.priority,
            dependencies: &e.dependencies,
            specification: Members::of(&e.specification),
            copied_from: e.copied_from,
            run_id: e.run_id,
            labels: &e.labels,
        }
    }
}

impl<'a> From<&'a TaskRenamed> for Data<'a> {
    fn from(e: &'a TaskRenamed) -> Self {
        Self::Renamed { name: &e.name }
    }
}

impl<'a> From<&'a PriorityChanged> for Data<'a> {
    fn from(e: &'a PriorityChanged) -> Self {
        Self::Priority {
            priority: e.priority,
        }
    }
}

impl<'a> From<&'a LabelsChanged> for Data<'a> {
    fn from(e: &'a LabelsChanged) -> Self {
        Self::Labels { labels: &e.labels }
    }
}

impl<'a> From<&'a UserChanged> for Data<'a> {
    fn from(e: &'a UserChanged) -> Self {
        Self::User {
            user_id: e.user_id.as_deref(),
        }
    }
}

impl<'a> From<&'a TaskMoved> for Data<'a> {
    fn from(e: &'a TaskMoved) -> Self {
        Self::Moved {
            parent_id: e.parent_id,
        }
    }
}

impl<'a> From<&'a DependenciesChanged> for Data<'a> {
    fn from(e: &'a DependenciesChanged) -> Self {
        Self::Dependencies {
            dependencies: &e.dependencies,
        }
    }
}

impl<'a> From<&'a TaskRespecified> for Data<'a> {
    fn from(e: &'a TaskRespecified) -> Self {
        Self::Specification(Members::of(&e.specification))
    }
}

impl<'a> From<&'a TaskDeleted> for Data<'a> {
    fn from(_: &'a TaskDeleted) -> Self {
        Self::Deleted {
            status: Transition {
                from: Some(Pending),
                to: None,
            },
        }
    }
}

fn seconds(ms: Option<u64>) -> Option<f64> {
    ms.map(|ms| ms as f64 / 1000.0)
}

impl<'a> From<&'a RunStarted> for Data<'a> {
    fn from(e: &'a RunStarted) -> Self {
        Self::RunStarted {
            run_id: e.run_id,
            kind: e.kind,
            covered_tasks: e
                .covers
                .iter()
                .map(|(first, last)| u64::from(last - first) + 1)
                .sum(),
            allow_unknown_executors: e.allow_unknown_executors,
            executor_wait_seconds: e.executor_wait_ms as f64 / 1000.0,
            max_start_wait_seconds: seconds(e.wait_bounds.start_ms),
            max_answer_wait_seconds: seconds(e.wait_bounds.answer_ms),
        }
    }
}

impl<'a> From<&'a TaskStarted> for Data<'a> {
    fn from(e: &'a TaskStarted) -> Self {
        Self::Started {
            status: change(Pending, InProgress),
            attempt: e.attempt,
            run_id: e.run_id,
            worker: e.lease.as_ref().map(|lease| lease.worker.as_str()),
            input: None,
            lineage: None,
        }
    }
}

impl<'a> From<&'a TaskProgressed> for Data<'a> {
    fn from(e: &'a TaskProgressed) -> Self {
        Self::Progressed {
            attempt: e.attempt,
            progress: e.progress,
            message: e.message.as_deref(),
            progress_data: data_of(e.remarks.as_ref()),
        }
    }
}

impl<'a> From<&'a TaskOutputAppended> for Data<'a> {
    fn from(e: &'a TaskOutputAppended) -> Self {
        Self::OutputAppended {
            attempt: e.attempt,
            output_number: e.number,
            output_part: &e.part,
        }
    }
}

impl<'a> From<&'a TaskClaimRejected> for Data<'a> {
    fn from(e: &'a TaskClaimRejected) -> Self {
        Self::ClaimRejected {
            worker: &e.worker,
            error: e.breach.payload(e.task_id),
        }
    }
}

impl<'a> From<&'a TaskCompletionRejected> for Data<'a> {
    fn from(e: &'a TaskCompletionRejected) -> Self {
        Self::CompletionRejected {
            attempt: e.attempt,
            error: e.breach().payload(e.task_id),
        }
    }
}

impl<'a> From<&'a TaskSuspended> for Data<'a> {
    fn from(e: &'a TaskSuspended) -> Self {
        Self::Suspended {
            attempt: e.attempt,
            suspension_id: e.suspension_id,
            question: &e.question,
            expires_at: e.expires_at,
        }
    }
}

impl<'a> From<&'a TaskReminded> for Data<'a> {
    fn from(e: &'a TaskReminded) -> Self {
        Self::Reminded {
            attempt: e.attempt,
            suspension_id: e.suspension_id,
            number: e.number,
            of: e.of,
            escalation: e.escalation.as_ref(),
        }
    }
}

impl<'a> From<&'a TaskAnswered> for Data<'a> {
    fn from(e: &'a TaskAnswered) -> Self {
        Self::Answered {
            attempt: e.attempt,
            suspension_id: e.suspension_id,
            answer: &e.answer,
            responded_by: &e.responded_by,
            on_behalf_of: e.on_behalf_of.as_deref(),
        }
    }
}

impl<'a> From<&'a TaskSuspensionExpired> for Data<'a> {
    fn from(e: &'a TaskSuspensionExpired) -> Self {
        Self::SuspensionExpired {
            attempt: e.attempt,
            suspension_id: e.suspension_id,
            fallback_policy: match e.policy {
                OnExpiry::Fail => "fail",
                OnExpiry::Complete { .. } => "complete_with_fallback",
                OnExpiry::Continue { .. } => "use_default_and_continue",
            },
        }
    }
}

impl<'a> From<&'a TaskCompleted> for Data<'a> {
    fn from(e: &'a TaskCompleted) -> Self {
        Self::Completed {
            status: change(InProgress, Completed),
            attempt: e.attempt,
            result: &e.result,
            execution_metadata: execution_of(e.remarks.as_ref()),
        }
    }
}

impl<'a> From<&'a TaskFailed> for Data<'a> {
    fn from(e: &'a TaskFailed) -> Self {
        Self::Failed {
            status: change(InProgress, Failed),
            attempt: e.attempt,
            error: &e.error,
            reason: e.reason,
            progress: e.progress,
            will_retry: e.will_retry,
            partial_result: data_of(e.remarks.as_ref()),
            execution_metadata: execution_of(e.remarks.as_ref()),
            contract_error: e.breach.as_ref().map(|it| it.payload(e.task_id)),
        }
    }
}

impl<'a> From<&'a TaskRequeued> for Data<'a> {
    fn from(e: &'a TaskRequeued) -> Self {
        Self::Requeued {
            status: match e.reason {
                RequeueReason::Answered => change(InProgress, Pending),
                RequeueReason::Retry
                | RequeueReason::Rerun
                | RequeueReason::Interrupted
                | RequeueReason::Released => change(Failed, Pending),
            },
            reason: e.reason,
            run_id: e.run_id,
            next_attempt_at: e.next_attempt_at,
        }
    }
}

impl<'a> From<&'a TaskDeferred> for Data<'a> {
    fn from(e: &'a TaskDeferred) -> Self {
        Self::Deferred {
            run_id: e.run_id,
            next_attempt_at: e.next_attempt_at,
            timer: e.timer,
        }
    }
}

impl<'a> From<&'a TaskCancelled> for Data<'a> {
    fn from(e: &'a TaskCancelled) -> Self {
        let from = if e.attempt.is_some() {
            InProgress
        } else {
            Pending
        };
        Self::Cancelled {
            status: change(from, Cancelled),
            attempt: e.attempt,
            error: &e.error,
            reason: e.reason,
            partial_result: data_of(e.remarks.as_ref()),
            execution_metadata: execution_of(e.remarks.as_ref()),
        }
    }
}

impl<'a> From<&'a RunEnded> for Data<'a> {
    fn from(e: &'a RunEnded) -> Self {
        Self::RunEnded {
            run_id: e.run_id,
            state: e.state,
            counts: e.counts,
            rejected: e.rejected,
        }
    }
}

impl<'a> From<&'a MessageReceived> for Data<'a> {
    fn from(e: &'a MessageReceived) -> Self {
        Self::MessageReceived {
            run_id: e.run_id,
            message_id: &e.message_id,
            message: &e.message,
            suspension_id: e.suspension_id,
        }
    }
}

impl<'a> From<&'a FlowArchived> for Data<'a> {
    fn from(e: &'a FlowArchived) -> Self {
        Self::Archived {
            file: &e.file,
            sha256: &e.sha256,
            events: e.events,
        }
    }
}
