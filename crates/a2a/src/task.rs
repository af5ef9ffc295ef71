//! Tasks, their states, and their artifacts.

use crate::message::{Message, Part};
use crate::read::{Named, Object, Wire};
use crate::write::{Members, time};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

/// The states in the life cycle of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// It was accepted.
    Submitted,
    /// It is worked on.
    Working,
    /// It has ended well.
    Completed,
    /// It has ended with an error.
    Failed,
    /// It was cancelled.
    Canceled,
    /// It waits for an answer.
    InputRequired,
    /// The agent does not do it.
    Rejected,
    /// It waits for credentials.
    AuthRequired,
}

impl TaskState {
    /// Whether nothing follows.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }

    /// Whether it waits for somebody.
    #[must_use]
    pub const fn is_interrupted(self) -> bool {
        match self {
            Self::InputRequired | Self::AuthRequired => true,
            Self::Submitted
            | Self::Working
            | Self::Completed
            | Self::Failed
            | Self::Canceled
            | Self::Rejected => false,
        }
    }
}

impl Named for TaskState {
    const WHAT: &'static str = "task state";
    const UNSPECIFIED: &'static str = "TASK_STATE_UNSPECIFIED";
    const ALL: &'static [(Self, i32, &'static str)] = &[
        (Self::Submitted, 1, "TASK_STATE_SUBMITTED"),
        (Self::Working, 2, "TASK_STATE_WORKING"),
        (Self::Completed, 3, "TASK_STATE_COMPLETED"),
        (Self::Failed, 4, "TASK_STATE_FAILED"),
        (Self::Canceled, 5, "TASK_STATE_CANCELED"),
        (Self::InputRequired, 6, "TASK_STATE_INPUT_REQUIRED"),
        (Self::Rejected, 7, "TASK_STATE_REJECTED"),
        (Self::AuthRequired, 8, "TASK_STATE_AUTH_REQUIRED"),
    ];
}

/// The state of a task, and since when.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStatus {
    /// Where the task is in its life cycle.
    pub state: TaskState,
    /// What the agent says of it: the question, the error.
    pub message: Option<Message>,
    /// Since when the task is in this state.
    pub timestamp: Option<DateTime<Utc>>,
}

impl Wire for TaskStatus {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let state = from.required_named("state");
        let message = from.one("message");
        let timestamp = from.time("timestamp");
        Some(Self {
            state: state?,
            message,
            timestamp,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .named("state", self.state)
            .one("message", self.message.as_ref())
            .set("timestamp", self.timestamp.map(time))
            .done()
    }
}

/// Something that a task has made.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Unique within the task.
    pub artifact_id: String,
    /// A short title for people.
    pub name: Option<String>,
    /// Free text for people.
    pub description: Option<String>,
    /// What it is; one at least.
    pub parts: Vec<Part>,
    /// Free-form members, which the protocol does not interpret.
    pub metadata: Option<Map<String, Value>>,
    /// URIs of extensions that it uses.
    pub extensions: Vec<String>,
}

impl Wire for Artifact {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let artifact_id = from.required_text("artifactId");
        let name = from.text("name");
        let description = from.text("description");
        let parts = from.required_many("parts");
        let metadata = from.map("metadata");
        let extensions = from.texts("extensions");
        Some(Self {
            artifact_id: artifact_id?,
            name,
            description,
            parts,
            metadata,
            extensions,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("artifactId", &*self.artifact_id)
            .text("name", self.name.as_deref())
            .text("description", self.description.as_deref())
            .all("parts", &self.parts)
            .map("metadata", self.metadata.as_ref())
            .texts("extensions", &self.extensions)
            .done()
    }
}

/// A unit of work.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// By the server.
    pub id: String,
    /// The context that the task belongs to.
    pub context_id: Option<String>,
    /// Where it is.
    pub status: TaskStatus,
    /// What it has made.
    pub artifacts: Vec<Artifact>,
    /// What was said, the oldest first.
    pub history: Vec<Message>,
    /// Free-form members, which the protocol does not interpret.
    pub metadata: Option<Map<String, Value>>,
}

impl Wire for Task {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let id = from.required_text("id");
        let context_id = from.text("contextId");
        let status = from.required("status");
        let artifacts = from.many("artifacts");
        let history = from.many("history");
        let metadata = from.map("metadata");
        Some(Self {
            id: id?,
            context_id,
            status: status?,
            artifacts,
            history,
            metadata,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("id", &*self.id)
            .text("contextId", self.context_id.as_deref())
            .one("status", Some(&self.status))
            .many("artifacts", &self.artifacts)
            .many("history", &self.history)
            .map("metadata", self.metadata.as_ref())
            .done()
    }
}
