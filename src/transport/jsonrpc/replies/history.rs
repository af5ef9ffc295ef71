//! A page of a history, and an event as callers see it: a shape of its own, so that what is stored can
//! change without it.
//!
//! Owns: which members an event has. Everything is said in the protocol's
//! words; ordinals, versions of other events and the like never leave. Names and members, once
//! released, keep their meaning.

mod data;
mod members;

use super::lineage::LineageJson;
use crate::application::api::{EventType, EventsPage, HistoryPage};
use data::Data;
use serde::Serialize;
use serde_json::value::RawValue;
use taskledger_domain::flow::{Event, RunEnded, RunStarted};
use taskledger_domain::{EventId, Position, Recorded, TaskId, Timestamp, Version};

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
        entry
    }

    /// The same from the event alone: without the inputs that came from results, and their origins.
    fn alone(recorded: &'a Recorded) -> Self {
        let event = recorded.event.as_ref();
        Self {
            id: recorded.id,
            sequence: recorded.version,
            position: recorded.position,
            timestamp: recorded.time,
            kind: EventType::of(event).as_str(),
            task_id: task_of(recorded),
            actor: &recorded.metadata.actor,
            correlation_id: &recorded.metadata.correlation,
            causation_id: recorded.metadata.causation,
            data: data(event),
        }
    }
}

/// The task that an event is about: for runs the one that was asked for, for what concerns the flow its root.
fn task_of(recorded: &Recorded) -> TaskId {
    let event = recorded.event.as_ref();
    if let Event::RunStarted(RunStarted { task_id, .. })
    | Event::RunEnded(RunEnded { task_id, .. }) = event
    {
        return *task_id;
    }
    event.task_id().unwrap_or_else(|| recorded.flow.root())
}

fn data(event: &Event) -> Data<'_> {
    match event {
        Event::TaskCreated(e) => Data::from(e),
        Event::TaskRenamed(e) => Data::from(e),
        Event::PriorityChanged(e) => Data::from(e),
        Event::LabelsChanged(e) => Data::from(e),
        Event::UserChanged(e) => Data::from(e),
        Event::TaskMoved(e) => Data::from(e),
        Event::DependenciesChanged(e) => Data::from(e),
        Event::TaskRespecified(e) => Data::from(e),
        Event::TaskDeleted(e) => Data::from(e),
        Event::RunStarted(e) => Data::from(e),
        Event::TaskStarted(e) => Data::from(e),
        Event::TaskProgressed(e) => Data::from(e),
        Event::TaskOutputAppended(e) => Data::from(e),
        Event::TaskClaimRejected(e) => Data::from(e),
        Event::TaskCompletionRejected(e) => Data::from(e),
        Event::TaskSuspended(e) => Data::from(e),
        Event::TaskReminded(e) => Data::from(e),
        Event::TaskAnswered(e) => Data::from(e),
        Event::TaskSuspensionExpired(e) => Data::from(e),
        Event::TaskCompleted(e) => Data::from(e),
        Event::TaskFailed(e) => Data::from(e),
        Event::TaskRequeued(e) => Data::from(e),
        Event::TaskDeferred(e) => Data::from(e),
        Event::TaskCancelled(e) => Data::from(e),
        Event::RunEnded(e) => Data::from(e),
        Event::MessageReceived(e) => Data::from(e),
        Event::FlowArchived(e) => Data::from(e),
    }
}
