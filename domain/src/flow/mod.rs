//! A flow: one task tree, the aggregate. Commands go in, events or a rejection come out.

mod command;
mod coverage;
pub(crate) mod decide;
mod event;
mod evolve;
pub mod explain;
mod indexes;
mod rejection;
mod sound;
pub(crate) mod state;
mod waits;

pub use command::{Archive, Capacity, Claim, Command, Done, Execute, Rest, SlotRequest, Update};
pub use event::{
    CancelReason, DependenciesChanged, Dependency, Event, FailureReason, FlowArchived, Lease,
    PriorityChanged, RequeueReason, RootAtEnd, RunEnded, RunKind, RunStarted, RunState,
    Specification, StatusCounts, TaskCancelled, TaskCompleted, TaskCreated, TaskDeleted,
    TaskFailed, TaskMoved, TaskProgressed, TaskRenamed, TaskRequeued, TaskRespecified, TaskStarted,
    UserChanged,
};
pub use rejection::{Kind, Rejection};
pub use state::{Archived, Flow, TaskSummary};
