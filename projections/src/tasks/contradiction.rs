//! Reasons why an event cannot be folded: it contradicts those before it.

use taskledger_domain::{FlowId, RunId, TaskId};

/// What an event says that cannot be, given the events before it. The log is damaged, or a rule of the
/// fold is wrong: the operator is told, and nobody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Contradiction {
    /// It belongs to a flow that no event has begun.
    #[error("flow `{0}` does not exist")]
    NoFlow(FlowId),
    /// It creates a second root.
    #[error("flow `{0}` has another root")]
    SecondRoot(FlowId),
    /// It is kept as a creation and creates nothing.
    #[error("not the creation of a task")]
    NoCreation,
    /// It changes a task and names none.
    #[error("an event without a task")]
    NoTaskNamed,
    /// It is about a task that was not created, or was deleted.
    #[error("task `{0}` does not exist")]
    NoTask(TaskId),
    /// It creates a task that is there.
    #[error("task `{0}` exists")]
    TaskExists(TaskId),
    /// It is about a task of another flow.
    #[error("task `{0}` is of another flow")]
    ForeignTask(TaskId),
    /// It puts a task below one of another flow.
    #[error("parent `{0}` is of another flow")]
    ForeignParent(TaskId),
    /// It deletes a task that is gone.
    #[error("task `{0}` is deleted twice")]
    DeletedTwice(TaskId),
    /// It starts a run that was started before.
    #[error("run `{0}` exists")]
    RunExists(RunId),
    /// It ends a run that does not run.
    #[error("run `{0}` is not running")]
    RunNotRunning(RunId),
}
