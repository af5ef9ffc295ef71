//! The members of a task that identify it, place it and say what it waits for.

use super::{BROKER_PARAM, GivenId, ONLY_THE_BROKER, TaskRef, looks_like_uuid};
use crate::TaskId;
use crate::flow::When;
use crate::ids::parse_uuid_v4;
use crate::limits;
use crate::suggestion::known_member;
use crate::task::{Labels, Priority, Status};
use crate::time::{InvalidTime, Timestamp, is_second};
use crate::violation::{PathSegment, Violation};
use chrono::{NaiveDate, NaiveDateTime};
use serde_json::{Map, Value};

/// What is said of a dependency.
const DEPENDENCY_MEMBERS: [&str; 3] = ["id", "required", "when"];

/// Reads the members of one task object; each method reports its faults and returns `None` for
/// "absent or faulty".
pub(super) struct Reader<'a> {
    pub(super) map: &'a Map<String, Value>,
    pub(super) path: &'a [PathSegment],
    pub(super) violations: &'a mut Vec<Violation>,
    /// Steps that compiling JSON Schemas in types may still take in the whole call.
    pub(super) schema_steps: &'a mut u64,
}

impl Reader<'_> {
    pub(super) fn at(&self, rest: &[PathSegment]) -> Vec<PathSegment> {
        self.path.iter().chain(rest).cloned().collect()
    }

    pub(super) fn fault(
        &mut self,
        field: &str,
        reason: impl Into<String>,
        expected: impl Into<String>,
        actual: &Value,
    ) {
        let path = self.at(&[field.into()]);
        self.report(&path, reason, expected, actual);
    }

    /// A fault at `path`; nothing when as many as one answer holds are known already.
    pub(super) fn report(
        &mut self,
        path: &[PathSegment],
        reason: impl Into<String>,
        expected: impl Into<String>,
        actual: &Value,
    ) {
        Violation::report(self.violations, || {
            Violation::new(path, reason, expected, actual)
        });
    }

    pub(super) fn refuse_unknown(&mut self, known: &[&str], extra: &[&str]) {
        for (key, value) in self.map {
            if self.violations.len() >= limits::VIOLATIONS_MAX {
                return;
            }
            if !known.contains(&key.as_str()) && !extra.contains(&key.as_str()) {
                let names = known.iter().chain(extra).copied();
                let expected = known_member(key, &names.collect::<Vec<_>>());
                self.fault(key, "Unknown field", expected, value);
            }
        }
    }

    /// The member of `params` that says who published the task.
    pub(super) fn refuse_broker_param(&mut self) {
        let params = self.map.get("params").and_then(Value::as_object);
        if let Some(given) = params.and_then(|params| params.get(BROKER_PARAM)) {
            let path = self.at(&["params".into(), BROKER_PARAM.into()]);
            let expected = "no such member: tasks that agents publish get it from the broker";
            self.report(&path, ONLY_THE_BROKER, expected, given);
        }
    }

    /// Members that only the server writes: accepted in the state of a task that has not started.
    pub(super) fn refuse_server_written(&mut self) {
        if let Some(status) = self.map.get("status") {
            let known = status.as_str().and_then(Status::parse);
            if known != Some(Status::Pending) {
                let reason = if known.is_some() {
                    "Field is not writable"
                } else {
                    "Invalid value"
                };
                self.fault("status", reason, "`pending` or absent", status);
            }
        }
        if let Some(progress) = self.map.get("progress") {
            match progress.as_f64() {
                Some(0.0) => {}
                Some(p) if (0.0..=1.0).contains(&p) => {
                    self.fault(
                        "progress",
                        "Field is not writable",
                        "0.0 or absent",
                        progress,
                    );
                }
                Some(_) => self.fault("progress", "Value out of range", "0.0-1.0", progress),
                None => self.fault("progress", "Wrong type", "a number in 0.0-1.0", progress),
            }
        }
        for field in ["result", "error", "started_at", "completed_at"] {
            if let Some(value) = self.map.get(field).filter(|v| !v.is_null()) {
                self.fault(
                    field,
                    "Field is not writable",
                    "null or absent: the server writes it",
                    value,
                );
            }
        }
        for field in ["created_at", "updated_at"] {
            if let Some(value) = self.map.get(field)
                && !value.as_str().is_some_and(is_iso_8601)
            {
                let (reason, expected) = match value.as_str().map(Timestamp::parse) {
                    Some(Err(range @ InvalidTime::Range)) => (range.reason(), range.expected()),
                    _ => (InvalidTime::Form.reason(), "an ISO 8601 date and time"),
                };
                self.fault(field, reason, expected, value);
            }
        }
    }

    pub(super) fn id(&mut self) -> Option<GivenId> {
        let value = self.map.get("id")?;
        match value.as_str() {
            Some(text) if looks_like_uuid(text) => match parse_uuid_v4(text) {
                Ok(uuid) => return Some(GivenId::Stored(TaskId(uuid))),
                Err(_) => self.fault("id", "Invalid UUID format", "a UUID v4", value),
            },
            Some(text) if !text.is_empty() && text.chars().count() <= limits::KEY_CHARS_MAX => {
                return Some(GivenId::Alias(text.to_owned()));
            }
            _ => self.fault(
                "id",
                "Invalid value",
                format!(
                    "a UUID v4, or an alias of 1 to {} characters",
                    limits::KEY_CHARS_MAX
                ),
                value,
            ),
        }
        None
    }

    pub(super) fn name(&mut self, required: bool) -> Option<String> {
        self.text("name", required, limits::NAME_CHARS_MAX)
    }

    pub(super) fn user_id(&mut self) -> Option<Option<String>> {
        if self.map.get("user_id")?.is_null() {
            return Some(None);
        }
        self.text("user_id", false, limits::KEY_CHARS_MAX).map(Some)
    }

    pub(super) fn text(&mut self, field: &str, required: bool, chars_max: usize) -> Option<String> {
        let expected = || format!("a string of 1 to {chars_max} characters");
        let Some(value) = self.map.get(field) else {
            if required {
                self.fault(field, "Required field is missing", expected(), &Value::Null);
            }
            return None;
        };
        match value.as_str() {
            None => self.fault(field, "Wrong type", expected(), value),
            Some("") => self.fault(field, "Must not be empty", expected(), value),
            Some(text) => {
                let chars = text.chars().count();
                if chars <= chars_max {
                    return Some(text.to_owned());
                }
                self.fault(
                    field,
                    format!("Too long: {chars} characters, the limit is {chars_max}"),
                    expected(),
                    value,
                );
            }
        }
        None
    }

    pub(super) fn parent(&mut self) -> Option<Option<TaskRef>> {
        let value = self.map.get("parent_id")?;
        if value.is_null() {
            return Some(None);
        }
        let path = self.at(&["parent_id".into()]);
        let parent = self.task_ref(value, &path);
        Some(Some(parent.unwrap_or(TaskRef::unread())))
    }

    pub(super) fn task_ref(&mut self, value: &Value, path: &[PathSegment]) -> Option<TaskRef> {
        match value.as_str() {
            // Whatever it refers to, so that it is told with all other faults of the call.
            Some(text) if looks_like_uuid(text) && TaskId::parse(text).is_err() => {
                self.report(path, "Invalid UUID format", "a UUID v4", value);
                None
            }
            Some(text) if !text.is_empty() => Some(TaskRef {
                text: text.to_owned(),
            }),
            _ => {
                let expected = "a UUID v4, or the id or name of a task in this call";
                self.report(path, "Invalid UUID format", expected, value);
                None
            }
        }
    }

    pub(super) fn priority(&mut self) -> Option<Priority> {
        let value = self.map.get("priority")?;
        if value.is_null() {
            return Some(Priority::NORMAL);
        }
        // 2.0 is an integer in JSON Schema, so it is one here.
        let number = value.as_u64().or_else(|| {
            value
                .as_f64()
                .filter(|f| f.fract() == 0.0 && *f >= 0.0)
                .map(|f| f as u64)
        });
        let parsed = number
            .and_then(|n| u8::try_from(n).ok())
            .and_then(Priority::new);
        if parsed.is_none() {
            let reason = if value.is_number() {
                "Value out of range"
            } else {
                "Wrong type"
            };
            self.fault("priority", reason, "0-3", value);
        }
        parsed
    }

    pub(super) fn labels(&mut self) -> Option<Labels> {
        let value = self.map.get("labels")?;
        match Labels::parse(value) {
            Ok(labels) => Some(labels),
            Err(faults) => {
                for fault in faults {
                    let key = fault.key.as_deref().map(PathSegment::from);
                    let place = std::iter::once("labels".into()).chain(key);
                    let path = self.at(&place.collect::<Vec<_>>());
                    self.report(&path, fault.reason, fault.expected, &fault.actual);
                }
                None
            }
        }
    }

    pub(super) fn dependencies(&mut self) -> Option<Vec<(TaskRef, When)>> {
        let value = self.map.get("dependencies")?;
        let Some(items) = value.as_array() else {
            self.fault(
                "dependencies",
                "Wrong type",
                "an array of {id, required} or {id, when}",
                value,
            );
            return None;
        };
        if items.len() > limits::DEPENDENCIES_PER_TASK_MAX {
            let reason = format!("Too many: {}", items.len());
            let expected = format!("at most {} dependencies", limits::DEPENDENCIES_PER_TASK_MAX);
            self.fault("dependencies", reason, expected, &Value::from(items.len()));
            return None;
        }
        let mut dependencies = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            if self.violations.len() >= limits::VIOLATIONS_MAX {
                break;
            }
            let path = self.at(&["dependencies".into(), i.into()]);
            let Some(object) = item.as_object() else {
                self.report(
                    &path,
                    "Wrong type",
                    "an object {id, required} or {id, when}",
                    item,
                );
                dependencies.push((TaskRef::unread(), When::required(true)));
                continue;
            };
            let at = |field: &str| {
                path.iter()
                    .cloned()
                    .chain([field.into()])
                    .collect::<Vec<_>>()
            };
            for key in object
                .keys()
                .filter(|k| !DEPENDENCY_MEMBERS.contains(&k.as_str()))
                .take(limits::VIOLATIONS_MAX)
            {
                let expected = known_member(key, &DEPENDENCY_MEMBERS);
                self.report(&at(key), "Unknown field", expected, &object[key]);
            }
            let required = match object.get("required") {
                None => true,
                Some(Value::Bool(b)) => *b,
                Some(other) => {
                    self.report(&at("required"), "Wrong type", "true or false", other);
                    true
                }
            };
            let when = match object.get("when") {
                None => When::required(required),
                Some(Value::String(word)) if word == "always" => {
                    if object.get("required") == Some(&Value::Bool(true)) {
                        let expected = "`when: \"always\"` without `required: true`";
                        self.report(&at("when"), "Conflicts with `required`", expected, item);
                    }
                    When::Always
                }
                Some(other) => {
                    let expected = "\"always\"; leave `when` out and use `required` otherwise";
                    self.report(&at("when"), "Invalid value", expected, other);
                    When::Always
                }
            };
            let task = match object.get("id") {
                None => {
                    self.report(
                        &at("id"),
                        "Required field is missing",
                        "the id of the task to depend on",
                        &Value::Null,
                    );
                    None
                }
                Some(id) => self.task_ref(id, &at("id")),
            };
            dependencies.push((task.unwrap_or(TaskRef::unread()), when));
        }
        Some(dependencies)
    }
}

/// Date and time, with or without an offset, or a date. spec: validation / Timestamp Validation
fn is_iso_8601(text: &str) -> bool {
    let has_form = |form| {
        let time = NaiveDateTime::parse_from_str(text, form);
        time.is_ok_and(|time| is_second(&time))
    };
    // A year has no sign.
    text.starts_with(|c: char| c.is_ascii_digit())
        && (Timestamp::parse(text).is_ok()
            || has_form("%Y-%m-%dT%H:%M:%S%.f")
            || has_form("%Y-%m-%d %H:%M:%S%.f")
            || NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok())
}
