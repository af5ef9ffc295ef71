//! Section "Methods": the parameters of each method by themselves.

use super::ids;
use super::{Refusal, Status, fields};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use taskledger_domain::Timestamp;

/// Names in the order of the protocol, for parameters by position.
pub(crate) fn names(method: &str) -> &'static [&'static str] {
    match method {
        "tasks.create" => &[
            "name",
            "user_id",
            "parent_id",
            "priority",
            "inputs",
            "schemas",
            "dependencies",
        ],
        "tasks.get" | "tasks.retry" | "tasks.tree" => &["task_id"],
        "tasks.update" => &["task_id", "updates"],
        "tasks.delete" | "tasks.cancel" => &["task_id", "cascade"],
        "tasks.list" => &["limit", "offset", "status", "user_id"],
        "tasks.execute" => &["tasks"],
        "tasks.children" => &["parent_id"],
        "tasks.copy" => &["task_id", "copy_children"],
        _ => &[],
    }
}

/// Whether the method changes what is stored.
pub(crate) fn changes(method: &str) -> bool {
    !matches!(
        method,
        "tasks.get" | "tasks.tree" | "tasks.children" | "tasks.list"
    )
}

/// The parameters by name. Scripts never give more by position than there are.
pub(crate) fn named(method: &str, params: &Value) -> Result<Map<String, Value>, Refusal> {
    match params {
        Value::Object(map) => Ok(map.clone()),
        Value::Array(list) => {
            let names = names(method).iter().map(|n| (*n).to_owned());
            Ok(names.zip(list.iter().cloned()).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(Refusal {
            code: -32600,
            paths: None,
        }),
    }
}

/// Paths of everything that is wrong with the parameters.
pub(crate) fn check(method: &str, map: &Map<String, Value>) -> BTreeSet<String> {
    let known: &[(&str, Rule)] = match method {
        "tasks.create" => return create(map),
        "tasks.get" | "tasks.tree" => &[("task_id", Rule::Id), ("consistency", Rule::Consistency)],
        "tasks.children" => &[("parent_id", Rule::Id), ("consistency", Rule::Consistency)],
        "tasks.retry" => &[("task_id", Rule::Id), ("include", Rule::Include)],
        "tasks.delete" => &[("task_id", Rule::Id), ("cascade", Rule::Flag)],
        "tasks.cancel" => &[
            ("task_id", Rule::Id),
            ("cascade", Rule::Flag),
            ("reason", Rule::Text(4096)),
        ],
        "tasks.copy" => &[
            ("task_id", Rule::Id),
            ("copy_children", Rule::Flag),
            ("parent_id", Rule::OptionalId),
        ],
        "tasks.update" => &[("task_id", Rule::Id), ("updates", Rule::Object)],
        "tasks.execute" => &[
            ("task_id", Rule::OptionalId),
            ("tasks", Rule::Tasks),
            ("use_streaming", Rule::NoFlag),
            ("allow_unknown_executors", Rule::Flag),
            ("executor_wait_seconds", Rule::Seconds),
            ("include", Rule::Include),
        ],
        "tasks.claim" => &[
            ("worker", Rule::Text(255)),
            ("methods", Rule::Methods),
            ("task_id", Rule::OptionalId),
            ("max", Rule::Whole(1, 100)),
            ("lease_seconds", Rule::Whole(5, 3600)),
            ("wait_seconds", Rule::Wait),
        ],
        "tasks.renew" => &[
            ("task_id", Rule::Id),
            ("lease", Rule::Token),
            ("lease_seconds", Rule::Whole(5, 3600)),
        ],
        "tasks.complete" => &[
            ("task_id", Rule::Id),
            ("lease", Rule::Token),
            ("output", Rule::Object),
        ],
        "tasks.fail" => &[
            ("task_id", Rule::Id),
            ("lease", Rule::Token),
            ("error", Rule::Error),
            ("retryable", Rule::Flag),
        ],
        "tasks.release" => &[("task_id", Rule::Id), ("lease", Rule::Token)],
        "tasks.suspend" => &[
            ("task_id", Rule::Id),
            ("lease", Rule::Token),
            ("request", Rule::Object),
        ],
        "tasks.respond" => &[
            ("task_id", Rule::Id),
            ("suspension_id", Rule::Id),
            ("value", Rule::Answer),
            ("responded_by", Rule::Text(255)),
        ],
        "tasks.sibling_output" => &[
            ("task_id", Rule::Id),
            ("lease", Rule::Token),
            ("name", Rule::Text(255)),
        ],
        "tasks.list" => &[
            ("limit", Rule::Whole(1, 1000)),
            ("offset", Rule::Whole(0, i64::MAX as u64)),
            ("status", Rule::Status),
            ("user_id", Rule::Text(255)),
            ("cursor", Rule::Text(512)),
            ("root_only", Rule::Flag),
            ("parent_id", Rule::OptionalId),
            ("name", Rule::Text(255)),
            ("priority", Rule::Whole(0, 3)),
            ("created_after", Rule::Time),
            ("created_before", Rule::Time),
            ("order", Rule::Order),
            ("consistency", Rule::Consistency),
            ("suspended", Rule::Flag),
            ("labels", Rule::Labels),
        ],
        _ => return BTreeSet::new(),
    };
    let mut found: BTreeSet<String> = map
        .keys()
        .filter(|k| known.iter().all(|(name, _)| name != k))
        .cloned()
        .collect();
    for (name, rule) in known {
        let value = map.get(*name).unwrap_or(&Value::Null);
        if !rule.fits(value) {
            found.insert((*name).to_owned());
        }
    }
    found.extend(combinations(method, map));
    found
}

/// Faults between and inside parameters.
fn combinations(method: &str, map: &Map<String, Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let given = |name: &str| map.get(name).is_some_and(|v| !v.is_null());
    match method {
        "tasks.claim" => match (given("methods"), given("task_id")) {
            (true, true) => _ = found.insert("task_id".to_owned()),
            (false, false) => _ = found.insert("methods".to_owned()),
            (true, false) | (false, true) => {}
        },
        "tasks.execute" => {
            if given("tasks") == given("task_id") {
                found.insert("task_id".to_owned());
            }
            if let Some(list) = map.get("tasks") {
                tasks(list, &mut found);
            }
        }
        "tasks.update" => {
            let updates = map.get("updates").and_then(Value::as_object);
            found.extend(updates.map(fields::updates).unwrap_or_default());
        }
        "tasks.list" => {
            let cursor = map
                .get("cursor")
                .is_some_and(|c| Rule::Text(512).fits(c) && !c.is_null());
            let offset = map.get("offset").and_then(Value::as_f64).unwrap_or(0.0);
            if cursor && offset > 0.0 {
                found.insert("offset".to_owned());
            } else if cursor {
                // No script writes a cursor that is one.
                found.insert("cursor".to_owned());
            }
            let parent = map
                .get("parent_id")
                .and_then(Value::as_str)
                .and_then(ids::symbol);
            if let Some(labels) = map.get("labels").and_then(Value::as_object) {
                found.extend(fields::labels(labels, true).map(|key| format!("labels.{key}")));
            }
            if map.get("root_only") == Some(&Value::Bool(true)) && parent.is_some() {
                found.insert("root_only".to_owned());
            }
        }
        _ => {}
    }
    found
}

fn create(map: &Map<String, Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    match map.get("tasks") {
        None => fields::node(map, "", &mut found),
        Some(list) => {
            found.extend(map.keys().filter(|k| *k != "tasks").cloned());
            tasks(list, &mut found);
            if !list.is_array() {
                found.insert("tasks".to_owned());
            }
        }
    }
    found
}

fn tasks(list: &Value, found: &mut BTreeSet<String>) {
    let Some(items) = list.as_array() else {
        return;
    };
    if items.is_empty() {
        found.insert("tasks".to_owned());
    }
    for (i, item) in items.iter().enumerate() {
        let at = format!("tasks.{i}");
        match item.as_object() {
            Some(item) => fields::node(item, &at, found),
            None => _ = found.insert(at),
        }
    }
}

enum Rule {
    Id,
    OptionalId,
    Flag,
    /// A flag that must not be set: there is no streaming yet.
    NoFlag,
    Text(usize),
    Object,
    /// Labels to look for; what is inside is asked elsewhere.
    Labels,
    Tasks,
    Whole(u64, u64),
    Seconds,
    /// Names of methods.
    Methods,
    /// Seconds for which a call may wait.
    Wait,
    /// What stands for a lease.
    Token,
    /// What went wrong.
    Error,
    /// What a person may say.
    Answer,
    Status,
    Time,
    Order,
    Consistency,
    /// The failures that a run takes.
    Include,
}

impl Rule {
    /// Null counts as absent.
    fn fits(&self, value: &Value) -> bool {
        let text = value.as_str();
        match self {
            Self::Id => text.and_then(ids::symbol).is_some(),
            Self::Object => value.is_object(),
            Self::Token | Self::Error => text.is_some_and(|t| !t.is_empty()),
            Self::Answer => match value {
                Value::String(text) => !text.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
                Value::Null | Value::Array(_) => false,
            },
            _ if value.is_null() => true,
            Self::Labels => value.as_object().is_some_and(|map| map.len() <= 32),
            Self::OptionalId => text.and_then(ids::symbol).is_some(),
            Self::Flag => value.is_boolean(),
            Self::NoFlag => *value == false,
            Self::Text(max) => text.is_some_and(|t| !t.is_empty() && t.chars().count() <= *max),
            Self::Tasks => value.is_array(),
            Self::Methods => value.as_array().is_some_and(|names| {
                let fits = |name: &Value| !name.is_null() && Self::Text(255).fits(name);
                (1..=100).contains(&names.len()) && names.iter().all(fits)
            }),
            Self::Wait => value.as_f64().is_some_and(|n| (0.0..=60.0).contains(&n)),
            Self::Whole(min, max) => value
                .as_f64()
                .is_some_and(|n| n.fract() == 0.0 && n >= *min as f64 && n <= *max as f64),
            Self::Seconds => value
                .as_f64()
                .is_some_and(|n| (0.0..=86_400.0).contains(&n)),
            Self::Status => text.is_some_and(|t| Status::ALL.iter().any(|s| s.name() == t)),
            Self::Time => text.is_some_and(|t| Timestamp::parse(t).is_ok()),
            Self::Order => matches!(text, Some("asc" | "desc")),
            Self::Consistency => matches!(text, Some("strong" | "eventual")),
            Self::Include => text == Some("failed"),
        }
    }
}
