//! Converts protobuf messages to JSON by the rules of ProtoJSON: members that have their default value are left out.

use super::pb;
use super::values::{json_of, map_of, time_text, unsayable, unsayable_of};
use crate::message::Role;
use crate::operation::Given;
use crate::read::{Faults, Named};
use crate::task::TaskState;
use crate::write::{Members, bytes};
use serde_json::{Map, Value};

/// A message that can be written as JSON.
pub trait Json {
    /// Members; of a request that has free ones, with what JSON cannot say.
    type Said: Into<Given>;

    /// Converts the message to the members of a JSON object.
    fn members(self) -> Self::Said;
}

fn one<M: Json<Said = Map<String, Value>>>(message: Option<M>) -> Option<Value> {
    message.map(|it| Value::Object(it.members()))
}

fn many<M: Json<Said = Map<String, Value>>>(messages: Vec<M>) -> Option<Value> {
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
    type Said = Given;

    fn members(self) -> Given {
        let mut faults = Faults::default();
        unsayable_of_message(self.message.as_ref(), &mut faults);
        unsayable_of_metadata(self.metadata.as_ref(), "metadata", &mut faults);
        let members = Members::new()
            .text("tenant", Some(&self.tenant))
            .set("message", one(self.message))
            .set("configuration", one(self.configuration))
            .set("metadata", free(self.metadata))
            .done();
        Given { members, faults }
    }
}

fn unsayable_of_message(given: Option<&pb::Message>, faults: &mut Faults) {
    let Some(message) = given else {
        return;
    };
    for (i, part) in message.parts.iter().enumerate() {
        if let Some(pb::part::Content::Data(data)) = &part.content {
            unsayable_of(data, &mut format!("message.parts[{i}].data"), faults);
        }
        let path = format!("message.parts[{i}].metadata");
        unsayable_of_metadata(part.metadata.as_ref(), &path, faults);
    }
    unsayable_of_metadata(message.metadata.as_ref(), "message.metadata", faults);
}

fn unsayable_of_metadata(given: Option<&prost_types::Struct>, path: &str, faults: &mut Faults) {
    if let Some(given) = given {
        unsayable(given, &mut path.to_owned(), faults);
    }
}

impl Json for pb::SendMessageConfiguration {
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("id", Some(&self.id))
            .set("historyLength", self.history_length)
            .done()
    }
}

impl Json for pb::ListTasksRequest {
    type Said = Map<String, Value>;

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
    type Said = Given;

    fn members(self) -> Given {
        let mut faults = Faults::default();
        unsayable_of_metadata(self.metadata.as_ref(), "metadata", &mut faults);
        let members = Members::new()
            .text("tenant", Some(&self.tenant))
            .text("id", Some(&self.id))
            .set("metadata", free(self.metadata))
            .done();
        Given { members, faults }
    }
}

impl Json for pb::SubscribeToTaskRequest {
    type Said = Map<String, Value>;

    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("id", Some(&self.id))
            .done()
    }
}

impl Json for pb::TaskPushNotificationConfig {
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("scheme", Some(&self.scheme))
            .text("credentials", Some(&self.credentials))
            .done()
    }
}

impl Json for pb::GetTaskPushNotificationConfigRequest {
    type Said = Map<String, Value>;

    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("taskId", Some(&self.task_id))
            .text("id", Some(&self.id))
            .done()
    }
}

impl Json for pb::DeleteTaskPushNotificationConfigRequest {
    type Said = Map<String, Value>;

    fn members(self) -> Map<String, Value> {
        Members::new()
            .text("tenant", Some(&self.tenant))
            .text("taskId", Some(&self.task_id))
            .text("id", Some(&self.id))
            .done()
    }
}

impl Json for pb::ListTaskPushNotificationConfigsRequest {
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

    fn members(self) -> Map<String, Value> {
        Members::new().text("tenant", Some(&self.tenant)).done()
    }
}

// Answers, which clients and tests read.

impl Json for pb::Task {
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

    fn members(self) -> Map<String, Value> {
        Members::new()
            .set("state", named::<TaskState>(self.state))
            .set("message", one(self.message))
            .set("timestamp", self.timestamp.map(time_text))
            .done()
    }
}

impl Json for pb::Artifact {
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

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
    type Said = Map<String, Value>;

    fn members(self) -> Map<String, Value> {
        Members::new()
            .set("configs", many(self.configs))
            .text("nextPageToken", Some(&self.next_page_token))
            .done()
    }
}
