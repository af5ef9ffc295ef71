//! Prints the command that shows the next page of a list.
//!
//! It is whole, so that it works when it is pasted: with what the list is of, its filters, and the options of the call.

use crate::methods::COMMANDS;
use crate::output::{Output, Style, Text, member};
use crate::remote::quoted;
use serde_json::{Value, json};
use std::io;

/// Where a list goes on: the member of its result that says it, and the option that takes it.
const GOES_ON: [(&str, &str); 3] = [
    ("next_cursor", "cursor"),
    ("next_after", "after"),
    ("next_before", "before"),
];

/// Parameters whose option is one without a value: the parameter, its value, and the option.
const FLAGS: [(&str, &str, &str); 2] = [("kind", "service", "service"), ("scope", "flow", "flow")];

/// The command for the page that follows; `None`: there is none. `asked`: the parameters of the call with times and ids
/// as they were meant, since `@last` and `1h` are something else later.
#[must_use]
pub fn next(method: &str, asked: &Value, result: &Value, out: &Output) -> Option<String> {
    let (option, place) = GOES_ON.iter().find_map(|(name, option)| {
        let place = member(result, name);
        (!place.is_empty()).then_some((option, place))
    })?;
    let (_, command) = COMMANDS.iter().find(|(name, _)| *name == method)?;
    let mut asked = asked.clone();
    for (name, value, flag) in FLAGS {
        if asked.get(name).and_then(Value::as_str) == Some(value) {
            asked[name].take();
            asked[flag] = json!(true);
        }
    }
    let mut words = vec![format!("taskledger {command}")];
    words.extend(filters(method, &asked));
    for name in ["order", "limit", "consistency"] {
        let given = member(&asked, name);
        words.extend((!given.is_empty()).then(|| format!("--{name} {given}")));
    }
    words.push(format!("--{option} {}", quoted(&place)));
    Some(out.command(&words.join(" ")))
}

/// Shows that command below a page, on a line that is not broken.
///
/// # Errors
/// The output takes nothing.
pub fn show_next(method: &str, asked: &Value, result: &Value, out: &mut Output) -> io::Result<()> {
    match next(method, asked, result, out) {
        Some(next) => out.text(&Text::of(Style::Dim, format!("next page: {next}")).whole()),
        None => Ok(()),
    }
}

/// The option that sets a parameter: empty for what stands without one; `None` for what only says how much is shown, or
/// where the list begins.
fn option(method: &str, name: &str) -> Option<String> {
    match (method, name) {
        (_, "limit" | "order" | "consistency" | "kind") | ("tasks.children", "parent_id") => None,
        (_, name) if PLACES.contains(&name) => None,
        ("tokens.list" | "workflows.versions", "name")
        | ("webhooks.deliveries", "id")
        | ("tasks.history", "task_id") => Some(String::new()),
        (_, "task_id") => Some("--task ".to_owned()),
        (_, name) => Some(format!("--{} ", name.replace('_', "-"))),
    }
}

/// The parameters that say where a page begins.
pub(super) const PLACES: [&str; 4] = ["cursor", "after", "before", "offset"];

/// The filters among these parameters, as options with the values that were given.
pub(super) fn filters(method: &str, asked: &Value) -> Vec<String> {
    let given = asked.as_object().into_iter().flatten();
    given
        .filter(|(_, value)| !value.is_null())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_of_each_list_is_a_whole_command() {
        let mut out = Output::to(Box::new(Vec::new()), false, false);
        out.calls_with(" --url http://h:1".to_owned());
        for (method, asked, result, expected) in [
            (
                "audit.list",
                json!({"action": "token.create", "limit": 5}),
                json!({"next_cursor": "7"}),
                "audit --action token.create --limit 5 --cursor 7",
            ),
            (
                "events.query",
                json!({"flow": "f", "order": "desc"}),
                json!({"next_cursor": "d7"}),
                "events query --flow f --order desc --cursor d7",
            ),
            (
                "schedules.list",
                json!({"limit": 2, "owner": ""}),
                json!({"next_after": "it's"}),
                r"schedules list --owner '' --limit 2 --after 'it'\''s'",
            ),
            (
                "tasks.history",
                json!({"task_id": "t", "scope": "flow", "types": ["task_failed", "run_ended"]}),
                json!({"next_cursor": "a2"}),
                "tasks history --flow t --types task_failed,run_ended --cursor a2",
            ),
            (
                "tasks.list",
                json!({"all": true, "label": ["a=b", "c"], "offset": 4}),
                json!({"next_cursor": "x"}),
                "tasks list --all --label a=b --label c --cursor x",
            ),
            (
                "tokens.list",
                json!({"name": "ci", "kind": "service"}),
                json!({"next_cursor": "x"}),
                "tokens list ci --service --cursor x",
            ),
            (
                "webhooks.deliveries",
                json!({"id": "w", "state": "dead", "task_id": "t", "cursor": "1"}),
                json!({"next_cursor": 2}),
                "webhooks deliveries w --state dead --task t --cursor 2",
            ),
            (
                "webhooks.list",
                json!({}),
                json!({"next_cursor": "3"}),
                "webhooks list --cursor 3",
            ),
            (
                "workflows.list",
                json!({"owner": "ann"}),
                json!({"next_after": "a b"}),
                "workflows list --owner ann --after 'a b'",
            ),
            (
                "workflows.versions",
                json!({"name": "report", "limit": 1}),
                json!({"next_before": 3}),
                "workflows versions report --limit 1 --before 3",
            ),
        ] {
            let expected = format!("taskledger {expected} --url http://h:1");
            let found = next(method, &asked, &result, &out);
            assert_eq!(found, Some(expected));
            let last = json!({"next_cursor": null});
            assert_eq!(next(method, &asked, &last, &out), None);
        }
    }
}
