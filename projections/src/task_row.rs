//! One task as people read it, and the one fold that makes it from events.
//!
//! Owns: [`TaskRow`] and the meaning of each event for it. Pure: no database, no clock. The
//! projector, the cache behind `tasks.get` and reading "as of" an earlier time all use this fold.
//! What one task's events cannot tell (the progress of a group comes from its children) is given
//! through [`TaskRow::children_changed`].

use serde::Serialize;
use std::sync::{Arc, LazyLock};
use taskledger_domain::flow::{Dependency, Event, Specification, TaskSuspended, covers};
use taskledger_domain::task::{Labels, Priority, Progress, Status};
use taskledger_domain::{
    FlowId, Payload, Position, Recorded, RunId, SuspensionId, TaskId, Timestamp,
};

/// Shared by all rows without inputs in memory, so that each need not hold one of its own.
static EMPTY: LazyLock<Payload> = LazyLock::new(Payload::empty);

/// Everything that is known of a live task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    /// Unique in the log, deleted tasks included.
    pub id: TaskId,
    /// Its flow; the flow's root task has the same id.
    pub flow_id: FlowId,
    /// Place in the order of creation within the flow.
    pub ordinal: u32,
    /// Absent for a root.
    pub parent_id: Option<TaskId>,
    /// Who it is for, as somebody said. Of a root it decides who owns the flow; elsewhere it is a label.
    pub user_id: Option<Arc<str>>,
    /// Who owns its flow: the `user_id` of the flow's root, now. Absent: nobody. Never shown.
    pub owner: Option<Arc<str>>,
    /// Free text.
    pub name: Arc<str>,
    /// Where it stands.
    pub status: Status,
    /// Urgency.
    pub priority: Priority,
    /// Runtime data.
    pub inputs: Payload,
    /// As given; absent for a group.
    pub schemas: Option<Payload>,
    /// As given.
    pub params: Option<Payload>,
    /// `schemas.method`; absent for a group.
    pub method: Option<Arc<str>>,
    /// Neither it nor a task below it starts earlier, as somebody said.
    pub start_at: Option<Timestamp>,
    /// From `params.deadline`.
    pub deadline: Option<Timestamp>,
    /// Present when completed.
    pub result: Option<Payload>,
    /// Present when failed or cancelled.
    pub error: Option<Arc<str>>,
    /// Tasks that it waits for.
    pub dependencies: Vec<Dependency>,
    /// How far it is; for a running group the mean of its children.
    pub progress: Progress,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Start of the latest attempt; absent while pending.
    pub started_at: Option<Timestamp>,
    /// Time of its last event.
    pub updated_at: Timestamp,
    /// End of the latest attempt; present when terminal.
    pub completed_at: Option<Timestamp>,
    /// Attempts so far.
    pub attempt: u32,
    /// The latest run that covers it.
    pub run_id: Option<RunId>,
    /// While it waits for its next attempt, or for its first by its timers: not before this time.
    pub next_attempt_at: Option<Timestamp>,
    /// While it waits for a person: `suspension_id`, `question`, `since` and `expires_at` (RFC 3339).
    pub suspension: Option<Payload>,
    /// Where in the log it was created; the order of creation over all flows.
    pub created_position: Position,
    /// Where in the log its last event is.
    pub position: Position,
    /// Live children.
    pub child_count: u32,
    /// Sum of their progress in millionths.
    pub child_progress_sum: u64,
    /// What it is found by.
    pub labels: Labels,
}

/// The effect of an event on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The event is about something else.
    None,
    /// The row changed.
    Changed,
    /// The task is gone from reads.
    Deleted,
}

impl TaskRow {
    /// Bytes of its result, its error, what it asks and its labels.
    #[must_use]
    pub fn outcome_bytes(&self) -> usize {
        let payloads = [self.result.as_ref(), self.suspension.as_ref()];
        let payloads = payloads.into_iter().flatten();
        payloads.map(|p| p.as_str().len()).sum::<usize>()
            + self.error.as_ref().map_or(0, |e| e.len())
            + self.labels.bytes()
    }

