//! The tasks that the data of a message names.

use super::source::{Form, Piece, Source};
use super::{Plan, Reading, read, with_whole_numbers};
use crate::application::api::Target;
use serde_json::{Map, Value};
use taskledger_a2a::{Content, Error, Part};
use taskledger_domain::TaskId;

/// Members of data that name a stored task.
const STORED: [&str; 2] = ["taskId", "task_id"];

/// The tasks in the data of a message; `None` if no part has any.
pub(super) fn named(parts: &[Part], reading: Reading) -> Result<Option<Plan>, Error> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut list: Vec<Value> = Vec::new();
    let mut stored: Option<(usize, String)> = None;
    for (part, data) in parts.iter().enumerate() {
        let Content::Data(Value::Object(data)) = &data.content else {
            continue;
        };
        if reading == Reading::Strict && !is_certain(data) {
            continue;
        }
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
        } else if let Some(id) = STORED.iter().find_map(|name| data.get(*name)) {
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

/// Whether data is tasks beyond doubt: a list of objects of which one at least says how it is done, one such object,
/// or the id of a stored task and nothing else.
fn is_certain(data: &Map<String, Value>) -> bool {
    if let Some(list) = data.get("tasks") {
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        let is_task = |it: &Value| it.as_object().is_some_and(is_task);
        return list.iter().all(Value::is_object) && list.iter().any(is_task);
    }
    if let Some(id) = STORED.iter().find_map(|name| data.get(*name)) {
        return data.len() == 1 && id.as_str().is_some_and(|id| TaskId::parse(id).is_ok());
    }
    is_task(data)
}

/// Whether an object is a task, or a node of a tree, that has a name and a method or children.
fn is_task(data: &Map<String, Value>) -> bool {
    let task = data.get("task").and_then(Value::as_object).unwrap_or(data);
    let is_named = task.get("name").is_some_and(Value::is_string);
    let has_method = task.get("schemas").is_some_and(Value::is_object);
    let has_children = [task, data]
        .iter()
        .any(|it| it.get("children").is_some_and(Value::is_array));
    is_named && (has_method || has_children)
}
