//! Refusals: reasons that the caller can mend, as data. A refused command changes nothing.
//!
//! A refusal holds ids, statuses, amounts and limits, so that it can be stored, sent to another node
//! and worded by each door in the terms of its callers. It holds no text for people; the exception
//! is [`Fault::Value`], which comes from reading a value and says in words what is wrong with it.

mod faults;

pub(crate) use faults::report;
pub use faults::{
    ArchiveFault, CallTask, Changeable, ClosedBy, Fault, OutputExtent, ParentFault, ReferenceAt,
    RunConflict, SelfDependency, TransitionFault, TreeFault, UnknownDependency, UnknownExecutor,
};

use super::state::Archived;
use crate::task::Status;
use crate::{FlowId, Position, RunId, SuspensionId, TaskId, Timestamp, limits};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a command was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rejection {
    /// The caller can mend it.
    Refused(Box<Refusals>),
    /// What the command rests on has changed since it was made. No caller sees it.
    Outdated(Outdated),
}

/// The changes of the state that made a command outdated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outdated {
    /// The outcome belongs to an attempt that is no longer the current one. For the engine.
    Attempt,
    /// The task has another specification than the command was built on: build it again. For the
    /// application.
    Specification,
    /// The flow is of another user than was noted before the command was sent: note it again. For the application.
    Owner,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(refusals) => refusals.first.kind().as_str(),
            Self::Outdated(Outdated::Attempt) => "the attempt is no longer the current one",
            Self::Outdated(Outdated::Specification) => "the task has another specification by now",
            Self::Outdated(Outdated::Owner) => "the flow has another owner by now",
        })
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal.into()))
    }
}

impl From<Refusals> for Rejection {
    fn from(refusals: Refusals) -> Self {
        Self::Refused(Box::new(refusals))
    }
}

impl From<Outdated> for Rejection {
    fn from(outdated: Outdated) -> Self {
        Self::Outdated(outdated)
    }
}

/// The family of a refusal, in order of precedence when several apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// No such task, or not for this caller.
    NotFound,
    /// A value is not acceptable in itself.
    Invalid,
    /// The tasks of the call are no tree.
    InvalidTree,
    /// A task cannot have the parent that it names.
    InvalidParent,
    /// A dependency names no task of the flow.
    InvalidDependency,
    /// Dependencies would close a cycle.
    Circular,
    /// No executor has the task's method.
    ExecutorNotFound,
    /// An active run covers the task.
    AlreadyExecuting,
    /// The status of the task or flow does not allow it.
    InvalidTransition,
    /// The task cannot be deleted.
    CannotDelete,
}

impl Kind {
    /// What it means, for logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "task not found",
            Self::Invalid => "invalid value",
            Self::InvalidTree => "invalid tree",
            Self::InvalidParent => "invalid parent",
            Self::InvalidDependency => "invalid dependency",
            Self::Circular => "circular dependency",
            Self::ExecutorNotFound => "executor not found",
            Self::AlreadyExecuting => "already executing",
            Self::InvalidTransition => "invalid transition",
            Self::CannotDelete => "cannot be deleted",
        }
    }
}

/// Everything for which a command is refused: the first decides the code of the answer, the others are told with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals {
    /// The one that comes first in the order of [`Kind`].
    pub first: Refusal,
    /// The others in the same order, each variant at most once but for cycles.
    pub others: Vec<Refusal>,
}

impl Refusals {
    /// In the order of precedence, with faults of one variant in one refusal; `None` of an empty list.
    #[must_use]
    pub fn of(all: impl IntoIterator<Item = Refusal>) -> Option<Self> {
        let mut found: Vec<Refusal> = Vec::new();
        for refusal in all {
            let rest = found
                .iter_mut()
                .try_fold(refusal, |refusal, other| other.absorb(refusal).ok_or(()));
            found.extend(rest.ok());
        }
        found.sort_by_key(Refusal::kind);
        let mut found = found.into_iter();
        let first = found.next()?;
        let others = found.collect();
        Some(Self { first, others })
    }
}

impl IntoIterator for Refusals {
    type Item = Refusal;
    type IntoIter = std::iter::Chain<std::iter::Once<Refusal>, std::vec::IntoIter<Refusal>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.others)
    }
}

