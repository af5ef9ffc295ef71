//! Runs for callers that send messages and read answers. Such a run begins with a message and has a context, a history,
//! a state that may wait for the caller, and results.
//!
//! The words are no protocol's: a door writes them in its own. Its calls, all of
//! [`Service`](crate::application::service::Service):
//!
//! | method | request | answer |
//! |---|---|---|
//! | `start_run` | [`StartRun`] | [`StartedRun`] |
//! | `read_run` | [`ReadRun`] | [`RunView`] |
//! | `artifacts_of_run` | [`ReadArtifacts`] | [`ArtifactPage`] |
//! | `list_runs` | [`ListRuns`] | [`RunPage`] |
//! | `cancel_run` | [`CancelRun`] | [`RunView`], which shows it cancelled |
//! | `message_run` | [`FollowUp`] | [`FollowedUp`] |
//! | `watch_run` | [`WatchRun`] | [`WatchedRun`] |
//! | `await_run` | [`AwaitRun`] | [`RunView`] |
//! | `report_run`, `report_of_run`, `reports_of_run`, `unreport_run` | the run, [`Callback`] or a name | [`Receiver`](super::webhooks::Receiver) |
//!
//! Refusals of their own (`taskledger_domain::flow::Refusal`): `RunNotFound`, also for somebody else's; `RunOver`, for
//! a cancel or a message that comes behind the end; `RunNotWaiting`, for a message that nobody waits for.

use super::webhooks::Callback;
use super::{Failure, Target};
pub use crate::application::limits::HeldPlace;
use crate::subscription::cursor::Cursor;
pub use crate::subscription::run_fold::NodeChange;
use crate::subscription::stream::Reset;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
pub use taskledger_domain::flow::{OutputPart, RunOrigin, RunStage};
use taskledger_domain::payload::Json;
pub use taskledger_domain::question::Asks;
use taskledger_domain::{FlowId, Payload, Position, RunId, SuspensionId, TaskId, Timestamp};
use tokio_stream::Stream;

/// Runs in a page of a list at most.
pub const PAGE_RUNS_MAX: u32 = 100;
/// Runs in a page of a list when the caller gives no size.
pub const PAGE_RUNS_DEFAULT: u32 = 50;
/// Results in one view of a run at most.
pub const ARTIFACTS_MAX: usize = 1000;
/// Bytes of results in one view of a run, unless the first alone has more.
pub const ARTIFACT_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Entries in the history of one view of a run at most.
pub const HISTORY_MAX: usize = 1000;
/// Bytes of the history in one view of a run, unless the newest entry alone has more.
pub const HISTORY_BYTES_MAX: usize = 1024 * 1024;

/// Begins a run by a message: new tasks, created in the same commit, or stored ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// What to run.
    pub target: Target,
    /// Whether tasks may wait for an executor that does not exist yet.
    pub allow_unknown_executors: bool,
    /// Milliseconds that they wait.
    pub executor_wait_ms: u64,
    /// What it comes from. References to runs that are not the caller's are left out.
    pub origin: RunOrigin,
    /// Where it is reported: a callback that gets reports.
    #[serde(with = "super::callback")]
    pub reported: Option<Callback>,
}

/// A run that was begun.
#[derive(Debug, Clone)]
pub struct StartedRun {
    /// Identifies the run in later calls.
    pub run: RunId,
    /// The root of its flow.
    pub root: TaskId,
    /// Its context: the caller's text, else the root's id.
    pub context: Arc<str>,
    /// The ids of new tasks, by the names that the call uses.
    pub task_ids: super::TaskIds,
    /// With this its caller follows it and waits for it without looking it up.
    pub begun: BegunRun,
}

/// The place of a run that its caller has just begun. Only beginning one makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BegunRun {
    pub(in crate::application) run: RunId,
    pub(in crate::application) flow: FlowId,
}

/// Reads a run as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRun {
    /// The run to read.
    pub run: RunId,
    /// Entries of its history at most, the newest; `None`: as many as there may be.
    pub history: Option<usize>,
    /// Whether results are shown.
    pub artifacts: bool,
}

/// Reads results of a run, page by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadArtifacts {
    /// The run whose results are read.
    pub run: RunId,
    /// Where the page before has ended; `None` for the beginning.
    pub behind: Option<u32>,
    /// Results at most; they have up to [`ARTIFACT_BYTES_MAX`], unless the first alone has more.
    pub limit: usize,
}

/// A page of results of a run, in the order of creation of their tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactPage {
    /// The results.
    pub artifacts: Vec<Artifact>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<u32>,
}

