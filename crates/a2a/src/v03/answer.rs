//! Answers and items of streams in the form of 0.3.

use super::request::{VALUE, WRAPPED};
use super::{Form, card, state};
use crate::error::{Error, ErrorKind};
use crate::event::{
    SendMessageResponse, StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent,
};
use crate::message::{Content, Message, Part, Role};
use crate::operation::{Answer, Operation};
use crate::request::TaskPushNotificationConfig;
use crate::task::{Artifact, Task, TaskState, TaskStatus};
use crate::write::{Members, bytes, name_of, time};
use serde_json::{Map, Value, json};

/// Settings for writing an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answering {
    /// What was asked for.
    pub operation: Operation,
    /// The form in which the answer is written.
    pub form: Form,
    /// Whether the first of several configurations is the answer.
    pub is_first: bool,
}

impl Answering {
    /// With all that there is.
    #[must_use]
    pub const fn new(operation: Operation, form: Form) -> Self {
        Self {
            operation,
            form,
            is_first: false,
        }
    }

    /// Whether a stream tells nothing behind a status in this state.
    #[must_use]
    pub const fn is_final(self, state: TaskState) -> bool {
        let asks = matches!(state, TaskState::InputRequired);
        state.is_terminal() || (asks && matches!(self.operation, Operation::SendStreamingMessage))
    }

    /// An answer.
    ///
    /// # Errors
    /// `TaskNotFound`: the first configuration is asked for, and there is none. `Internal`: 0.3 has no such answer.
    pub fn answer(self, answer: &Answer) -> Result<Value, Error> {
        let form = self.form;
        Ok(match answer {
            Answer::Sent(SendMessageResponse::Task(it)) => {
                wrapped("task", Value::Object(task(it, form)), form)
            }
            Answer::Sent(SendMessageResponse::Message(it)) => {
                wrapped("message", Value::Object(message(it, form)), form)
            }
            Answer::Task(it) => Value::Object(task(it, form)),
            Answer::PushConfig(it) => config(it, form),
            Answer::PushConfigs(page) if self.is_first => match page.configs.first() {
                Some(it) => config(it, form),
                None => {
                    let reason = "the task has no push notification configuration";
                    return Err(Error::new(ErrorKind::TaskNotFound, reason));
                }
            },
            Answer::PushConfigs(page) => {
                let configs: Vec<_> = page.configs.iter().map(|it| config(it, form)).collect();
                match form {
                    Form::Kinds => configs.into(),
                    Form::Proto => {
                        json!({"configs": configs, "nextPageToken": page.next_page_token})
                    }
                }
            }
            Answer::Deleted => match form {
                Form::Kinds => Value::Null,
                Form::Proto => json!({}),
            },
            Answer::Card(it) => card::hybrid(it),
            Answer::Tasks(_) => {
                return Err(Error::new(ErrorKind::Internal, "0.3 has no lists of tasks"));
            }
        })
    }

    /// An item of a stream.
    #[must_use]
    pub fn item(self, item: &StreamResponse) -> Value {
        let form = self.form;
        let (name, members) = match item {
            StreamResponse::Task(it) => ("task", task(it, form)),
            StreamResponse::Message(it) => ("message", message(it, form)),
            StreamResponse::StatusUpdate(it) => ("statusUpdate", self.status_update(it)),
            StreamResponse::ArtifactUpdate(it) => ("artifactUpdate", artifact_update(it, form)),
        };
        wrapped(name, Value::Object(members), form)
    }

    fn status_update(self, it: &TaskStatusUpdateEvent) -> Map<String, Value> {
        kinds("status-update", self.form)
            .with("taskId", &*it.task_id)
            .with("contextId", &*it.context_id)
            .with("status", status(&it.status, self.form))
            .with("final", self.is_final(it.status.state))
            .map("metadata", it.metadata.as_ref())
            .done()
    }
}

/// In the form of the .proto, what an object is stands around it.
fn wrapped(name: &str, object: Value, form: Form) -> Value {
    match form {
        Form::Kinds => object,
        Form::Proto => json!({name: object}),
    }
}

/// The members of an object that says what it is.
fn kinds(kind: &str, form: Form) -> Members {
    match form {
        Form::Kinds => Members::new().with("kind", kind),
        Form::Proto => Members::new(),
    }
}

/// Writes a task as the JSON of version 0.3, in the given form.
#[must_use]
pub fn task(it: &Task, form: Form) -> Map<String, Value> {
    let list = |list: Vec<Value>| Some(list).filter(|it| !it.is_empty());
    let artifacts = it.artifacts.iter().map(|it| artifact(it, form).into());
    let history = it.history.iter().map(|it| message(it, form).into());
    kinds("task", form)
        .with("id", &*it.id)
        .with("contextId", it.context_id.as_deref().unwrap_or_default())
        .with("status", status(&it.status, form))
        .set("artifacts", list(artifacts.collect()))
        .set("history", list(history.collect()))
        .map("metadata", it.metadata.as_ref())
        .done()
}

