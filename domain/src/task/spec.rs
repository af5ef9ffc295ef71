//! One task as a caller writes it, checked field by field. Every fault is reported, not only the
//! first. spec: data-model / Task Schema; validation / Schema Validation

use super::{Priority, RetryPolicy, Status};
use crate::flow::Specification;
use crate::ids::parse_uuid_v4;
use crate::limits;
use crate::violation::{PathSegment, Violation};
use crate::{Payload, TaskId, Timestamp};
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use serde_json::{Map, Value};
use uuid::Uuid;

/// How a caller names another task: by the id of a stored one, or by the id or name of one of the
/// same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRef {
    /// The text as given.
    pub text: String,
    /// Where it stands, for messages.
    pub path: Vec<PathSegment>,
}

/// What a caller writes as `id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenId {
    /// A UUID v4: the task shall have this id.
    Stored(TaskId),
    /// Any other text: a name for the task within the call.
    Alias(String),
}

/// A task of a call, its own fields checked, its references not yet.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskFields {
    /// Where it stands in the parameters.
    pub path: Vec<PathSegment>,
    /// `id`, if given.
    pub id: Option<GivenId>,
    /// `name`.
    pub name: String,
    /// `user_id`, if given.
    pub user_id: Option<String>,
    /// `parent_id`, if given.
    pub parent: Option<TaskRef>,
    /// `priority`.
    pub priority: Priority,
    /// `dependencies` with their `required`.
    pub dependencies: Vec<(TaskRef, bool)>,
    /// What it executes.
    pub specification: Specification,
}

/// The members of `updates` in `tasks.update`; `None` = keep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Updates {
    /// `name`.
    pub name: Option<String>,
    /// `user_id`; `Some(None)` removes it.
    pub user_id: Option<Option<String>>,
    /// `parent_id`; `Some(None)` asks for a root.
    pub parent: Option<Option<TaskRef>>,
    /// `priority`.
    pub priority: Option<Priority>,
    /// `dependencies`, the whole list.
    pub dependencies: Option<Vec<(TaskRef, bool)>>,
    /// `inputs`.
    pub inputs: Option<Payload>,
    /// `schemas`; `Some(None)` makes the task a group.
    pub schemas: Option<Option<Schemas>>,
    /// `params`; `Some(None)` removes them.
    pub params: Option<Option<Params>>,
}

/// `schemas`, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Schemas {
    /// As given.
    pub raw: Payload,
    /// The executor.
    pub method: String,
}

/// `params`, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// As given.
    pub raw: Payload,
    /// From `retry` or `retry_count`.
    pub retry: Option<RetryPolicy>,
    /// From `timeout_seconds`.
    pub timeout_ms: Option<u64>,
    /// From `deadline`.
    pub deadline: Option<Timestamp>,
}

impl Specification {
    /// Puts the parts of a task together.
    #[must_use]
    pub fn assemble(inputs: Payload, schemas: Option<Schemas>, params: Option<Params>) -> Self {
        let (schemas, method) = schemas.map_or((None, None), |s| (Some(s.raw), Some(s.method)));
        let mut specification = Self {
            inputs,
            schemas,
            params: None,
            method,
            retry: None,
            timeout_ms: None,
            deadline: None,
        };
        specification.set_params(params);
        specification
    }

    /// This specification with the given members replaced.
    #[must_use]
    pub fn updated(mut self, updates: &Updates) -> Self {
        if let Some(inputs) = &updates.inputs {
            self.inputs = inputs.clone();
        }
        if let Some(schemas) = updates.schemas.clone() {
            (self.schemas, self.method) =
                schemas.map_or((None, None), |s| (Some(s.raw), Some(s.method)));
        }
        if let Some(params) = updates.params.clone() {
            self.set_params(params);
        }
        self
    }

    fn set_params(&mut self, params: Option<Params>) {
        self.retry = params.as_ref().and_then(|p| p.retry);
        self.timeout_ms = params.as_ref().and_then(|p| p.timeout_ms);
        self.deadline = params.as_ref().and_then(|p| p.deadline);
        self.params = params.map(|p| p.raw);
    }
}

/// Members of a task that a caller may send.
const TASK_MEMBERS: &[&str] = &[
    "id",
    "parent_id",
    "user_id",
    "name",
    "status",
    "priority",
    "inputs",
    "schemas",
    "params",
    "result",
    "error",
    "dependencies",
    "progress",
    "created_at",
    "started_at",
    "updated_at",
    "completed_at",
];

