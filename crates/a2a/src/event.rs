//! The events of streams, and the answers to messages.

use crate::message::Message;
use crate::read::{Object, Wire};
use crate::task::{Artifact, Task, TaskStatus};
use crate::write::Members;
use serde_json::{Map, Value, json};

/// The status of a task has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStatusUpdateEvent {
    /// The id of the task that has another status.
    pub task_id: String,
    /// The context that the task belongs to.
    pub context_id: String,
    /// The new status.
    pub status: TaskStatus,
    /// Free-form members, which the protocol does not interpret.
    pub metadata: Option<Map<String, Value>>,
}

impl Wire for TaskStatusUpdateEvent {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let task_id = from.required_text("taskId");
        let context_id = from.required_text("contextId");
        let status = from.required("status");
        let metadata = from.map("metadata");
        Some(Self {
            task_id: task_id?,
            context_id: context_id?,
            status: status?,
            metadata,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("taskId", &*self.task_id)
            .with("contextId", &*self.context_id)
            .one("status", Some(&self.status))
            .map("metadata", self.metadata.as_ref())
            .done()
    }
}

/// A task has made something.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskArtifactUpdateEvent {
    /// The id of the task whose artifact it is.
    pub task_id: String,
    /// The context that the task belongs to.
    pub context_id: String,
    /// What it has made, or the next piece of it.
    pub artifact: Artifact,
    /// Whether it continues the artifact of this id.
    pub append: bool,
    /// Whether it is the last piece.
    pub last_chunk: bool,
    /// Free-form members, which the protocol does not interpret.
    pub metadata: Option<Map<String, Value>>,
}

impl Wire for TaskArtifactUpdateEvent {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let task_id = from.required_text("taskId");
        let context_id = from.required_text("contextId");
        let artifact = from.required("artifact");
        let append = from.flag("append").unwrap_or(false);
        let last_chunk = from.flag("lastChunk").unwrap_or(false);
        let metadata = from.map("metadata");
        Some(Self {
            task_id: task_id?,
            context_id: context_id?,
            artifact: artifact?,
            append,
            last_chunk,
            metadata,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("taskId", &*self.task_id)
            .with("contextId", &*self.context_id)
            .one("artifact", Some(&self.artifact))
            .flag("append", self.append)
            .flag("lastChunk", self.last_chunk)
            .map("metadata", self.metadata.as_ref())
            .done()
    }
}

/// The answer to a message.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // one of them, on its way out
pub enum SendMessageResponse {
    /// The task that it made or continued.
    Task(Task),
    /// An answer without a task.
    Message(Message),
}

impl Wire for SendMessageResponse {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        match (from.one("task"), from.one("message")) {
            (Some(task), None) => Some(Self::Task(task)),
            (None, Some(message)) => Some(Self::Message(message)),
            _ => {
                from.fault("", "exactly one of `task` and `message` is required");
                None
            }
        }
    }

    fn write(&self) -> Map<String, Value> {
        match self {
            Self::Task(task) => Members::new().one("task", Some(task)).done(),
            Self::Message(message) => Members::new().one("message", Some(message)).done(),
        }
    }
}

/// One item of a stream.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // one of them, on its way out
pub enum StreamResponse {
    /// How the task is.
    Task(Task),
    /// An answer without a task.
    Message(Message),
    /// A change of its status.
    StatusUpdate(TaskStatusUpdateEvent),
    /// Something that it has made.
    ArtifactUpdate(TaskArtifactUpdateEvent),
}

impl StreamResponse {
    /// As one `data:` line of a JSON-RPC stream: a whole answer under the id of the call, which is JSON text.
    #[must_use]
    pub fn to_rpc_line(&self, id: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#,
            self.to_json()
        )
    }

    /// As one `data:` line of an HTTP+JSON stream. The third form is the gRPC message, see [`crate::grpc`].
    #[must_use]
    pub fn to_rest_line(&self) -> String {
        self.to_json().to_string()
    }
}

/// A failure within a JSON-RPC stream, as one `data:` line.
#[must_use]
pub fn failed_rpc_line(id: &str, error: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// A failure within an HTTP+JSON stream, as the `data:` line behind `event: error`.
#[must_use]
pub fn failed_rest_line(error: &Value) -> String {
    json!({ "error": error }).to_string()
}

impl Wire for StreamResponse {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let mut given: Vec<Self> = [
            from.one("task").map(Self::Task),
            from.one("message").map(Self::Message),
            from.one("statusUpdate").map(Self::StatusUpdate),
            from.one("artifactUpdate").map(Self::ArtifactUpdate),
        ]
        .into_iter()
        .flatten()
        .collect();
        match (given.pop(), given.is_empty()) {
            (Some(only), true) => Some(only),
            (Some(_), false) | (None, _) => {
                from.fault(
                    "",
                    "exactly one of `task`, `message`, `statusUpdate` and `artifactUpdate` is required",
                );
                None
            }
        }
    }

    fn write(&self) -> Map<String, Value> {
        let members = Members::new();
        match self {
            Self::Task(it) => members.one("task", Some(it)),
            Self::Message(it) => members.one("message", Some(it)),
            Self::StatusUpdate(it) => members.one("statusUpdate", Some(it)),
            Self::ArtifactUpdate(it) => members.one("artifactUpdate", Some(it)),
        }
        .done()
    }
}
