//! `taskledger tasks explain`

use super::{CliError, Output, Params, Request};
use crate::cli::output::{member, printable};
use serde_json::Value;
use std::io;

/// Say why a task is not running, or why it ended as it did
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks explain 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks explain 0f8fad5b-d9cb-469f-a165-70867728950e --json | jq -r .summary")]
pub(super) struct Args {
    /// The task
    #[arg(value_name = "ID")]
    task_id: String,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        Ok(Request {
            method: "tasks.explain",
            params: Params::default().with("task_id", self.task_id).build(),
            show,
        })
    }
}

/// Lists of tasks that a reason may have, and what they are.
const LISTS: [(&str, &str, &str); 6] = [
    ("chain", "chain_more", "behind"),
    ("dependencies", "more", "needs"),
    ("open", "more", "open"),
    ("harmed_by", "harmed_by_more", "harmed by"),
    ("not_done", "not_done_more", "not done"),
    ("holders", "holders_more", "slot held by"),
];

pub(super) fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    out.lines(lines(result))
}

fn lines(result: &Value) -> Vec<String> {
    let mut lines = vec![member(result, "summary")];
    for reason in list(result, "reasons") {
        // The summary has said the first.
        if lines.len() > 1 {
            lines.push(format!("also: {}", member(reason, "message")));
        } else {
            lines.push(format!("status: {}", member(result, "status")));
        }
        for (name, more, label) in LISTS {
            lines.extend(
                list(reason, name)
                    .iter()
                    .map(|t| format!("  {label}: {}", task(t))),
            );
            let more = reason.get(more).and_then(Value::as_u64).unwrap_or(0);
            if more > 0 && reason.get(name).is_some() {
                lines.push(format!("  {label}: {more} more"));
            }
        }
        lines.extend(list(reason, "next_steps").iter().map(|step| {
            format!(
                "  you can: {}\n           {}",
                command(step),
                member(step, "why")
            )
        }));
    }
    lines.extend(list(result, "attempts").iter().map(|attempt| {
        let outcome = match member(attempt, "outcome") {
            open if open.is_empty() => "running".to_owned(),
            outcome => outcome,
        };
        let mut line = format!(
            "attempt {}: {outcome}, {} - {}",
            member(attempt, "attempt"),
            member(attempt, "started_at"),
            member(attempt, "ended_at")
        );
        let error = member(attempt, "error");
        if !error.is_empty() {
            line.push_str(&format!(": {error}"));
        }
        line
    }));
    lines
}

/// The command that does what a step says, to be pasted; the call itself where no command does.
fn command(step: &Value) -> String {
    let params = step.get("params").unwrap_or(&Value::Null);
    let id = member(params, "task_id");
    let known = |names: &[&str]| {
        let members = params.as_object();
        members.is_some_and(|all| all.keys().all(|name| names.contains(&name.as_str())))
    };
    let flag = |name: &str| params.get(name) == Some(&Value::Bool(true));
    let method = member(step, "method");
    match method.as_str() {
        "tasks.retry" if known(&["task_id"]) => format!("taskledger tasks retry {id}"),
        "tasks.execute" if known(&["task_id"]) => format!("taskledger tasks execute {id}"),
        "tasks.get" if known(&["task_id"]) => format!("taskledger tasks get {id}"),
        "tasks.update" if known(&["task_id"]) => {
            format!("taskledger tasks update {id} --depends-on ID")
        }
        "tasks.cancel" if known(&["task_id", "cascade"]) => match flag("cascade") {
            true => format!("taskledger tasks cancel {id} --cascade"),
            false => format!("taskledger tasks cancel {id}"),
        },
        "tasks.copy" if known(&["task_id", "parent_id"]) => match member(params, "parent_id") {
            none if none.is_empty() => format!("taskledger tasks copy {id}"),
            parent => format!("taskledger tasks copy {id} --parent {parent}"),
        },
        method => format!("{method} {}", member(step, "params")),
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let list = value.get(name).and_then(Value::as_array);
    list.map_or(&[][..], Vec::as_slice)
}

/// `name status id`, and what is particular about it.
fn task(task: &Value) -> String {
    let id = match member(task, "id") {
        none if none.is_empty() => member(task, "task_id"),
        id => id,
    };
    let mut text = member(task, "name");
    for part in [member(task, "status"), id] {
        if !part.is_empty() {
            text.push(' ');
            text.push_str(&part);
        }
    }
    if member(task, "when") == "always" {
        text.push_str(", always");
    } else if task.get("required") == Some(&Value::Bool(false)) {
        text.push_str(", optional");
    }
    if task.get("can_satisfy") == Some(&Value::Bool(false)) {
        text.push_str(", cannot be satisfied by itself");
    }
    let error = member(task, "error");
    if !error.is_empty() {
        text.push_str(&format!(": {error}"));
    }
    printable(text.trim_start())
}

#[cfg(test)]
mod tests {
    use super::{command, lines};
    use serde_json::json;

    #[test]
    fn a_step_is_a_command_to_paste() {
        for (method, params, pasted) in [
            (
                "tasks.retry",
                json!({"task_id": "i"}),
                "taskledger tasks retry i",
            ),
            (
                "tasks.cancel",
                json!({"task_id": "i", "cascade": true}),
                "taskledger tasks cancel i --cascade",
            ),
            (
                "tasks.copy",
                json!({"task_id": "i", "parent_id": "p"}),
                "taskledger tasks copy i --parent p",
            ),
            (
                "tasks.copy",
                json!({"task_id": "i", "parent_id": null}),
                "taskledger tasks copy i",
            ),
            (
                "tasks.retry",
                json!({"task_id": "i", "x": 1}),
                r#"tasks.retry {"task_id":"i","x":1}"#,
            ),
            ("workers.drain", json!({}), "workers.drain {}"),
        ] {
            assert_eq!(
                command(&json!({"method": method, "params": params})),
                pasted
            );
        }
    }

    #[test]
    fn an_explanation_is_read_from_top_to_bottom() {
        let answer = json!({"summary": "`c` cannot start by itself: `a` failed: boom",
            "status": "pending",
            "reasons": [
                {"code": "blocked", "message": "-", "chain": [
                    {"id": "1", "name": "a", "status": "failed", "required": true}], "chain_more": 2,
                 "next_steps": [{"method": "tasks.retry", "params": {"task_id": "1"}, "why": "again"}]},
                {"code": "waits_for_dependencies", "message": "waits for 1 dependency", "dependencies": [
                    {"id": "1", "name": "a", "status": "failed", "required": false, "can_satisfy": false}]}],
            "attempts": [{"attempt": 1, "outcome": "failed", "started_at": "s", "ended_at": "e", "error": "x\u{1b}"}]});
        assert_eq!(
            lines(&answer),
            [
                "`c` cannot start by itself: `a` failed: boom",
                "status: pending",
                "  behind: a failed 1",
                "  behind: 2 more",
                "  you can: taskledger tasks retry 1\n           again",
                "also: waits for 1 dependency",
                "  needs: a failed 1, optional, cannot be satisfied by itself",
                "attempt 1: failed, s - e: x\u{fffd}",
            ]
        );
    }
}
