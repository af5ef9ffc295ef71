//! Requests and replies about streams of notices.

use super::Scope;
use crate::subscription::cursor::Cursor;
use crate::subscription::notice::Kind;
use crate::subscription::stream::{Notices, Reset};
use std::sync::Arc;
use taskledger_domain::task::Selector;
use taskledger_domain::{FlowId, RunId, TaskId};
use taskledger_projections::{RunView, TaskView};

/// The notices that a watcher asks for; all of it must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// Only this flow.
    pub flow: Option<FlowId>,
    /// Only this task.
    pub task: Option<TaskId>,
    /// Only flows of this user.
    pub user: Option<Arc<str>>,
    /// Only these kinds.
    pub kinds: Option<Vec<Kind>>,
    /// Only tasks with these labels.
    pub labels: Selector,
}

/// A stream of notices, and why it does not begin where it was asked to, if so.
#[derive(Debug)]
pub struct Watching {
    /// The notices.
    pub stream: Notices,
    /// Why it begins elsewhere.
    pub reset: Option<Reset>,
}

/// A run that can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The flow that the run belongs to.
    pub flow: FlowId,
    /// Identifies the run in its flow.
    pub id: RunId,
}

/// Asks to follow a task until nothing runs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    /// A stored task.
    pub task: TaskId,
    /// Whether the rest of its flow is followed too.
    pub scope: Scope,
    /// The text of the cursor behind which an earlier stream is to go on; absent for a new one.
    pub behind: Option<String>,
}

/// A subscription to a task.
#[derive(Debug)]
pub struct Subscribed {
    /// The task as it is where the stream begins; absent when an earlier stream goes on.
    pub task: Option<TaskView>,
    /// The root of its flow.
    pub root: TaskId,
    /// How the run of the task stands; absent with `task`.
    pub run: Option<RunView>,
    /// Whether an earlier stream goes on; absent when none was named.
    pub resumed: Option<bool>,
    /// Why an earlier stream does not go on.
    pub reset: Option<Reset>,
    /// Where the stream begins.
    pub cursor: Cursor,
    /// The end was told before, and nothing follows.
    pub is_final: bool,
    /// What happens behind that.
    pub stream: Notices,
}
