//! What is said in place of a list with nothing in it: what was looked for, and what may help.
//!
//! It goes to standard error, so that pipes get lists and nothing else. JSON has an empty list.

use crate::following::say;
use crate::output::{Output, list, member};
use crate::remote::quoted;
use serde_json::Value;
use std::io;

/// A method that gives a list.
struct List {
    method: &'static str,
    /// The member of its result.
    member: &'static str,
    one: &'static str,
    many: &'static str,
    /// A command that makes some, and what it does; `None`: they come by themselves.
    begin: Option<(&'static str, &'static str)>,
}

const WORKER: &str = "taskledger worker --method NAME -- PROGRAM";
const LISTS: [List; 12] = [
    List {
        method: "audit.list",
        member: "entries",
        one: "entry",
        many: "entries in the audit log",
        begin: None,
    },
    List {
        method: "schedules.list",
        member: "schedules",
        one: "schedule",
        many: "schedules",
        begin: Some(("taskledger schedules create NAME", "makes one")),
    },
    List {
        method: "secrets.list",
        member: "secrets",
        one: "secret",
        many: "secrets",
        begin: Some(("taskledger secrets set NAME", "stores one")),
    },
    List {
        method: "tasks.children",
        member: "children",
        one: "child",
        many: "children",
        begin: Some(("taskledger tasks create --parent ID", "adds one")),
    },
    List {
        method: "tasks.list",
        member: "tasks",
        one: "task",
        many: "tasks",
        begin: Some(("taskledger run FILE", "starts a workflow")),
    },
    List {
        method: "tokens.list",
        member: "tokens",
        one: "token",
        many: "tokens",
        begin: Some(("taskledger tokens create NAME --scopes SCOPES", "makes one")),
    },
    List {
        method: "webhooks.deliveries",
        member: "deliveries",
        one: "delivery",
        many: "deliveries",
        begin: Some(("taskledger webhooks test ID", "sends one")),
    },
    List {
        method: "webhooks.list",
        member: "webhooks",
        one: "webhook",
        many: "webhooks",
        begin: Some(("taskledger webhooks create URL", "makes one")),
    },
    List {
        method: "workers.list",
        member: "workers",
        one: "worker",
        many: "workers",
        begin: Some((WORKER, "starts one")),
    },
    List {
        method: "workers.methods",
        member: "methods",
        one: "method of workers",
        many: "methods of workers",
        begin: Some((WORKER, "asks for the tasks of one")),
    },
    List {
        method: "workflows.list",
        member: "workflows",
        one: "workflow",
        many: "saved workflows",
        begin: Some(("taskledger workflows save FILE", "saves one")),
    },
    List {
        method: "workflows.versions",
        member: "versions",
        one: "version",
        many: "versions",
        begin: Some(("taskledger workflows save FILE", "saves one")),
    },
];

/// The option that sets a parameter: empty for what stands without one; `None` for what only says how much is shown, or
/// where the list begins.
fn option(method: &str, name: &str) -> Option<String> {
    match (method, name) {
        (_, "limit" | "order" | "consistency" | "kind") | ("tasks.children", "parent_id") => None,
        (_, name) if PLACES.contains(&name) => None,
        ("tokens.list" | "workflows.versions", "name") | ("webhooks.deliveries", "id") => {
            Some(String::new())
        }
        (_, "task_id") => Some("--task ".to_owned()),
        (_, name) => Some(format!("--{} ", name.replace('_', "-"))),
    }
}

/// The parameters that say where a page begins.
const PLACES: [&str; 4] = ["cursor", "after", "before", "offset"];

/// The filters among these parameters, as options with the values that were given.
pub fn filters(method: &str, asked: &Value) -> Vec<String> {
    let given = asked.as_object().into_iter().flatten();
    given
        .filter_map(|(name, value)| {
            let option = option(method, name)?;
            Some(match value {
                // An option that is repeated, with one value each.
                Value::Array(values) if name == "label" => {
                    let values = values.iter().filter_map(Value::as_str);
                    let repeated = values.map(|value| format!("{option}{}", quoted(value)));
                    repeated.collect::<Vec<_>>().join(" ")
                }
                Value::Bool(_) => option.trim_end().to_owned(),
                Value::Array(values) => {
                    let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
                    format!("{option}{}", quoted(&words.join(",")))
                }
                Value::String(text) => format!("{option}{}", quoted(text)),
                Value::Null | Value::Number(_) | Value::Object(_) => format!("{option}{value}"),
            })
        })
        .collect()
}