    /// The row of a task that was just created; `None` for every other event. Who owns the flow only
    /// the event of its root tells: the caller gives a child the owner of its parent.
    #[must_use]
    pub fn created(recorded: &Recorded) -> Option<Self> {
        let Event::TaskCreated(e) = recorded.event.as_ref() else {
            return None;
        };
        let user_id: Option<Arc<str>> = e.user_id.as_deref().map(Arc::from);
        let mut row = Self {
            id: e.task_id,
            flow_id: recorded.flow,
            ordinal: e.ordinal,
            parent_id: e.parent_id,
            owner: user_id.clone().filter(|_| e.parent_id.is_none()),
            user_id,
            name: Arc::from(e.name.as_str()),
            status: Status::Pending,
            priority: e.priority,
            inputs: EMPTY.clone(),
            schemas: None,
            params: None,
            method: None,
            start_at: None,
            deadline: None,
            result: None,
            error: None,
            dependencies: e.dependencies.clone(),
            progress: Progress::ZERO,
            created_at: recorded.time,
            started_at: None,
            updated_at: recorded.time,
            completed_at: None,
            attempt: 0,
            run_id: e.run_id,
            next_attempt_at: None,
            suspension: None,
            created_position: recorded.position,
            position: recorded.position,
            child_count: 0,
            child_progress_sum: 0,
            labels: e.labels.clone(),
        };
        row.specify(&e.specification);
        Some(row)
    }

    /// Folds one event. Events must come in the order of the log; those of other tasks and flows
    /// change nothing, except that a new user of the root is the owner of all tasks of the flow.
    /// Cost: O(1), for `RunStarted` O(log ranges).
    pub fn apply(&mut self, recorded: &Recorded) -> Change {
        let event = recorded.event.as_ref();
        if let Event::RunStarted(e) = event {
            if recorded.flow != self.flow_id || !covers(&e.covers, self.ordinal) {
                return Change::None;
            }
            self.run_id = Some(e.run_id);
            return Change::Changed;
        }
        if event.task_id() != Some(self.id) {
            return self.follow_root(recorded);
        }
        let time = recorded.time;
        match event {
            Event::TaskRenamed(e) => self.name = Arc::from(e.name.as_str()),
            Event::PriorityChanged(e) => self.priority = e.priority,
            Event::LabelsChanged(e) => self.labels = e.labels.clone(),
            Event::UserChanged(e) => {
                self.user_id = e.user_id.as_deref().map(Arc::from);
                if self.is_root() {
                    self.owner.clone_from(&self.user_id);
                }
            }
            Event::TaskMoved(e) => self.parent_id = Some(e.parent_id),
            Event::DependenciesChanged(e) => self.dependencies.clone_from(&e.dependencies),
            Event::TaskRespecified(e) => self.specify(&e.specification),
            Event::TaskStarted(e) => {
                self.status = Status::InProgress;
                self.attempt = e.attempt;
                self.run_id = Some(e.run_id);
                self.started_at = Some(time);
                self.next_attempt_at = None;
                self.progress = Progress::ZERO;
                self.follow_children();
            }
            Event::TaskProgressed(e) => {
                if !self.is_group() {
                    self.progress = e.progress;
                }
            }
            // Nothing but the history has it.
            Event::TaskOutputAppended(_)
            | Event::TaskClaimRejected(_)
            | Event::TaskCompletionRejected(_)
            | Event::TaskReminded(_) => {
                self.position = recorded.position;
                return Change::Changed;
            }
            Event::TaskSuspended(e) => self.suspension = Some(suspension(e, time)),
            Event::TaskAnswered(_) | Event::TaskSuspensionExpired(_) => self.suspension = None,
            Event::TaskCompleted(e) => {
                self.end(Status::Completed, time);
                self.progress = Progress::DONE;
                self.result = Some(e.result.clone());
                self.error = None;
            }
            Event::TaskFailed(e) => {
                self.end(Status::Failed, time);
                if !self.is_group() {
                    self.progress = e.progress;
                }
                self.error = Some(Arc::from(e.error.as_str()));
            }
            Event::TaskRequeued(e) => {
                self.status = Status::Pending;
                self.run_id = Some(e.run_id);
                self.next_attempt_at = e.next_attempt_at;
                self.progress = Progress::ZERO;
                self.error = None;
                self.result = None;
                self.started_at = None;
                self.completed_at = None;
            }
            Event::TaskDeferred(e) => self.next_attempt_at = Some(e.next_attempt_at),
            Event::TaskCancelled(e) => {
                self.end(Status::Cancelled, time);
                self.error = Some(Arc::from(e.error.as_str()));
            }
            Event::TaskDeleted(_) => return Change::Deleted,
            // Creation made the row, and runs are not events of one task.
            Event::TaskCreated(_)
            | Event::RunStarted(_)
            | Event::MessageReceived(_)
            | Event::RunEnded(_)
            | Event::FlowArchived(_) => {
                return Change::None;
            }
        }
        self.updated_at = time;
        self.position = recorded.position;
        Change::Changed
    }

