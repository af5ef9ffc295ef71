//! A task as a caller may write it, as JSON Schema (draft-07): the published twin of the readers in
//! `spec` and `call`. The names of the members are taken from here by the reader; that both
//! agree on values is a property (`tests/schema.rs`), which also lists what a schema cannot say.

use super::labels::{KEY_PATTERN, VALUE_PATTERN};
use crate::limits;
use serde_json::{Map, Value, json};

/// A member of a task.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// The member's name in JSON.
    pub name: &'static str,
    /// What it means, as one sentence.
    pub description: &'static str,
    schema: fn() -> Value,
}

impl Member {
    const fn new(name: &'static str, description: &'static str, schema: fn() -> Value) -> Self {
        Self {
            name,
            description,
            schema,
        }
    }

    /// The values that are taken.
    #[must_use]
    pub fn schema(&self) -> Value {
        (self.schema)()
    }
}

/// Members of a task that a caller may write, in the order of positional parameters.
pub const MEMBERS: &[Member] = &[
    Member::new(
        "name",
        "A name for people, and within the call.",
        || json!({"type": "string", "minLength": 1, "maxLength": limits::NAME_CHARS_MAX}),
    ),
    Member::new(
        "user_id",
        "Whose task it is; without it, the parent's.",
        || json!({"type": ["string", "null"], "minLength": 1, "maxLength": limits::KEY_CHARS_MAX}),
    ),
    Member::new(
        "parent_id",
        "The task above it: a stored id, or the id or name of a task of the same call. It orders no execution.",
        || json!({"type": ["string", "null"], "minLength": 1, "anyOf": version_4_or_alias()}),
    ),
    Member::new(
        "priority",
        "0 urgent, 1 high, 2 normal, 3 low.",
        || json!({"type": ["integer", "null"], "minimum": 0, "maximum": 3, "default": 2}),
    ),
    Member::new(
        "inputs",
        "What the executor works on; checked against `schemas.input_schema`.",
        || json!({"type": "object", "default": {}}),
    ),
    Member::new(
        "schemas",
        "Which executor runs it; a task without it is a group, which ends with what is below it.",
        || json!({"anyOf": [{"$ref": "#/components/schemas/TaskSchemas"}, {"type": "null"}]}),
    ),
    Member::new(
        "dependencies",
        "The tasks of the same flow that it waits for.",
        || {
            json!({
                "type": "array",
                "maxItems": limits::DEPENDENCIES_PER_TASK_MAX,
                "items": {"$ref": "#/components/schemas/DependencyInput"},
                "default": [],
            })
        },
    ),
    Member::new(
        "params",
        "How it is run: retries, time-out, deadline, and what the executor reads.",
        || json!({"anyOf": [{"$ref": "#/components/schemas/TaskParams"}, {"type": "null"}]}),
    ),
    Member::new(
        "id",
        "A UUID v4 that the task shall have, or a text that is not a UUID as its name within the call. UUIDs of other versions are refused.",
        || {
            json!({
                "type": "string",
                "minLength": 1,
                "maxLength": limits::KEY_CHARS_MAX,
                "anyOf": version_4_or_alias(),
            })
        },
    ),
    Member::new(
        "start_at",
        "No attempt of it, or of a task below it, starts before this time.",
        || json!({"type": ["string", "null"], "format": "date-time"}),
    ),
    Member::new(
        "status",
        "Written by the server; a new task is pending.",
        || json!({"type": "string", "enum": ["pending"]}),
    ),
    Member::new(
        "progress",
        "Written by the server; that of a new task is 0.",
        || json!({"type": "number", "minimum": 0, "maximum": 0}),
    ),
    Member::new("result", "Written by the server.", null),
    Member::new("error", "Written by the server.", null),
    Member::new("started_at", "Written by the server.", null),
    Member::new("completed_at", "Written by the server.", null),
    Member::new("created_at", "Taken and overwritten by the server.", time),
    Member::new("updated_at", "Taken and overwritten by the server.", time),
    Member::new(
        "labels",
        "What it is found by: keys with texts, which the server gives no meaning.",
        labels,
    ),
];

