//! Messages as JSON by the rules of ProtoJSON: members that have their default value are left out.

use super::pb;
use super::values::{json_of, map_of, time_text};
use crate::message::Role;
use crate::read::Named;
use crate::task::TaskState;
use crate::write::{Members, bytes};
use serde_json::{Map, Value};

/// A message that can be written as JSON.
pub trait Json {
    /// Its members.
    fn members(self) -> Map<String, Value>;
}

fn one<M: Json>(message: Option<M>) -> Option<Value> {
    message.map(|it| Value::Object(it.members()))
}

fn many<M: Json>(messages: Vec<M>) -> Option<Value> {
    let list: Vec<_> = messages
        .into_iter()
        .map(|it| Value::Object(it.members()))
        .collect();
    (!list.is_empty()).then_some(Value::Array(list))
}

fn free(given: Option<prost_types::Struct>) -> Option<Value> {
    given.map(|it| Value::Object(map_of(it)))
}

/// A value of an enum by its name; by its number if it has none, so that its reader tells. 0 is unset.
fn named<E: Named>(given: i32) -> Option<Value> {
    let known = E::ALL.iter().find(|(_, number, _)| *number == given);
    match known {
        Some((_, _, name)) => Some(Value::from(*name)),
        None => number(given).map(Value::from),
    }
}

/// A number. 0 is unset.
fn number(given: i32) -> Option<i32> {
    Some(given).filter(|it| *it != 0)
}

impl Json for pb::SendMessageRequest {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .set("message", one(self.message))
            .set("configuration", one(self.configuration))
            .set("metadata", free(self.metadata))
            .done()
    }
}

impl Json for pb::SendMessageConfiguration {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .texts("acceptedOutputModes", &self.accepted_output_modes)
            .set(
                "taskPushNotificationConfig",
                one(self.task_push_notification_config),
            )
            .set("historyLength", self.history_length)
            .flag("returnImmediately", self.return_immediately)
            .done()
    }
}

impl Json for pb::Message {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("messageId", Some(&self.message_id))
            .text("contextId", Some(&self.context_id))
            .text("taskId", Some(&self.task_id))
            .set("role", named::<Role>(self.role))
            .set("parts", many(self.parts))
            .set("metadata", free(self.metadata))
            .texts("extensions", &self.extensions)
            .texts("referenceTaskIds", &self.reference_task_ids)
            .done()
    }
}

impl Json for pb::Part {
    fn members(self) -> Map<String, Value> {
        use pb::part::Content;
        let members = match self.content {
            None => Members::new(),
            Some(Content::Text(text)) => Members::new().with("text", text),
            Some(Content::Raw(raw)) => Members::new().with("raw", bytes(&raw)),
            Some(Content::Url(url)) => Members::new().with("url", url),
            Some(Content::Data(data)) => Members::new().with("data", json_of(data)),
        };
        members
            .set("metadata", free(self.metadata))
            .text("filename", Some(&self.filename))
            .text("mediaType", Some(&self.media_type))
            .done()
    }
}

impl Json for pb::GetTaskRequest {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("id", Some(&self.id))
            .set("historyLength", self.history_length)
            .done()
    }
}

impl Json for pb::ListTasksRequest {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("contextId", Some(&self.context_id))
            .set("status", named::<TaskState>(self.status))
            .set("pageSize", self.page_size)
            .text("pageToken", Some(&self.page_token))
            .set("historyLength", self.history_length)
            .set(
                "statusTimestampAfter",
                self.status_timestamp_after.map(time_text),
            )
            .set("includeArtifacts", self.include_artifacts)
            .done()
    }
}

impl Json for pb::CancelTaskRequest {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("id", Some(&self.id))
            .set("metadata", free(self.metadata))
            .done()
    }
}

impl Json for pb::SubscribeToTaskRequest {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("id", Some(&self.id))
            .done()
    }
}

