//! A flow: one task tree, the aggregate. Commands go in, events or a rejection come out.

pub(crate) mod below;
mod blocking;
mod claim_faults;
mod command;
mod coverage;
pub(crate) mod decide;
mod dialogues;
mod event;
mod evolve;
pub mod explain;
mod indexes;
mod lines;
mod names;
mod outputs;
mod overview;
mod refusal;
mod sound;
mod stage;
pub(crate) mod state;
mod timers;
mod wait_graph;
mod wires;

pub use below::Figures;
pub use command::{
    Append, Archive, CancelRun, Capacity, Claim, Claimable, Command, Done, Execute, Handover,
    Include, Looked, Receive, Respond, Rest, SlotRequest, Suspend, Then, Update, WillRun,
};
pub use coverage::{RunSet, covers};
pub use event::{
    CancelReason, DependenciesChanged, Dependency, Event, FailureReason, FlowArchived,
    LabelsChanged, Lease, MessageReceived, OnAnswer, OnExpiry, OutputPart, PriorityChanged,
    Remarks, RequeueReason, RootAtEnd, RunEnded, RunKind, RunOrigin, RunStarted, RunState,
    Specification, StatusCounts, TaskAnswered, TaskCancelled, TaskClaimRejected, TaskCompleted,
    TaskCompletionRejected, TaskCreated, TaskDeferred, TaskDeleted, TaskFailed, TaskMoved,
    TaskOutputAppended, TaskProgressed, TaskReminded, TaskRenamed, TaskRequeued, TaskRespecified,
    TaskStarted, TaskSuspended, TaskSuspensionExpired, TimerKind, UserChanged, WaitBounds, When,
};
pub use overview::{Counts, OVERVIEW_LISTED_MAX, Overview};
pub(crate) use refusal::report;
pub use refusal::{
    ArchiveFault, Argument, CallTask, Changeable, ClosedBy, Fault, Kind, Outdated, OutputExtent,
    ParentFault, ReferenceAt, Refusal, Refusals, Rejection, RunConflict, SelfDependency,
    TransitionFault, TreeFault, UnknownDependency, UnknownExecutor,
};
pub use stage::RunStage;
pub use state::{Archived, Flow, TaskSummary};
pub use state::{Listens, Turn, Waits};
