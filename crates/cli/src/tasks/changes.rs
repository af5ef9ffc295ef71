//! Finds what the events of a history changed: the old value beside the new one.
//!
//! An event says what a member is from then on. What it was before is taken from the events before it, in the page or
//! asked for; where neither says it, the new value stands alone. Values that look like secrets are masked.

use crate::output::{list, member, printable, spaced};
use crate::{Api, ApiError};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use taskledger_domain::limits::LIST_LIMIT_MAX;

/// Characters of one value, so that a line stays a line; `--json` shows all of it.
const VALUE_CHARS_MAX: usize = 60;
/// Members of payloads that a line names.
const MEMBERS_MAX: usize = 8;
/// What events change by setting it anew.
const MEMBERS: [&str; 5] = ["name", "priority", "user_id", "parent_id", "dependencies"];
/// What they change within.
const PAYLOADS: [&str; 4] = ["inputs", "schemas", "params", "labels"];
/// The event with which the members of a task begin.
const CREATED: &str = "task_created";
/// The events that change one of them.
const CHANGES: [&str; 7] = [
    "task_renamed",
    "task_priority_changed",
    "task_labels_changed",
    "task_user_changed",
    "task_moved",
    "task_dependencies_changed",
    "task_specification_changed",
];
/// The member of a page, beside its events, with events from before it.
pub(super) const EARLIER: &str = "earlier";
/// Tasks whose earlier events are asked for.
const LOOKED_UP_MAX: usize = 50;
/// Pages of the history of one task that are read for that.
const PAGES_MAX: usize = 5;
/// What stands for a value that there is not.
const NONE: &str = "(none)";
/// What stands for a value that is not shown.
const MASKED: &str = "***";
/// Parts of names whose values are not shown.
const SECRET: [&str; 8] = [
    "secret",
    "password",
    "passwd",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
];

/// The values that members of tasks have, as far as events have said.
#[derive(Default)]
struct Known(HashMap<(String, &'static str), Value>);

/// Asks for the events that say what members were before those of a page changed them, of at most [`LOOKED_UP_MAX`]
/// tasks, and keeps them beside the page under [`EARLIER`]. What the server does not answer is not known: the page is
/// shown all the same.
pub(crate) async fn add_earlier(api: &dyn Api, page: &mut Value) {
    let events = list(page, "events");
    let is_change = |event: &&Value| CHANGES.contains(&member(event, "type").as_str());
    let mut earlier: Vec<Value> = Vec::new();
    let mut asked = HashSet::new();
    for event in events.iter().filter(is_change) {
        let task = member(event, "task_id");
        if asked.len() >= LOOKED_UP_MAX || !asked.insert(task.clone()) {
            continue;
        }
        let of_task = events
            .iter()
            .filter(|event| member(event, "task_id") == task);
        let Some(first) = of_task.filter_map(position).min() else {
            continue;
        };
        match before(api, &task, first).await {
            Ok(found) => earlier.extend(found),
            // This task is gone, archived for example; others may be there.
            Err(error @ ApiError::Refused { .. }) if !error.is_passing() => {}
            // The next call would most likely fail as well.
            Err(
                ApiError::Refused { .. }
                | ApiError::Denied { .. }
                | ApiError::Connection(_)
                | ApiError::Protocol(_),
            ) => break,
        }
    }
    if let Some(page) = page.as_object_mut() {
        page.insert(EARLIER.to_owned(), earlier.into());
    }
}

/// The events before position `first` that say what members of a task were, oldest first. None if `first` is not
/// reached within [`PAGES_MAX`] pages: the latest change before it is not known then, and an older value would be
/// outdated.
async fn before(api: &dyn Api, task: &str, first: u64) -> Result<Vec<Value>, ApiError> {
    let mut params = json!({"task_id": task, "types": types(), "limit": LIST_LIMIT_MAX});
    let mut found = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = api.call("tasks.history", params.clone()).await?;
        let events = list(&page, "events");
        let is_earlier = |event: &&Value| position(event).is_some_and(|at| at < first);
        found.extend(events.iter().filter(is_earlier).cloned());
        let is_reached = events.last().and_then(position) >= Some(first);
        let cursor = member(&page, "next_cursor");
        if is_reached || cursor.is_empty() {
            return Ok(found);
        }
        params["cursor"] = cursor.into();
    }
    Ok(Vec::new())
}

/// The types of events that say what a member is.
fn types() -> Vec<&'static str> {
    [CREATED].into_iter().chain(CHANGES).collect()
}