/// Reads runs, those whose status is newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRuns {
    /// Only those of this context.
    pub context: Option<Arc<str>>,
    /// Only those that stand so.
    pub stage: Option<RunStage>,
    /// Only those whose status is of this time or later.
    pub since: Option<Timestamp>,
    /// Runs in a page, 1 to [`PAGE_RUNS_MAX`]; `None`: [`PAGE_RUNS_DEFAULT`].
    pub page_size: Option<u32>,
    /// Where an earlier page said that the list goes on.
    pub page_token: Option<Arc<str>>,
    /// As in [`ReadRun`].
    pub history: Option<usize>,
    /// As in [`ReadRun`].
    pub artifacts: bool,
}

/// A page of a list of runs.
#[derive(Debug, Clone)]
pub struct RunPage {
    /// The runs of this page.
    pub runs: Vec<RunView>,
    /// Runs in a page at most.
    pub page_size: u32,
    /// Runs in the whole list, when the page was read.
    pub total: u64,
    /// Where the list goes on; `None` at its end. No run is in two pages of a chain of tokens.
    pub next: Option<String>,
}

/// Cancels a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRun {
    /// The run to cancel.
    pub run: RunId,
    /// The text of `error` of its tasks; absent for the default.
    pub reason: Option<String>,
}

/// Says something to a run in which a task waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowUp {
    /// The run that the message is for.
    pub run: RunId,
    /// The context that the caller thinks it has; refused if it has another.
    pub context: Option<Arc<str>>,
    /// The caller's name for the message, 1 to 255 characters: the same message twice is recorded once.
    pub message_id: Arc<str>,
    /// The message as its door wrote it, an object of at most
    /// [`RUN_MESSAGE_BYTES_MAX`](taskledger_domain::limits::RUN_MESSAGE_BYTES_MAX) bytes: what a history shows.
    pub message: Payload,
    /// What the message says as text, if it has text.
    pub text: Option<String>,
    /// What it says as a JSON value, if it has one.
    pub data: Option<Json>,
    /// The task whose question it answers; `None`: the oldest question.
    pub task: Option<TaskId>,
}

/// A message was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedUp {
    /// The run that the message was for.
    pub run: RunId,
    /// The place of the log up to which it has had its effect: what is read from now on shows it.
    pub position: Position,
}

/// Waits until a run has ended, or waits for its caller. Behind a message it does not see what the message has
/// answered: an answer takes effect with the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwaitRun {
    /// The run to wait for.
    pub run: RunId,
    /// As in [`ReadRun`].
    pub history: Option<usize>,
    /// As in [`ReadRun`].
    pub artifacts: bool,
    /// From whoever has just begun it.
    pub begun: Option<BegunRun>,
}

/// The condition on which a stream of updates ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunUntil {
    /// To the end of the run.
    Ended,
    /// To its end, or until it waits for input. It goes on where credentials are awaited.
    EndedOrInput,
}

/// Follows a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchRun {
    /// The run to follow.
    pub run: RunId,
    /// When the stream ends.
    pub until: RunUntil,
    /// As in [`ReadRun`].
    pub history: Option<usize>,
    /// Whether results are told.
    pub results: bool,
    /// Whether parts of outputs are told, which come before results.
    pub parts: bool,
    /// Whether changes of single tasks are told too.
    pub nodes: bool,
    /// The text of the place behind which an earlier stream goes on; `None`: the run as it is comes first.
    pub behind: Option<Arc<str>>,
    /// From whoever has just begun it: the stream begins at its start. `behind` comes before it.
    pub begun: Option<BegunRun>,
}

/// A stream of updates of a run.
#[derive(Debug)]
pub struct WatchedRun {
    /// The run as it is where the stream begins; absent when an earlier stream goes on.
    pub snapshot: Option<Box<RunView>>,
    /// The context that the run belongs to.
    pub context: Arc<str>,
    /// Where the stream begins.
    pub cursor: RunPlace,
    /// Why an earlier stream does not go on, if it does not.
    pub reset: Option<Reset>,
    /// What happens behind that.
    pub updates: RunUpdates,
}

/// An update, and the place behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunUpdate {
    /// Behind it.
    pub cursor: RunPlace,
    /// When it happened.
    pub at: Timestamp,
    /// What changed.
    pub change: RunChange,
}

/// A place in the stream of a run. To others its text is opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunPlace {
    /// In the log.
    pub(in crate::application) cursor: Cursor,
    /// How many of several updates there were told; 0 for all.
    pub(in crate::application) told: u8,
}

impl RunPlace {
    /// Reads what [`fmt::Display`] writes; `None` for every other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (cursor, told) = match text.split_once('.') {
            None => (text, 0),
            Some((cursor, told)) => (cursor, told.parse().ok().filter(|told| *told > 0)?),
        };
        let cursor = Cursor::parse(cursor).ok()?;
        Some(Self { cursor, told })
    }
}

impl fmt::Display for RunPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.told {
            0 => write!(f, "{}", self.cursor),
            told => write!(f, "{}.{told}", self.cursor),
        }
    }
}

