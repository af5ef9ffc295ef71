//! Writes runs as tasks of the protocol.

use super::super::names::NODES;
use super::left_out::{LEFT_OUT, say_where};
use crate::application::api::runs::{
    Artifact as Made, HistoryEntry, NodeChange, OutputPart, Piece, Question, RunStage, RunStatus,
    RunView, StatusMessage,
};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use taskledger_a2a::event::{TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use taskledger_a2a::{
    Artifact, Content, Message, Part, Role, StreamResponse, Task, TaskState, TaskStatus, Wire,
};
use taskledger_domain::{Payload, RunId, Timestamp};

/// The artifact of the task that was asked for.
const RESULT: &str = "result";

/// The names that everything of a run carries.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) task: String,
    pub(crate) context: Arc<str>,
}

impl Named {
    pub(crate) fn of(run: RunId, context: Arc<str>) -> Self {
        Self {
            task: run.to_string(),
            context,
        }
    }
}

/// A run.
pub(crate) fn task(view: RunView) -> Task {
    let named = Named::of(view.run, view.context.clone());
    let mut metadata = protocol();
    metadata.insert("rootTaskId".to_owned(), view.flow.root().to_string().into());
    for (name, count) in [
        (LEFT_OUT, view.artifacts_left_out),
        ("messagesLeftOut", view.history_left_out),
    ] {
        if count > 0 {
            metadata.insert(name.to_owned(), count.into());
        }
    }
    if view.artifacts_left_out > 0 {
        say_where(&named.task, &mut metadata);
    }
    if !view.references.is_empty() {
        let list: Vec<_> = view.references.iter().map(RunId::to_string).collect();
        metadata.insert("referenceTaskIds".to_owned(), list.into());
    }
    let history = view.history.into_iter().map(|it| entry(it, &named));
    Task {
        history: history.collect(),
        status: status(view.status, &named),
        artifacts: view.artifacts.into_iter().map(artifact).collect(),
        metadata: Some(metadata),
        context_id: Some(named.context.to_string()),
        id: named.task,
    }
}

fn protocol() -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("protocol".to_owned(), "a2a".into());
    metadata
}

pub(crate) fn time(at: Timestamp) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(at.0)
}

pub(crate) fn state(stage: RunStage) -> TaskState {
    match stage {
        RunStage::Submitted => TaskState::Submitted,
        RunStage::Working => TaskState::Working,
        RunStage::InputRequired => TaskState::InputRequired,
        RunStage::AuthRequired => TaskState::AuthRequired,
        RunStage::Completed => TaskState::Completed,
        RunStage::Failed => TaskState::Failed,
        RunStage::Cancelled => TaskState::Canceled,
        RunStage::Rejected => TaskState::Rejected,
    }
}

/// The stage of a state.
pub(crate) const fn stage(state: TaskState) -> RunStage {
    match state {
        TaskState::Submitted => RunStage::Submitted,
        TaskState::Working => RunStage::Working,
        TaskState::InputRequired => RunStage::InputRequired,
        TaskState::AuthRequired => RunStage::AuthRequired,
        TaskState::Completed => RunStage::Completed,
        TaskState::Failed => RunStage::Failed,
        TaskState::Canceled => RunStage::Cancelled,
        TaskState::Rejected => RunStage::Rejected,
    }
}

fn status(status: RunStatus, named: &Named) -> TaskStatus {
    let message = status.message.map(|message| match message {
        StatusMessage::Question(question) => asked(&question, named),
        StatusMessage::Error(text) => {
            let id = format!("{}:{}", named.task, status.stage.as_str());
            agent(id, vec![Part::text(&*text)], named, None)
        }
    });
    TaskStatus {
        state: state(status.stage),
        message,
        timestamp: time(status.at),
    }
}

/// A message of the agent.
pub(crate) fn agent(
    message_id: String,
    parts: Vec<Part>,
    named: &Named,
    metadata: Option<Map<String, Value>>,
) -> Message {
    Message {
        message_id,
        context_id: Some(named.context.to_string()),
        task_id: Some(named.task.clone()),
        role: Role::Agent,
        parts,
        metadata,
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    }
}

/// A question: its text, and its form if it has more than a text.
fn asked(question: &Question, named: &Named) -> Message {
    let mut form = question.question.to_map();
    let text = form.remove("question");
    // A text is what is expected without a form.
    if form.get("response_type").and_then(Value::as_str) == Some("text") {
        form.remove("response_type");
    }
    let text = text
        .as_ref()
        .and_then(Value::as_str)
        .unwrap_or("input is required");
    let mut parts = vec![Part::text(text)];
    if !form.is_empty() {
        let form = form
            .into_iter()
            .map(|(name, value)| (camel_of(&name), value));
        parts.push(Part::data(Value::Object(form.collect())));
    }
    let mut about = json!({"nodeId": question.task.to_string()});
    if let Some(at) = question.expires_at.and_then(time) {
        about["expiresAt"] = taskledger_a2a::write::time(at).into();
    }
    let metadata = Map::from_iter([(NODES.to_owned(), about)]);
    agent(
        question.suspension.to_string(),
        parts,
        named,
        Some(metadata),
    )
}