/// The names of [`MEMBERS`].
pub(super) const NAMES: [&str; MEMBERS.len()] = {
    let mut names = [""; MEMBERS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = MEMBERS[i].name;
        i += 1;
    }
    names
};

/// How many of [`MEMBERS`] say what a task is; those after them, from `id` on, are rarely written.
const SAYING: usize = 8;

const CHILDREN: Member = Member::new(
    "children",
    "The tasks below it, written where they belong.",
    children,
);

/// The parameters of `tasks.create` in the order in which positional ones are taken: the members
/// of one task, or `tasks` alone, or a node of `task` and `children`.
#[must_use]
pub fn create_members() -> Vec<Member> {
    let (saying, rest) = MEMBERS.split_at(SAYING);
    let (id, written_by_server) = rest.split_at(1);
    let forms = [
        Member::new(
            "tasks",
            "A list of tasks that refer to each other by id or name; nothing else beside it.",
            || json!({"$ref": "#/components/schemas/TaskInputs"}),
        ),
        Member::new(
            "task",
            "The task of a node `{task, children}`; nothing but `children` beside it.",
            || json!({"$ref": "#/components/schemas/TaskFields"}),
        ),
    ];
    [saying, &[CHILDREN], id, &forms, written_by_server].concat()
}

/// A UUID of version 4, or a text that is no UUID.
fn version_4_or_alias() -> Value {
    json!([{"pattern": UUID_V4_PATTERN}, {"not": {"pattern": UUID_PATTERN}}])
}

/// Any UUID in its hyphenated form.
const UUID_PATTERN: &str =
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";

/// A UUID v4 in its hyphenated form, for readers of a schema whose `uuid` format takes all versions.
pub const UUID_V4_PATTERN: &str =
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$";

fn null() -> Value {
    json!({"type": "null"})
}

/// Date and time, with or without an offset, or a date.
fn time() -> Value {
    json!({"type": "string", "anyOf": [
        {"format": "date-time"},
        {"format": "date"},
        {"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?$"},
    ]})
}

/// What chooses tasks by their labels: keys with the value that each must have, or null for any.
#[must_use]
pub fn label_selector() -> Value {
    let mut selector = labels();
    selector["type"] = json!("object");
    selector["additionalProperties"]["type"] = json!(["string", "null"]);
    if let Value::Object(members) = &mut selector {
        members.remove("default");
    }
    selector
}

fn labels() -> Value {
    json!({
        "type": ["object", "null"],
        "maxProperties": limits::LABELS_MAX,
        "propertyNames": {
            "maxLength": limits::LABEL_KEY_CHARS_MAX,
            "pattern": KEY_PATTERN,
        },
        "additionalProperties": {
            "type": "string",
            "maxLength": limits::LABEL_VALUE_CHARS_MAX,
            "pattern": VALUE_PATTERN,
        },
        "default": {},
    })
}

fn children() -> Value {
    json!({"type": "array", "items": {"$ref": "#/components/schemas/TaskInput"}})
}

/// The schemas that those of [`MEMBERS`] refer to, and that the parameters of methods refer to, by
/// name; they refer to each other as `#/components/schemas/...`.
#[must_use]
pub fn components() -> Vec<(&'static str, Value)> {
    vec![
        ("TaskFields", object(MEMBERS.iter(), &["name"])),
        ("TaskInput", task_input()),
        ("TaskInputs", task_inputs()),
        ("TaskUpdates", updates()),
        (
            "DependencyInput",
            dependency(json!({"minLength": 1, "anyOf": version_4_or_alias()})),
        ),
        (
            "DependencyUpdate",
            dependency(json!({"pattern": UUID_V4_PATTERN})),
        ),
        ("TaskSchemas", schemas()),
        ("TaskParams", params()),
        ("RetryPolicy", retry()),
    ]
}