impl From<Refusal> for Refusals {
    fn from(first: Refusal) -> Self {
        let others = Vec::new();
        Self { first, others }
    }
}

/// Why a caller's command or query was refused. Lists of faults are never empty, and the rules stop
/// at [`limits::VIOLATIONS_MAX`]; lists of ids hold at most [`Refusal::IDS_MAX`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// No such task, or not for this caller.
    TaskNotFound {
        /// The id that names nothing.
        task: TaskId,
        /// What it was given as.
        argument: Argument,
    },
    /// The task's flow has left the log.
    TaskArchived {
        /// The task that a call names.
        task: TaskId,
        /// What it was given as.
        argument: Argument,
        /// When the flow was archived.
        at: Timestamp,
        /// The archive's file that holds it.
        file: String,
    },
    /// No such flow.
    FlowNotFound {
        /// The id that names nothing.
        flow: FlowId,
    },
    /// Values that are not acceptable in themselves.
    Invalid(Vec<Fault>),
    /// The tasks would not be one tree.
    InvalidTree(Vec<TreeFault>),
    /// Tasks cannot have the parents that they name.
    InvalidParent(Vec<ParentFault>),
    /// Dependencies name no tasks of the flow.
    DependenciesNotFound(Vec<UnknownDependency>),
    /// Tasks depend on themselves.
    SelfDependency(Vec<SelfDependency>),
    /// Several tasks would wait for each other: for their dependencies, or as groups for tasks below them.
    CircularDependency {
        /// Each task waits for the next, the first is repeated at the end. Whole, unless it is longer
        /// than any cycle that one call can write ([`Refusal::CYCLE_IDS_MAX`]).
        /// spec: semantics / Trees and flows
        cycle: Vec<TaskId>,
        /// How many tasks the cycle has.
        len: usize,
        /// What in the call closes it.
        closed_by: ClosedBy,
        /// Whether a group of the cycle waits for a task below it.
        has_group: bool,
    },
    /// No executor has the methods of these tasks.
    ExecutorsNotFound(Vec<UnknownExecutor>),
    /// An active run covers tasks that the command would run or change.
    AlreadyExecuting(Vec<RunConflict>),
    /// The status of the task does not allow the command.
    InvalidTransition(Vec<TransitionFault>),
    /// The task does not wait for this answer.
    NotSuspended {
        /// The task that was to be answered for.
        task: TaskId,
        /// What it does wait for.
        suspension: Option<SuspensionId>,
    },
    /// No such run, or not for this caller.
    RunNotFound {
        /// The id that names nothing.
        run: RunId,
    },
    /// The run has ended: nothing comes after that.
    RunOver {
        /// The run that was named.
        run: RunId,
    },
    /// Nobody waits for what is said to the run.
    RunNotWaiting {
        /// The run that was named.
        run: RunId,
        /// The task that was named, or waited a moment ago.
        task: Option<TaskId>,
    },
    /// The task cannot be deleted, because it is no longer pending.
    DeleteNotPending {
        /// The task that was to be deleted.
        task: TaskId,
        /// The status that does not allow it.
        status: Status,
    },
    /// The task cannot be deleted, because of other tasks.
    DeleteHindered {
        /// The task that was to be deleted.
        task: TaskId,
        /// Its children, when they were not to be deleted with it.
        children: Vec<TaskId>,
        /// Tasks outside what was to be deleted that depend on something in it.
        dependents: Vec<TaskId>,
        /// Tasks below it that are no longer pending.
        not_pending: Vec<TaskId>,
    },
    /// The flow cannot be archived.
    NotArchivable(ArchiveFault),
    /// The task did not exist at the moment that was asked for: it came later.
    NotCreatedYet {
        /// The task that came later.
        task: TaskId,
        /// When it was created.
        created_at: Timestamp,
        /// The place in the log of the event that created it.
        position: Position,
    },
}

/// The parameter in which a call names a stored task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Argument {
    /// The task that the call is about.
    Task,
    /// The parent whose children are asked for.
    Parent,
    /// The task that a stream follows.
    Followed,
    /// The run whose progress is asked for, by its root.
    Root,
}

