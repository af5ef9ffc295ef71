//! The single faults that refusals consist of, each with the tasks and amounts that it concerns.

use crate::task::Status;
use crate::task::wiring::{Unresolved, Unwired};
use crate::{RunId, TaskId, Timestamp, Version, Violation, limits};
use serde::{Deserialize, Serialize};

/// A task that a call writes or changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallTask {
    /// By its index among the tasks of the call, in the order written: for faults that may be found
    /// before the tasks have ids of their own.
    Index(usize),
    /// By its id, stored or made for the call.
    Id(TaskId),
}

/// The member of a call that refers to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferenceAt {
    /// As the parent of a task.
    Parent {
        /// The task that names its parent.
        of: CallTask,
    },
    /// As a dependency of a task.
    Dependency {
        /// The task that depends.
        of: CallTask,
        /// The index in its list of dependencies.
        index: usize,
    },
}

/// A value that is not acceptable in itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Found while reading the value.
    Value(Box<Violation>),
    /// The flow would have more tasks than a flow may have, deleted ones included.
    FlowTooLarge {
        /// How many it would have.
        tasks: usize,
        /// How many it may have.
        tasks_max: usize,
    },
    /// Two tasks of the call have the same id.
    DuplicateId {
        /// The later of them.
        task: CallTask,
        /// The id, or the alias, as text.
        text: String,
    },
    /// A task has or ever had the id that the caller chose.
    IdTaken {
        /// The task of the call.
        task: CallTask,
        /// The id that the caller chose.
        id: TaskId,
    },
    /// Another call took the id while this one was being written.
    IdTakenMeanwhile {
        /// The id that the caller chose.
        id: TaskId,
    },
    /// A task that is to be created and run has the id of a stored one.
    TaskStored {
        /// The task of the call.
        task: CallTask,
        /// The id that the caller chose.
        id: TaskId,
    },
    /// A reference is no id, and only an id can stand there.
    MalformedId {
        /// Where it stands.
        at: ReferenceAt,
        /// As given.
        text: String,
    },
    /// A reference is neither an id nor the alias or name of a task of the call.
    UnknownReference {
        /// Where it stands.
        at: ReferenceAt,
        /// As given.
        text: String,
    },
    /// A reference is a name that several tasks of the call have.
    AmbiguousName {
        /// Where it stands.
        at: ReferenceAt,
        /// As given.
        text: String,
    },
    /// A task names the same dependency twice.
    DuplicateDependency {
        /// Where the later of them stands.
        at: ReferenceAt,
        /// As given.
        text: String,
    },
    /// An input cannot be taken from where `schemas.wiring` says.
    Wiring {
        /// The task whose input it is.
        task: CallTask,
        /// Which, and why.
        unwired: Unwired,
    },
    /// A template in `inputs` that has no value as it is written.
    Template {
        /// The task whose `inputs` hold the template.
        task: CallTask,
        /// Which, and why; its path begins at the task.
        violation: Box<Violation>,
    },
    /// A task that is to be created and run has a deadline in the past.
    NewDeadlinePassed {
        /// The task of the call.
        task: CallTask,
        /// The deadline that has passed.
        deadline: Timestamp,
    },
    /// A task that is to run has a deadline in the past, its own or one of a task above it.
    DeadlinePassed {
        /// The task that is to run.
        task: TaskId,
        /// The deadline that has passed.
        deadline: Timestamp,
    },
    /// A part of an output leaves a gap behind those that are there.
    OutputPartOutOfOrder {
        /// The task whose output it is.
        task: TaskId,
        /// Its place as given.
        number: u32,
        /// The place of the next part.
        next: u32,
    },
    /// An attempt would have more parts of its output than one may have.
    TooManyOutputParts {
        /// The task whose output it is.
        task: TaskId,
        /// How many it would have.
        parts: u32,
        /// How many it may have.
        parts_max: u32,
    },
    /// A part of an output, or all of them, would have more bytes than they may have.
    OutputTooLarge {
        /// The task whose output it is.
        task: TaskId,
        /// What the bytes are counted of.
        extent: OutputExtent,
        /// How many it would have.
        bytes: usize,
        /// How many it may have.
        bytes_max: usize,
    },
    /// A run would have heard more messages than it may.
    TooManyMessages {
        /// The run that the message was for.
        run: RunId,
        /// How many it has heard.
        messages: usize,
        /// How many it may hear.
        messages_max: usize,
    },
    /// A task would have asked more questions in a run than it may.
    TooManyQuestions {
        /// The task that asks.
        task: TaskId,
        /// How many it has asked.
        questions: usize,
        /// How many it may ask.
        questions_max: usize,
    },
}

/// What the bytes of an output are counted of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputExtent {
    /// One part.
    Part,
    /// All parts of an attempt.
    Attempt,
}

impl Fault {
    /// An input of `task` that cannot be taken from where it says.
    #[must_use]
    pub fn unresolved(task: CallTask, unresolved: Unresolved) -> Self {
        match unresolved {
            Unresolved::Wire(unwired) => Self::Wiring { task, unwired },
            Unresolved::Template(violation) => {
                let violation = Box::new(violation);
                Self::Template { task, violation }
            }
        }
    }
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        Self::Value(Box::new(violation))
    }
}

