//! Requests that concern a flow: every command, and the reads that only the owner of a flow can answer.

use super::runs::{CancelRun, FollowUp, StartRun};
use super::webhooks::Callback;
use super::work::{
    ClaimHere, Complete, Fail, Hint, LeaseOf, Release, Renew, Respond, SiblingOutput, Suspend,
};
use super::{History, Target, UseCase};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use taskledger_domain::TaskId;
use taskledger_domain::flow::{Include, Remarks};
use taskledger_domain::task::call::TaskList;
use taskledger_domain::task::spec::Updates;

/// A request that may have to travel to the owner of a flow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// Create tasks.
    Create(TaskList),
    /// Run new or stored tasks.
    Execute(Execute),
    /// Begin a run by a message.
    StartRun(Box<StartRun>),
    /// Cancel a run.
    CancelRun(CancelRun),
    /// Say something to a run.
    FollowUp(Box<FollowUp>),
    /// Retry a failed task; the pending tasks that depend on it follow and the failed groups around it.
    Retry(Retry),
    /// Change a task.
    Update(Box<Update>),
    /// Delete a pending task.
    Delete(Delete),
    /// Cancel a pending or running task.
    Cancel(Cancel),
    /// Copy a task.
    Copy(Copy),
    /// Say why a task stands as it does.
    Explain(TaskId),
    /// Say how far everything below a task has come.
    Overview(TaskId),
    /// Read the events of a task or a flow.
    History(History),
    /// Begin an attempt of a task for a worker.
    Claim(ClaimHere),
    /// Extend a lease.
    Renew(Renew),
    /// Complete a task that a worker holds.
    Complete(Complete),
    /// Fail an attempt of a worker.
    Fail(Fail),
    /// Give a task back.
    Release(Release),
    /// Have a task wait for a person.
    Suspend(Suspend),
    /// Answer what a task has asked.
    Respond(Respond),
    /// Read the result of a task beside one that a worker holds.
    SiblingOutput(SiblingOutput),
    /// Say by which lease a worker holds a task.
    Lease(LeaseOf),
    /// Know that another node has tasks for workers.
    Hint(Hint),
    /// Say which workers hold tasks of this node.
    HeldHere,
    /// Say which tasks of this node a worker of the caller's principal holds.
    TasksHeld(Arc<str>),
    /// Count the tasks of this node that are for workers.
    MethodFigures,
}

impl Request {
    /// What is asked for.
    #[must_use]
    pub const fn use_case(&self) -> UseCase {
        match self {
            Self::Create(_) => UseCase::CreateTasks,
            Self::Execute(_) => UseCase::ExecuteTasks,
            Self::StartRun(_) => UseCase::StartRun,
            Self::CancelRun(_) => UseCase::CancelRun,
            Self::FollowUp(_) => UseCase::MessageRun,
            Self::Retry(_) => UseCase::RetryTask,
            Self::Update(_) => UseCase::UpdateTask,
            Self::Delete(_) => UseCase::DeleteTasks,
            Self::Cancel(_) => UseCase::CancelTasks,
            Self::Copy(_) => UseCase::CopyTasks,
            Self::Explain(_) => UseCase::ExplainTask,
            Self::Overview(_) => UseCase::ReadProgress,
            Self::History(_) => UseCase::ReadHistory,
            Self::Claim(_) => UseCase::ClaimTasks,
            Self::Renew(_) => UseCase::RenewLease,
            Self::Complete(_) => UseCase::CompleteTask,
            Self::Fail(_) => UseCase::FailTask,
            Self::Release(_) => UseCase::ReleaseTask,
            Self::Suspend(_) => UseCase::SuspendTask,
            Self::Respond(_) => UseCase::RespondTask,
            Self::SiblingOutput(_) => UseCase::ReadSibling,
            Self::Lease(_) => UseCase::RenewLease,
            Self::Hint(_) => UseCase::ClaimTasks,
            Self::HeldHere => UseCase::ListWorkers,
            // A step of what a worker says of its task.
            Self::TasksHeld(_) => UseCase::RenewLease,
            Self::MethodFigures => UseCase::ListMethods,
        }
    }

