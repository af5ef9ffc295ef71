//! A page of a history, and an event as callers see it: a shape of its own, so that what is stored can
//! change without it.
//!
//! Owns: which members an event has. Everything is said in the protocol's
//! words; ordinals, versions of other events and the like never leave. Names and members, once
//! released, keep their meaning.

mod data;

use super::lineage::LineageJson;
use crate::application::api::{EventType, EventsPage, HistoryPage};
use data::{Data, Members, Transition, change};
use serde::Serialize;
use serde_json::value::RawValue;
use taskledger_domain::flow::{Event, OnExpiry, Remarks, RequeueReason};
use taskledger_domain::task::Status;
use taskledger_domain::{EventId, Payload, Position, Recorded, TaskId, Timestamp, Version};

/// The result of `tasks.history`.
pub(super) fn page(page: &HistoryPage) -> Box<RawValue> {
    super::raw(&Page {
        task_id: page.task,
        root_task_id: page.root,
        events: page.events.iter().map(|e| Entry::of(e, page)).collect(),
        next_cursor: page.next.map(|cursor| cursor.to_string()),
    })
}

/// The result of `events.query`.
pub(in crate::transport::jsonrpc) fn events_page(page: &EventsPage) -> Box<RawValue> {
    let entries = page.events.iter().map(|recorded| EntryOfFlow {
        root_task_id: recorded.flow.root(),
        entry: Entry::alone(recorded),
    });
    super::raw(&EventsOfFlows {
        events: entries.collect(),
        next_cursor: page.next.map(|cursor| cursor.to_string()),
    })
}

#[derive(Serialize)]
struct EventsOfFlows<'a> {
    events: Vec<EntryOfFlow<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct EntryOfFlow<'a> {
    root_task_id: TaskId,
    #[serde(flatten)]
    entry: Entry<'a>,
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

impl<'a> Entry<'a> {
    /// The public shape of an event. Cost: O(1), for the start of a run O(ranges that it covers).
    fn of(recorded: &'a Recorded, page: &'a HistoryPage) -> Self {
        let mut entry = Self::alone(recorded);
        let version = &recorded.version;
        if let Data::Started { lineage, input, .. } = &mut entry.data {
            *input = page.inputs.get(version);
            *lineage = page.lineages.get(version).map(|it| LineageJson(it));
        }
        if let Some(named) = page.rejections.get(version) {
            entry.data.name_rejection(&recorded.event, named);
        }
        entry
    }

    /// The same by what the event itself says: without inputs that came from results and where they came
    /// from, and without names in refusals that were recorded without.
    fn alone(recorded: &'a Recorded) -> Self {
        let (task_id, data) = data(&recorded.event, recorded.flow.root());
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

fn data_of(remarks: Option<&Remarks>) -> Option<&Payload> {
    remarks.and_then(|it| it.data.as_ref())
}

fn execution_of(remarks: Option<&Remarks>) -> Option<&Payload> {
    remarks.and_then(|it| it.execution.as_ref())
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
                labels: &e.labels,
            },
        ),
        Event::TaskRenamed(e) => (e.task_id, Data::Renamed { name: &e.name }),
        Event::PriorityChanged(e) => (
            e.task_id,
            Data::Priority {
                priority: e.priority,
            },
        ),
        Event::LabelsChanged(e) => (e.task_id, Data::Labels { labels: &e.labels }),
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
                input: None,
                lineage: None,
            },
        ),
        Event::TaskProgressed(e) => (
            e.task_id,
            Data::Progressed {
                attempt: e.attempt,
                progress: e.progress,
                message: e.message.as_deref(),
                progress_data: data_of(e.remarks.as_ref()),
            },
        ),
        Event::TaskOutputAppended(e) => (
            e.task_id,
            Data::OutputAppended {
                attempt: e.attempt,
                output_number: e.number,
                output_part: &e.part,
            },
        ),
        Event::TaskClaimRejected(e) => (
            e.task_id,
            Data::ClaimRejected {
                worker: &e.worker,
                told: e.told().payload(e.task_id),
            },
        ),
        Event::TaskCompletionRejected(e) => (
            e.task_id,
            Data::CompletionRejected {
                attempt: e.attempt,
                told: e.told().payload(e.task_id),
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
                execution_metadata: execution_of(e.remarks.as_ref()),
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
                partial_result: data_of(e.remarks.as_ref()),
                execution_metadata: execution_of(e.remarks.as_ref()),
                contract_error: e.breach.as_ref().map(|it| it.payload(e.task_id)),
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
        Event::TaskDeferred(e) => (
            e.task_id,
            Data::Deferred {
                run_id: e.run_id,
                next_attempt_at: e.next_attempt_at,
                timer: e.timer,
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
                    partial_result: data_of(e.remarks.as_ref()),
                    execution_metadata: execution_of(e.remarks.as_ref()),
                },
            )
        }
        Event::RunEnded(e) => (
            e.task_id,
            Data::RunEnded {
                run_id: e.run_id,
                state: e.state,
                counts: e.counts,
                rejected: e.rejected,
            },
        ),
        Event::MessageReceived(e) => (
            root,
            Data::MessageReceived {
                run_id: e.run_id,
                message_id: &e.message_id,
                message: &e.message,
                suspension_id: e.suspension_id,
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
