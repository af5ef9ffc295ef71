//! One task as a caller writes it, checked field by field. Every fault is reported, not only the
//! first. spec: data-model / Task Schema; validation / Schema Validation

mod configuration;
mod params;
mod reader;

pub use params::{BROKER_PARAM, ENGINE_PARAMS, unknown_params};

use super::{Labels, Priority, RetryPolicy, Status, schema, wiring};
use crate::flow::{Specification, When};
use crate::limits;
use crate::violation::{PathSegment, Violation};
use crate::{Payload, TaskId, Timestamp};
use reader::Reader;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// How a caller names another task: by the id of a stored one, or by the id or name of one of the
/// same call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRef {
    /// The text as given.
    pub text: String,
}

impl TaskRef {
    /// Stands where a call names a task and it could not be read how, in lists that are refused.
    pub(crate) const fn unread() -> Self {
        let text = String::new();
        Self { text }
    }

    /// Whether it stands for a reference that could not be read: no other one is empty.
    #[must_use]
    pub const fn is_unread(&self) -> bool {
        self.text.is_empty()
    }

    /// The id that the text is; `None` when it is none.
    #[must_use]
    pub fn id(&self) -> Option<TaskId> {
        TaskId::parse(&self.text).ok()
    }
}

/// The value of `id` as a caller writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GivenId {
    /// A UUID v4: the task shall have this id.
    Stored(TaskId),
    /// Any other text: a name for the task within the call.
    Alias(String),
}

/// A task of a call, its own fields checked, its references not yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFields {
    /// Where it stands in the parameters.
    pub path: Vec<PathSegment>,
    /// `id`, if given.
    pub id: Option<GivenId>,
    /// `name`, checked for its length.
    pub name: String,
    /// `user_id`, if given.
    pub user_id: Option<String>,
    /// `parent_id`, if given.
    pub parent: Option<TaskRef>,
    /// `priority`, or the default.
    pub priority: Priority,
    /// `dependencies`, and when they are satisfied.
    pub dependencies: Vec<(TaskRef, When)>,
    /// What it executes.
    pub specification: Specification,
    /// Whether `inputs`, `schemas` and `params` were all read. If not, nothing can be said of the
    /// specification, and the faults of the list say why.
    pub is_specified: bool,
    /// `labels`; empty when none were given.
    pub labels: Labels,
}

/// The members of `updates` in `tasks.update`; `None` = keep. Serialized, a member that is kept is
/// absent and one that is removed is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Updates {
    /// `name`, if it changes; it cannot be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `user_id`; `Some(None)` removes it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub user_id: Option<Option<String>>,
    /// `parent_id`; `Some(None)` asks for a root.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub parent: Option<Option<TaskRef>>,
    /// `priority`, if it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// `dependencies`, the whole list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Vec<(TaskRef, When)>>,
    /// `inputs`, the whole object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Payload>,
    /// `schemas`; `Some(None)` makes the task a group.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub schemas: Option<Option<Schemas>>,
    /// `params`; `Some(None)` removes them.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub params: Option<Option<Params>>,
    /// `start_at`; `Some(None)` removes it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub start_at: Option<Option<Timestamp>>,
    /// `status`, which no caller changes: the task must be in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// `labels`, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// What is wrong with them. Updates with faults are never carried out; they are looked at for more, so that the
    /// caller learns all of it at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Violation>,
}

impl Updates {
    /// The same with more that is wrong; at most [`limits::VIOLATIONS_MAX`] faults are kept.
    #[must_use]
    pub fn with_faults(mut self, more: Vec<Violation>) -> Self {
        self.faults.extend(more);
        self.faults.truncate(limits::VIOLATIONS_MAX);
        self
    }

    /// Whether the list of dependencies was read, if there is one; single ones may be faulty.
    #[must_use]
    pub fn are_dependencies_read(&self) -> bool {
        let of_list = |fault: &Violation| fault.path.get(1) == Some(&"dependencies".into());
        self.dependencies.is_some() || !self.faults.iter().any(of_list)
    }

    /// Whether all members were read that say what the task executes.
    #[must_use]
    pub fn is_specified(&self) -> bool {
        let of_specification = |fault: &Violation| {
            let member = fault.path.get(1);
            ["inputs", "schemas", "params", "start_at"]
                .map(PathSegment::from)
                .iter()
                .any(|it| member == Some(it))
        };
        !self.faults.iter().any(of_specification)
    }
}

/// A member that is there, null or not.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// `schemas`, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schemas {
    /// As given.
    pub raw: Payload,
    /// Name of the executor.
    pub method: String,
    /// `type` is `remote`.
    pub remote: bool,
}

/// `params`, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// As given.
    pub raw: Payload,
    /// From `delay_seconds`; `None` for no delay.
    pub delay_ms: Option<u64>,
    /// From `retry` or `retry_count`.
    pub retry: Option<RetryPolicy>,
    /// From `timeout_seconds`.
    pub timeout_ms: Option<u64>,
    /// From `deadline`.
    pub deadline: Option<Timestamp>,
    /// From `schedule_to_start_seconds`.
    pub start_within_ms: Option<u64>,
    /// From `cancel_grace_seconds`.
    pub cancel_grace_ms: Option<u64>,
}