/// Reads one task. `extra` names members that the caller of this function reads itself (`children`).
/// On faults, appends them to `violations` and returns `None`.
pub(super) fn task(
    map: &Map<String, Value>,
    path: &[PathSegment],
    extra: &[&str],
    violations: &mut Vec<Violation>,
) -> Option<TaskFields> {
    let before = violations.len();
    let mut r = Reader {
        map,
        path,
        violations,
    };
    r.refuse_unknown(TASK_MEMBERS, extra);
    r.refuse_server_written();
    let id = r.id();
    let name = r.name(true);
    let user_id = r.user_id();
    let parent = r.parent();
    let priority = r.priority();
    let dependencies = r.dependencies();
    let inputs = r.inputs();
    let schemas = r.schemas();
    let params = r.params();
    if violations.len() > before {
        return None;
    }
    Some(TaskFields {
        path: path.to_vec(),
        id,
        name: name?,
        user_id: user_id.flatten(),
        parent: parent.flatten(),
        priority: priority.unwrap_or_default(),
        dependencies: dependencies.unwrap_or_default(),
        specification: Specification::assemble(
            inputs.unwrap_or_else(Payload::empty),
            schemas.flatten(),
            params.flatten(),
        ),
    })
}

/// Reads `updates` of `tasks.update`.
///
/// # Errors
/// All violations, with paths that begin with `updates`.
pub fn updates(map: &Map<String, Value>) -> Result<Updates, Vec<Violation>> {
    let mut violations = Vec::new();
    let path = ["updates".into()];
    let mut r = Reader {
        map,
        path: &path,
        violations: &mut violations,
    };
    r.refuse_unknown(TASK_MEMBERS, &[]);
    r.refuse_server_written();
    if let Some(id) = map.get("id") {
        r.fault(
            "id",
            "Field is not writable",
            "no `id`: a task keeps its id",
            id,
        );
    }
    let updates = Updates {
        name: r.name(false),
        user_id: r.user_id(),
        parent: r.parent(),
        priority: r.priority(),
        dependencies: r.dependencies(),
        inputs: r.inputs(),
        schemas: r.schemas(),
        params: r.params(),
    };
    if violations.is_empty() {
        Ok(updates)
    } else {
        Err(violations)
    }
}

/// `timeout_seconds` of checked `params`, in milliseconds.
#[must_use]
pub fn timeout_ms(params: &Map<String, Value>) -> Option<u64> {
    params
        .get("timeout_seconds")
        .and_then(Value::as_f64)
        .map(|seconds| (seconds * 1000.0) as u64)
}

/// Whether `text` has the form of a UUID of any version.
#[must_use]
pub fn looks_like_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// Reads the members of one task object; each method reports its faults and returns `None` for
/// "absent or faulty".
struct Reader<'a> {
    map: &'a Map<String, Value>,
    path: &'a [PathSegment],
    violations: &'a mut Vec<Violation>,
}

