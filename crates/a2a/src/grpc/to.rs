//! Converts objects to protobuf messages. Values that clients of gRPC cannot read become texts.

mod bounds;
mod card;

pub use card::card;

use super::pb;
use super::values::timestamp_of;
use crate::event::{
    SendMessageResponse, StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent,
};
use crate::message::{Content, Message, Part};
use crate::request::{
    ListTaskPushNotificationConfigsResponse, ListTasksResponse, TaskPushNotificationConfig,
};
use crate::task::{Artifact, Task, TaskStatus};
use crate::write::number_of;
use bounds::free;
use prost::Message as _;

/// A part. One that clients of gRPC cannot read becomes a text that says so.
#[must_use]
pub fn part(it: Part) -> pb::Part {
    use pb::part::Content as Pb;
    let metadata = it.metadata.map(free);
    let content = match it.content {
        Content::Text(text) => Pb::Text(text),
        Content::Raw(raw) => Pb::Raw(raw),
        Content::Url(url) => Pb::Url(url),
        Content::Data(data) => match bounds::data(data) {
            Ok(data) => Pb::Data(data),
            Err(said) => return sized(told(said, metadata)),
        },
    };
    sized(pb::Part {
        metadata,
        filename: it.filename.unwrap_or_default(),
        media_type: it.media_type.unwrap_or_default(),
        content: Some(content),
    })
}

fn sized(it: pb::Part) -> pb::Part {
    let bytes = it.encoded_len();
    match bytes <= bounds::BYTES_MAX {
        true => it,
        false => told(bounds::too_large("a part", bytes), None),
    }
}

/// A text instead of a part, whose media type and file name would not be those of the text.
fn told(said: String, metadata: Option<prost_types::Struct>) -> pb::Part {
    pb::Part {
        metadata,
        content: Some(pb::part::Content::Text(said)),
        ..pb::Part::default()
    }
}

/// A message of a conversation.
#[must_use]
pub fn message(it: Message) -> pb::Message {
    pb::Message {
        message_id: it.message_id,
        context_id: it.context_id.unwrap_or_default(),
        task_id: it.task_id.unwrap_or_default(),
        role: number_of(it.role),
        parts: it.parts.into_iter().map(part).collect(),
        metadata: it.metadata.map(free),
        extensions: it.extensions,
        reference_task_ids: it.reference_task_ids,
    }
}

/// Converts the status of a task to its protobuf message.
#[must_use]
pub fn status(it: TaskStatus) -> pb::TaskStatus {
    pb::TaskStatus {
        state: number_of(it.state),
        message: it.message.map(message),
        timestamp: it.timestamp.map(timestamp_of),
    }
}

/// Converts an artifact to its protobuf message.
#[must_use]
pub fn artifact(it: Artifact) -> pb::Artifact {
    pb::Artifact {
        artifact_id: it.artifact_id,
        name: it.name.unwrap_or_default(),
        description: it.description.unwrap_or_default(),
        parts: it.parts.into_iter().map(part).collect(),
        metadata: it.metadata.map(free),
        extensions: it.extensions,
    }
}

/// Converts a task to its protobuf message.
#[must_use]
pub fn task(it: Task) -> pb::Task {
    pb::Task {
        id: it.id,
        context_id: it.context_id.unwrap_or_default(),
        status: Some(status(it.status)),
        artifacts: it.artifacts.into_iter().map(artifact).collect(),
        history: it.history.into_iter().map(message).collect(),
        metadata: it.metadata.map(free),
    }
}

/// The answer to a message.
#[must_use]
pub fn sent(it: SendMessageResponse) -> pb::SendMessageResponse {
    use pb::send_message_response::Payload;
    pb::SendMessageResponse {
        payload: Some(match it {
            SendMessageResponse::Task(it) => Payload::Task(task(it)),
            SendMessageResponse::Message(it) => Payload::Message(message(it)),
        }),
    }
}

/// An item of a stream.
#[must_use]
pub fn item(it: StreamResponse) -> pb::StreamResponse {
    use pb::stream_response::Payload;
    pb::StreamResponse {
        payload: Some(match it {
            StreamResponse::Task(it) => Payload::Task(task(it)),
            StreamResponse::Message(it) => Payload::Message(message(it)),
            StreamResponse::StatusUpdate(it) => Payload::StatusUpdate(status_update(it)),
            StreamResponse::ArtifactUpdate(it) => Payload::ArtifactUpdate(artifact_update(it)),
        }),
    }
}

fn status_update(it: TaskStatusUpdateEvent) -> pb::TaskStatusUpdateEvent {
    pb::TaskStatusUpdateEvent {
        task_id: it.task_id,
        context_id: it.context_id,
        status: Some(status(it.status)),
        metadata: it.metadata.map(free),
    }
}

fn artifact_update(it: TaskArtifactUpdateEvent) -> pb::TaskArtifactUpdateEvent {
    pb::TaskArtifactUpdateEvent {
        task_id: it.task_id,
        context_id: it.context_id,
        artifact: Some(artifact(it.artifact)),
        append: it.append,
        last_chunk: it.last_chunk,
        metadata: it.metadata.map(free),
    }
}

/// A page of tasks.
#[must_use]
pub fn tasks(it: ListTasksResponse) -> pb::ListTasksResponse {
    pb::ListTasksResponse {
        tasks: it.tasks.into_iter().map(task).collect(),
        next_page_token: it.next_page_token,
        page_size: it.page_size,
        total_size: it.total_size,
    }
}

/// Where changes of a task are reported.
#[must_use]
pub fn push_config(it: TaskPushNotificationConfig) -> pb::TaskPushNotificationConfig {
    pb::TaskPushNotificationConfig {
        tenant: it.tenant.unwrap_or_default(),
        id: it.id.unwrap_or_default(),
        task_id: it.task_id.unwrap_or_default(),
        url: it.url,
        token: it.token.unwrap_or_default(),
        authentication: it.authentication.map(|it| pb::AuthenticationInfo {
            scheme: it.scheme,
            credentials: it.credentials.unwrap_or_default(),
        }),
    }
}

/// A page of those.
#[must_use]
pub fn push_configs(
    it: ListTaskPushNotificationConfigsResponse,
) -> pb::ListTaskPushNotificationConfigsResponse {
    pb::ListTaskPushNotificationConfigsResponse {
        configs: it.configs.into_iter().map(push_config).collect(),
        next_page_token: it.next_page_token,
    }
}
