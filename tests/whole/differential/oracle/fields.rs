//! Data model, "Complete Field Specification", and of the section "State machine" what clients may
//! write: each member of a task by itself. Gives the paths of everything that is wrong.

use super::ids::{Reference, join, reference};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use taskledger_domain::Timestamp;

const MEMBERS: &[&str] = &[
    "id",
    "parent_id",
    "user_id",
    "name",
    "status",
    "priority",
    "inputs",
    "schemas",
    "params",
    "start_at",
    "result",
    "error",
    "dependencies",
    "progress",
    "created_at",
    "started_at",
    "updated_at",
    "completed_at",
    "labels",
];

/// Unicode scalar values of a name, an alias, a user, a method.
const TEXT_MAX: usize = 255;
/// Characters of the key of a label.
const LABEL_KEY_MAX: usize = 63;
/// Labels of a task.
const LABELS_MAX: usize = 32;
/// Seconds in 30 days: the longest time-out.
const SECONDS_MAX: f64 = 2_592_000.0;
/// Seconds in 365 days: the longest delay.
const DELAY_SECONDS_MAX: f64 = 31_536_000.0;
const RETRIES_MAX: f64 = 100.0;
/// Seconds that a worker may have to stop after a cancel.
const GRACE_SECONDS_MAX: f64 = 3600.0;

/// Faults of a node of a tree: a task with `children`, or `{task, children}`, and all below it.
pub(crate) fn node(map: &Map<String, Value>, path: &str, found: &mut BTreeSet<String>) {
    match map.get("task") {
        None => task(map, path, &["children"], found),
        Some(inner) => {
            let beside = map.keys().filter(|k| *k != "task" && *k != "children");
            found.extend(beside.map(|k| join(path, k)));
            match inner.as_object() {
                Some(inner) => task(inner, &join(path, "task"), &[], found),
                None => _ = found.insert(join(path, "task")),
            }
        }
    }
    match map.get("children") {
        None => {}
        Some(Value::Array(children)) => {
            for (i, child) in children.iter().enumerate() {
                let at = join(path, &format!("children.{i}"));
                match child.as_object() {
                    Some(child) => node(child, &at, found),
                    None => _ = found.insert(at),
                }
            }
        }
        Some(_) => _ = found.insert(join(path, "children")),
    }
}

fn task(map: &Map<String, Value>, path: &str, extra: &[&str], found: &mut BTreeSet<String>) {
    members(map, path, extra, found);
    if !map.contains_key("name") {
        found.insert(join(path, "name"));
    }
    if let Some(id) = map.get("id") {
        let fits = id.as_str().is_some_and(|text| match reference(text) {
            Reference::Stored(_) => true,
            Reference::Broken => false,
            Reference::Local(text) => has_text(&text),
        });
        if !fits {
            found.insert(join(path, "id"));
        }
    }
}

/// Faults of `updates`: as a task without a duty to have a name, and without an `id`. A reference
/// can only mean a stored task.
pub(crate) fn updates(map: &Map<String, Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    members(map, "updates", &[], &mut found);
    if map.contains_key("id") {
        found.insert("updates.id".to_owned());
    }
    found
}

/// Faults of references in `updates`, which can only mean stored tasks, and each one once.
pub(crate) fn update_references(map: &Map<String, Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let stored = |v: &Value| super::ids::symbol(v.as_str().unwrap_or_default());
    let parent = map.get("parent_id").filter(|p| !p.is_null());
    if parent.is_some_and(|p| stored(p).is_none()) {
        found.insert("updates.parent_id".to_owned());
    }
    let listed = map.get("dependencies").and_then(Value::as_array);
    let mut seen = BTreeSet::new();
    for (i, dependency) in listed.into_iter().flatten().enumerate() {
        if stored(&dependency["id"]).is_none_or(|s| !seen.insert(s)) {
            found.insert(format!("updates.dependencies.{i}.id"));
        }
    }
    found
}

fn has_text(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= TEXT_MAX
}

fn members(map: &Map<String, Value>, path: &str, extra: &[&str], found: &mut BTreeSet<String>) {
    for (member, value) in map {
        let known = MEMBERS.contains(&member.as_str());
        if !known && !extra.contains(&member.as_str()) {
            found.insert(join(path, member));
        }
        if known && !fits(member, value) {
            found.insert(join(path, member));
        }
    }
    let at = |member: &str| join(path, member);
    if let Some(list) = map.get("dependencies").and_then(Value::as_array) {
        for (i, dependency) in list.iter().enumerate() {
            self::dependency(dependency, &format!("{}.{i}", at("dependencies")), found);
        }
    }
    if let Some(labels) = map.get("labels").and_then(Value::as_object) {
        found.extend(self::labels(labels, false).map(|key| join(&at("labels"), key)));
    }
    if let Some(schemas) = map.get("schemas").and_then(Value::as_object) {
        self::schemas(schemas, &at("schemas"), found);
    }
    if let Some(params) = map.get("params").and_then(Value::as_object) {
        self::params(params, &at("params"), found);
    }
}

/// Whether a member has its type and range; what is inside objects and arrays is asked elsewhere.
fn fits(member: &str, value: &Value) -> bool {
    let text = value.as_str();
    match member {
        "name" => text.is_some_and(has_text),
        "user_id" => value.is_null() || text.is_some_and(has_text),
        "parent_id" => value.is_null() || text.is_some_and(|t| !t.is_empty()),
        "priority" => value.is_null() || whole(value, 0.0, 3.0),
        "inputs" => value.is_object(),
        "start_at" => value.is_null() || text.is_some_and(|t| Timestamp::parse(t).is_ok()),
        "schemas" | "params" => value.is_null() || value.is_object(),
        "labels" => value.is_null() || value.as_object().is_some_and(|it| it.len() <= LABELS_MAX),
        "dependencies" => value.is_array(),
        "status" => text == Some("pending"),
        "progress" => value.is_null() || value.as_f64() == Some(0.0),
        "result" | "error" | "started_at" | "completed_at" => value.is_null(),
        "created_at" | "updated_at" => text.is_some_and(|t| Timestamp::parse(t).is_ok()),
        _ => true,
    }
}

