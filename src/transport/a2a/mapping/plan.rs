//! Decides what a message runs: tasks in its data, a stored task, the configured method, or nothing.

pub(crate) mod conformance;
mod workflows;

pub(crate) use workflows::unfit;

use super::super::names::{INPUT_MODES, TASKS, WORKFLOW_SKILL};
use crate::application::api::Target;
use crate::application::api::workflows::RunWorkflow;
use serde_json::{Map, Value, json};
use taskledger_a2a::{Content, Error, ErrorKind, Fault, Faults, Message, Part, Wire};
use taskledger_domain::task::call;
use taskledger_domain::{PathSegment, TaskId, Violation};

/// Members of metadata that name a skill.
const SKILL: [&str; 3] = ["skillId", "skill_id", "skill"];
/// The header, or metadata of gRPC, that makes a repetition harmless.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The member of a request beside the message.
const CONFIGURATION: &str = "configuration";

/// What a message is to run.
pub(crate) enum Plan {
    /// Tasks.
    Run {
        /// Which.
        target: Target,
        /// Where in the message they stand.
        source: Source,
    },
    /// A run of a workflow that is kept.
    Workflow {
        /// Which.
        run: RunWorkflow,
        /// Where in the message it stands.
        source: Source,
    },
    /// Nothing: it is answered with this text.
    Direct(&'static str),
    /// Nothing: it says nothing that could be run.
    Nothing,
}

/// Where in a message that stands which is run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Source(Vec<Piece>);

/// Tasks of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    part: usize,
    form: Form,
    /// Tasks of the call before those of this part.
    first: usize,
    tasks: usize,
}

/// How the data of a part names tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `{tasks: [..]}`.
    List,
    /// One task object.
    One,
    /// `{taskId}`.
    Stored,
    /// `{workflow, version, inputs}`.
    Workflow,
    /// The whole message, for the configured method.
    Whole,
}

impl Source {
    /// Whether a workflow is run.
    pub(crate) fn is_workflow(&self) -> bool {
        self.0.iter().any(|piece| piece.form == Form::Workflow)
    }

    /// The path of the message for a path of the call that it became.
    pub(crate) fn field(&self, path: &[PathSegment]) -> String {
        if let [PathSegment::Key(first), PathSegment::Key(second)] = path
            && (&**first, &**second) == ("metadata", "idempotency_key")
        {
            return IDEMPOTENCY_KEY.to_owned();
        }
        if let [PathSegment::Key(first), ..] = path
            && first == CONFIGURATION
        {
            return joined("", path);
        }
        if let [PathSegment::Key(only)] = path
            && only == "secret"
        {
            return format!("{CONFIGURATION}.taskPushNotificationConfig.authentication");
        }
        let (piece, rest) = match path {
            [PathSegment::Key(key), PathSegment::Index(i), rest @ ..] if key == "tasks" => {
                let of = |it: &&Piece| (it.first..it.first.saturating_add(it.tasks)).contains(i);
                match self.0.iter().find(of) {
                    Some(piece) => (piece, (Some(i - piece.first), rest)),
                    None => return of_answer(path),
                }
            }
            _ => match self.0.first() {
                Some(piece) => (piece, (None, path)),
                None => return of_answer(path),
            },
        };
        let data = format!("message.parts[{}].data", piece.part);
        match (piece.form, rest) {
            (Form::List, (Some(i), rest)) => joined(&format!("{data}.tasks[{i}]"), rest),
            (Form::One, (Some(_), rest)) => joined(&data, rest),
            (Form::Stored, _) => format!("{data}.taskId"),
            // Its tasks are not the caller's: what is wrong with them is wrong with the workflow.
            (Form::Workflow, (Some(_), _)) => format!("{data}.workflow"),
            (Form::Whole, _) => "message.parts".to_owned(),
            (Form::List | Form::One | Form::Workflow, (None, rest)) => joined(&data, rest),
        }
    }
}