/// A name as this protocol writes it.
pub(crate) fn camel_of(snake: &str) -> String {
    let mut camel = String::with_capacity(snake.len());
    let mut is_begin = false;
    for c in snake.chars() {
        match c {
            '_' => is_begin = true,
            c if is_begin => {
                camel.push(c.to_ascii_uppercase());
                is_begin = false;
            }
            c => camel.push(c),
        }
    }
    camel
}

fn entry(entry: HistoryEntry, named: &Named) -> Message {
    match entry {
        HistoryEntry::Question(question) => asked(&question, named),
        HistoryEntry::Message { message, .. } => {
            let members = Value::Object(message.to_map());
            // Whatever another door has written is shown as data.
            let read = Message::from_json(members.clone()).unwrap_or_else(|_| Message {
                role: Role::User,
                ..agent(named.task.clone(), vec![Part::data(members)], named, None)
            });
            Message {
                task_id: Some(named.task.clone()),
                context_id: Some(named.context.to_string()),
                ..read
            }
        }
    }
}

/// What a task has made: parts of its output, then its result.
pub(crate) fn artifact(it: Made) -> Artifact {
    made(it, false)
}

/// `appends`: parts of the output were sent before.
fn made(it: Made, appends: bool) -> Artifact {
    let artifact_id = match it.is_result {
        true => RESULT.to_owned(),
        false => it.task.to_string(),
    };
    let mut parts = Vec::new();
    for part in &it.output {
        match &**part {
            OutputPart::Text(text) => append_text(&mut parts, text),
            OutputPart::Data(data) => parts.extend(parts_of(data.to_map())),
        }
    }
    let result = it.result.as_ref().map(Payload::to_map);
    // A worker that has sent its output in pieces has nothing to add.
    let follows = appends || !parts.is_empty();
    let result = result.filter(|it| !(follows && it.is_empty()));
    parts.extend(result.into_iter().flat_map(parts_of));
    let mut about = json!({"nodeId": it.task.to_string(), "attempt": it.attempt});
    if let Some(parent) = it.parent {
        about["parentId"] = parent.to_string().into();
    }
    Artifact {
        artifact_id,
        name: Some(it.name.to_string()).filter(|it| !it.is_empty()),
        description: None,
        parts,
        metadata: Some(Map::from_iter([(NODES.to_owned(), about)])),
        extensions: vec![NODES.to_owned()],
    }
}

/// Texts that follow each other are one text: a worker sends them as it writes them.
fn append_text(parts: &mut Vec<Part>, text: &str) {
    if let Some(Part {
        content: Content::Text(before),
        metadata: None,
        filename: None,
        media_type: None,
    }) = parts.last_mut()
    {
        before.push_str(text);
    } else {
        parts.push(Part::text(text));
    }
}

/// The member of a result that says in which parts it is shown, if it is the only one.
const PARTS: &str = "a2a_parts";

/// A result as the parts that it names, else as data.
fn parts_of(result: Map<String, Value>) -> Vec<Part> {
    let named = result.get(PARTS).filter(|_| result.len() == 1);
    let named = named.and_then(Value::as_array).and_then(|list| {
        let parts = list.iter().cloned().map(Part::from_json);
        parts.collect::<Result<Vec<_>, _>>().ok()
    });
    named.filter(|parts| !parts.is_empty()).unwrap_or_else(|| {
        vec![Part {
            media_type: Some("application/json".to_owned()),
            ..Part::data(Value::Object(result))
        }]
    })
}

/// A change of the status of a run.
pub(crate) fn status_update(it: RunStatus, named: &Named) -> StreamResponse {
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id: named.task.clone(),
        context_id: named.context.to_string(),
        status: status(it, named),
        metadata: Some(protocol()),
    })
}

/// More of what a task of a run returns.
pub(crate) fn artifact_update(it: Piece, named: &Named) -> StreamResponse {
    let mut artifact = made(it.artifact, it.appends);
    if artifact.parts.is_empty() {
        // The protocol wants one part at least, also of the update that says that it is the last one.
        artifact.parts.push(Part::text(""));
    }
    StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: named.task.clone(),
        context_id: named.context.to_string(),
        append: it.appends,
        last_chunk: it.is_last,
        artifact,
        metadata: Some(protocol()),
    })
}

/// A change of a node, for clients that use the extension.
pub(crate) fn node_update(it: &NodeChange, at: Timestamp, named: &Named) -> StreamResponse {
    let mut about = json!({
        "nodeId": it.task.to_string(),
        "status": it.status.as_str(),
        "progress": f64::from(it.progress.millionths()) / 1e6,
    });
    if let Some(attempt) = it.attempt {
        about["attempt"] = attempt.into();
    }
    if let Some(message) = &it.message {
        about["message"] = Value::from(&**message);
    }
    let mut metadata = protocol();
    metadata.insert(NODES.to_owned(), about);
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id: named.task.clone(),
        context_id: named.context.to_string(),
        status: TaskStatus {
            state: TaskState::Working,
            message: None,
            timestamp: time(at),
        },
        metadata: Some(metadata),
    })
}