/// The changes of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunChange {
    /// How it stands, or what it waits for. The last one of a run has a stage that is an end.
    Status(RunStatus),
    /// There is more of what a task returns.
    Artifact(Piece),
    /// A task of it stands otherwise; only for those who asked for it.
    Node(NodeChange),
}

/// A run as whoever began it sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    /// Identifies the run in later calls.
    pub run: RunId,
    /// Its flow, whose id is that of its root.
    pub flow: FlowId,
    /// The task that was asked for; the flow's root unless a stored task was run.
    pub task: TaskId,
    /// The caller's text, else the id of the flow's root.
    pub context: Arc<str>,
    /// How it stands.
    pub status: RunStatus,
    /// Results, in the order of creation of their tasks; empty when they were not asked for.
    pub artifacts: Vec<Artifact>,
    /// Results that are left out by [`ARTIFACTS_MAX`] or [`ARTIFACT_BYTES_MAX`].
    pub artifacts_left_out: u64,
    /// What was said, oldest first.
    pub history: Vec<HistoryEntry>,
    /// Older entries that are left out by [`HISTORY_MAX`] or [`HISTORY_BYTES_MAX`], not because fewer were asked for.
    pub history_left_out: u64,
    /// Runs of the caller that the message named which began it.
    pub references: Vec<RunId>,
    /// When it began.
    pub started_at: Timestamp,
    /// The view shows exactly the events up to here.
    pub position: Position,
}

/// The status of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStatus {
    /// In a word.
    pub stage: RunStage,
    /// Since when; never earlier than before.
    pub at: Timestamp,
    /// What it waits for, or why it failed.
    pub message: Option<StatusMessage>,
}

/// The message that accompanies a status.
#[derive(Debug, Clone, PartialEq)]
pub enum StatusMessage {
    /// The oldest question that waits for an answer.
    Question(Box<Question>),
    /// Why it failed or was cancelled.
    Error(Arc<str>),
}

/// A question that a task of a run asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The task that asks.
    pub task: TaskId,
    /// Identifies the wait that an answer must name.
    pub suspension: SuspensionId,
    /// What the task waits for.
    pub asks: Asks,
    /// What is asked, in the form of [`taskledger_domain::question`]: `question` is the text.
    pub question: Payload,
    /// When it was asked.
    pub at: Timestamp,
    /// When nobody will answer any more.
    pub expires_at: Option<Timestamp>,
}

/// More of what a task returns. The pieces of one attempt follow each other; another attempt begins anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// A part of the output, or the result.
    pub artifact: Artifact,
    /// Whether it comes behind what was told of the task before, or in place of that.
    pub appends: bool,
    /// Whether it is the result, which is the last one.
    pub is_last: bool,
}

/// The output of a task that runs something, or of the run as a whole: its parts, then its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// The task whose result it is.
    pub task: TaskId,
    /// The parent of that task; `None` for the root of a flow.
    pub parent: Option<TaskId>,
    /// Whether the task is the one that was asked for: the result is that of the run.
    pub is_result: bool,
    /// The name of the task.
    pub name: Arc<str>,
    /// The attempt that made it.
    pub attempt: u32,
    /// Parts of the output that came before the result, in order.
    pub output: Vec<Arc<OutputPart>>,
    /// The result, an object; absent while the attempt goes on, and of one that has not completed.
    pub result: Option<Payload>,
    /// When the event was recorded.
    pub at: Timestamp,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq)]
pub enum HistoryEntry {
    /// By the caller: the message that began the run, or a later one, as its door wrote it.
    Message {
        /// The message as JSON, in the form of the door that took it.
        message: Payload,
        /// When it was recorded.
        at: Timestamp,
    },
    /// By the run: a question that waits no more.
    Question(Box<Question>),
}

/// An item of a stream of updates.
#[derive(Debug)]
pub enum RunItem {
    /// Something has changed.
    Update(Box<RunUpdate>),
    /// For [`HEARTBEAT`](crate::subscription::stream::HEARTBEAT) there was nothing to tell.
    Silence,
    /// What comes is not all that was: the archive has overtaken the watcher. Nothing follows.
    Reset(Reset),
}

/// The updates that one watcher gets, in order, without a gap or a repetition. An error says that the log cannot be
/// read; polling again goes on at the same place.
pub struct RunUpdates(Pin<Box<dyn Stream<Item = Result<RunItem, Failure>> + Send>>);

impl RunUpdates {
    pub(in crate::application) fn new(
        items: impl Stream<Item = Result<RunItem, Failure>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(items))
    }
}

impl fmt::Debug for RunUpdates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunUpdates").finish_non_exhaustive()
    }
}

impl Stream for RunUpdates {
    type Item = Result<RunItem, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}
