//! `taskledger tasks tree`

use super::as_of::AsOf;
use super::read::Read;
use super::{CliError, HttpApi, Output, Params, Request, Text, When, answer};
use crate::Api;
use crate::following::say;
use crate::output::{list, member};
use crate::tree::{self, Line, not_before};
use crate::when::time;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;
use taskledger_domain::Timestamp;
use tokio::time::timeout;

/// Show a task and everything below it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks tree 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks tree 0f8fad5b-d9cb-469f-a165-70867728950e --as-of 2026-01-31T12:00:00Z")]
pub(super) struct Args {
    /// The root of what is shown
    #[arg(value_name = "ID")]
    task_id: String,
    #[command(flatten)]
    as_of: AsOf,
    #[command(flatten)]
    read: Read,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        Ok(Request {
            method: "tasks.tree",
            params: self
                .as_of
                .add_to(Params::default().with("task_id", self.task_id))
                .read(&self.read)
                .build(),
            show: |_, _| Ok(()),
        })
    }
}

/// Asks for the tree, and for what its pending tasks wait for where that is not in it, and shows both.
pub(super) async fn show(
    args: Args,
    api: &HttpApi,
    when: &When,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let as_of = args.as_of.clone();
    let (result, _) = answer(api, args.request()?).await?;
    if out.is_json() {
        out.value(&result)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut waits = Waits::default();
    let then = as_of.moment(&result);
    if then.is_none() {
        // What was not answered in time is not told.
        let asking = ask(api, &result, when, &mut waits);
        let _ = timeout(ASK_MAX, asking).await;
    }
    out.texts(&drawn(&result, then.unwrap_or(when.now), &waits.notes))?;
    if waits.is_draining {
        let command = out.command("taskledger drain --cancel");
        say(&format!(
            "the server is draining: no new attempts start until `{command}` or its next start"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The tree at a time, with how long each task took until then and what it waited for: `notes` are for those of which
/// the tree does not say it.
pub(super) fn drawn(result: &Value, at: Timestamp, notes: &HashMap<String, String>) -> Vec<Text> {
    let mut lines = tree::lines_at(result, at);
    for line in &mut lines {
        if let Some(note) = notes.get(&line.id) {
            line.note.clone_from(note);
        }
    }
    lines.iter().map(Line::text).collect()
}

/// Tasks of which it is asked why they do not run, so that a wide tree costs few calls.
const ASKED_MAX: usize = 8;
/// How long that may take.
const ASK_MAX: Duration = Duration::from_secs(2);

/// What tasks wait for.
#[derive(Debug, Default)]
struct Waits {
    /// By the id of the task.
    notes: HashMap<String, String>,
    is_draining: bool,
}

/// Asks of pending tasks why they do not run, if the tree does not say it. Cost: a call for each of [`ASKED_MAX`]
/// tasks.
async fn ask(api: &dyn Api, tree: &Value, when: &When, waits: &mut Waits) {
    let lines = tree::lines_at(tree, when.now);
    let bare = |line: &&Line| line.status == "pending" && line.note.is_empty() && !line.is_group;
    for line in lines.iter().filter(bare).take(ASKED_MAX) {
        let asked = api.call("tasks.explain", json!({"task_id": line.id}));
        let Ok(explained) = asked.await else {
            continue;
        };
        let Some(reason) = list(&explained, "reasons").first() else {
            continue;
        };
        // A server that is stopping offers no step.
        waits.is_draining |=
            member(reason, "code") == "draining" && !list(reason, "next_steps").is_empty();
        if let Some(note) = note(reason, when.now) {
            waits.notes.insert(line.id.clone(), note);
        }
    }
}

/// The first reason of an explanation in a few words, if it says more than that the task is pending.
fn note(reason: &Value, now: Timestamp) -> Option<String> {
    let method = member(reason, "executor");
    match member(reason, "code").as_str() {
        "draining" => Some("waits because the server is draining".to_owned()),
        "waits_for_worker" => Some(format!("waits for a worker of `{method}`")),
        "waits_for_slot" => Some("waits for a free slot".to_owned()),
        "lacks_inputs" => Some("waits for inputs".to_owned()),
        "waits_for_time" => {
            // The tree says it of the groups in it; this is one around it.
            let of = reason
                .get("of")
                .map_or_else(String::new, |of| member(of, "name"));
            let because = format!(", because of `{of}`");
            Some(not_before(time(reason, "at")?, now, &because))
        }
        "waits_for_executor" => Some(no_executor(&method, reason)),
        "not_covered" => {
            let unknown = member(reason, "unknown_executor");
            (!unknown.is_empty()).then(|| no_executor(&unknown, reason))
        }
        _ => None,
    }
}

fn no_executor(method: &str, reason: &Value) -> String {
    let meant = member(reason, "meant");
    match meant.is_empty() {
        true => format!("no executor `{method}`"),
        false => format!("no executor `{method}`; did you mean `{meant}`?"),
    }
}

#[cfg(test)]
mod reasons {
    use super::*;
    use crate::ApiError;
    use crate::testing::parsed;
    use crate::when::{Times, tests::at_noon};
    use async_trait::async_trait;

    /// A server on which each task waits for what its name says.
    struct Waiting;

    #[async_trait]
    impl Api for Waiting {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            assert_eq!(method, "tasks.explain");
            let id = params["task_id"].as_str().unwrap();
            if id == "refused" {
                return Err(ApiError::Protocol("no".to_owned()));
            }
            let reason = match id {
                "unknown" => {
                    json!({"code": "not_covered", "unknown_executor": "ehco", "meant": "echo"})
                }
                "held" => {
                    json!({"code": "waits_for_time", "at": "2026-01-31T12:00:30Z", "of": {"name": "flow"}})
                }
                "draining" => {
                    json!({"code": "draining", "next_steps": [{"method": "system.drain"}]})
                }
                code => json!({"code": code, "executor": "m"}),
            };
            Ok(json!({"reasons": [reason]}))
        }
    }

    fn tree(names: &[&str]) -> Value {
        let task = |id: &&str| json!({"task": {"id": id, "name": id, "status": "pending", "schemas": {"method": "m"}}});
        let children: Vec<Value> = names.iter().map(task).collect();
        json!({"task": {"id": "r", "name": "r", "status": "pending", "schemas": null}, "children": children})
    }

    #[tokio::test]
    async fn pending_tasks_say_what_keeps_them() {
        let names = [
            "draining",
            "waits_for_worker",
            "waits_for_executor",
            "unknown",
            "not_covered",
            "refused",
            "held",
        ];
        let (mut waits, when) = (Waits::default(), at_noon(Times::Utc));
        ask(&Waiting, &tree(&names), &when, &mut waits).await;
        assert!(waits.is_draining);
        let drawn = drawn(&tree(&names), when.now, &waits.notes);
        let drawn: Vec<String> = drawn.iter().map(Text::letters).collect();
        assert_eq!(
            drawn,
            [
                "· r  pending",
                "├─ · draining  pending  waits because the server is draining",
                "├─ · waits_for_worker  pending  waits for a worker of `m`",
                "├─ · waits_for_executor  pending  no executor `m`",
                "├─ · unknown  pending  no executor `ehco`; did you mean `echo`?",
                "├─ · not_covered  pending",
                "├─ · refused  pending",
                "└─ · held  pending  not before 2026-01-31T12:00:30.000000Z (in 30 s), because of `flow`",
            ]
        );
    }

    #[test]
    fn the_past_is_drawn_as_it_was_then() {
        let args = |as_of: &str| {
            parsed::<Args>(["tree", "x", "--as-of", as_of])
                .unwrap()
                .as_of
        };
        // The latest event before the time that was asked for.
        let result = json!({"as_of": {"position": 7, "time": "2026-01-31T12:00:03Z"},
            "task": {"id": "x", "name": "flow", "status": "in_progress", "schemas": null,
                "started_at": "2026-01-31T12:00:00Z"},
            "children": [{"task": {"id": "y", "name": "call", "status": "pending", "attempt": 1,
                "schemas": {"method": "m"}, "next_attempt_at": "2026-01-31T12:00:09Z"}}]});
        for (as_of, took, retry) in [
            ("2026-01-31T13:00:05+01:00", "5.0 s", "4.0 s"),
            ("7", "3.0 s", "6.0 s"),
        ] {
            let then = args(as_of).moment(&result).unwrap();
            let drawn = drawn(&result, then, &HashMap::new());
            let drawn: Vec<String> = drawn.iter().map(Text::letters).collect();
            let flow = format!("▸ flow  in_progress  {took}");
            let call = format!("└─ · call  pending  retry in {retry}");
            assert_eq!(drawn, [flow, call], "{as_of}");
        }
        let now = parsed::<Args>(["tree", "x"]).unwrap().as_of;
        assert_eq!(now.moment(&json!({"task": {}})), None);
    }
}

#[cfg(test)]
mod tests;
