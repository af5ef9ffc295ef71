//! `taskledger tasks explain`

use super::{CliError, Output, Params, Request};
use crate::Api;
use crate::output::{Style, Text, list, member, style};
use crate::remote::quoted;
use crate::tree::shown_status;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::time::timeout;

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
    ("harmed_by", "harmed_by_more", "failed or cancelled below"),
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
            let status = shown_status(result);
            lines.push(Text::of(Style::Dim, "status: ").with(style(&status), status));
        }
        for (name, more, label) in LISTS {
            let labelled = |label: &str, text: Text| {
                let mut line = Text::of(Style::Dim, format!("  {label}: "));
                line.append(text);
                line.hanging("    ")
            };
            for listed in list(reason, name) {
                let label = match (name, member(listed, "status").as_str()) {
                    ("harmed_by", "failed") => "failed below",
                    ("harmed_by", "cancelled") => "cancelled below",
                    _ => label,
                };
                lines.push(labelled(label, task(listed)));
            }
            let more = reason.get(more).and_then(Value::as_u64).unwrap_or(0);
            if more > 0 && reason.get(name).is_some() {
                lines.push(labelled(label, Text::from(format!("{more} more"))));
            }
        }
        lines.extend(steps(reason, out));
        for below in list(reason, BELOW) {
            let why = out.sentence(&member(below, "summary"));
            let line = Text::of(Style::Dim, "  because ").with(Style::Plain, why);
            lines.push(line.hanging("    "));
            let first = list(below, "reasons").first();
            lines.extend(first.into_iter().flat_map(|reason| steps(reason, out)));
        }
    }
    lines.extend(list(result, "attempts").iter().map(|it| attempt(it, out)));
    lines
}

/// What can be done about a reason: commands, each with what it is for.
fn steps(reason: &Value, out: &Output) -> Vec<Text> {
    let steps = list(reason, "next_steps").iter();
    let steps = steps.map(|step| {
        (
            command(step, reason, out),
            out.sentence(&member(step, "why")),
        )
    });
    let mut lines = Vec::new();
    for (command, why) in steps.chain(worker(reason, out)) {
        let can = Text::of(Style::Dim, "  you can: ").with(Style::Good, command);
        lines.push(can.whole());
        lines.push(Text::plain(STEP).with(Style::Dim, why).hanging(STEP));
    }
    lines
}

/// The member of the reason of a group, beside those of the server, with the explanations of tasks below it.
const BELOW: &str = "explained_below";
/// Tasks below a group that are asked about.
const BELOW_MAX: usize = 3;
/// How long that may take: what was not answered in time is not told.
const BELOW_TIME_MAX: Duration = Duration::from_secs(2);

/// Asks why the open tasks of a group do not run, and keeps the answers beside its reason. Cost: a call for each of
/// [`BELOW_MAX`] tasks.
pub(super) async fn add_below(api: &dyn Api, result: &mut Value) {
    let reasons = result.get_mut("reasons").and_then(Value::as_array_mut);
    let waits = |reason: &&mut Value| member(reason, "code") == "waits_for_descendants";
    let Some(reason) = reasons.and_then(|all| all.iter_mut().find(waits)) else {
        return;
    };
    let mut found = Vec::new();
    let ask = async {
        for task in list(reason, "open").iter().take(BELOW_MAX) {
            let asked = api.call("tasks.explain", json!({"task_id": member(task, "id")}));
            // The list itself says enough of what is not answered.
            let Ok(explained) = asked.await else { continue };
            let first = list(&explained, "reasons").first();
            let code = first.map_or_else(String::new, |first| member(first, "code"));
            // Tasks that run need no help, and those that wait for others of the list are told of by those.
            let is_told = matches!(
                code.as_str(),
                "" | "running" | "waits_for_dependencies" | "waits_for_descendants"
            );
            found.extend((!is_told).then_some(explained));
        }
    };
    let _ = timeout(BELOW_TIME_MAX, ask).await;
    reason[BELOW] = found.into();
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
                ("waits_for_time", "start_at") => "--start-at 0s".to_owned(),
                ("waits_for_time", _) => "--delay 0".to_owned(),
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
    let status = shown_status(task);
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
    use super::{Output, Text, add_below, command, lines};
    use crate::{Api, ApiError};
    use async_trait::async_trait;
    use serde_json::{Value, json};

    fn piped() -> Output {
        Output::to(Box::new(Vec::new()), false, false)
    }

    /// A server on which `fetch` waits for a worker, and `load` for it.
    struct Waiting;

    #[async_trait]
    impl Api for Waiting {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            assert_eq!(method, "tasks.explain");
            let (summary, code) = match params["task_id"].as_str() {
                Some("f") => ("`fetch` waits for a worker", "waits_for_worker"),
                _ => ("`load` waits for `fetch`", "waits_for_dependencies"),
            };
            let reason = json!({"code": code, "executor": "data-agent", "workers": 0});
            Ok(json!({"summary": summary, "reasons": [reason]}))
        }
    }

    #[tokio::test]
    async fn a_group_says_what_the_tasks_below_it_wait_for_and_what_can_be_done() {
        let open = |id: &str, name: &str| json!({"id": id, "name": name, "status": "pending"});
        let mut result = json!({"summary": "`report` waits for 2 of 2 tasks below it", "status": "in_progress",
            "reasons": [{"code": "waits_for_descendants", "open": [open("f", "fetch"), open("l", "load")], "more": 0}]});
        add_below(&Waiting, &mut result).await;
        let lines = lines(&result, &piped());
        let lines: Vec<String> = lines.iter().map(Text::letters).collect();
        assert_eq!(
            lines,
            [
                "`report` waits for 2 of 2 tasks below it",
                "status: in_progress",
                "  open: fetch pending f",
                "  open: load pending l",
                "  because `fetch` waits for a worker",
                "  you can: taskledger worker --method data-agent -- PROGRAM",
                "           start a worker that asks for its method",
            ]
        );
    }

    #[test]
    fn what_a_run_has_left_out_is_skipped() {
        let left = json!({"id": "d", "name": "deploy", "status": "pending", "skipped": true});
        let of_group =
            json!({"summary": "`r` failed", "status": "failed", "reasons": [{"not_done": [left]}]});
        let of_task = json!({"summary": "`deploy` is not part of a run any more", "status": "pending",
            "skipped": true, "reasons": [{}]});
        let told = |result: &Value| {
            lines(result, &piped())[1..]
                .iter()
                .map(Text::letters)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            told(&of_group),
            ["status: failed", "  not done: deploy skipped d"]
        );
        assert_eq!(told(&of_task), ["status: skipped"]);
    }

    #[test]
    fn what_was_cancelled_below_a_group_is_not_called_failed() {
        let ended = |name: &str, status: &str| json!({"id": name, "name": name, "status": status});
        let of_group = json!({"summary": "`r` failed", "status": "failed", "reasons": [
            {"harmed_by": [ended("a", "failed"), ended("b", "cancelled")], "harmed_by_more": 2}]});
        let told = lines(&of_group, &piped());
        let told: Vec<String> = told[2..].iter().map(Text::letters).collect();
        assert_eq!(
            told,
            [
                "  failed below: a failed a",
                "  cancelled below: b cancelled b",
                "  failed or cancelled below: 2 more",
            ]
        );
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
                "--start-at 0s",
            ),
            (
                json!({"code": "waits_for_time", "timer": "delay_seconds"}),
                "--delay 0",
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
