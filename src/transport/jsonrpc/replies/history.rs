//! A page of a history, and an event as callers see it: a shape of its own, so that what is stored can
//! change without it.
//!
//! Owns: the members of each event. Everything is said in the protocol's
//! words; ordinals, versions of other events and the like never leave. Names and members, once
//! released, keep their meaning.

use super::lineage::LineageJson;
use crate::application::api::{EventType, HistoryPage, Origin};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use taskledger_domain::contract::OutputFault;
use taskledger_domain::flow::{
    CancelReason, Dependency, Event, FailureReason, OnExpiry, RequeueReason, RunKind, RunState,
    Specification, StatusCounts,
};
use taskledger_domain::question::Escalation;
use taskledger_domain::task::{Priority, Progress, Status};
use taskledger_domain::{
    EventId, Payload, Position, Recorded, RunId, SuspensionId, TaskId, Timestamp, Version,
};

/// The result of `tasks.history`.
pub(super) fn page(page: &HistoryPage) -> Box<RawValue> {
    super::raw(&Page {
        task_id: page.task,
        root_task_id: page.root,
        events: page
            .events
            .iter()
            .map(|e| Entry::of(e, &page.lineages))
            .collect(),
        next_cursor: page.next.map(|cursor| cursor.to_string()),
    })
}

#[derive(Serialize)]
struct Page<'a> {
    task_id: TaskId,
    root_task_id: TaskId,
    events: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// One event of a history.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    /// The event.
    id: EventId,
    /// Its place in the flow's history, from 1, without gaps.
    sequence: Version,
    /// Its place in the whole log.
    position: Position,
    /// When it was decided.
    timestamp: Timestamp,
    /// What happened.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The task; for runs the task that was asked for.
    task_id: TaskId,
    /// Who caused it.
    actor: &'a str,
    /// The request that led here.
    correlation_id: &'a str,
    /// The event that led here, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<EventId>,
    /// What changed.
    data: Data<'a>,
}

/// A change of status.
#[derive(Debug, Serialize)]
struct Transition {
    /// Null at creation.
    from: Option<Status>,
    /// Null at deletion.
    to: Option<Status>,
}

const fn change(from: Status, to: Status) -> Transition {
    Transition {
        from: Some(from),
        to: Some(to),
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Data<'a> {
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
    },
    Renamed {
        name: &'a str,
    },
    Priority {
        priority: Priority,
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
    },
    Started {
        status: Transition,
        attempt: u32,
        run_id: RunId,
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<&'a str>,
        /// Set by [`Entry::of`].
        #[serde(skip_serializing_if = "Option::is_none")]
        lineage: Option<LineageJson<'a>>,
    },
    Progressed {
        attempt: u32,
        progress: Progress,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    },
    ClaimRejected {
        worker: &'a str,
        /// The name of the error.
        error: &'static str,
        message: String,
        unresolvable_refs: &'a [String],
    },
    CompletionRejected {
        attempt: u32,
        /// The name of the error.
        error: &'static str,
        message: String,
        #[serde(flatten)]
        fault: &'a OutputFault,
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
    },
    Failed {
        status: Transition,
        attempt: u32,
        error: &'a str,
        reason: FailureReason,
        progress: Progress,
        will_retry: bool,
    },
    Requeued {
        status: Transition,
        reason: RequeueReason,
        run_id: RunId,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_attempt_at: Option<Timestamp>,
    },
    Cancelled {
        status: Transition,
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        error: &'a str,
        reason: CancelReason,
    },
    RunEnded {
        run_id: RunId,
        state: RunState,
        counts: StatusCounts,
    },
    Archived {
        file: &'a str,
        sha256: &'a str,
        events: u64,
    },
}

/// The members of a task that its executor sees.
#[derive(Debug, Serialize)]
struct Members<'a> {
    inputs: &'a Payload,
    schemas: Option<&'a Payload>,
    params: Option<&'a Payload>,
}

impl<'a> Members<'a> {
    const fn of(specification: &'a Specification) -> Self {
        Self {
            inputs: &specification.inputs,
            schemas: specification.schemas.as_ref(),
            params: specification.params.as_ref(),
        }
    }
}

impl<'a> Entry<'a> {
    /// The public shape of an event. Cost: O(1), for the start of a run O(ranges that it covers).
    fn of(recorded: &'a Recorded, lineages: &'a HashMap<Version, Vec<Origin>>) -> Self {
        let (task_id, mut data) = data(&recorded.event, recorded.flow.root());
        if let Data::Started { lineage, .. } = &mut data {
            *lineage = lineages.get(&recorded.version).map(|it| LineageJson(it));
        }
        Self {
            id: recorded.id,
            sequence: recorded.version,
            position: recorded.position,
            timestamp: recorded.time,
            kind: EventType::of(&recorded.event).as_str(),
            task_id,
            actor: &recorded.metadata.actor,
            correlation_id: &recorded.metadata.correlation,
            causation_id: recorded.metadata.causation,
            data,
        }
    }
}