    /// How many new tasks it holds; 1 for a request without any. Cost: O(1).
    #[must_use]
    pub fn tasks(&self) -> usize {
        match self {
            Self::Create(list)
            | Self::Execute(Execute {
                target: Target::New(list),
                ..
            }) => list.len(),
            Self::StartRun(start) => match &start.target {
                Target::New(list) => list.len(),
                Target::Stored(_) => 1,
            },
            Self::Execute(_)
            | Self::Retry(_)
            | Self::CancelRun(_)
            | Self::FollowUp(_)
            | Self::Update(_)
            | Self::Delete(_)
            | Self::Cancel(_)
            | Self::Copy(_)
            | Self::Explain(_)
            | Self::Overview(_)
            | Self::History(_)
            | Self::Claim(_)
            | Self::Renew(_)
            | Self::Complete(_)
            | Self::Fail(_)
            | Self::Release(_)
            | Self::Suspend(_)
            | Self::Respond(_)
            | Self::SiblingOutput(_)
            | Self::Lease(_)
            | Self::Hint(_)
            | Self::HeldHere
            | Self::TasksHeld(_)
            | Self::MethodFigures => 1,
        }
    }

    /// Whether it may change something: then it is not repeated unless it carries an idempotency key.
    #[must_use]
    pub const fn changes(&self) -> bool {
        match self {
            Self::Create(_)
            | Self::Execute(_)
            | Self::StartRun(_)
            | Self::CancelRun(_)
            | Self::Retry(_)
            | Self::Update(_)
            | Self::Delete(_)
            | Self::Cancel(_)
            | Self::Copy(_)
            | Self::Claim(_)
            | Self::Respond(_) => true,
            // What a worker says of an attempt twice is heard once, and so is a message.
            Self::FollowUp(_)
            | Self::Explain(_)
            | Self::Overview(_)
            | Self::History(_)
            | Self::Renew(_)
            | Self::Complete(_)
            | Self::Fail(_)
            | Self::Release(_)
            | Self::Suspend(_)
            | Self::SiblingOutput(_)
            | Self::Lease(_)
            | Self::Hint(_)
            | Self::HeldHere
            | Self::TasksHeld(_)
            | Self::MethodFigures => false,
        }
    }
}

/// When it is looked up whether an id that the caller chose for a new task was given before. It is refused in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdCheck {
    /// Before the tasks are put together, so that the answer has what else is wrong with them too.
    First,
    /// When they are stored, which takes no look of its own.
    Stored,
}

/// Runs tasks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execute {
    /// What to run.
    pub target: Target,
    /// Whether tasks may wait for an executor that does not exist yet.
    pub allow_unknown_executors: bool,
    /// Milliseconds that they wait.
    pub executor_wait_ms: u64,
    /// Which failed tasks of a stored task run again.
    pub include: Include,
    /// Of new tasks.
    pub id_check: IdCheck,
    /// Where the caller wants to be told of the run.
    #[serde(with = "super::callback")]
    pub callback: Option<Callback>,
}

/// Runs a failed task again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// A failed task.
    pub task: TaskId,
    /// Which other failed tasks run again.
    pub include: Include,
    /// Where the caller wants to be told of the run.
    #[serde(with = "super::callback")]
    pub callback: Option<Callback>,
}

/// Changes a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// A stored task.
    pub task: TaskId,
    /// What is changed.
    pub updates: Updates,
}

/// Deletes a pending task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// A pending task.
    pub task: TaskId,
    /// Whether everything below it goes too.
    pub cascade: bool,
}

/// Cancels a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// A pending or running task.
    pub task: TaskId,
    /// Whether everything below a task with a method is cancelled too.
    pub cascade: bool,
    /// The text of `error`; absent for the default.
    pub reason: Option<String>,
    /// What the worker of the task says beside it, if it is its worker that gives it up.
    pub remarks: Option<Remarks>,
}

/// Copies a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// A stored task.
    pub task: TaskId,
    /// Whether everything that a run of it would cover is copied too.
    pub copy_children: bool,
    /// What the copy hangs under; absent for a flow of its own.
    pub parent: Option<TaskId>,
}