fn position(event: &Value) -> Option<u64> {
    event.get("position")?.as_u64()
}

/// For each event of a page, in its order, what it changed; `None` where it changes nothing that a task has. `earlier`:
/// events from before the page, the oldest of each task first.
pub(super) fn of_page(earlier: &[Value], events: &[Value]) -> Vec<Option<String>> {
    let at = |event: Option<&Value>| event.and_then(position);
    let is_newest_first = at(events.first()) > at(events.last());
    let mut known = Known::default();
    for event in earlier {
        known.change(event);
    }
    let mut changes: Vec<_> = if is_newest_first {
        events
            .iter()
            .rev()
            .map(|event| known.change(event))
            .collect()
    } else {
        events.iter().map(|event| known.change(event)).collect()
    };
    if is_newest_first {
        changes.reverse();
    }
    changes
}

impl Known {
    fn change(&mut self, event: &Value) -> Option<String> {
        let kind = event.get("type").and_then(Value::as_str)?;
        let is_created = kind == CREATED;
        if !is_created && !CHANGES.contains(&kind) {
            return None;
        }
        let task = member(event, "task_id");
        let data = event.get("data")?.as_object()?;
        let mut parts = Vec::new();
        for name in MEMBERS.into_iter().chain(PAYLOADS) {
            let new = match data.get(name) {
                Some(new) => new,
                // What a task is created without it does not have.
                None if is_created => &Value::Null,
                None => continue,
            };
            let old = self.0.insert((task.clone(), name), new.clone());
            match old {
                // Its labels are told one by one, also when it had none.
                Some(Value::Null) if name == "labels" => {
                    compare(name, Some(&json!({})), Some(new), &mut parts);
                }
                Some(old) if PAYLOADS.contains(&name) => {
                    compare(name, Some(&old), Some(new), &mut parts);
                }
                Some(old) => parts.push(format!("{name}: {} -> {}", shown(&old), shown(new))),
                None if PAYLOADS.contains(&name) && new.is_null() => {}
                None => parts.push(format!("{name}={}", value(name, new))),
            }
        }
        if parts.len() > MEMBERS_MAX {
            let more = parts.len() - MEMBERS_MAX;
            parts.truncate(MEMBERS_MAX);
            parts.push(format!("and {more} more"));
        }
        (!is_created).then(|| printable(&parts.join(", ")))
    }
}

/// The members that differ, named by their paths.
fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, parts: &mut Vec<String>) {
    // Payloads are as deep as their limit allows; each level is one member of the path.
    let mut left = vec![(path.to_owned(), old, new)];
    while let Some((path, old, new)) = left.pop() {
        if old == new {
            continue;
        }
        if let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) {
            let mut names: Vec<_> = old.keys().chain(new.keys()).collect();
            names.sort_unstable_by(|a, b| b.cmp(a));
            names.dedup();
            let pairs = names.into_iter();
            left.extend(pairs.map(|n| (format!("{path}.{n}"), old.get(n), new.get(n))));
            continue;
        }
        let name = path.rsplit('.').next().unwrap_or_default();
        let text = |v: Option<&Value>| v.map_or_else(|| NONE.to_owned(), |v| value(name, v));
        parts.push(match (old, new) {
            (Some(_), Some(_)) if is_secret(name) => format!("{path}: {MASKED} (changed)"),
            _ => format!("{path}: {} -> {}", text(old), text(new)),
        });
    }
}

/// A value under a name, masked if it looks like a secret.
fn value(name: &str, value: &Value) -> String {
    if is_secret(name) {
        MASKED.to_owned()
    } else {
        shown(&masked(value))
    }
}

/// The value without what looks like a secret inside of it.
fn masked(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let value = if is_secret(name) {
                    MASKED.into()
                } else {
                    masked(value)
                };
                (name.clone(), value)
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    SECRET.iter().any(|part| plain.contains(part))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => NONE.to_owned(),
        Value::Array(items) if items.is_empty() => NONE.to_owned(),
        Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => shortened(value, VALUE_CHARS_MAX),
    }
}