/// `root`: that of the event's flow.
fn data(event: &Event, root: TaskId) -> (TaskId, Data<'_>) {
    use Status::{Cancelled, Completed, Failed, InProgress, Pending};
    match event {
        Event::TaskCreated(e) => (
            e.task_id,
            Data::Created {
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
            },
        ),
        Event::TaskRenamed(e) => (e.task_id, Data::Renamed { name: &e.name }),
        Event::PriorityChanged(e) => (
            e.task_id,
            Data::Priority {
                priority: e.priority,
            },
        ),
        Event::UserChanged(e) => (
            e.task_id,
            Data::User {
                user_id: e.user_id.as_deref(),
            },
        ),
        Event::TaskMoved(e) => (
            e.task_id,
            Data::Moved {
                parent_id: e.parent_id,
            },
        ),
        Event::DependenciesChanged(e) => (
            e.task_id,
            Data::Dependencies {
                dependencies: &e.dependencies,
            },
        ),
        Event::TaskRespecified(e) => (
            e.task_id,
            Data::Specification(Members::of(&e.specification)),
        ),
        Event::TaskDeleted(e) => (
            e.task_id,
            Data::Deleted {
                status: Transition {
                    from: Some(Pending),
                    to: None,
                },
            },
        ),
        Event::RunStarted(e) => (
            e.task_id,
            Data::RunStarted {
                run_id: e.run_id,
                kind: e.kind,
                covered_tasks: e
                    .covers
                    .iter()
                    .map(|(first, last)| u64::from(last - first) + 1)
                    .sum(),
                allow_unknown_executors: e.allow_unknown_executors,
                executor_wait_seconds: e.executor_wait_ms as f64 / 1000.0,
            },
        ),
        Event::TaskStarted(e) => (
            e.task_id,
            Data::Started {
                status: change(Pending, InProgress),
                attempt: e.attempt,
                run_id: e.run_id,
                worker: e.lease.as_ref().map(|lease| lease.worker.as_str()),
                lineage: None,
            },
        ),
        Event::TaskProgressed(e) => (
            e.task_id,
            Data::Progressed {
                attempt: e.attempt,
                progress: e.progress,
                message: e.message.as_deref(),
            },
        ),
        Event::TaskClaimRejected(e) => (
            e.task_id,
            Data::ClaimRejected {
                worker: &e.worker,
                error: "UnresolvableInputError",
                message: format!("no value for {}", e.unresolvable_refs.join(", ")),
                unresolvable_refs: &e.unresolvable_refs,
            },
        ),
        Event::TaskCompletionRejected(e) => (
            e.task_id,
            Data::CompletionRejected {
                attempt: e.attempt,
                error: e.fault.name(),
                message: e.fault.message(),
                fault: &e.fault,
            },
        ),
        Event::TaskSuspended(e) => (
            e.task_id,
            Data::Suspended {
                attempt: e.attempt,
                suspension_id: e.suspension_id,
                question: &e.question,
                expires_at: e.expires_at,
            },
        ),
        Event::TaskReminded(e) => (
            e.task_id,
            Data::Reminded {
                attempt: e.attempt,
                suspension_id: e.suspension_id,
                number: e.number,
                of: e.of,
                escalation: e.escalation.as_ref(),
            },
        ),
        Event::TaskAnswered(e) => (
            e.task_id,
            Data::Answered {
                attempt: e.attempt,
                suspension_id: e.suspension_id,
                answer: &e.answer,
                responded_by: &e.responded_by,
                on_behalf_of: e.on_behalf_of.as_deref(),
            },
        ),
        Event::TaskSuspensionExpired(e) => (
            e.task_id,
            Data::SuspensionExpired {
                attempt: e.attempt,
                suspension_id: e.suspension_id,
                fallback_policy: match e.policy {
                    OnExpiry::Fail => "fail",
                    OnExpiry::Complete { .. } => "complete_with_fallback",
                    OnExpiry::Continue { .. } => "use_default_and_continue",
                },
            },
        ),
        Event::TaskCompleted(e) => (
            e.task_id,
            Data::Completed {
                status: change(InProgress, Completed),
                attempt: e.attempt,
                result: &e.result,
            },
        ),
        Event::TaskFailed(e) => (
            e.task_id,
            Data::Failed {
                status: change(InProgress, Failed),
                attempt: e.attempt,
                error: &e.error,
                reason: e.reason,
                progress: e.progress,
                will_retry: e.will_retry,
            },
        ),
        Event::TaskRequeued(e) => (
            e.task_id,
            Data::Requeued {
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
            },
        ),
        Event::TaskCancelled(e) => {
            let from = if e.attempt.is_some() {
                InProgress
            } else {
                Pending
            };
            (
                e.task_id,
                Data::Cancelled {
                    status: change(from, Cancelled),
                    attempt: e.attempt,
                    error: &e.error,
                    reason: e.reason,
                },
            )
        }
        Event::RunEnded(e) => (
            e.task_id,
            Data::RunEnded {
                run_id: e.run_id,
                state: e.state,
                counts: e.counts,
            },
        ),
        Event::FlowArchived(e) => (
            root,
            Data::Archived {
                file: &e.file,
                sha256: &e.sha256,
                events: e.events,
            },
        ),
    }
}