fn status(it: &TaskStatus, form: Form) -> Map<String, Value> {
    Members::new()
        .with("state", state(it.state, form))
        .set("message", it.message.as_ref().map(|it| message(it, form)))
        .set("timestamp", it.timestamp.map(time))
        .done()
}

/// Writes a message as the JSON of version 0.3, in the given form.
#[must_use]
pub fn message(it: &Message, form: Form) -> Map<String, Value> {
    let role = match (form, it.role) {
        (Form::Kinds, Role::User) => "user",
        (Form::Kinds, Role::Agent) => "agent",
        (Form::Proto, role) => name_of(role),
    };
    let parts: Vec<_> = it.parts.iter().map(|it| part(it, form)).collect();
    let members = kinds("message", form)
        .with("messageId", &*it.message_id)
        .text("contextId", it.context_id.as_deref())
        .text("taskId", it.task_id.as_deref())
        .with("role", role)
        .map("metadata", it.metadata.as_ref())
        .texts("extensions", &it.extensions);
    match form {
        Form::Kinds => members
            .with("parts", parts)
            .texts("referenceTaskIds", &it.reference_task_ids),
        Form::Proto => members.with("content", parts),
    }
    .done()
}

fn part(it: &Part, form: Form) -> Value {
    let (kind, name, content) = match &it.content {
        Content::Text(text) => ("text", "text", Value::from(&**text)),
        Content::Raw(raw) => ("file", "file", file(it, "bytes", bytes(raw), form)),
        Content::Url(url) => ("file", "file", file(it, "uri", url.clone(), form)),
        Content::Data(data) => {
            let (data, is_wrapped) = match data {
                Value::Object(_) => (data.clone(), false),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_) => (json!({VALUE: data}), true),
            };
            let data = match form {
                Form::Kinds => data,
                Form::Proto => json!({ "data": data }),
            };
            let mut metadata = it.metadata.clone();
            if is_wrapped {
                let metadata = metadata.get_or_insert_default();
                metadata.insert(WRAPPED.to_owned(), true.into());
            }
            return kinds("data", form)
                .with("data", data)
                .map("metadata", metadata.as_ref())
                .done()
                .into();
        }
    };
    kinds(kind, form)
        .with(name, content)
        .map("metadata", it.metadata.as_ref())
        .done()
        .into()
}

fn file(it: &Part, content: &str, value: String, form: Form) -> Value {
    let content = match (form, content) {
        (Form::Kinds, content) => content,
        (Form::Proto, "bytes") => "fileWithBytes",
        (Form::Proto, _) => "fileWithUri",
    };
    Members::new()
        .with(content, value)
        .text("mimeType", it.media_type.as_deref())
        .text("name", it.filename.as_deref())
        .done()
        .into()
}

fn artifact(it: &Artifact, form: Form) -> Map<String, Value> {
    let parts: Vec<_> = it.parts.iter().map(|it| part(it, form)).collect();
    Members::new()
        .with("artifactId", &*it.artifact_id)
        .text("name", it.name.as_deref())
        .text("description", it.description.as_deref())
        .with("parts", parts)
        .map("metadata", it.metadata.as_ref())
        .texts("extensions", &it.extensions)
        .done()
}

fn artifact_update(it: &TaskArtifactUpdateEvent, form: Form) -> Map<String, Value> {
    kinds("artifact-update", form)
        .with("taskId", &*it.task_id)
        .with("contextId", &*it.context_id)
        .with("artifact", artifact(&it.artifact, form))
        .with("append", it.append)
        .with("lastChunk", it.last_chunk)
        .map("metadata", it.metadata.as_ref())
        .done()
}

/// The name of a configuration in the older .proto.
pub(super) fn config_name(it: &TaskPushNotificationConfig) -> String {
    format!(
        "tasks/{}/pushNotificationConfigs/{}",
        it.task_id.as_deref().unwrap_or_default(),
        it.id.as_deref().unwrap_or_default()
    )
}

fn config(it: &TaskPushNotificationConfig, form: Form) -> Value {
    let authentication = it.authentication.as_ref().map(|it| {
        Members::new()
            .with("schemes", vec![it.scheme.clone()])
            .text("credentials", it.credentials.as_deref())
            .done()
    });
    let config = Members::new()
        .text("id", it.id.as_deref())
        .with("url", &*it.url)
        .text("token", it.token.as_deref())
        .set("authentication", authentication)
        .done();
    let members = match form {
        Form::Kinds => Members::new().with("taskId", it.task_id.as_deref().unwrap_or_default()),
        Form::Proto => Members::new().with("name", config_name(it)),
    };
    members.with("pushNotificationConfig", config).done().into()
}