/// The path of a message that says something to a run.
fn of_answer(path: &[PathSegment]) -> String {
    match path.first() {
        Some(PathSegment::Key(key)) if key == "context_id" => "message.contextId".to_owned(),
        Some(PathSegment::Key(key)) if key == "message_id" => "message.messageId".to_owned(),
        Some(PathSegment::Key(key)) if key == "task_id" => "message.metadata.nodeId".to_owned(),
        Some(PathSegment::Key(key)) if key == "value" => "message.parts".to_owned(),
        Some(_) | None => joined("", path),
    }
}

fn joined(begin: &str, path: &[PathSegment]) -> String {
    let mut text = begin.to_owned();
    for segment in path {
        match segment {
            PathSegment::Key(key) if text.is_empty() => text.push_str(key),
            PathSegment::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            PathSegment::Index(i) => text.push_str(&format!("[{i}]")),
        }
    }
    text
}

/// What a message is to run. `method`: the one that is configured for messages without tasks.
///
/// # Errors
/// `ContentTypeNotSupported` for a part that no skill takes, `InvalidParams` for an unknown skill and for tasks that
/// are none.
pub(crate) fn plan(
    message: &Message,
    metadata: Option<&Map<String, Value>>,
    method: Option<&str>,
) -> Result<Plan, Error> {
    unless_taken(&message.parts)?;
    let skill = skill(message, metadata)?;
    if let Some(name) = skill
        .as_deref()
        .and_then(|it| it.strip_prefix(WORKFLOW_SKILL))
    {
        return workflows::of_skill(&message.parts, name);
    }
    if let Some(plan) = workflows::named(&message.parts)? {
        return Ok(plan);
    }
    match skill.as_deref() {
        Some(TASKS) => match tasks(&message.parts)? {
            Some(plan) => Ok(plan),
            None => Err(Error::invalid_member(
                "message.parts",
                "no part has data with `tasks`, a task, `taskId` or `workflow`, which the skill `tasks.execute` takes",
            )),
        },
        Some(text) if Some(text) == method => whole(&message.parts, text),
        Some(other) => {
            let known = method.map(|it| format!(" and `{it}`")).unwrap_or_default();
            let reason =
                format!("`{other}` is not a skill of this agent; expected one of `{TASKS}`{known}");
            Err(Error::invalid_member("message.metadata.skillId", reason))
        }
        None => match (tasks(&message.parts)?, method) {
            (Some(plan), _) => Ok(plan),
            (None, Some(method)) => whole(&message.parts, method),
            (None, None) => Ok(Plan::Nothing),
        },
    }
}

fn unless_taken(parts: &[Part]) -> Result<(), Error> {
    for (i, part) in parts.iter().enumerate() {
        let given = part.media_type().unwrap_or("application/octet-stream");
        let essence = given.split(';').next().unwrap_or_default().trim();
        if !INPUT_MODES
            .iter()
            .any(|it| it.eq_ignore_ascii_case(essence))
        {
            let message = format!(
                "parts of the media type `{}` are not taken: {} are",
                given.chars().take(64).collect::<String>(),
                INPUT_MODES.join(" and ")
            );
            let error = Error::new(ErrorKind::ContentTypeNotSupported, message);
            return Err(error.with("part", i.to_string()));
        }
    }
    Ok(())
}

fn skill(
    message: &Message,
    metadata: Option<&Map<String, Value>>,
) -> Result<Option<String>, Error> {
    let of_message = message.metadata.as_ref().map(|it| ("message.metadata", it));
    let of_request = metadata.map(|it| ("metadata", it));
    for (path, map) in [of_message, of_request].into_iter().flatten() {
        for name in SKILL {
            match map.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::String(skill)) => return Ok(Some(skill.clone())),
                Some(_) => {
                    let field = format!("{path}.{name}");
                    return Err(Error::invalid_member(
                        field,
                        "the name of a skill is required",
                    ));
                }
            }
        }
    }
    Ok(None)
}