/// Keys of labels that are wrong, or have a wrong value. `any`: null stands for any value.
pub(super) fn labels(map: &Map<String, Value>, any: bool) -> impl Iterator<Item = &str> {
    let is_part = |part: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let ends = |c: char| c.is_ascii_alphanumeric();
        part.starts_with(ends) && part.ends_with(ends) && part.chars().all(inner)
    };
    let is_key = move |key: &str| {
        let parts: Vec<_> = key.split('/').collect();
        parts.len() <= 2 && key.len() <= LABEL_KEY_MAX && parts.iter().all(|part| is_part(part))
    };
    let is_value = move |value: &Value| match value.as_str() {
        Some(text) => text.chars().count() <= TEXT_MAX && !text.chars().any(char::is_control),
        None => any && value.is_null(),
    };
    let wrong = map
        .iter()
        .filter(move |(key, value)| !is_key(key) || !is_value(value));
    wrong.map(|(key, _)| key.as_str())
}

fn number(value: &Value, min: f64, max: f64) -> bool {
    value.as_f64().is_some_and(|n| (min..=max).contains(&n))
}

fn whole(value: &Value, min: f64, max: f64) -> bool {
    number(value, min, max) && value.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn dependency(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Some(map) = value.as_object() else {
        found.insert(path.to_owned());
        return;
    };
    let known = ["id", "required", "when"];
    let unknown = map.keys().filter(|k| !known.contains(&k.as_str()));
    found.extend(unknown.map(|k| join(path, k)));
    let requires = map.get("required") == Some(&Value::Bool(true));
    if map
        .get("when")
        .is_some_and(|when| when != "always" || requires)
    {
        found.insert(join(path, "when"));
    }
    if map.get("required").is_some_and(|r| !r.is_boolean()) {
        found.insert(join(path, "required"));
    }
    let id = map.get("id").and_then(Value::as_str);
    if id.is_none_or(str::is_empty) {
        found.insert(join(path, "id"));
    }
}

/// The members of `schemas`.
const SCHEMAS: [&str; 9] = [
    "method",
    "type",
    "input_schema",
    "wiring",
    "templates",
    "outputs",
    "types",
    "validation",
    "workflow",
];

fn schemas(map: &Map<String, Value>, path: &str, found: &mut BTreeSet<String>) {
    let method = map.get("method").and_then(Value::as_str);
    if !method.is_some_and(has_text) {
        found.insert(join(path, "method"));
    }
    let kinds = ["local", "remote", "external"];
    let kind = map.get("type");
    if kind.is_some_and(|k| !k.as_str().is_some_and(|k| kinds.contains(&k))) {
        found.insert(join(path, "type"));
    }
    if map.get("input_schema").is_some_and(|s| !s.is_object()) {
        found.insert(join(path, "input_schema"));
    }
    let unknown = map.keys().filter(|key| !SCHEMAS.contains(&key.as_str()));
    found.extend(unknown.map(|key| join(path, key)));
}

fn params(map: &Map<String, Value>, path: &str, found: &mut BTreeSet<String>) {
    let wrong =
        |member: &str, fits: &dyn Fn(&Value) -> bool| map.get(member).is_some_and(|v| !fits(v));
    if wrong("timeout_seconds", &|v| number(v, 0.001, SECONDS_MAX)) {
        found.insert(join(path, "timeout_seconds"));
    }
    if wrong("schedule_to_start_seconds", &|v| {
        number(v, 0.001, SECONDS_MAX)
    }) {
        found.insert(join(path, "schedule_to_start_seconds"));
    }
    if wrong("delay_seconds", &|v| number(v, 0.0, DELAY_SECONDS_MAX)) {
        found.insert(join(path, "delay_seconds"));
    }
    if wrong("cancel_grace_seconds", &|v| {
        number(v, 0.0, GRACE_SECONDS_MAX)
    }) {
        found.insert(join(path, "cancel_grace_seconds"));
    }
    let deadline =
        |v: &Value| v.is_null() || v.as_str().is_some_and(|t| Timestamp::parse(t).is_ok());
    if wrong("deadline", &deadline) {
        found.insert(join(path, "deadline"));
    }
    if map.contains_key("retry_count") && map.contains_key("retry") {
        found.insert(join(path, "retry"));
        return;
    }
    if wrong("retry_count", &|v| whole(v, 0.0, RETRIES_MAX)) {
        found.insert(join(path, "retry_count"));
    }
    let Some(retry) = map.get("retry") else {
        return;
    };
    let path = join(path, "retry");
    let Some(retry) = retry.as_object() else {
        found.insert(path);
        return;
    };
    if !retry.contains_key("max_attempts") {
        found.insert(join(&path, "max_attempts"));
    }
    for (member, value) in retry {
        let fits = match member.as_str() {
            "max_attempts" => whole(value, 1.0, RETRIES_MAX + 1.0),
            "initial_delay_ms" | "max_delay_ms" => number(value, 0.0, SECONDS_MAX * 1000.0),
            "multiplier" => number(value, 1.0, 100.0),
            _ => false,
        };
        if !fits {
            found.insert(join(&path, member));
        }
    }
}