impl Specification {
    /// The deadline, when it is not after `now`.
    #[must_use]
    pub fn deadline_passed(&self, now: Timestamp) -> Option<Timestamp> {
        self.deadline.filter(|deadline| *deadline <= now)
    }

    /// Puts the parts of a task together.
    #[must_use]
    pub fn assemble(inputs: Payload, schemas: Option<Schemas>, params: Option<Params>) -> Self {
        let mut specification = Self {
            inputs,
            schemas: None,
            params: None,
            start_at: None,
            delay_ms: None,
            method: None,
            retry: None,
            timeout_ms: None,
            deadline: None,
            remote: false,
            start_within_ms: None,
            cancel_grace_ms: None,
        };
        specification.set_schemas(schemas);
        specification.set_params(params);
        specification
    }

    /// Whether `schemas` has an `input_schema`. Cost: O(size), without building values.
    #[must_use]
    pub fn has_input_schema(&self) -> bool {
        #[derive(serde::Deserialize)]
        struct Probe {
            input_schema: Option<serde::de::IgnoredAny>,
        }
        let probe = |schemas: &Payload| serde_json::from_str::<Probe>(schemas.as_str());
        let probed = self.schemas.as_ref().map(probe).and_then(Result::ok);
        probed.is_some_and(|probe| probe.input_schema.is_some())
    }

    /// What the task itself says that `inputs` must conform to. Cost: O(size).
    #[must_use]
    pub fn input_schema(&self) -> Option<Value> {
        self.schemas.as_ref()?.to_map().remove("input_schema")
    }

    /// Bytes of JSON that it carries.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let text = |payload: &Option<Payload>| payload.as_ref().map_or(0, |p| p.as_str().len());
        self.inputs.as_str().len() + text(&self.schemas) + text(&self.params)
    }

    /// As an attempt works on it: with these inputs, to which nothing is wired any more.
    #[must_use]
    pub fn with_inputs(mut self, inputs: Payload) -> Self {
        self.inputs = inputs;
        let schemas = self.schemas.take();
        self.schemas = schemas.map(|schemas| wiring::without(&schemas).unwrap_or(schemas));
        self
    }

    /// This specification with the given members replaced.
    #[must_use]
    pub fn updated(mut self, updates: &Updates) -> Self {
        if let Some(inputs) = &updates.inputs {
            self.inputs = inputs.clone();
        }
        if let Some(schemas) = updates.schemas.clone() {
            self.set_schemas(schemas);
        }
        if let Some(params) = updates.params.clone() {
            let mark = self.broker_mark();
            self.set_params(params);
            if let Some(mark) = mark {
                self = self.published(mark);
            }
        }
        if let Some(start_at) = updates.start_at {
            self.start_at = start_at;
        }
        self
    }

    /// What the agent broker wrote of who published the task. Cost: O(`params`) if there is something.
    #[must_use]
    pub fn broker_mark(&self) -> Option<Value> {
        self.params.as_ref().and_then(mark_in)
    }

    /// What is wrong with updates that say who published the task: they may repeat what the agent broker wrote, and say
    /// nothing else. Cost: as [`Self::broker_mark`].
    #[must_use]
    pub fn forged_mark(&self, updates: &Updates) -> Option<Violation> {
        let given = mark_in(&updates.params.as_ref()?.as_ref()?.raw)?;
        (self.broker_mark().as_ref() != Some(&given)).then(|| {
            let path = ["updates".into(), "params".into(), BROKER_PARAM.into()];
            Violation::new(&path, ONLY_THE_BROKER, ABSENT_OR_SAME, &given)
        })
    }

    /// The same as the agent broker records it: with what it says of who published the task.
    #[must_use]
    pub fn published(mut self, mark: Value) -> Self {
        let mut params = self
            .params
            .as_ref()
            .map(Payload::to_map)
            .unwrap_or_default();
        params.insert(BROKER_PARAM.to_owned(), mark);
        self.params = Some(Payload::from_map(&params));
        self
    }

    /// The same as if no agent had published it. Cost: O(`params`) if one has.
    #[must_use]
    pub fn unpublished(mut self) -> Self {
        if self.broker_mark().is_some() {
            let mut params = self
                .params
                .as_ref()
                .map(Payload::to_map)
                .unwrap_or_default();
            params.remove(BROKER_PARAM);
            self.params = Some(Payload::from_map(&params));
        }
        self
    }

    /// The same, started not before this time.
    #[must_use]
    pub const fn starting_at(mut self, start_at: Option<Timestamp>) -> Self {
        self.start_at = start_at;
        self
    }

    fn set_schemas(&mut self, schemas: Option<Schemas>) {
        self.remote = schemas.as_ref().is_some_and(|s| s.remote);
        (self.schemas, self.method) =
            schemas.map_or((None, None), |s| (Some(s.raw), Some(s.method)));
    }

    fn set_params(&mut self, params: Option<Params>) {
        self.delay_ms = params.as_ref().and_then(|p| p.delay_ms);
        self.start_within_ms = params.as_ref().and_then(|p| p.start_within_ms);
        self.cancel_grace_ms = params.as_ref().and_then(|p| p.cancel_grace_ms);
        self.retry = params.as_ref().and_then(|p| p.retry);
        self.timeout_ms = params.as_ref().and_then(|p| p.timeout_ms);
        self.deadline = params.as_ref().and_then(|p| p.deadline);
        self.params = params.map(|p| p.raw);
    }
}