/// The tasks in the data of a message; `None` if no part has any.
fn tasks(parts: &[Part]) -> Result<Option<Plan>, Error> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut list: Vec<Value> = Vec::new();
    let mut stored: Option<(usize, String)> = None;
    for (part, data) in parts.iter().enumerate() {
        let Content::Data(Value::Object(data)) = &data.content else {
            continue;
        };
        let first = list.len();
        let form = if let Some(given) = data.get("tasks") {
            let Some(given) = given.as_array() else {
                let field = format!("message.parts[{part}].data.tasks");
                return Err(Error::invalid_member(
                    field,
                    "an array of tasks is required",
                ));
            };
            list.extend(given.iter().cloned());
            Form::List
        } else if let Some(id) = data.get("taskId").or_else(|| data.get("task_id")) {
            let field = format!("message.parts[{part}].data.taskId");
            let Some(id) = id.as_str() else {
                return Err(Error::invalid_member(field, "the id of a task is required"));
            };
            if stored.is_some() {
                return Err(Error::invalid_member(
                    field,
                    "only one stored task can be run",
                ));
            }
            stored = Some((part, id.to_owned()));
            Form::Stored
        } else if data.contains_key("name") {
            list.push(Value::Object(data.clone()));
            Form::One
        } else {
            continue;
        };
        let tasks = list.len() - first;
        pieces.push(Piece {
            part,
            form,
            first,
            tasks,
        });
    }
    let source = Source(pieces);
    match (stored, source.0.is_empty()) {
        (None, true) => Ok(None),
        (Some((part, id)), _) if list.is_empty() && source.0.len() == 1 => {
            let Ok(id) = TaskId::parse(&id) else {
                let field = format!("message.parts[{part}].data.taskId");
                return Err(Error::invalid_member(
                    field,
                    "not the id of a task, a UUID of version 4",
                ));
            };
            let target = Target::Stored(id);
            Ok(Some(Plan::Run { target, source }))
        }
        (Some((part, _)), _) => Err(Error::invalid_member(
            format!("message.parts[{part}].data.taskId"),
            "either new tasks or a stored one can be run, not both",
        )),
        (None, false) => {
            let list = list.into_iter().map(with_whole_numbers).collect();
            Ok(Some(read(Value::Array(list), source)?))
        }
    }
}

fn read(list: Value, source: Source) -> Result<Plan, Error> {
    match call::read_tasks(&list) {
        Ok(tasks) => Ok(Plan::Run {
            target: Target::New(tasks),
            source,
        }),
        Err(violations) => Err(Error::invalid(faults(&violations, &source))),
    }
}

fn faults(violations: &[Violation], source: &Source) -> Faults {
    let mut faults = Faults::default();
    for violation in violations {
        let description = format!("{}, expected {}", violation.reason, violation.expected);
        faults.note(Fault::new(source.field(&violation.path), description));
    }
    faults
}

/// One task of a method, which the whole message has asked for.
fn of_method(method: &str, inputs: Value) -> Result<Plan, Error> {
    let task = json!({"name": method, "schemas": {"method": method}, "inputs": inputs});
    let source = Source(vec![Piece {
        part: 0,
        form: Form::Whole,
        first: 0,
        tasks: 1,
    }]);
    read(Value::Array(vec![task]), source)
}

/// One task of the configured method, whose inputs are the message.
fn whole(parts: &[Part], method: &str) -> Result<Plan, Error> {
    let mut inputs = json!({"text": Part::texts_of(parts).unwrap_or_default()});
    let is_text = |part: &Part| matches!(part.content, Content::Text(_));
    if !parts.iter().all(is_text) {
        inputs["parts"] = parts.iter().map(Wire::to_json).collect();
    }
    of_method(method, inputs)
}

