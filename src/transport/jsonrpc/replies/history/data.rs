//! The member `data` of events in a history: what changed, by kind of event.

use super::super::lineage::LineageJson;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use taskledger_domain::flow::{
    CancelReason, Dependency, FailureReason, OutputPart, RequeueReason, RunKind, RunState,
    Specification, StatusCounts, TimerKind,
};
use taskledger_domain::question::Escalation;
use taskledger_domain::task::{Labels, Priority, Progress, Status};
use taskledger_domain::{Payload, RunId, SuspensionId, TaskId, Timestamp};

/// A change of status.
#[derive(Debug, Serialize)]
pub(super) struct Transition {
    /// Null at creation.
    pub(super) from: Option<Status>,
    /// Null at deletion.
    pub(super) to: Option<Status>,
}

pub(super) const fn change(from: Status, to: Status) -> Transition {
    Transition {
        from: Some(from),
        to: Some(to),
    }
}

fn plain<S: Serializer>(part: &&OutputPart, serializer: S) -> Result<S::Ok, S::Error> {
    part.serialize_plain(serializer)
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Data<'a> {
    Created {
        status: Transition,
        name: &'a str,
        parent_id: Option<TaskId>,
        user_id: Option<&'a str>,
        priority: Priority,
        dependencies: &'a [Dependency],
        #[serde(flatten)]
        specification: Members<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        copied_from: Option<TaskId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        #[serde(skip_serializing_if = "Labels::is_empty")]
        labels: &'a Labels,
    },
    Renamed {
        name: &'a str,
    },
    Priority {
        priority: Priority,
    },
    Labels {
        labels: &'a Labels,
    },
    User {
        user_id: Option<&'a str>,
    },
    Moved {
        parent_id: TaskId,
    },
    Dependencies {
        dependencies: &'a [Dependency],
    },
    Specification(Members<'a>),
    Deleted {
        status: Transition,
    },
    RunStarted {
        run_id: RunId,
        kind: RunKind,
        covered_tasks: u64,
        allow_unknown_executors: bool,
        executor_wait_seconds: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_start_wait_seconds: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_answer_wait_seconds: Option<f64>,
    },
    MessageReceived {
        run_id: RunId,
        message_id: &'a str,
        message: &'a Payload,
        #[serde(skip_serializing_if = "Option::is_none")]
        suspension_id: Option<SuspensionId>,
    },
    Started {
        status: Transition,
        attempt: u32,
        run_id: RunId,
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<&'a str>,
        /// Set by [`Entry::of`].
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<&'a Payload>,
        #[serde(skip_serializing_if = "Option::is_none")]
        lineage: Option<LineageJson<'a>>,
    },
    Progressed {
        attempt: u32,
        progress: Progress,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        progress_data: Option<&'a Payload>,
    },
    OutputAppended {
        attempt: u32,
        output_number: u32,
        #[serde(serialize_with = "plain")]
        output_part: &'a OutputPart,
    },
    ClaimRejected {
        worker: &'a str,
        /// The error that the worker got.
        #[serde(flatten)]
        error: Map<String, Value>,
    },
    CompletionRejected {
        attempt: u32,
        #[serde(flatten)]
        error: Map<String, Value>,
    },
    Suspended {
        attempt: u32,
        suspension_id: SuspensionId,
        question: &'a Payload,
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    Reminded {
        attempt: u32,
        suspension_id: SuspensionId,
        number: u32,
        of: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        escalation: Option<&'a Escalation>,
    },
    Answered {
        attempt: u32,
        suspension_id: SuspensionId,
        /// An object with `value`.
        answer: &'a Payload,
        responded_by: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        on_behalf_of: Option<&'a str>,
    },
    SuspensionExpired {
        attempt: u32,
        suspension_id: SuspensionId,
        fallback_policy: &'static str,
    },
    Completed {
        status: Transition,
        attempt: u32,
        result: &'a Payload,
        #[serde(skip_serializing_if = "Option::is_none")]
        execution_metadata: Option<&'a Payload>,
    },
    Failed {
        status: Transition,
        attempt: u32,
        error: &'a str,
        reason: FailureReason,
        progress: Progress,
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        partial_result: Option<&'a Payload>,
        #[serde(skip_serializing_if = "Option::is_none")]
        execution_metadata: Option<&'a Payload>,
        /// The contract that the attempt did not keep.
        #[serde(skip_serializing_if = "Option::is_none")]
        contract_error: Option<Map<String, Value>>,
    },
    Requeued {
        status: Transition,
        reason: RequeueReason,
        run_id: RunId,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_attempt_at: Option<Timestamp>,
    },
    Deferred {
        run_id: RunId,
        next_attempt_at: Timestamp,
        #[serde(skip_serializing_if = "Option::is_none")]
        timer: Option<TimerKind>,
    },
    Cancelled {
        status: Transition,
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        error: &'a str,
        reason: CancelReason,
        #[serde(skip_serializing_if = "Option::is_none")]
        partial_result: Option<&'a Payload>,
        #[serde(skip_serializing_if = "Option::is_none")]
        execution_metadata: Option<&'a Payload>,
    },
    RunEnded {
        run_id: RunId,
        state: RunState,
        counts: StatusCounts,
        /// It failed for nothing but that tasks were rejected.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        rejected: bool,
    },
    Archived {
        file: &'a str,
        sha256: &'a str,
        events: u64,
    },
}

/// The members of a task that its executor sees.
#[derive(Debug, Serialize)]
pub(super) struct Members<'a> {
    inputs: &'a Payload,
    schemas: Option<&'a Payload>,
    params: Option<&'a Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_at: Option<Timestamp>,
}

impl<'a> Members<'a> {
    pub(super) const fn of(specification: &'a Specification) -> Self {
        Self {
            inputs: &specification.inputs,
            schemas: specification.schemas.as_ref(),
            params: specification.params.as_ref(),
            start_at: specification.start_at,
        }
    }
}