impl Json for pb::TaskPushNotificationConfig {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("id", Some(&self.id))
            .text("taskId", Some(&self.task_id))
            .text("url", Some(&self.url))
            .text("token", Some(&self.token))
            .set("authentication", one(self.authentication))
            .done()
    }
}

impl Json for pb::AuthenticationInfo {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("scheme", Some(&self.scheme))
            .text("credentials", Some(&self.credentials))
            .done()
    }
}

impl Json for pb::GetTaskPushNotificationConfigRequest {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("taskId", Some(&self.task_id))
            .text("id", Some(&self.id))
            .done()
    }
}

impl Json for pb::DeleteTaskPushNotificationConfigRequest {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("taskId", Some(&self.task_id))
            .text("id", Some(&self.id))
            .done()
    }
}

impl Json for pb::ListTaskPushNotificationConfigsRequest {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("taskId", Some(&self.task_id))
            .set("pageSize", number(self.page_size))
            .text("pageToken", Some(&self.page_token))
            .done()
    }
}

impl Json for pb::GetExtendedAgentCardRequest {
    fn members(self) -> Map<String, Value> {
        Members::new().text("tenant", Some(&self.tenant)).done()
    }
}

// Answers, which clients and tests read.

impl Json for pb::Task {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("id", Some(&self.id))
            .text("contextId", Some(&self.context_id))
            .set("status", one(self.status))
            .set("artifacts", many(self.artifacts))
            .set("history", many(self.history))
            .set("metadata", free(self.metadata))
            .done()
    }
}

impl Json for pb::TaskStatus {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .set("state", named::<TaskState>(self.state))
            .set("message", one(self.message))
            .set("timestamp", self.timestamp.map(time_text))
            .done()
    }
}

impl Json for pb::Artifact {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("artifactId", Some(&self.artifact_id))
            .text("name", Some(&self.name))
            .text("description", Some(&self.description))
            .set("parts", many(self.parts))
            .set("metadata", free(self.metadata))
            .texts("extensions", &self.extensions)
            .done()
    }
}

impl Json for pb::TaskStatusUpdateEvent {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("taskId", Some(&self.task_id))
            .text("contextId", Some(&self.context_id))
            .set("status", one(self.status))
            .set("metadata", free(self.metadata))
            .done()
    }
}

impl Json for pb::TaskArtifactUpdateEvent {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("taskId", Some(&self.task_id))
            .text("contextId", Some(&self.context_id))
            .set("artifact", one(self.artifact))
            .flag("append", self.append)
            .flag("lastChunk", self.last_chunk)
            .set("metadata", free(self.metadata))
            .done()
    }
}

impl Json for pb::SendMessageResponse {
    fn members(self) -> Map<String, Value> {
        use pb::send_message_response::Payload;
        match self.payload {
            None => Members::new(),
            Some(Payload::Task(it)) => Members::new().set("task", one(Some(it))),
            Some(Payload::Message(it)) => Members::new().set("message", one(Some(it))),
        }
        .done()
    }
}

impl Json for pb::StreamResponse {
    fn members(self) -> Map<String, Value> {
        use pb::stream_response::Payload;
        let members = Members::new();
        match self.payload {
            None => members,
            Some(Payload::Task(it)) => members.set("task", one(Some(it))),
            Some(Payload::Message(it)) => members.set("message", one(Some(it))),
            Some(Payload::StatusUpdate(it)) => members.set("statusUpdate", one(Some(it))),
            Some(Payload::ArtifactUpdate(it)) => members.set("artifactUpdate", one(Some(it))),
        }
        .done()
    }
}

impl Json for pb::ListTasksResponse {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .set("tasks", many(self.tasks))
            .text("nextPageToken", Some(&self.next_page_token))
            .set("pageSize", number(self.page_size))
            .set("totalSize", number(self.total_size))
            .done()
    }
}

impl Json for pb::ListTaskPushNotificationConfigsResponse {
    fn members(self) -> Map<String, Value> {
        Members::new()
            .set("configs", many(self.configs))
            .text("nextPageToken", Some(&self.next_page_token))
            .done()
    }
}
