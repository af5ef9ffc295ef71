//! The message in place of an empty list: what was looked for, and what may help.
//!
//! It goes to standard error, so that pipes get lists and nothing else. JSON has an empty list.

use crate::following::say;
use crate::output::{Output, list};
use crate::paging::{PLACES, filters, next, show_next};
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

/// What is said of the answer to a call with these parameters, in the caller's words, and as they were meant; `None`:
/// there is something to show.
pub fn nothing(
    method: &str,
    (asked, meant): (&Value, &Value),
    result: &Value,
    out: &Output,
) -> Option<String> {
    let of = LISTS.iter().find(|list| list.method == method)?;
    if !list(result, of.member).is_empty() {
        return None;
    }
    let (one, many) = (of.one, of.many);
    if let Some(next) = next(method, meant, result, out) {
        return Some(format!(
            "no {one} in the part that was searched; to search on: {next}"
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

/// Shows an answer: as JSON, or to people, with the command for the next page; of a list with nothing in it they are
/// told on standard error why. The parameters are those of [`nothing`].
///
/// # Errors
/// The output takes nothing.
pub fn shown_or_said(
    method: &str,
    (asked, meant): (&Value, &Value),
    result: &Value,
    show: impl FnOnce(&Value, &mut Output) -> io::Result<()>,
    out: &mut Output,
) -> io::Result<()> {
    if out.is_json() {
        return out.value(result);
    }
    if let Some(text) = nothing(method, (asked, meant), result, out) {
        say(&text);
        return Ok(());
    }
    show(result, out)?;
    show_next(method, meant, result, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::COMMANDS;
    use serde_json::json;

    fn said(method: &str, asked: Value, result: Value) -> Option<String> {
        let mut out = Output::to(Box::new(Vec::new()), false, false);
        out.calls_with(" --url http://h:1".to_owned());
        nothing(method, (&asked, &asked), &result, &out)
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
        for (method, asked, result, expected) in [
            (
                "audit.list",
                json!({"object": "a b", "limit": 5}),
                json!({"entries": [], "next_cursor": "d7"}),
                "no entry in the part that was searched; to search on: taskledger audit --object 'a b' --limit 5 --cursor d7 --url http://h:1",
            ),
            (
                "workflows.versions",
                json!({"name": "report"}),
                json!({"versions": [], "next_before": 7}),
                "no version in the part that was searched; to search on: taskledger workflows versions report --before 7 --url http://h:1",
            ),
        ] {
            let found = said(method, asked, result);
            assert_eq!(found.as_deref(), Some(expected));
        }
    }

    #[test]
    fn every_list_is_that_of_a_command() {
        for list in &LISTS {
            let named = COMMANDS.iter().any(|(method, _)| *method == list.method);
            assert!(named, "{}", list.method);
        }
    }
}