/// Clients that build data from `double`s send 2.0 for 2: they mean the integer.
fn with_whole_numbers(value: Value) -> Value {
    /// Beyond it a `double` does not tell whole numbers apart.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() <= WHOLE_MAX {
                // Exact: it is whole and small enough.
                #[allow(clippy::cast_possible_truncation)]
                return Value::from(float as i64);
            }
            Value::Number(number)
        }
        Value::Array(list) => list.into_iter().map(with_whole_numbers).collect(),
        Value::Object(map) => {
            let members = map.into_iter();
            let members = members.map(|(name, value)| (name, with_whole_numbers(value)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_a2a::Role;

    pub(super) fn message(parts: Vec<Part>) -> Message {
        Message {
            message_id: "m".to_owned(),
            context_id: None,
            task_id: None,
            role: Role::User,
            parts,
            metadata: None,
            extensions: vec![],
            reference_task_ids: vec![],
        }
    }

    fn planned(parts: Vec<Part>, method: Option<&str>) -> Result<Plan, Error> {
        plan(&message(parts), None, method)
    }

    fn task(name: &str) -> Value {
        json!({"name": name})
    }

    #[test]
    fn tasks_of_several_parts_are_one_call_and_faults_name_their_part() {
        let parts = vec![
            Part::text("please"),
            Part::data(json!({"tasks": [task("a")]})),
            Part::data(json!({"name": "b", "priority": 9.0})),
            Part::data(json!({"tasks": [task("c"), {"name": 7}]})),
        ];
        // Faults of single tasks go along, and are told together with those that only the rules find.
        let Ok(Plan::Run { source, .. }) = planned(parts, None) else {
            panic!("the parts name tasks");
        };
        let field = |task, member: &str| {
            let key = |name: &str| PathSegment::from(name);
            source.field(&[key("tasks"), PathSegment::Index(task), key(member)])
        };
        let fields = [field(1, "priority"), field(3, "name")];
        assert_eq!(
            fields,
            [
                "message.parts[2].data.priority",
                "message.parts[3].data.tasks[1].name"
            ]
        );
    }

    #[test]
    fn doubles_that_are_whole_are_integers() {
        let parts = vec![Part::data(json!({"name": "b", "priority": 1.0}))];
        assert!(matches!(planned(parts, None), Ok(Plan::Run { .. })));
    }

    #[test]
    fn what_is_no_task_goes_to_the_configured_method_or_nowhere() {
        let parts = || vec![Part::text("hello"), Part::data(json!({"a": 1}))];
        assert!(matches!(planned(parts(), None), Ok(Plan::Nothing)));
        let Ok(Plan::Run { target, .. }) = planned(parts(), Some("echo_executor")) else {
            panic!("a run")
        };
        assert!(matches!(target, Target::New(_)));
    }

    #[test]
    fn faults_of_the_form_are_told_with_their_field() {
        for (parts, field) in [
            (
                vec![Part::data(json!({"tasks": 1}))],
                "message.parts[0].data.tasks",
            ),
            (
                vec![Part::data(json!({"tasks": []}))],
                "message.parts[0].data.tasks",
            ),
            (
                vec![Part::data(json!({"taskId": "x"}))],
                "message.parts[0].data.taskId",
            ),
            (
                vec![Part::data(json!({"taskId": "x"})), Part::data(task("a"))],
                "message.parts[0].data.taskId",
            ),
        ] {
            let refused = planned(parts, None).err().expect("a fault");
            assert_eq!(refused.faults.listed[0].field, field);
        }
        let mut named = message(vec![Part::text("x")]);
        named.metadata = json!({"skillId": "other"}).as_object().cloned();
        let refused = plan(&named, None, None).err().expect("no such skill");
        assert_eq!(refused.faults.listed[0].field, "message.metadata.skillId");
        let mut picture = Part::text("x");
        picture.media_type = Some("image/png".to_owned());
        let refused = planned(vec![picture], None).err().expect("not taken");
        assert_eq!(refused.kind, ErrorKind::ContentTypeNotSupported);
    }
}