/// An object with these members and no others.
fn object<'m>(members: impl Iterator<Item = &'m Member>, required: &[&str]) -> Value {
    let properties: Map<String, Value> = members
        .map(|member| {
            let mut schema = member.schema();
            schema["description"] = Value::from(member.description);
            (member.name.to_owned(), schema)
        })
        .collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn task_input() -> Value {
    let flat = object(MEMBERS.iter().chain([&CHILDREN]), &["name"]);
    json!({
        "description": "A task, with `children` or without, or a node of a task and its children.",
        "anyOf": [
            flat,
            {
                "type": "object",
                "required": ["task"],
                "properties": {
                    "task": {"$ref": "#/components/schemas/TaskFields"},
                    "children": children(),
                },
                "additionalProperties": false,
            },
        ],
    })
}

fn task_inputs() -> Value {
    json!({
        "type": "array",
        "minItems": 1,
        "maxItems": limits::TASKS_PER_CALL_MAX,
        "items": {"$ref": "#/components/schemas/TaskInput"},
    })
}

/// References in an update can only mean stored tasks.
fn updates() -> Value {
    let mut schema = object(MEMBERS.iter().filter(|m| m.name != "id"), &[]);
    let members = &mut schema["properties"];
    members["parent_id"]["pattern"] = Value::from(UUID_V4_PATTERN);
    members["dependencies"]["items"] = json!({"$ref": "#/components/schemas/DependencyUpdate"});
    schema
}

/// A dependency whose `id` is a text of this kind.
fn dependency(id: Value) -> Value {
    let mut schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {
                "type": "string",
                "description": "A stored id, or in a call with several tasks the id or name of one of them.",
            },
            "required": {
                "type": "boolean",
                "default": true,
                "description": "Whether it must complete, or only end.",
            },
            "when": {
                "type": "string",
                "enum": ["always"],
                "description": "Satisfied when it has ended or can no longer run, for steps that clean up; not together with `required: true`.",
            },
        },
        "not": {"required": ["required", "when"], "properties": {"required": {"const": true}}},
        "additionalProperties": false,
    });
    if let (Value::Object(known), Value::Object(more)) = (&mut schema["properties"]["id"], id) {
        known.extend(more);
    }
    schema
}

fn schemas() -> Value {
    json!({
        "type": "object",
        "required": ["method"],
        "properties": {
            "type": {"type": "string", "enum": ["local", "remote", "external"]},
            "method": {
                "type": "string",
                "minLength": 1,
                "maxLength": limits::KEY_CHARS_MAX,
                "description": "The executor, one of `system.executors`.",
            },
            "input_schema": {
                "type": "object",
                "description": "A JSON Schema (draft-07) for `inputs`, with those of `wiring` among them.",
            },
            "wiring": wiring(),
            "templates": {
                "type": "boolean",
                "default": false,
                "description": "Whether texts of `inputs` hold templates: `{{<dependency>.<key>}}`, with references as in `wiring`.",
            },
            "outputs": {
                "type": "object",
                "maxProperties": limits::OUTPUTS_MAX,
                "description": "What the result has: keys with their types, or `{type, required}`.",
            },
            "types": {
                "type": "object",
                "maxProperties": limits::TYPES_MAX,
                "description": "Types by name, for `outputs`.",
            },
            "validation": {
                "type": "string",
                "enum": ["deep", "shallow"],
                "default": "deep",
                "description": "How far values of `outputs` are looked into.",
            },
            "workflow": {
                "description": "The phase of a workflow document that the task carries out; `workflows.create` writes it.",
            },
        },
        "additionalProperties": false,
    })
}

/// A reference to a result: a name, then a key with or without a JSON pointer, or a pointer alone.
const REFERENCE_PATTERN: &str = r"^[\s\S]+?([.][^#]+(#(/([^~]|~[01])*)?)?|#(/([^~]|~[01])*)?)$";