/// A value of an event in at most `chars_max` characters. A text stands as it is if it is one word, else in quotes; of
/// a list or an object that is too long only the size is shown, so that JSON is never cut.
pub(super) fn shortened(value: &Value, chars_max: usize) -> String {
    match value {
        Value::String(text) => {
            let mut cut: String = text.chars().take(chars_max).collect();
            if cut.len() < text.len() {
                cut.push('…');
            }
            let is_word = |c: char| !c.is_whitespace() && !c.is_control() && !"\"',=".contains(c);
            if !cut.is_empty() && cut.chars().all(is_word) {
                cut
            } else {
                Value::String(cut).to_string()
            }
        }
        Value::Array(items) => sized(value, chars_max, || {
            format!("[{}]", counted(items.len(), "item"))
        }),
        Value::Object(members) => sized(value, chars_max, || {
            format!("{{{}}}", counted(members.len(), "member"))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn sized(value: &Value, chars_max: usize, size: impl FnOnce() -> String) -> String {
    let text = spaced(value);
    if text.chars().count() <= chars_max {
        text
    } else {
        size()
    }
}

fn counted(count: usize, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {one}{plural}")
}

#[cfg(test)]
mod tests {
    use super::{EARLIER, add_earlier, of_page};
    use crate::{Api, ApiError};
    use async_trait::async_trait;
    use serde_json::{Value, json};

    /// A server that knows the whole of this page.
    struct Past;

    #[async_trait]
    impl Api for Past {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            assert_eq!((method, &params["task_id"]), ("tasks.history", &json!("t")));
            Ok(json!({ "events": page() }))
        }
    }

    #[tokio::test]
    async fn what_a_member_was_before_the_page_is_asked_for() {
        let mut result = json!({ "events": page()[2..3] });
        add_earlier(&Past, &mut result).await;
        let earlier = result[EARLIER].as_array().unwrap();
        assert_eq!(earlier, &page()[..2]);
        let told = of_page(earlier, &page()[2..3]);
        assert_eq!(told[0].as_deref(), Some("priority: 2 -> 0"));
    }

    #[test]
    fn a_task_has_nothing_that_it_is_not_created_with() {
        let page = [
            event(1, "task_created", json!({"name": "fetch"})),
            event(2, "task_labels_changed", json!({"labels": {"team": "x"}})),
            event(3, "task_user_changed", json!({"user_id": "ann"})),
        ];
        let told = of_page(&[], &page);
        assert_eq!(told[1].as_deref(), Some("labels.team: (none) -> x"));
        assert_eq!(told[2].as_deref(), Some("user_id: (none) -> ann"));
    }

    fn event(position: u64, kind: &str, data: Value) -> Value {
        json!({"position": position, "type": kind, "task_id": "t", "data": data})
    }

    fn page() -> Vec<Value> {
        let created = json!({"name": "fetch", "priority": 2, "user_id": null, "parent_id": null,
            "dependencies": [], "params": null,
            "inputs": {"url": "a", "headers": {"Authorization": "Bearer x"}, "n": 1}});
        let changed = json!({"inputs": {"url": "b", "headers": {"Authorization": "Bearer y"}},
            "params": {"api_key": "z"}});
        vec![
            event(1, "task_created", created),
            event(3, "task_renamed", json!({"name": "load"})),
            event(4, "task_priority_changed", json!({"priority": 0})),
            event(5, "task_specification_changed", changed),
            event(6, "task_started", json!({"attempt": 1})),
        ]
    }

    #[test]
    fn the_old_value_stands_beside_the_new_one_in_both_orders() {
        let expected = [
            None,
            Some("name: fetch -> load"),
            Some("priority: 2 -> 0"),
            Some(
                "inputs.headers.Authorization: *** (changed), inputs.n: 1 -> (none), inputs.url: a -> b, \
                 params: (none) -> {\"api_key\": \"***\"}",
            ),
            None,
        ];
        let mut page = page();
        let told = of_page(&[], &page);
        assert_eq!(
            told.iter().map(Option::as_deref).collect::<Vec<_>>(),
            expected
        );
        page.reverse();
        let mut told = of_page(&[], &page);
        told.reverse();
        assert_eq!(
            told.iter().map(Option::as_deref).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn a_value_whose_predecessor_is_not_in_the_page_stands_alone_and_masked() {
        let told = of_page(&[], &page()[3..4]);
        assert_eq!(
            told[0].as_deref(),
            Some(
                "inputs={\"headers\": {\"Authorization\": \"***\"}, \"url\": \"b\"}, \
                 params={\"api_key\": \"***\"}"
            )
        );
    }
}