impl Reader<'_> {
    fn at(&self, rest: &[PathSegment]) -> Vec<PathSegment> {
        self.path.iter().chain(rest).cloned().collect()
    }

    fn fault(
        &mut self,
        field: &str,
        reason: impl Into<String>,
        expected: impl Into<String>,
        actual: &Value,
    ) {
        let path = self.at(&[field.into()]);
        self.violations
            .push(Violation::new(&path, reason, expected, actual));
    }

    fn refuse_unknown(&mut self, known: &[&str], extra: &[&str]) {
        for (key, value) in self.map {
            if !known.contains(&key.as_str()) && !extra.contains(&key.as_str()) {
                self.fault(
                    key,
                    "Unknown field",
                    format!("one of: {}", known.join(", ")),
                    value,
                );
            }
        }
    }

    /// Members that only the server writes: accepted in the state of a task that has not started.
    fn refuse_server_written(&mut self) {
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
                self.fault(
                    field,
                    "Invalid timestamp format",
                    "an ISO 8601 date and time",
                    value,
                );
            }
        }
    }

    fn id(&mut self) -> Option<GivenId> {
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

    fn name(&mut self, required: bool) -> Option<String> {
        self.text("name", required, limits::NAME_CHARS_MAX)
    }

    fn user_id(&mut self) -> Option<Option<String>> {
        if self.map.get("user_id")?.is_null() {
            return Some(None);
        }
        self.text("user_id", false, limits::KEY_CHARS_MAX).map(Some)
    }

    fn text(&mut self, field: &str, required: bool, chars_max: usize) -> Option<String> {
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

    fn parent(&mut self) -> Option<Option<TaskRef>> {
        let value = self.map.get("parent_id")?;
        if value.is_null() {
            return Some(None);
        }
        let path = self.at(&["parent_id".into()]);
        self.task_ref(value, path).map(Some)
    }

    fn task_ref(&mut self, value: &Value, path: Vec<PathSegment>) -> Option<TaskRef> {
        match value.as_str() {
            Some(text) if !text.is_empty() => Some(TaskRef {
                text: text.to_owned(),
                path,
            }),
            _ => {
                let expected = "a UUID v4, or the id or name of a task in this call";
                self.violations.push(Violation::new(
                    &path,
                    "Invalid UUID format",
                    expected,
                    value,
                ));
                None
            }
        }
    }

    fn priority(&mut self) -> Option<Priority> {
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

    fn dependencies(&mut self) -> Option<Vec<(TaskRef, bool)>> {
        let value = self.map.get("dependencies")?;
        let Some(items) = value.as_array() else {
            self.fault(
                "dependencies",
                "Wrong type",
                "an array of {id, required}",
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
            let path = self.at(&["dependencies".into(), i.into()]);
            let Some(object) = item.as_object() else {
                self.violations.push(Violation::new(
                    &path,
                    "Wrong type",
                    "an object {id, required}",
                    item,
                ));
                continue;
            };
            let at = |field: &str| {
                path.iter()
                    .cloned()
                    .chain([field.into()])
                    .collect::<Vec<_>>()
            };
            for key in object.keys().filter(|k| *k != "id" && *k != "required") {
                self.violations.push(Violation::new(
                    &at(key),
                    "Unknown field",
                    "one of: id, required",
                    &object[key],
                ));
            }
            let required = match object.get("required") {
                None => true,
                Some(Value::Bool(b)) => *b,
                Some(other) => {
                    self.violations.push(Violation::new(
                        &at("required"),
                        "Wrong type",
                        "true or false",
                        other,
                    ));
                    continue;
                }
            };
            match object.get("id") {
                None => self.violations.push(Violation::new(
                    &at("id"),
                    "Required field is missing",
                    "the id of the task to depend on",
                    &Value::Null,
                )),
                Some(id) => {
                    if let Some(task) = self.task_ref(id, at("id")) {
                        dependencies.push((task, required));
                    }
                }
            }
        }
        Some(dependencies)
    }

    /// An object member within its size limit, as text.
    fn object(&mut self, field: &str) -> Option<(&Map<String, Value>, Payload)> {
        let value = self.map.get(field)?;
        let Some(object) = value.as_object() else {
            self.fault(field, "Wrong type", "a JSON object", value);
            return None;
        };
        let payload = Payload::from_map(object);
        let bytes = payload.as_str().len();
        if bytes > limits::PAYLOAD_BYTES_MAX {
            let reason = format!("Too large: {bytes} bytes of JSON");
            self.fault(
                field,
                reason,
                format!("at most {} bytes", limits::PAYLOAD_BYTES_MAX),
                &Value::from(bytes),
            );
            return None;
        }
        // Borrowed anew from the map, whose lifetime does not depend on `&mut self`.
        self.map
            .get(field)
            .and_then(Value::as_object)
            .map(|o| (o, payload))
    }

    fn inputs(&mut self) -> Option<Payload> {
        self.object("inputs").map(|(_, payload)| payload)
    }

    fn schemas(&mut self) -> Option<Option<Schemas>> {
        if self.map.get("schemas")?.is_null() {
            return Some(None);
        }
        let (object, raw) = {
            let (object, raw) = self.object("schemas")?;
            (object.clone(), raw)
        };
        let path = |field: &str| ["schemas".into(), field.into()];
        if let Some(kind) = object.get("type")
            && !matches!(kind.as_str(), Some("local" | "remote" | "external"))
        {
            let at = self.at(&path("type"));
            self.violations.push(Violation::new(
                &at,
                "Invalid value",
                "one of: local, remote, external",
                kind,
            ));
        }
        if let Some(schema) = object.get("input_schema")
            && !schema.is_object()
        {
            let at = self.at(&path("input_schema"));
            self.violations.push(Violation::new(
                &at,
                "Wrong type",
                "a JSON Schema (draft-07) object",
                schema,
            ));
        }
        let method = object.get("method");
        let text = method
            .and_then(Value::as_str)
            .filter(|m| !m.is_empty() && m.chars().count() <= limits::KEY_CHARS_MAX);
        if let Some(text) = text {
            return Some(Some(Schemas {
                raw,
                method: text.to_owned(),
            }));
        }
        let at = self.at(&path("method"));
        let reason = if method.is_none() {
            "Required field is missing"
        } else {
            "Invalid value"
        };
        let expected = "the name of an executor; leave `schemas` out for a group";
        self.violations.push(Violation::new(
            &at,
            reason,
            expected,
            method.unwrap_or(&Value::Null),
        ));
        None
    }

    fn params(&mut self) -> Option<Option<Params>> {
        if self.map.get("params")?.is_null() {
            return Some(None);
        }
        let (object, raw) = {
            let (object, raw) = self.object("params")?;
            (object.clone(), raw)
        };
        let path = self.at(&["params".into()]);
        let mut r = Reader {
            map: &object,
            path: &path,
            violations: self.violations,
        };
        let (retry, timeout_ms, deadline) = (r.retry(), r.timeout_ms(), r.deadline());
        Some(Some(Params {
            raw,
            retry,
            timeout_ms,
            deadline,
        }))
    }

    fn retry(&mut self) -> Option<RetryPolicy> {
        let (count, policy) = (self.map.get("retry_count"), self.map.get("retry"));
        if let (Some(_), Some(policy)) = (count, policy) {
            self.fault(
                "retry",
                "Conflicts with `retry_count`",
                "one of `retry` and `retry_count`",
                policy,
            );
            return None;
        }
        if let Some(count) = count {
            let parsed = count
                .as_u64()
                .and_then(|n| u32::try_from(n).ok())
                .filter(|n| *n <= limits::RETRIES_MAX);
            if parsed.is_none() {
                self.fault(
                    "retry_count",
                    "Invalid value",
                    format!("an integer in 0-{}", limits::RETRIES_MAX),
                    count,
                );
            }
            return parsed.filter(|n| *n > 0).map(RetryPolicy::extra_attempts);
        }
        let policy = policy?;
        let Some(object) = policy.as_object() else {
            self.fault(
                "retry",
                "Wrong type",
                "an object {max_attempts, initial_delay_ms, multiplier, max_delay_ms}",
                policy,
            );
            return None;
        };
        let path = self.at(&["retry".into()]);
        let mut r = Reader {
            map: object,
            path: &path,
            violations: self.violations,
        };
        r.refuse_unknown(
            &[
                "max_attempts",
                "initial_delay_ms",
                "multiplier",
                "max_delay_ms",
            ],
            &[],
        );
        let attempts_max = u64::from(limits::RETRIES_MAX) + 1;
        let max_attempts = r.number_in("max_attempts", 1.0, attempts_max as f64, true);
        if !object.contains_key("max_attempts") {
            r.fault(
                "max_attempts",
                "Required field is missing",
                format!("an integer in 1-{attempts_max}"),
                &Value::Null,
            );
        }
        let delay_max = limits::DELAY_MS_MAX as f64;
        let initial = r.number_in("initial_delay_ms", 0.0, delay_max, false);
        let multiplier = r.number_in("multiplier", 1.0, 100.0, false);
        let max_delay = r.number_in("max_delay_ms", 0.0, delay_max, false);
        Some(RetryPolicy {
            max_attempts: max_attempts? as u32,
            initial_delay_ms: initial.map_or(RetryPolicy::INITIAL_DELAY_MS_DEFAULT, |n| n as u64),
            multiplier: multiplier.unwrap_or(RetryPolicy::MULTIPLIER_DEFAULT),
            max_delay_ms: max_delay.map_or(RetryPolicy::MAX_DELAY_MS_DEFAULT, |n| n as u64),
        })
    }

    fn number_in(&mut self, field: &str, min: f64, max: f64, integer: bool) -> Option<f64> {
        let value = self.map.get(field)?;
        let number = value
            .as_f64()
            .filter(|n| (min..=max).contains(n) && (!integer || n.fract() == 0.0));
        if number.is_none() {
            let kind = if integer { "an integer" } else { "a number" };
            self.fault(
                field,
                "Invalid value",
                format!("{kind} in {min}-{max}"),
                value,
            );
        }
        number
    }

    fn timeout_ms(&mut self) -> Option<u64> {
        let seconds_max = (limits::DELAY_MS_MAX / 1000) as f64;
        self.number_in("timeout_seconds", 0.001, seconds_max, false)?;
        timeout_ms(self.map)
    }

    fn deadline(&mut self) -> Option<Timestamp> {
        let value = self.map.get("deadline").filter(|v| !v.is_null())?;
        let parsed = value.as_str().and_then(|text| Timestamp::parse(text).ok());
        if parsed.is_none() {
            self.fault(
                "deadline",
                "Invalid timestamp format",
                "an RFC 3339 date and time with offset",
                value,
            );
        }
        parsed
    }
}

/// Date and time, with or without an offset, or a date. spec: validation / Timestamp Validation
fn is_iso_8601(text: &str) -> bool {
    DateTime::parse_from_rfc3339(text).is_ok()
        || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").is_ok()
        || NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").is_ok()
        || NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}