/// What is said of the answer to a call with these parameters, in the caller's words; `None`: there is something to
/// show.
pub fn nothing(method: &str, asked: &Value, result: &Value, out: &Output) -> Option<String> {
    let of = LISTS.iter().find(|list| list.method == method)?;
    if !list(result, of.member).is_empty() {
        return None;
    }
    let (one, many) = (of.one, of.many);
    let cursor = member(result, "next_cursor");
    if !cursor.is_empty() {
        return Some(format!(
            "no {one} in the part of the log that was searched; to search on: --cursor {cursor}"
        ));
    }
    let filters = filters(method, asked);
    if !filters.is_empty() {
        return Some(format!("no {one} matches {}", filters.join(" ")));
    }
    if let Some(place) = PLACES.iter().find(|place| asked.get(place).is_some()) {
        let place = if *place == "offset" { place } else { "cursor" };
        return Some(format!("no more {many} after this {place}"));
    }
    Some(match of.begin {
        Some((command, does)) => format!("no {many}; `{}` {does}", out.command(command)),
        None => format!("no {many}"),
    })
}

/// Shows an answer: as JSON, or to people; of a list with nothing in it they are told on standard error why.
///
/// # Errors
/// The output takes nothing.
pub fn shown_or_said(
    method: &str,
    asked: &Value,
    result: &Value,
    show: impl FnOnce(&Value, &mut Output) -> io::Result<()>,
    out: &mut Output,
) -> io::Result<()> {
    if out.is_json() {
        return out.value(result);
    }
    match nothing(method, asked, result, out) {
        Some(text) => {
            say(&text);
            Ok(())
        }
        None => show(result, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::COMMANDS;
    use serde_json::json;

    fn said(method: &str, asked: Value, result: Value) -> Option<String> {
        let mut out = Output::to(Box::new(Vec::new()), false, false);
        out.calls_with(" --url http://h:1".to_owned());
        nothing(method, &asked, &result, &out)
    }

    #[test]
    fn a_list_without_anything_says_what_makes_some() {
        for (method, member, expected) in [
            (
                "tasks.list",
                "tasks",
                "no tasks; `taskledger run FILE --url http://h:1` starts a workflow",
            ),
            (
                "workflows.list",
                "workflows",
                "no saved workflows; `taskledger workflows save FILE --url http://h:1` saves one",
            ),
            (
                "workers.list",
                "workers",
                "no workers; `taskledger worker --method NAME --url http://h:1 -- PROGRAM` starts one",
            ),
            (
                "schedules.list",
                "schedules",
                "no schedules; `taskledger schedules create NAME --url http://h:1` makes one",
            ),
        ] {
            let found = said(method, json!({"limit": 5}), json!({member: []}));
            assert_eq!(found.as_deref(), Some(expected));
            assert_eq!(said(method, json!({}), json!({member: [1]})), None);
        }
        assert_eq!(said("tasks.get", json!({}), json!({})), None);
    }

    #[test]
    fn what_was_asked_for_is_told_in_the_words_of_the_caller() {
        let none = |member: &str| json!({member: []});
        for (method, asked, member, expected) in [
            (
                "tasks.list",
                json!({"status": "failed", "since": "1h", "suspended": true, "labels": ["team=data", "stage"], "limit": 5}),
                "tasks",
                "no task matches --labels team=data,stage --since 1h --status failed --suspended",
            ),
            (
                "webhooks.deliveries",
                json!({"id": "w", "task_id": "@last", "since": "yesterday 14:00"}),
                "deliveries",
                "no delivery matches w --since 'yesterday 14:00' --task @last",
            ),
            (
                "tokens.list",
                json!({"name": "ci", "kind": "service"}),
                "tokens",
                "no token matches ci",
            ),
            (
                "schedules.list",
                json!({"after": "x"}),
                "schedules",
                "no more schedules after this cursor",
            ),
            (
                "tasks.list",
                json!({"label": ["a=b", "c d=e"]}),
                "tasks",
                "no task matches --label a=b --label 'c d=e'",
            ),
            (
                "audit.list",
                json!({}),
                "entries",
                "no entries in the audit log",
            ),
            (
                "tasks.children",
                json!({"parent_id": "p"}),
                "children",
                "no children; `taskledger tasks create --parent ID --url http://h:1` adds one",
            ),
        ] {
            let found = said(method, asked, none(member));
            assert_eq!(found.as_deref(), Some(expected));
        }
        let more = json!({"entries": [], "next_cursor": "d7"});
        let found = said("audit.list", json!({}), more).unwrap();
        assert!(found.ends_with("to search on: --cursor d7"), "{found}");
    }

    #[test]
    fn every_list_is_that_of_a_command() {
        for list in &LISTS {
            let named = COMMANDS.iter().any(|(method, _)| *method == list.method);
            assert!(named, "{}", list.method);
        }
    }
}
