//! `taskledger tasks explain`

use super::{CliError, Output, Params, Request};
use crate::output::{Style, Text, list, member, style};
use crate::remote::quoted;
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
    ("chain", "chain_more", "waits for"),
    ("dependencies", "more", "needs"),
    ("open", "more", "open"),
    ("harmed_by", "harmed_by_more", "failed below"),
    ("not_done", "not_done_more", "not done"),
    ("holders", "holders_more", "slot held by"),
];

pub(super) fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    out.texts(&lines(result, out))
}

fn lines(result: &Value, out: &Output) -> Vec<Text> {
    let summary = out.sentence(&member(result, "summary"));
    let mut lines = vec![Text::of(Style::Bold, summary)];
    for reason in list(result, "reasons") {
        // The summary has said the first.
        if lines.len() > 1 {
            let message = out.sentence(&member(reason, "message"));
            lines.push(Text::of(Style::Dim, "also: ").with(Style::Plain, message));
        } else {
            let status = member(result, "status");
            lines.push(Text::of(Style::Dim, "status: ").with(style(&status), status));
        }
        for (name, more, label) in LISTS {
            let labelled = |text: Text| {
                let mut line = Text::of(Style::Dim, format!("  {label}: "));
                line.append(text);
                line.hanging("    ")
            };
            lines.extend(list(reason, name).iter().map(|t| labelled(task(t))));
            let more = reason.get(more).and_then(Value::as_u64).unwrap_or(0);
            if more > 0 && reason.get(name).is_some() {
                lines.push(labelled(Text::from(format!("{more} more"))));
            }
        }
        let steps = list(reason, "next_steps").iter();
        let steps = steps.map(|step| {
            (
                command(step, reason, out),
                out.sentence(&member(step, "why")),
            )
        });
        for (command, why) in steps.chain(worker(reason, out)) {
            let can = Text::of(Style::Dim, "  you can: ").with(Style::Good, command);
            lines.push(can.whole());
            lines.push(Text::plain(STEP).with(Style::Dim, why).hanging(STEP));
        }
    }
    lines.extend(list(result, "attempts").iter().map(|it| attempt(it, out)));
    lines
}

/// The command that starts a worker for a task that waits for one, if nobody asks for its method, and what it is for.
fn worker(reason: &Value, out: &Output) -> Option<(String, String)> {
    let is_alone = reason.get("workers").and_then(Value::as_u64) == Some(0);
    if member(reason, "code") != "waits_for_worker" || !is_alone {
        return None;
    }
    let method = quoted(&member(reason, "executor"));
    let command = out.command(&format!("taskledger worker --method {method} -- PROGRAM"));
    Some((
        command,
        "start a worker that asks for its method".to_owned(),
    ))
}

/// Before what a step is for.
const STEP: &str = "           ";

fn attempt(attempt: &Value, out: &Output) -> Text {
    let outcome = match member(attempt, "outcome") {
        open if open.is_empty() => "running".to_owned(),
        outcome => outcome,
    };
    let (from, to) = (member(attempt, "started_at"), member(attempt, "ended_at"));
    let (from, to) = (out.sentence(&from), out.sentence(&to));
    let mut line = Text::plain(format!("attempt {}: ", member(attempt, "attempt")))
        .with(style(&outcome), outcome)
        .with(
            Style::Dim,
            match to.is_empty() {
                true => format!(", since {from}"),
                false => format!(", {from} - {to}"),
            },
        );
    let error = member(attempt, "error");
    if !error.is_empty() {
        line.push(Style::Plain, format!(": {error}"));
    }
    line
}

/// The command that does what a step says, to be pasted; the call itself where no command does. `reason`: to which
/// it belongs.
fn command(step: &Value, reason: &Value, out: &Output) -> String {
    let params = step.get("params").unwrap_or(&Value::Null);
    let id = member(params, "task_id");
    let known = |names: &[&str]| {
        let members = params.as_object();
        members.is_some_and(|all| all.keys().all(|name| names.contains(&name.as_str())))
    };
    let flag = |name: &str| params.get(name) == Some(&Value::Bool(true));
    let ends_drain = params.get("drain") == Some(&Value::Bool(false));
    let method = member(step, "method");
    let command = match method.as_str() {
        "tasks.retry" if known(&["task_id"]) => format!("tasks retry {id}"),
        "tasks.execute" if known(&["task_id"]) => format!("tasks execute {id}"),
        "tasks.get" if known(&["task_id"]) => format!("tasks get {id}"),
        "tasks.update" if known(&["task_id"]) => {
            let meant = quoted(&member(reason, "meant"));
            let change = match (&*member(reason, "code"), &*member(reason, "timer")) {
                ("waits_for_time", "start_at") => "--start-at TIME".to_owned(),
                ("waits_for_time", _) => "--params JSON".to_owned(),
                ("lacks_inputs", _) => "--updates JSON".to_owned(),
                ("not_covered" | "waits_for_executor", _) => format!("--method {meant}"),
                _ => "--depends-on ID".to_owned(),
            };
            format!("tasks update {id} {change}")
        }
        "tasks.respond" if known(&["task_id", "suspension_id"]) => format!("respond {id} ANSWER"),
        "tasks.cancel" if known(&["task_id", "cascade"]) => match flag("cascade") {
            true => format!("tasks cancel {id} --cascade"),
            false => format!("tasks cancel {id}"),
        },
        "tasks.copy" if known(&["task_id", "parent_id"]) => match member(params, "parent_id") {
            none if none.is_empty() => format!("tasks copy {id}"),
            parent => format!("tasks copy {id} --parent {parent}"),
        },
        "system.drain" if known(&["drain"]) && ends_drain => "drain --cancel".to_owned(),
        "workers.drain" if known(&["worker", "drain"]) && ends_drain => {
            format!("workers drain {} --off", quoted(&member(params, "worker")))
        }
        method => return format!("{method} {}", member(step, "params")),
    };
    out.command(&format!("taskledger {command}"))
}

