//! Kinds of values that only schedules have, and members that several of their methods take.

use super::super::super::reader::{Choice, Fault, Kind, Reader, Refusal, choice, integer};
use crate::application::api::schedules::{
    Bound, EXPRESSION_CHARS_MAX, Named, Overlap, SCHEDULED_KEYS, Work,
};
use crate::transport::jsonrpc::params::owner::OwnerKind;
use crate::transport::jsonrpc::params::work::kinds::NameText;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use taskledger_domain::limits::{KEY_CHARS_MAX, VIOLATIONS_MAX};
use taskledger_domain::suggestion::known_member;
use taskledger_domain::task::call;
use taskledger_domain::{PathSegment, Violation};

/// Versions are counted up to here.
const VERSION_MAX: u64 = u32::MAX as u64;
/// Characters of a note.
const NOTE_CHARS_MAX: usize = 500;

/// What happens while a run goes on.
pub(super) const OVERLAP: Choice<Overlap> = choice(
    "not an overlap policy",
    &[
        ("skip", Overlap::Skip),
        ("queue", Overlap::Queue),
        ("allow", Overlap::Allow),
        ("cancel_previous", Overlap::CancelPrevious),
    ],
);

/// A text of 1 to so many characters.
pub(super) struct Words(pub(super) usize);

impl Kind for Words {
    type Out = Arc<str>;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": self.0})
    }

    fn parse(&self, value: &Value) -> Result<Arc<str>, Refusal> {
        let expected = || format!("a string of 1 to {} characters", self.0);
        let text = value
            .as_str()
            .ok_or_else(|| Fault::new("not a string", expected()))?;
        match text.chars().count() {
            0 => Err(Fault::new("empty", expected()).into()),
            chars if chars > self.0 => Err(Fault::new("too long", expected()).into()),
            _ => Ok(Arc::from(text)),
        }
    }
}

/// A cron expression, a rule or the name of a zone.
pub(super) const fn expression() -> Words {
    Words(EXPRESSION_CHARS_MAX)
}

/// A saved workflow: `{name, version?, inputs?}`.
pub(super) struct WorkflowKind;

const MEMBERS: [&str; 3] = ["name", "version", "inputs"];

impl Kind for WorkflowKind {
    type Out = Work;

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX},
                "version": {"type": ["integer", "null"], "minimum": 1, "maximum": VERSION_MAX},
                "inputs": {"type": ["object", "null"]},
            },
            "required": ["name"],
            "additionalProperties": false,
        })
    }

    fn parse(&self, value: &Value) -> Result<Work, Refusal> {
        let Some(object) = value.as_object() else {
            let expected = "an object with `name`, and `version` and `inputs` if need be";
            return Err(Fault::new("not an object", expected).into());
        };
        let mut faults = Vec::new();
        let name = member(object, "name", &NameText, &mut faults);
        if object.get("name").is_none_or(Value::is_null) {
            let expected = "a name of `workflows.list`";
            faults.push(at("name", "missing", expected, &Value::Null));
        }
        let version = member(object, "version", &integer(1..=VERSION_MAX), &mut faults);
        let inputs = match object.get("inputs") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(inputs)) => inputs.clone(),
            Some(
                other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)),
            ) => {
                faults.push(at("inputs", "not an object", "a JSON object", other));
                Map::new()
            }
        };
        for key in SCHEDULED_KEYS {
            if let Some(value) = inputs.get(key) {
                let path = ["workflow", "inputs", key].map(PathSegment::from);
                let reason = "set by the server for each run of a schedule";
                let expected = "an input with another key";
                faults.push(Violation::new(&path, reason, expected, value));
            }
        }
        for (key, value) in object
            .iter()
            .filter(|(key, _)| !MEMBERS.contains(&key.as_str()))
            .take(VIOLATIONS_MAX)
        {
            let expected = known_member(key, &MEMBERS);
            faults.push(at(key, "Unknown field", &expected, value));
        }
        match name {
            Some(name) if faults.is_empty() => Ok(Work::Workflow {
                name,
                version: version.and_then(|version| u32::try_from(version).ok()),
                inputs,
            }),
            _ => Err(Refusal::Inside(faults)),
        }
    }
}

