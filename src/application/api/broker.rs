//! What the agent broker tells requesters about the tasks that they have published.

pub use crate::application::inbox::Inbox;
pub use crate::application::published_ids::{KEY_BYTES, PublishedIds};
use std::sync::Arc;
pub use taskledger_broker::{ID_BYTES_MAX, MEMBER, NAMES_MAX, Outcome};
use taskledger_domain::flow::Remarks;
use taskledger_domain::task::Progress;
use taskledger_domain::{FlowId, Payload, TaskId, Timestamp};

/// The end of a task, as its event describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// How.
    pub end: End,
    /// The worker of its last attempt; `None`: it ran in the server, or never.
    pub worker: Option<Arc<str>>,
    /// What its worker said beside it.
    pub remarks: Option<Remarks>,
}

/// One of the ends of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// It completed, with this result.
    Completed(Payload),
    /// With the reason, never empty.
    Failed(Arc<str>),
    /// Its deadline passed, waiting or under way; with the words for it.
    TooLate(Arc<str>),
    /// With the reason, never empty.
    Cancelled(Arc<str>),
    /// It cannot run any more unless somebody steps in; it is `pending` still.
    Blocked(Blocked),
}

/// Why a task cannot run any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// What the requester calls the task that it would need, or else its id; `None`: nobody knows any more.
    pub by: Option<Arc<str>>,
    /// What has become of that.
    pub how: Hindrance,
}

/// The end of a task that another one waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The run has ended without it.
    NotRun,
}

/// An attempt of a task of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The flow that the task belongs to.
    pub flow: FlowId,
    /// The task that an agent does.
    pub task: TaskId,
    /// Its number, from 1.
    pub attempt: u32,
}

/// The progress of an attempt of a task of an inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// What agents call the task.
    pub external_id: Arc<str>,
    /// How far it is.
    pub progress: Progress,
    /// What its worker says of that.
    pub message: Option<Arc<str>>,
    /// The same in detail.
    pub data: Option<Payload>,
    /// The worker; `None`: it runs in the server.
    pub worker: Option<Arc<str>>,
    /// When it was said, or when the attempt began.
    pub at: Timestamp,
}