fn wiring() -> Value {
    let reference = || {
        json!({
            "type": "string",
            "pattern": REFERENCE_PATTERN,
            "maxLength": limits::REFERENCE_CHARS_MAX,
        })
    };
    json!({
        "type": "object",
        "maxProperties": limits::WIRED_INPUTS_MAX,
        "propertyNames": {"minLength": 1, "maxLength": limits::KEY_CHARS_MAX},
        "additionalProperties": {"anyOf": [
            reference(),
            {
                "type": "object",
                "required": ["from"],
                "properties": {
                    "from": reference(),
                    "type": {"description": "The type that the value must have, as in `outputs`."},
                    "required": {
                        "type": "boolean",
                        "default": true,
                        "description": "Whether the attempt fails when there is no such value.",
                    },
                    "default": {"description": "The value when there is none."},
                },
                "additionalProperties": false,
            },
        ]},
        "description": "Inputs that come from results of dependencies: `<dependency>.<key>`, followed by `#/<pointer>` for a part of the value, or `<dependency>#/<pointer>`. Names of the call are stored as ids.",
    })
}

fn params() -> Value {
    json!({
        "type": "object",
        "description": "Members that are not named here are for the executor.",
        "properties": {
            "retry_count": {
                "type": "integer",
                "minimum": 0,
                "maximum": limits::RETRIES_MAX,
                "description": "Extra attempts; not together with `retry`.",
            },
            "retry": {"$ref": "#/components/schemas/RetryPolicy"},
            "timeout_seconds": {
                "type": "number",
                "minimum": 0.001,
                "maximum": limits::DELAY_MS_MAX / 1000,
                "description": "Bounds one attempt.",
            },
            "delay_seconds": {
                "type": "number",
                "minimum": 0,
                "maximum": limits::START_DELAY_MS_MAX / 1000,
                "description": "How long it waits for its first start in a run once it is ready; a group with everything below it.",
            },
            "deadline": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "No attempt of it, or of a task below it, starts or continues after this time.",
            },
        },
        "not": {"required": ["retry", "retry_count"]},
    })
}

fn retry() -> Value {
    let list = |max: u16, min: u16, about: &str| {
        json!({
            "type": "array",
            "maxItems": limits::RETRY_CODES_MAX,
            "items": {"type": "integer", "minimum": min, "maximum": max},
            "description": about,
        })
    };
    let delay_ms = |default: u64| {
        json!({
            "type": "number",
            "minimum": 0,
            "maximum": limits::DELAY_MS_MAX,
            "default": default,
        })
    };
    json!({
        "type": "object",
        "required": ["max_attempts"],
        "properties": {
            "max_attempts": {"type": "integer", "minimum": 1, "maximum": limits::RETRIES_MAX + 1},
            "initial_delay_ms": delay_ms(super::RetryPolicy::INITIAL_DELAY_MS_DEFAULT),
            "multiplier": {
                "type": "number",
                "minimum": 1,
                "maximum": 100,
                "default": super::RetryPolicy::MULTIPLIER_DEFAULT,
            },
            "max_delay_ms": delay_ms(super::RetryPolicy::MAX_DELAY_MS_DEFAULT),
            "jitter": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "default": super::RetryPolicy::JITTER_DEFAULT,
                "description": "The part of each delay that varies from task to task; delays only get shorter.",
            },
            "max_elapsed_seconds": {
                "type": "number",
                "minimum": 0.001,
                "maximum": limits::DELAY_MS_MAX / 1000,
                "description": "No attempt starts later than this after the first one of the run. Default: no bound.",
            },
            "non_retryable_exit_codes": list(limits::EXIT_CODE_MAX, 1,
                "Of `command_executor`: exit codes after which no attempt follows. Default: none."),
            "non_retryable_statuses": list(limits::STATUS_MAX, limits::STATUS_MIN,
                "Of `http_executor`: HTTP statuses after which no attempt follows. Default: 400 to 499, but 408, 425 and 429."),
        },
        "additionalProperties": false,
    })
}
