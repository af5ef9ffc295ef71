//! The events. An event, once released, keeps its meaning for ever; its stored form is versioned in `codec`. Events
//! carry intent: each says what changed and why, never "the task was updated".

mod archived;
mod deferred;
mod failure;
mod message;
mod output;
mod rejected;
mod remarks;
mod run_ended;
mod specification;
mod suspended;

pub use archived::FlowArchived;
pub use deferred::{TaskDeferred, TimerKind};
pub use failure::FailureReason;
pub use message::{MessageReceived, RunOrigin};
pub use output::{OutputPart, TaskOutputAppended};
pub use rejected::{TaskClaimRejected, TaskCompletionRejected};
pub use remarks::Remarks;
pub use run_ended::{RootAtEnd, RunEnded, RunState, StatusCounts};
pub use specification::{Dependency, Specification, When};
pub use suspended::{
    OnAnswer, OnExpiry, TaskAnswered, TaskReminded, TaskSuspended, TaskSuspensionExpired,
};

use crate::contract::Breach;
use crate::task::{Labels, Priority, Progress};
use crate::{CallbackId, LeaseId, Payload, RunId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// The events of a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A task was added.
    TaskCreated(TaskCreated),
    /// A task got another name.
    TaskRenamed(TaskRenamed),
    /// A task got another priority.
    PriorityChanged(PriorityChanged),
    /// A task got other labels.
    LabelsChanged(LabelsChanged),
    /// A task got another user, or none.
    UserChanged(UserChanged),
    /// A task got another parent in the same flow.
    TaskMoved(TaskMoved),
    /// A task waits for other tasks than before.
    DependenciesChanged(DependenciesChanged),
    /// What a task executes changed.
    TaskRespecified(TaskRespecified),
    /// A pending task was removed from the flow.
    TaskDeleted(TaskDeleted),
    /// The execution of a set of tasks began.
    RunStarted(RunStarted),
    /// Whoever began a run said something more. What follows from it stands in the same append.
    MessageReceived(MessageReceived),
    /// An attempt began (for a group: its run reached it).
    TaskStarted(TaskStarted),
    /// An attempt reported how far it is.
    TaskProgressed(TaskProgressed),
    /// An attempt has made a part of its output.
    TaskOutputAppended(TaskOutputAppended),
    /// A claim was refused, because inputs of the task cannot be resolved, or not yet. The task stays as it is.
    TaskClaimRejected(TaskClaimRejected),
    /// A result of an attempt outside the server was refused, because it is not what the task declares. The
    /// attempt goes on.
    TaskCompletionRejected(TaskCompletionRejected),
    /// A task waits for a person from now on, without lease and slot. It stays in progress.
    TaskSuspended(TaskSuspended),
    /// The person was reminded.
    TaskReminded(TaskReminded),
    /// The person answered. What follows from it stands in the same append.
    TaskAnswered(TaskAnswered),
    /// Nobody answered in time. What follows from it stands in the same append.
    TaskSuspensionExpired(TaskSuspensionExpired),
    /// An attempt ended with a result.
    TaskCompleted(TaskCompleted),
    /// An attempt ended with an error.
    TaskFailed(TaskFailed),
    /// A failed task became pending again.
    TaskRequeued(TaskRequeued),
    /// A task that is ready waits for the time from which on it may start.
    TaskDeferred(TaskDeferred),
    /// A task was stopped for good.
    TaskCancelled(TaskCancelled),
    /// A run ended: nothing of it can move any more.
    RunEnded(RunEnded),
    /// Everything before this event was copied to an archive and may be gone from the log. Always the
    /// last event of its stream.
    FlowArchived(FlowArchived),
}

impl Event {
    /// The task that the event is about; `None` for `RunStarted`, `MessageReceived`, `RunEnded` and `FlowArchived`.
    #[must_use]
    pub const fn task_id(&self) -> Option<TaskId> {
        Some(match self {
            Self::TaskCreated(e) => e.task_id,
            Self::TaskRenamed(e) => e.task_id,
            Self::PriorityChanged(e) => e.task_id,
            Self::LabelsChanged(e) => e.task_id,
            Self::UserChanged(e) => e.task_id,
            Self::TaskMoved(e) => e.task_id,
            Self::DependenciesChanged(e) => e.task_id,
            Self::TaskRespecified(e) => e.task_id,
            Self::TaskDeleted(e) => e.task_id,
            Self::TaskStarted(e) => e.task_id,
            Self::TaskProgressed(e) => e.task_id,
            Self::TaskOutputAppended(e) => e.task_id,
            Self::TaskClaimRejected(e) => e.task_id,
            Self::TaskCompletionRejected(e) => e.task_id,
            Self::TaskSuspended(e) => e.task_id,
            Self::TaskReminded(e) => e.task_id,
            Self::TaskAnswered(e) => e.task_id,
            Self::TaskSuspensionExpired(e) => e.task_id,
            Self::TaskCompleted(e) => e.task_id,
            Self::TaskFailed(e) => e.task_id,
            Self::TaskRequeued(e) => e.task_id,
            Self::TaskDeferred(e) => e.task_id,
            Self::TaskCancelled(e) => e.task_id,
            Self::RunStarted(_)
            | Self::MessageReceived(_)
            | Self::RunEnded(_)
            | Self::FlowArchived(_) => return None,
        })
    }

