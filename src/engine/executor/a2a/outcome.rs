//! Maps the state of a remote agent's task to an outcome of ours: a result, a failure, or a question.

use super::super::{Answered, Ended, ExecutorError};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use taskledger_a2a::{Artifact, Message, Part, Role, Task, TaskState, Wire};
use taskledger_a2a_client::{NODES, Turn, question_id};
use taskledger_domain::limits::{QUESTION_BYTES_MAX, QUESTION_CHARS_MAX};
use taskledger_domain::question::{Asks, Question};

/// The artifact that taskledger servers give the result of a run in.
const RESULT: &str = "result";
/// The member of a question's context that says where the answer belongs.
const REMOTE: &str = "a2a";
/// Members of a question that its form may have, and their names on the wire.
const FORM: [(&str, &str); 4] = [
    ("responseType", "response_type"),
    ("choices", "choices"),
    ("schema", "schema"),
    ("fields", "fields"),
];

/// The task of an agent that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Remote {
    pub(super) task_id: String,
    context_id: Option<String>,
    /// The message with the question.
    pub(super) asked_in: Option<String>,
    node: Option<String>,
}

/// What comes of a turn.
///
/// # Errors
/// The task of the agent has not ended well.
pub(super) fn of(turn: Turn, agent: &str) -> Result<Ended, ExecutorError> {
    let task = match turn {
        Turn::Message(message) => {
            let members = [("message", message.to_json())];
            return Ok(Ended::Result(result(members, &[&message.parts], &message)));
        }
        Turn::Task(task) => task,
    };
    let unwell = |what: &str, task: &Task| {
        let mut text = format!("agent `{agent}` {what} task `{}`", task.id);
        if let Some(said) = task
            .status
            .message
            .as_ref()
            .and_then(|it| Part::texts_of(&it.parts))
        {
            let _ = write!(text, ": {said}");
        }
        Err(ExecutorError::new(text))
    };
    match task.status.state {
        TaskState::Completed => Ok(Ended::Result(completed(task))),
        TaskState::Failed => unwell("failed", &task),
        TaskState::Rejected => unwell("rejected", &task).map_err(ExecutorError::rejected),
        TaskState::Canceled => unwell("cancelled", &task),
        TaskState::InputRequired => Ok(Ended::Asks(question(&task, agent, Asks::Input))),
        TaskState::AuthRequired => Ok(Ended::Asks(question(&task, agent, Asks::Auth))),
        // Nobody calls a task settled in these.
        TaskState::Submitted | TaskState::Working => unwell("still works at", &task),
    }
}

fn completed(task: Task) -> Value {
    // What the run as a whole has made comes first for `data` and `text`.
    let (of_run, others): (Vec<&Artifact>, Vec<&Artifact>) = task
        .artifacts
        .iter()
        .partition(|it| it.artifact_id == RESULT);
    let ordered = of_run.into_iter().chain(others.into_iter().rev());
    let made: Vec<&[Part]> = ordered.map(|it| &*it.parts).collect();
    let message = task.status.message.as_ref();
    let said = message.map(|it| &*it.parts);
    let mut members = Map::new();
    let mut all = made.iter().copied().chain(said);
    if let Some(data) = all.find_map(Part::data_of) {
        members.insert("data".to_owned(), data.clone());
    }
    // Pieces of an artifact are one text; parts of a message are a line each.
    let text = made.iter().find_map(|parts| Part::text_of_artifact(parts));
    if let Some(text) = text.or_else(|| said.and_then(Part::texts_of)) {
        members.insert("text".to_owned(), text.into());
    }
    members.insert("task_id".to_owned(), task.id.as_str().into());
    if let Some(context) = &task.context_id {
        members.insert("context_id".to_owned(), context.as_str().into());
    }
    // Joined, so that a secret which an agent sends in two pieces is found.
    let artifacts = task.artifacts.iter().map(|it| {
        let parts = Part::joined(&it.parts);
        Wire::to_json(&Artifact {
            parts,
            ..it.clone()
        })
    });
    members.insert("artifacts".to_owned(), artifacts.collect());
    if let Some(message) = message {
        members.insert("message".to_owned(), message.to_json());
    }
    Value::Object(members)
}