fn at(member: &str, reason: &str, expected: &str, actual: &Value) -> Violation {
    let path = [PathSegment::from("workflow"), PathSegment::from(member)];
    Violation::new(&path, reason.to_owned(), expected, actual)
}

fn member<K: Kind>(
    object: &Map<String, Value>,
    name: &'static str,
    kind: &K,
    faults: &mut Vec<Violation>,
) -> Option<K::Out> {
    let value = object.get(name).filter(|value| !value.is_null())?;
    match kind.parse(value) {
        Ok(parsed) => Some(parsed),
        Err(Refusal::Here(fault)) => {
            faults.push(at(name, &fault.reason, &fault.expected, value));
            None
        }
        Err(Refusal::Inside(inside)) => {
            faults.extend(inside);
            None
        }
    }
}

/// The tasks of each run, as they were given.
pub(super) struct TasksKind;

impl Kind for TasksKind {
    type Out = Work;

    fn schema(&self) -> Value {
        json!({"$ref": "#/components/schemas/TaskInputs"})
    }

    fn parse(&self, value: &Value) -> Result<Work, Refusal> {
        call::parse_tasks(value).map_err(Refusal::Inside)?;
        Ok(Work::Tasks {
            tasks: value.clone(),
        })
    }
}

/// Bounds that are taken away.
pub(super) struct BoundsKind;

/// Their names.
const BOUNDS: [(&str, Bound); 3] = [
    ("start_at", Bound::Start),
    ("end_at", Bound::End),
    ("max_runs", Bound::Runs),
];

impl Kind for BoundsKind {
    type Out = Vec<Bound>;

    fn schema(&self) -> Value {
        let names: Vec<&str> = BOUNDS.iter().map(|(name, _)| *name).collect();
        json!({"type": "array", "items": {"type": "string", "enum": names}, "maxItems": BOUNDS.len()})
    }

    fn parse(&self, value: &Value) -> Result<Vec<Bound>, Refusal> {
        let fault = |reason| Fault::new(reason, "a list of `start_at`, `end_at` and `max_runs`");
        let items = value.as_array().ok_or_else(|| fault("not an array"))?;
        if items.len() > BOUNDS.len() {
            return Err(fault("too many").into());
        }
        let one = |item: &Value| {
            let found = BOUNDS.iter().find(|(name, _)| item.as_str() == Some(name));
            found.map(|(_, bound)| *bound)
        };
        let bounds: Option<Vec<Bound>> = items.iter().map(one).collect();
        bounds.ok_or_else(|| fault("names something else").into())
    }
}

/// Reads the name of a schedule.
pub(super) fn name(reader: &mut Reader<'_>) -> Option<Arc<str>> {
    reader.required("name", NameText, "The schedule.")
}

/// Reads the owner of a schedule.
pub(super) fn owner(reader: &mut Reader<'_>) -> Option<Arc<str>> {
    reader.optional(
        "owner",
        OwnerKind,
        "The owner of the schedule; needs `users:any` unless it is the caller. Empty: no owner; this is also the default without authentication.",
    )
}

/// Name and owner.
pub(super) fn named(reader: &mut Reader<'_>) -> Option<Named> {
    let name = name(reader);
    let owner = owner(reader);
    name.map(|name| Named { owner, name })
}

/// Why it is paused.
pub(super) fn note(reader: &mut Reader<'_>) -> Option<Arc<str>> {
    reader.optional("note", Words(NOTE_CHARS_MAX), "Why, for people.")
}

/// Which version the caller takes for the present one.
pub(super) fn expected_version(reader: &mut Reader<'_>, about: &'static str) -> Option<u32> {
    let version = reader.optional("expected_version", integer(1..=VERSION_MAX), about)?;
    u32::try_from(version).ok()
}