    /// The task whose user it says, and who that is from now on; `None`: it says nothing of users.
    #[must_use]
    pub fn user_said(&self) -> Option<(TaskId, Option<&str>)> {
        match self {
            Self::TaskCreated(e) => Some((e.task_id, e.user_id.as_deref())),
            Self::UserChanged(e) => Some((e.task_id, e.user_id.as_deref())),
            Self::TaskRenamed(_)
            | Self::PriorityChanged(_)
            | Self::LabelsChanged(_)
            | Self::TaskMoved(_)
            | Self::DependenciesChanged(_)
            | Self::TaskRespecified(_)
            | Self::TaskDeleted(_)
            | Self::RunStarted(_)
            | Self::MessageReceived(_)
            | Self::TaskStarted(_)
            | Self::TaskProgressed(_)
            | Self::TaskOutputAppended(_)
            | Self::TaskClaimRejected(_)
            | Self::TaskCompletionRejected(_)
            | Self::TaskSuspended(_)
            | Self::TaskReminded(_)
            | Self::TaskAnswered(_)
            | Self::TaskSuspensionExpired(_)
            | Self::TaskCompleted(_)
            | Self::TaskFailed(_)
            | Self::TaskRequeued(_)
            | Self::TaskDeferred(_)
            | Self::TaskCancelled(_)
            | Self::RunEnded(_)
            | Self::FlowArchived(_) => None,
        }
    }
}

/// See [`Event::TaskCreated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCreated {
    /// The new task.
    pub task_id: TaskId,
    /// Place in the order of creation within the flow, from 0; never reused.
    pub ordinal: u32,
    /// Absent for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<TaskId>,
    /// Free text.
    pub name: String,
    /// The user, inherited from the parent when the caller gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Urgency.
    pub priority: Priority,
    /// Tasks that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// What it executes.
    pub specification: Specification,
    /// The task that it was copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_from: Option<TaskId>,
    /// The run that it joins because a running run covers its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The labels that lists filter by.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// See [`Event::TaskRenamed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRenamed {
    /// In any status.
    pub task_id: TaskId,
    /// Its new name.
    pub name: String,
}

/// See [`Event::PriorityChanged`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PriorityChanged {
    /// In any status.
    pub task_id: TaskId,
    /// Its new priority.
    pub priority: Priority,
}

/// See [`Event::LabelsChanged`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelsChanged {
    /// In any status.
    pub task_id: TaskId,
    /// All its labels from now on; absent for none.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// See [`Event::UserChanged`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserChanged {
    /// Pending at that moment.
    pub task_id: TaskId,
    /// Its new user; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

/// See [`Event::TaskMoved`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskMoved {
    /// Pending at that moment.
    pub task_id: TaskId,
    /// Its new parent.
    pub parent_id: TaskId,
}

/// See [`Event::DependenciesChanged`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DependenciesChanged {
    /// Pending or failed at that moment.
    pub task_id: TaskId,
    /// The whole new list.
    pub dependencies: Vec<Dependency>,
}

/// See [`Event::TaskRespecified`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRespecified {
    /// Pending or failed at that moment.
    pub task_id: TaskId,
    /// The whole new specification.
    pub specification: Specification,
    /// References of it to results that are there already and have no value for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

/// See [`Event::TaskDeleted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDeleted {
    /// Pending at that moment. Its id is not used again.
    pub task_id: TaskId,
}

/// The kinds of calls that begin a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// `tasks.execute`.
    Execute,
    /// `tasks.retry`.
    Retry,
}

/// Bounds of waits that nothing else bounds, so that a run ends. The server's settings when the run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WaitBounds {
    /// Milliseconds within which a task must have started once it is ready, if it has no `schedule_to_start_seconds`.
    #[serde(default)]
    pub start_ms: Option<u64>,
    /// Milliseconds within which a question must have been answered that has no time-out.
    #[serde(default)]
    pub answer_ms: Option<u64>,
}

