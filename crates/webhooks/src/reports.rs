//! Reports of a run as one thing: how it stands and what it returns, instead of notices about its tasks.
//!
//! Owns: what is reported, where to, and the port through which a protocol writes it. May not: know a protocol.

mod form;

pub use form::{Form, Reported};

use super::callback::Callback;
use super::delivery::Secret;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use taskledger_domain::flow::{RunStage, TaskSuspended};
use taskledger_domain::{FlowId, Payload, RunId, TaskId, Timestamp};
pub use taskledger_subscription::notice::Part;

/// Receivers of the reports of one run at most.
pub const REPORTS_PER_RUN_MAX: i64 = 100;
/// The media type of reports in the older form, which tells a run as a whole: receivers of it know no newer one.
pub const V03_BODY: &str = "application/json; version=0.3";
/// Characters of a caller's name for a receiver.
pub const NAME_CHARS_MAX: usize = 255;

/// A receiver of reports of a run, as its caller sees it. Secrets are not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// The caller's name for it.
    pub name: Arc<str>,
    /// Where to send.
    pub url: Arc<str>,
    /// How the server authenticates itself there.
    pub scheme: Option<Arc<str>>,
}

/// The run of which somebody wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfRun {
    /// Identifies the run in its flow.
    pub run: RunId,
    /// The flow that the run belongs to.
    pub flow: FlowId,
    /// Whether it has ended: then nothing is ever sent.
    pub is_over: bool,
}

impl Callback {
    /// The headers that carry what proves to a receiver who sends.
    #[must_use]
    pub fn secret_headers(
        token: Option<&str>,
        scheme: Option<&str>,
        credentials: Option<&str>,
    ) -> Vec<(Arc<str>, Secret)> {
        let header = |name: &str, value: String| (Arc::from(name), Secret(Arc::from(value)));
        let token = token.map(|token| header(TOKEN_HEADER, token.to_owned()));
        let both = scheme.zip(credentials);
        let shown =
            both.map(|(scheme, given)| header("authorization", format!("{scheme} {given}")));
        shown.into_iter().chain(token).collect()
    }
}

/// The header with the token of a receiver.
pub const TOKEN_HEADER: &str = "x-a2a-notification-token";

impl Change {
    /// Whether receivers of a form are told: one that shows a run as a whole has no room for a part.
    #[must_use]
    pub const fn is_for(&self, form: Form) -> bool {
        let is_part = matches!(
            self,
            Self::Returned(Returned {
                made: Made::Part(..),
                ..
            })
        );
        !is_part || matches!(form, Form::Change)
    }
}

impl Form {
    /// The form of what has this media type.
    #[must_use]
    pub fn of(content_type: Option<&str>) -> Self {
        match content_type == Some(V03_BODY) {
            true => Self::Whole,
            false => Self::Change,
        }
    }
}

/// A report of a change of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The run that has changed.
    pub run: RunId,
    /// How it stands.
    pub stage: RunStage,
    /// Since when it stands so.
    pub since: Timestamp,
    /// Its context: the caller's text, else the id of its flow's root.
    pub context: Arc<str>,
    /// What changed.
    pub change: Change,
}

/// The kinds of changes.
#[derive(Debug, Clone)]
pub enum Change {
    /// How the run stands.
    Status {
        /// In a word.
        stage: RunStage,
        /// Since when.
        at: Timestamp,
        /// What it waits for, or why it ended so.
        said: Option<Said>,
    },
    /// A task has made a part of its output, or returned something.
    Returned(Returned),
}

/// The message that accompanies a status.
#[derive(Debug, Clone)]
pub enum Said {
    /// The oldest question that waits, and when it was asked.
    Question(Box<TaskSuspended>, Timestamp),
    /// Why the run failed or was cancelled.
    Error(Arc<str>),
}

/// More of what a task returns.
#[derive(Debug, Clone)]
pub enum Made {
    /// A part of its output, and its place among those of the attempt, from 1.
    Part(Part, u32),
    /// Its result, and how many parts came before it.
    Result(Payload, u32),
}

/// A result of a task, or a part of one.
#[derive(Debug, Clone)]
pub struct Returned {
    /// The task that has made it.
    pub task: TaskId,
    /// The parent of that task; `None` for the root of a flow.
    pub parent: Option<TaskId>,
    /// Whether the task is the one that was asked for.
    pub is_result: bool,
    /// The name of the task.
    pub name: Arc<str>,
    /// The attempt that made it.
    pub attempt: u32,
    /// What it has made.
    pub made: Made,
    /// When the event was recorded.
    pub at: Timestamp,
}

/// The port by which a protocol writes reports.
pub trait Wording: Send + Sync + fmt::Debug + 'static {
    /// The bytes that are sent, at most [`BODY_BYTES_MAX`](crate::outbox::BODY_BYTES_MAX); the same whenever it is
    /// asked.
    fn body(&self, report: &Report, form: Form) -> Bytes;
}