/// The result of a message without a task.
fn result<const N: usize>(
    members: [(&str, Value); N],
    said: &[&[Part]],
    message: &Message,
) -> Value {
    let mut all = Map::from_iter(members.map(|(name, value)| (name.to_owned(), value)));
    if let Some(data) = said.iter().find_map(|parts| Part::data_of(parts)) {
        all.insert("data".to_owned(), data.clone());
    }
    if let Some(text) = said.iter().find_map(|parts| Part::texts_of(parts)) {
        all.insert("text".to_owned(), text.into());
    }
    if let Some(context) = &message.context_id {
        all.insert("context_id".to_owned(), context.as_str().into());
    }
    Value::Object(all)
}

/// The question of a task, in our form. A form that the agent sends along and that is one of ours is kept.
fn question(task: &Task, agent: &str, asks: Asks) -> Map<String, Value> {
    let said = task.status.message.as_ref();
    let parts = said.map_or(&[] as &[Part], |it| &it.parts);
    let fallback = match asks {
        Asks::Input => format!("Agent `{agent}` needs an answer."),
        Asks::Auth => format!("Agent `{agent}` needs credentials."),
    };
    let text = Part::texts_of(parts).filter(|it| !it.trim().is_empty());
    let text: String = text
        .unwrap_or(fallback)
        .chars()
        .take(QUESTION_CHARS_MAX)
        .collect();
    let node = said.and_then(|it| it.metadata.as_ref()?.get(NODES)?.get("nodeId"));
    let mut remote = json!({"task_id": task.id});
    for (name, value) in [
        ("context_id", task.context_id.as_deref()),
        ("message_id", question_id(&task.status).as_deref()),
        ("node_id", node.and_then(Value::as_str)),
    ] {
        if let Some(value) = value {
            remote[name] = value.into();
        }
    }
    let mut asked = Map::new();
    asked.insert("question".to_owned(), text.into());
    asked.insert(
        "context".to_owned(),
        json!({"agent": agent, REMOTE: remote}),
    );
    if asks == Asks::Auth {
        // The credentials themselves are given in another way: the answer is that they are there.
        asked.insert("asks".to_owned(), "auth".into());
        asked.insert("response_type".to_owned(), "confirm".into());
        return asked;
    }
    let form = Part::data_of(parts).and_then(Value::as_object);
    let mut formed = asked.clone();
    for (wire, name) in FORM {
        if let Some(value) = form.and_then(|form| form.get(wire)) {
            formed.insert(name.to_owned(), value.clone());
        }
    }
    let fits = Value::Object(formed.clone()).to_string().len() <= QUESTION_BYTES_MAX;
    match fits && Question::parse(&formed).is_ok() {
        true => formed,
        false => asked,
    }
}

impl Remote {
    /// Where the answer to a question belongs; `None`: the question is none of an agent.
    pub(super) fn of(answered: &Answered) -> Option<Self> {
        Self::asked_in(&answered.question)
    }

    /// The same for a question that was not answered.
    pub(super) fn asked_in(question: &Map<String, Value>) -> Option<Self> {
        let remote = question.get("context")?.get(REMOTE)?;
        let text = |name: &str| remote.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            task_id: text("task_id")?,
            context_id: text("context_id"),
            asked_in: text("message_id"),
            node: text("node_id"),
        })
    }

    /// The answer as a message.
    pub(super) fn message(&self, answered: &Answered) -> Message {
        let is_auth = answered.question.get("asks").and_then(Value::as_str) == Some("auth");
        let part = match &answered.answer {
            Value::Bool(yes) if is_auth => Part::text(if *yes { "yes" } else { "no" }),
            Value::String(text) => Part::text(&**text),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)) => Part::data(other.clone()),
        };
        let node = self.node.as_deref();
        let metadata = node.map(|node| Map::from_iter([("nodeId".to_owned(), node.into())]));
        Message {
            message_id: answered.suspension.to_string(),
            context_id: self.context_id.clone(),
            task_id: Some(self.task_id.clone()),
            role: Role::User,
            parts: vec![part],
            metadata,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }
}