impl Refusal {
    /// Ids of a cycle listed in a refusal: the tasks of a call, and the first again.
    pub const CYCLE_IDS_MAX: usize = limits::TASKS_PER_CALL_MAX + 1;
    /// Ids listed in a refusal, so that its answer stays small.
    pub const IDS_MAX: usize = 1000;

    /// Whether a task was refused because its id has been given before.
    #[must_use]
    pub fn is_of_taken_id(&self) -> bool {
        let Self::Invalid(faults) = self else {
            return false;
        };
        faults.iter().any(|fault| {
            matches!(
                fault,
                Fault::IdTaken { .. } | Fault::IdTakenMeanwhile { .. } | Fault::TaskStored { .. }
            )
        })
    }

    /// The family, by which several refusals of one command have an order.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::TaskNotFound { .. }
            | Self::TaskArchived { .. }
            | Self::FlowNotFound { .. }
            | Self::NotCreatedYet { .. }
            | Self::RunNotFound { .. } => Kind::NotFound,
            Self::Invalid(_) => Kind::Invalid,
            Self::InvalidTree(_) => Kind::InvalidTree,
            Self::InvalidParent(_) => Kind::InvalidParent,
            Self::DependenciesNotFound(_) => Kind::InvalidDependency,
            Self::SelfDependency(_) | Self::CircularDependency { .. } => Kind::Circular,
            Self::ExecutorsNotFound(_) => Kind::ExecutorNotFound,
            Self::AlreadyExecuting(_) => Kind::AlreadyExecuting,
            Self::InvalidTransition(_)
            | Self::NotSuspended { .. }
            | Self::RunOver { .. }
            | Self::RunNotWaiting { .. }
            | Self::NotArchivable(_) => Kind::InvalidTransition,
            Self::DeleteNotPending { .. } | Self::DeleteHindered { .. } => Kind::CannotDelete,
        }
    }

    /// Unknown task.
    #[must_use]
    pub const fn not_found(argument: Argument, task: TaskId) -> Self {
        Self::TaskNotFound { task, argument }
    }

    /// A task of a flow that was archived: as unknown as others, with where to look.
    #[must_use]
    pub fn archived(argument: Argument, task: TaskId, archived: &Archived) -> Self {
        Self::TaskArchived {
            task,
            argument,
            at: archived.at,
            file: archived.copy.file.clone(),
        }
    }

    /// A refusal of values.
    #[must_use]
    pub fn invalid(faults: impl IntoIterator<Item = impl Into<Fault>>) -> Self {
        Self::Invalid(faults.into_iter().map(Into::into).collect())
    }

    /// Takes the faults of another refusal of the same variant; gives back one that it cannot take.
    fn absorb(&mut self, other: Self) -> Option<Self> {
        fn join<T>(faults: &mut Vec<T>, more: Vec<T>) {
            let room = limits::VIOLATIONS_MAX.saturating_sub(faults.len());
            faults.extend(more.into_iter().take(room));
        }
        match (self, other) {
            (Self::Invalid(faults), Self::Invalid(more)) => join(faults, more),
            (Self::InvalidTree(faults), Self::InvalidTree(more)) => join(faults, more),
            (Self::InvalidParent(faults), Self::InvalidParent(more)) => join(faults, more),
            (Self::DependenciesNotFound(faults), Self::DependenciesNotFound(more)) => {
                join(faults, more);
            }
            (Self::AlreadyExecuting(faults), Self::AlreadyExecuting(more)) => join(faults, more),
            (Self::InvalidTransition(faults), Self::InvalidTransition(more)) => join(faults, more),
            (_, other) => return Some(other),
        }
        None
    }

    /// A cycle of tasks, each of which waits for the next, without the first at the end.
    pub(crate) fn cycle(tasks: &[TaskId], closed_by: ClosedBy, has_group: bool) -> Self {
        let closed = tasks.iter().chain(tasks.first()).copied();
        Self::CircularDependency {
            cycle: closed.take(Self::CYCLE_IDS_MAX).collect(),
            len: tasks.len(),
            closed_by,
            has_group,
        }
    }
}
