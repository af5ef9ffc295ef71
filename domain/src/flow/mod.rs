//! A flow: one task tree, the aggregate.

mod event;

pub use event::{
    CancelReason, DependenciesChanged, Dependency, Event, FailureReason, PriorityChanged,
    RequeueReason, RunEnded, RunKind, RunStarted, RunState, Specification, StatusCounts,
    TaskCancelled, TaskCompleted, TaskCreated, TaskDeleted, TaskFailed, TaskMoved, TaskProgressed,
    TaskRenamed, TaskRequeued, TaskRespecified, TaskStarted, UserChanged,
};