/// Why nobody else may say who published a task.
const ONLY_THE_BROKER: &str = "Written by the agent broker alone";
const ABSENT_OR_SAME: &str = "no such member, or the same as the task has";

/// The member of the agent broker in the text of `params`.
fn mark_in(params: &Payload) -> Option<Value> {
    // The name may be written with escapes.
    let text = params.as_str();
    if !text.contains(BROKER_PARAM) && !text.contains('\\') {
        return None;
    }
    params.to_map().remove(BROKER_PARAM)
}

/// Reads one task. `extra` names members that the caller of this function reads itself (`children`).
/// Faults are appended to `violations`; what has one is left out of the result, which then only serves
/// to find the faults of other tasks.
pub(super) fn task(
    map: &Map<String, Value>,
    path: &[PathSegment],
    extra: &[&str],
    (violations, schema_steps): (&mut Vec<Violation>, &mut u64),
) -> TaskFields {
    let mut r = Reader {
        map,
        path,
        violations,
        schema_steps,
    };
    r.refuse_unknown(&schema::NAMES, extra);
    r.refuse_server_written();
    let id = r.id();
    let name = r.name(true);
    let user_id = r.user_id();
    let parent = r.parent();
    let priority = r.priority();
    let dependencies = r.dependencies();
    let before = r.violations.len();
    let inputs = r.inputs();
    let schemas = r.schemas();
    let params = r.params();
    r.refuse_broker_param();
    let start_at = r.start_at();
    let is_specified = r.violations.len() == before;
    let labels = r.labels();
    TaskFields {
        path: path.to_vec(),
        id,
        name: name.unwrap_or_default(),
        user_id: user_id.flatten(),
        parent: parent.flatten(),
        priority: priority.unwrap_or_default(),
        dependencies: dependencies.unwrap_or_default(),
        specification: Specification::assemble(
            inputs.unwrap_or_else(Payload::empty),
            schemas.flatten(),
            params.flatten(),
        )
        .starting_at(start_at.flatten()),
        is_specified,
        labels: labels.unwrap_or_default(),
    }
}

/// Reads `updates` of `tasks.update`.
///
/// # Errors
/// All violations, with paths that begin with `updates`.
pub fn updates(map: &Map<String, Value>) -> Result<Updates, Vec<Violation>> {
    let updates = read_updates(map);
    match updates.faults.is_empty() {
        true => Ok(updates),
        false => Err(updates.faults),
    }
}

/// As [`updates`], but faults are kept.
#[must_use]
pub fn read_updates(map: &Map<String, Value>) -> Updates {
    let mut violations = Vec::new();
    let path = ["updates".into()];
    let mut r = Reader {
        map,
        path: &path,
        violations: &mut violations,
        schema_steps: &mut { limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX },
    };
    r.refuse_unknown(&schema::NAMES, &[]);
    r.refuse_server_written();
    if let Some(id) = map.get("id") {
        r.fault(
            "id",
            "Field is not writable",
            "no `id`: a task keeps its id",
            id,
        );
    }
    let mut updates = Updates {
        faults: Vec::new(),
        name: r.name(false),
        user_id: r.user_id(),
        parent: r.parent(),
        priority: r.priority(),
        dependencies: r.dependencies(),
        inputs: r.inputs(),
        schemas: r.schemas(),
        params: r.params(),
        start_at: r.start_at(),
        status: map
            .get("status")
            .and_then(Value::as_str)
            .and_then(Status::parse),
        labels: r.labels(),
    };
    // There are no other tasks in the call, so a reference is the id of a stored one.
    let parent = updates.parent.iter_mut().flatten();
    let parent = parent.map(|parent| (parent, vec!["parent_id".into()]));
    let dependencies = updates.dependencies.iter_mut().flatten().enumerate();
    let dependencies = dependencies
        .map(|(k, (task, _))| (task, vec!["dependencies".into(), k.into(), "id".into()]));
    for (reference, place) in parent.chain(dependencies) {
        if reference.id().is_some() || reference.is_unread() {
            continue;
        }
        Violation::report(&mut violations, || {
            let at: Vec<PathSegment> = path.iter().cloned().chain(place).collect();
            let actual = Value::String(reference.text.clone());
            Violation::new(&at, "Invalid UUID format", "a UUID v4", &actual)
        });
        *reference = TaskRef::unread();
    }
    updates.faults = violations;
    updates
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