impl WaitBounds {
    /// Whether every wait may last for ever.
    #[must_use]
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// See [`Event::RunStarted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The new run.
    pub run_id: RunId,
    /// The task that was asked for: the run's root.
    pub task_id: TaskId,
    /// What began it.
    pub kind: RunKind,
    /// The covered tasks as ranges of ordinals, both ends included, ascending.
    pub covers: Vec<(u32, u32)>,
    /// Whether tasks may wait for an executor that does not exist yet.
    pub allow_unknown_executors: bool,
    /// How long they wait, from the time at which they became ready.
    pub executor_wait_ms: u64,
    /// How long its tasks wait that do not say so themselves.
    #[serde(default, skip_serializing_if = "WaitBounds::are_none")]
    pub wait_bounds: WaitBounds,
    /// Where its caller wants to be told of it: a name for what is kept beside the log, since events
    /// hold no secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<CallbackId>,
    /// The message that it was begun by; absent when no message was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<RunOrigin>>,
}

/// See [`Event::TaskStarted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStarted {
    /// In progress from now on.
    pub task_id: TaskId,
    /// From 1, never restarts.
    pub attempt: u32,
    /// The run that started it.
    pub run_id: RunId,
    /// Who holds it, when it runs outside the server; absent for an attempt that lives and dies with the
    /// server's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
}

/// The right of a worker outside the server to carry out an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// What the worker's outcomes must present. A name and not a secret: events hold none.
    pub id: LeaseId,
    /// The worker, by its name.
    pub worker: String,
    /// The principal that claimed it, who alone may use the lease; absent: anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Until when the lease holds at least. Renewals, which are not events, make it hold longer.
    pub expires_at: Timestamp,
    /// Milliseconds that the attempt may take, whoever renews the lease; absent for no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Milliseconds that the worker has to stop after a cancel; absent for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_grace_ms: Option<u64>,
}

/// See [`Event::TaskProgressed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskProgressed {
    /// In progress.
    pub task_id: TaskId,
    /// The attempt that reported.
    pub attempt: u32,
    /// How far it is.
    pub progress: Progress,
    /// What its worker says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What its worker says beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remarks: Option<Remarks>,
}

/// See [`Event::TaskCompleted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCompleted {
    /// Completed from now on, for good.
    pub task_id: TaskId,
    /// The attempt that ended.
    pub attempt: u32,
    /// What it returned.
    pub result: Payload,
    /// What its worker says beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remarks: Option<Remarks>,
    /// Parts of its output that were appended before: the result is the last one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parts: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(parts: &u32) -> bool {
    *parts == 0
}

/// See [`Event::TaskFailed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFailed {
    /// Failed from now on, unless a `TaskRequeued` follows.
    pub task_id: TaskId,
    /// The attempt that ended.
    pub attempt: u32,
    /// Never empty.
    pub error: String,
    /// What kind of failure it is.
    pub reason: FailureReason,
    /// How far the attempt had come. Of a group the mean of its children's.
    pub progress: Progress,
    /// True when a `TaskRequeued` of the same append follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub will_retry: bool,
    /// The contract that the attempt did not keep, where that is why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breach: Option<Box<Breach>>,
    /// What its worker says beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remarks: Option<Remarks>,
}

/// Why a failed task became pending again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequeueReason {
    /// Its retry policy has attempts left.
    Retry,
    /// A new run covers it.
    Rerun,
    /// The server stopped while it ran, or the lease of its worker ended, and it may run again.
    Interrupted,
    /// Its worker gave it back.
    Released,
    /// What it had asked was answered.
    Answered,
}

/// See [`Event::TaskRequeued`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRequeued {
    /// Pending from now on.
    pub task_id: TaskId,
    /// The run that will start it.
    pub run_id: RunId,
    /// What made it pending again.
    pub reason: RequeueReason,
    /// Not before this time; absent for at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
}

/// Why a task was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// Somebody asked for it.
    Requested,
    /// Its deadline passed before it could start, or start again.
    Deadline,
}

/// See [`Event::TaskCancelled`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCancelled {
    /// Cancelled from now on, for good.
    pub task_id: TaskId,
    /// The attempt that was under way, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Never empty.
    pub error: String,
    /// Whether somebody asked for it, or a deadline passed.
    pub reason: CancelReason,
    /// How far the attempt had come.
    #[serde(default, skip_serializing_if = "Progress::is_zero")]
    pub progress: Progress,
    /// What its worker says beside it, if it was its worker that gave it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remarks: Option<Remarks>,
}
