//! Converts requests of 0.3 from protobuf messages.

use super::pb as old;
use crate::grpc::json::Json;
use crate::grpc::pb;
use crate::operation::{Given, Operation};
use crate::read::Fault;
use crate::v03::{Answering, ConvertedCall, Form};
use prost_types::value::Kind;
use serde_json::{Map, Value};

/// A request of 0.3.
pub trait Old {
    /// What it asks for, as an operation that was called by it.
    fn asked(self, operation: Operation) -> ConvertedCall;
}

fn asked(operation: Operation, given: impl Into<Given>) -> ConvertedCall {
    ConvertedCall {
        operation,
        given: given.into(),
        answering: Answering::new(operation, Form::Proto),
    }
}

impl Old for old::SendMessageRequest {
    fn asked(self, operation: Operation) -> ConvertedCall {
        let configuration = self.configuration.unwrap_or_default();
        let push = configuration.push_notification;
        let request = pb::SendMessageRequest {
            message: self.request.map(message),
            configuration: Some(pb::SendMessageConfiguration {
                accepted_output_modes: configuration.accepted_output_modes,
                task_push_notification_config: push.map(push_config),
                history_length: Some(configuration.history_length).filter(|it| *it != 0),
                return_immediately: !configuration.blocking,
            }),
            metadata: self.metadata,
            ..pb::SendMessageRequest::default()
        };
        asked(operation, request.members())
    }
}

fn message(it: old::Message) -> pb::Message {
    pb::Message {
        message_id: it.message_id,
        context_id: it.context_id,
        task_id: it.task_id,
        // The roles have the same numbers.
        role: it.role,
        parts: it.content.into_iter().map(part).collect(),
        metadata: it.metadata,
        extensions: it.extensions,
        reference_task_ids: Vec::new(),
    }
}

fn part(it: old::Part) -> pb::Part {
    use pb::part::Content;
    let (mut filename, mut media_type) = (String::new(), String::new());
    let content = match it.part {
        None => None,
        Some(old::part::Part::Text(text)) => Some(Content::Text(text)),
        Some(old::part::Part::File(file)) => {
            (filename, media_type) = (file.name, file.mime_type);
            file.file.map(|it| match it {
                old::file_part::File::FileWithUri(url) => Content::Url(url),
                old::file_part::File::FileWithBytes(raw) => Content::Raw(raw),
            })
        }
        Some(old::part::Part::Data(data)) => data.data.map(|it| {
            Content::Data(prost_types::Value {
                kind: Some(Kind::StructValue(it)),
            })
        }),
    };
    pb::Part {
        metadata: it.metadata,
        filename,
        media_type,
        content,
    }
}

fn push_config(it: old::PushNotificationConfig) -> pb::TaskPushNotificationConfig {
    pb::TaskPushNotificationConfig {
        id: it.id,
        url: it.url,
        token: it.token,
        // Of several schemes the first is taken.
        authentication: it.authentication.map(|it| pb::AuthenticationInfo {
            scheme: it.schemes.into_iter().next().unwrap_or_default(),
            credentials: it.credentials,
        }),
        ..pb::TaskPushNotificationConfig::default()
    }
}

/// Members with the ids in a name; a name that has another form is a fault.
fn named(member: &str, name: &str, form: &[(&str, &str)]) -> Given {
    let mut given = Given::default();
    let segments: Vec<&str> = name.split('/').collect();
    let pairs = segments.chunks_exact(2).zip(form);
    let fits = segments.len() == 2 * form.len()
        && pairs
            .clone()
            .all(|(pair, (known, _))| pair[0] == *known && !pair[1].is_empty());
    if !fits {
        let expected: Vec<_> = form.iter().map(|(it, _)| format!("{it}/{{id}}")).collect();
        let expected = expected.join("/");
        let shown: String = name.chars().take(64).collect();
        let reason = format!("`{shown}` is given, `{expected}` is required");
        given.faults.note(Fault::new(member, reason));
    }
    for (i, (_, id)) in form.iter().enumerate() {
        // Where the name is at fault, its ids are not missed as well.
        let value = segments.get(2 * i + 1).filter(|it| !it.is_empty());
        let value = Value::from(value.map_or("-", |it| *it));
        given.members.insert((*id).to_owned(), value);
    }
    given
}

const TASK: [(&str, &str); 1] = [("tasks", "id")];
const OF_TASK: [(&str, &str); 1] = [("tasks", "taskId")];
const CONFIG: [(&str, &str); 2] = [("tasks", "taskId"), ("pushNotificationConfigs", "id")];

impl Old for old::GetTaskRequest {
    fn asked(self, operation: Operation) -> ConvertedCall {
        let mut given = named("name", &self.name, &TASK);
        if self.history_length != 0 {
            let length = self.history_length.into();
            given.members.insert("historyLength".to_owned(), length);
        }
        asked(operation, given)
    }
}

impl Old for old::CancelTaskRequest {
    fn asked(self, operation: Operation) -> ConvertedCall {
        asked(operation, named("name", &self.name, &TASK))
    }
}

impl Old for old::TaskSubscriptionRequest {
    fn asked(self, operation: Operation) -> ConvertedCall {
        asked(operation, named("name", &self.name, &TASK))
    }
}

impl Old for old::CreateTaskPushNotificationConfigRequest {
    fn asked(self, operation: Operation) -> ConvertedCall {
        // Its pattern ends with the name of the collection; clients leave that out.
        let parent = self.parent.strip_suffix("/pushNotificationConfigs");
        let parent = parent.unwrap_or(&self.parent);
        let mut given = named("parent", parent, &OF_TASK);
        let config = self.config.and_then(|it| it.push_notification_config);
        let mut config = push_config(config.unwrap_or_default());
        if config.id.is_empty() {
            config.id = self.config_id;
        }
        let mut members = config.members();
        members.append(&mut given.members);
        asked(operation, Given { members, ..given })
    }
}

impl Old for old::GetTaskPushNotificationConfigRequest {
    fn asked(self, operation: Operation) -> ConvertedCall {
        asked(operation, named("name", &self.name, &CONFIG))
    }
}

impl Old for old::DeleteTaskPushNotificationConfigRequest {
    fn asked(self, operation: Operation) -> ConvertedCall {
        asked(operation, named("name", &self.name, &CONFIG))
    }
}

impl Old for old::ListTaskPushNotificationConfigRequest {
    fn asked(self, operation: Operation) -> ConvertedCall {
        let mut given = named("parent", &self.parent, &OF_TASK);
        if self.page_size != 0 {
            let size = self.page_size.into();
            given.members.insert("pageSize".to_owned(), size);
        }
        if !self.page_token.is_empty() {
            let token = self.page_token.into();
            given.members.insert("pageToken".to_owned(), token);
        }
        asked(operation, given)
    }
}

impl Old for old::GetAgentCardRequest {
    fn asked(self, operation: Operation) -> ConvertedCall {
        asked(operation, Map::new())
    }
}