/// Why tasks would not be one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeFault {
    /// A task of the call names another parent than the task that it is written under.
    AgainstNesting {
        /// The task that names another parent.
        task: CallTask,
        /// The parent as given.
        parent: String,
    },
    /// Other tasks of the call join a stored flow, but this one has no parent.
    WithoutParent {
        /// The task that has none.
        task: CallTask,
    },
    /// Several tasks of the call have no parent.
    SeveralRoots {
        /// One of them.
        task: CallTask,
    },
    /// A task of the call is below itself.
    ParentCycle {
        /// The task that would be its own ancestor.
        task: CallTask,
        /// Each task is below the next, the first is repeated at the end.
        cycle: Vec<CallTask>,
    },
    /// A new task without parent, in a flow that has a root.
    SecondRoot {
        /// The new task.
        task: TaskId,
    },
    /// An update would make the task a second root.
    MovedToRoot {
        /// The task that would lose its parent.
        task: TaskId,
    },
    /// An update would put the task below itself.
    MovedBelowItself {
        /// The task that is moved.
        task: TaskId,
        /// Its new parent.
        parent: TaskId,
    },
    /// The tree would be too deep.
    TooDeep {
        /// A task that is new or moved.
        task: TaskId,
        /// How many levels the tree would have.
        levels: usize,
        /// How many it may have.
        levels_max: usize,
    },
}

/// Why a task cannot have the parent that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParentFault {
    /// No such task is stored.
    NotStored {
        /// The parent that was named.
        parent: TaskId,
    },
    /// A call that creates a flow names a stored parent.
    NotInCall {
        /// The new task.
        task: TaskId,
        /// The parent that the new task names.
        parent: TaskId,
    },
    /// The parent of a new task is not in its flow.
    NotInFlow {
        /// The new task.
        task: TaskId,
        /// The parent that the new task names.
        parent: TaskId,
    },
    /// The new parent of a stored task is not in its flow.
    MovedOutOfFlow {
        /// The task that is moved.
        task: TaskId,
        /// Its new parent.
        parent: TaskId,
    },
}

/// A dependency that names no task of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownDependency {
    /// The task that depends.
    pub task: TaskId,
    /// The index in its list of dependencies.
    pub index: usize,
    /// What it names.
    pub dependency: TaskId,
}

/// A dependency of a task on itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfDependency {
    /// The task that would depend on itself.
    pub task: TaskId,
    /// The index in its list of dependencies.
    pub index: usize,
}

/// The member of a call that closes a cycle of tasks that would wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClosedBy {
    /// The dependencies of the first task of the cycle.
    Dependencies,
    /// The dependency of the first task at this index, which names the second.
    Dependency(usize),
    /// The same, where the second task is a group above the first.
    GroupAbove(usize),
    /// The parent that a task gets.
    Parent {
        /// The task that is moved or copied.
        task: TaskId,
    },
    /// The method that a task loses, so that it becomes a group.
    Method {
        /// The task that would become a group.
        task: TaskId,
    },
}

/// A method that no executor has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownExecutor {
    /// A task with the method.
    pub task: TaskId,
    /// The method that no executor has, as the task names it.
    pub method: String,
}

/// The conflict of a command with an active run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunConflict {
    /// It covers a task that would run.
    Covered {
        /// The task that the run covers.
        task: TaskId,
    },
    /// The task that would be changed is in progress.
    InProgress {
        /// The task that is in progress.
        task: TaskId,
        /// When it could be changed.
        changeable: Changeable,
    },
    /// The task would get another parent.
    Moved {
        /// The task that is moved.
        task: TaskId,
        /// The parent that it would get.
        parent: TaskId,
    },
    /// A group would get a method, or a task lose its own.
    MethodChanged {
        /// The task whose `schemas.method` would change.
        task: TaskId,
        /// The method that it would get; `None` for a task that would become a group.
        method: Option<String>,
    },
    /// The task would wait for one that the run does not cover, and that is not completed.
    DependencyNotCovered {
        /// The task that would wait.
        task: TaskId,
        /// The index in its new list of dependencies.
        index: usize,
        /// What it names.
        dependency: TaskId,
    },
}

/// The statuses in which a task can be changed as an update asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Changeable {
    /// Only while it is pending.
    Pending,
    /// While it is pending or failed.
    PendingOrFailed,
    /// While no attempt of its flow is under way.
    Idle,
}

/// Why the status of a task does not allow a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransitionFault {
    /// An update names another status than the task has; no caller sets it.
    StatusGiven {
        /// The task whose status is given.
        task: TaskId,
        /// The status that it has.
        status: Status,
    },
    /// The task cannot be changed (any more).
    NotChangeable {
        /// The task that is to change.
        task: TaskId,
        /// The status that does not allow it.
        status: Status,
        /// When it could be changed.
        changeable: Changeable,
    },
    /// A task that has not failed cannot be retried.
    NotFailed {
        /// The task that was to be retried.
        task: TaskId,
        /// The status that does not allow it.
        status: Status,
    },
    /// A task that has ended cannot be cancelled.
    Ended {
        /// The task that was to be cancelled.
        task: TaskId,
        /// The terminal status that the task has.
        status: Status,
    },
    /// A task that waits for something else than a worker cannot be claimed.
    NotClaimable {
        /// The task that was to be claimed.
        task: TaskId,
        /// The status that does not allow it.
        status: Status,
    },
    /// Nothing in the task is pending or failed.
    NothingToExecute {
        /// The task that was to be executed.
        task: TaskId,
    },
}

/// Why a flow cannot be archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArchiveFault {
    /// It was archived before.
    Already {
        /// Version of the flow.
        version: Version,
    },
    /// It has changed since it was copied.
    Changed {
        /// Version of the flow.
        version: Version,
        /// The version that was copied.
        copied: Version,
    },
    /// A run is active.
    Running,
    /// A task has not ended.
    NotEnded {
        /// Status of one of them.
        status: Status,
    },
}

/// Adds a fault to a list that is not full yet ([`limits::VIOLATIONS_MAX`]), so that hostile input
/// cannot make the refusal larger than itself.
pub(crate) fn report<T>(faults: &mut Vec<T>, fault: T) {
    if faults.len() < limits::VIOLATIONS_MAX {
        faults.push(fault);
    }
}