/// `name status id`, and what is particular about it.
fn task(task: &Value) -> Text {
    let id = match member(task, "id") {
        none if none.is_empty() => member(task, "task_id"),
        id => id,
    };
    let status = member(task, "status");
    let mut text = Text::default();
    for (style, part) in [
        (Style::Plain, member(task, "name")),
        (style(&status), status.clone()),
        (Style::Dim, id),
    ] {
        if !part.is_empty() {
            text.push(Style::Plain, if text.columns() > 0 { " " } else { "" });
            text.push(style, part);
        }
    }
    if member(task, "when") == "always" {
        text.push(Style::Plain, ", always");
    } else if task.get("required") == Some(&Value::Bool(false)) {
        text.push(Style::Plain, ", optional");
    }
    if task.get("can_satisfy") == Some(&Value::Bool(false)) {
        text.push(Style::Warn, ", cannot be satisfied by itself");
    }
    let error = member(task, "error");
    if !error.is_empty() {
        text.push(Style::Bad, format!(": {error}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Output, Text, command, lines};
    use serde_json::{Value, json};

    fn piped() -> Output {
        Output::to(Box::new(Vec::new()), false, false)
    }

    #[test]
    fn an_attempt_that_goes_on_has_no_end() {
        let told = |attempt: &Value| super::attempt(attempt, &piped()).letters();
        assert_eq!(
            told(&json!({"attempt": 1, "started_at": "A", "ended_at": null})),
            "attempt 1: running, since A"
        );
        assert_eq!(
            told(
                &json!({"attempt": 2, "outcome": "completed", "started_at": "A", "ended_at": "B"})
            ),
            "attempt 2: completed, A - B"
        );
    }

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
            (
                "workers.drain",
                json!({"worker": "gpu 1", "drain": false}),
                "taskledger workers drain 'gpu 1' --off",
            ),
            (
                "system.drain",
                json!({"drain": false}),
                "taskledger drain --cancel",
            ),
            (
                "tasks.respond",
                json!({"task_id": "i", "suspension_id": "s"}),
                "taskledger respond i ANSWER",
            ),
        ] {
            let step = json!({"method": method, "params": params});
            assert_eq!(command(&step, &Value::Null, &piped()), pasted);
        }
        let mut out = piped();
        out.calls_with(" --url http://h:1 --token-file t".to_owned());
        let step = json!({"method": "tasks.retry", "params": {"task_id": "i"}});
        assert_eq!(
            command(&step, &Value::Null, &out),
            "taskledger tasks retry i --url http://h:1 --token-file t"
        );
    }

    #[test]
    fn an_update_names_the_option_that_mends_the_reason() {
        for (reason, option) in [
            (
                json!({"code": "waits_for_time", "timer": "start_at"}),
                "--start-at TIME",
            ),
            (
                json!({"code": "waits_for_time", "timer": "delay_seconds"}),
                "--params JSON",
            ),
            (json!({"code": "lacks_inputs"}), "--updates JSON"),
            (json!({"code": "blocked"}), "--depends-on ID"),
            (
                json!({"code": "not_covered", "unknown_executor": "ehco", "meant": "echo"}),
                "--method echo",
            ),
        ] {
            let step = json!({"method": "tasks.update", "params": {"task_id": "i"}});
            let pasted = command(&step, &reason, &piped());
            assert_eq!(pasted, format!("taskledger tasks update i {option}"));
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
        let shown = lines(&answer, &piped());
        assert_eq!(
            shown.iter().map(Text::letters).collect::<Vec<_>>(),
            [
                "`c` cannot start by itself: `a` failed: boom",
                "status: pending",
                "  waits for: a failed 1",
                "  waits for: 2 more",
                "  you can: taskledger tasks retry 1",
                "           again",
                "also: waits for 1 dependency",
                "  needs: a failed 1, optional, cannot be satisfied by itself",
                "attempt 1: failed, s - e: x\u{fffd}",
            ]
        );
    }
}
