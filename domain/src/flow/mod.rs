//! A flow: one task tree, the aggregate. Commands go in, events or a rejection come out.

pub(crate) mod below;
mod command;
mod coverage;
pub(crate) mod decide;
mod event;
mod evolve;
pub mod explain;
mod indexes;
mod lines;
mod refusal;
mod sound;
pub(crate) mod state;
mod waits;
mod wires;

pub use command::{
    Archive, Capacity, Claim, Claimable, Command, Done, Execute, Rest, SlotRequest, Update,
};
pub use coverage::covers;
pub use event::{
    CancelReason, DependenciesChanged, Dependency, Event, FailureReason, FlowArchived, Lease,
    PriorityChanged, RequeueReason, RootAtEnd, RunEnded, RunKind, RunStarted, RunState,
    Specification, StatusCounts, TaskCancelled, TaskClaimRejected, TaskCompleted,
    TaskCompletionRejected, TaskCreated, TaskDeleted, TaskFailed, TaskMoved, TaskProgressed,
    TaskRenamed, TaskRequeued, TaskRespecified, TaskStarted, UserChanged,
};
pub(crate) use refusal::report;
pub use refusal::{
    ArchiveFault, Argument, CallTask, Changeable, Fault, Kind, Outdated, ParentFault, ReferenceAt,
    Refusal, Rejection, RunConflict, SelfDependency, TransitionFault, TreeFault, UnknownDependency,
    UnknownExecutor,
};
pub use state::{Archived, Flow, TaskSummary};