    /// Tells a task that it has `count` more (fewer) live children and that their progress has
    /// risen (fallen) by `progress_sum` millionths in all. A running group's progress follows;
    /// `updated_at` does not, because that is the task's own events'.
    pub fn children_changed(&mut self, count: i64, progress_sum: i64) {
        self.child_count = u32::try_from(i64::from(self.child_count) + count).unwrap_or(0);
        let sum = i64::try_from(self.child_progress_sum).unwrap_or(i64::MAX) + progress_sum;
        self.child_progress_sum = u64::try_from(sum).unwrap_or(0);
        self.follow_children();
    }

    /// Takes the owner that an event of the flow's root tells.
    fn follow_root(&mut self, recorded: &Recorded) -> Change {
        match new_owner(recorded) {
            Some(owner) if recorded.flow == self.flow_id => {
                self.owner = owner.map(Arc::from);
                Change::Changed
            }
            Some(_) | None => Change::None,
        }
    }

    /// Whether it runs nothing itself.
    #[must_use]
    pub const fn is_group(&self) -> bool {
        self.method.is_none()
    }

    /// Whether it is the root of its flow.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.parent_id.is_none()
    }

    /// Drops what the projector never writes from memory: inputs, schemas, params, dependencies.
    pub(crate) fn forget_body(&mut self) {
        self.inputs = EMPTY.clone();
        self.schemas = None;
        self.params = None;
        self.dependencies = Vec::new();
    }

    /// Takes the payloads of a specification, and nothing else of it.
    pub(crate) fn show(&mut self, s: &Specification) {
        self.inputs = s.inputs.clone();
        self.schemas.clone_from(&s.schemas);
        self.params.clone_from(&s.params);
    }

    fn specify(&mut self, s: &Specification) {
        self.show(s);
        self.method = s.method.as_deref().map(Arc::from);
        self.start_at = s.start_at;
        self.deadline = s.deadline;
    }

    fn end(&mut self, status: Status, time: Timestamp) {
        self.status = status;
        self.completed_at = Some(time);
        self.next_attempt_at = None;
        self.suspension = None;
    }

    /// The mean, rounded down, so that only finished children make a whole.
    fn follow_children(&mut self) {
        if self.is_group() && self.status == Status::InProgress {
            let mean = self
                .child_progress_sum
                .checked_div(u64::from(self.child_count))
                .unwrap_or(0);
            self.progress = Progress::from_millionths(u32::try_from(mean).unwrap_or(u32::MAX));
        }
    }
}

/// What a row says of a task that waits for a person.
fn suspension(e: &TaskSuspended, since: Timestamp) -> Payload {
    #[derive(Serialize)]
    struct Shown<'a> {
        suspension_id: SuspensionId,
        question: &'a Payload,
        since: Timestamp,
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    }
    let shown = serde_json::to_string(&Shown {
        suspension_id: e.suspension_id,
        question: &e.question,
        since,
        expires_at: e.expires_at,
    });
    let text = shown.expect("ids, times and JSON can always be written as JSON");
    Payload::parse(&text).expect("it is an object")
}

/// Who owns the flow from this event on (`None` inside: nobody), if it says that.
#[must_use]
pub fn new_owner(recorded: &Recorded) -> Option<Option<&str>> {
    match recorded.event.as_ref() {
        Event::UserChanged(e) if e.task_id == recorded.flow.root() => Some(e.user_id.as_deref()),
        Event::TaskCreated(e) if e.parent_id.is_none() => Some(e.user_id.as_deref()),
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
        | Event::TaskStarted(_)
        | Event::TaskProgressed(_)
        | Event::TaskOutputAppended(_)
        | Event::TaskClaimRejected(_)
        | Event::TaskCompletionRejected(_)
        | Event::TaskSuspended(_)
        | Event::TaskReminded(_)
        | Event::TaskAnswered(_)
        | Event::TaskSuspensionExpired(_)
        | Event::TaskCompleted(_)
        | Event::TaskFailed(_)
        | Event::TaskRequeued(_)
        | Event::TaskDeferred(_)
        | Event::TaskCancelled(_)
        | Event::RunEnded(_)
        | Event::FlowArchived(_) => None,
    }
}

/// The dependency list as JSON text, and back.
pub(crate) fn dependencies_text(list: &[Dependency]) -> String {
    if list.is_empty() {
        return "[]".to_owned();
    }
    serde_json::to_string(list).expect("ids and flags can always be written as JSON")
}

/// The object `{}` without an allocation.
pub(crate) fn empty_payload() -> Payload {
    EMPTY.clone()
}
