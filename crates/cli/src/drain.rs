//! `taskledger drain`

use super::following::say;
use super::output::{Output, Text, list, member};
use super::{Api, CliError, Remote};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::timeout;

/// Stop a server from starting new attempts; attempts in progress continue
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger drain
  taskledger drain --cancel

A drained server keeps running and records the outcomes of attempts in progress. It starts new attempts
again after `drain --cancel` or a restart. SIGTERM also drains a server, and then stops it.")]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Stop draining: start new attempts again
    #[arg(long)]
    cancel: bool,
}

/// Does what was asked and shows the result.
pub async fn drain(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let api = args.remote.api()?;
    out.calls_with(api.options().to_owned());
    let result = api
        .call("system.drain", json!({"drain": !args.cancel}))
        .await?;
    if out.is_json() {
        out.value(&result)?;
    } else {
        let text = Text::from(text(&result, out));
        out.text(&text.whole())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How long it may take to find out whether a drain keeps a run from starting.
const ASK_MAX: Duration = Duration::from_secs(2);

/// Says so if the server is draining, so that nothing of the run that was begun on this task starts. What is not
/// answered in time is not told.
pub(super) async fn warn(api: &dyn Api, root: &str, out: &Output) {
    if root.is_empty() {
        return;
    }
    let asked = api.call("tasks.explain", json!({"task_id": root}));
    let Ok(Ok(explained)) = timeout(ASK_MAX, asked).await else {
        return;
    };
    if let Some(warning) = warning(&explained, out) {
        say(&warning);
    }
}

fn warning(explained: &Value, out: &Output) -> Option<String> {
    let drains = |reason: &&Value| member(reason, "code") == "draining";
    let reason = list(explained, "reasons").iter().find(drains)?;
    // One that is stopping offers no step.
    Some(match list(reason, "next_steps").is_empty() {
        true => {
            "the server is stopping: nothing of this run starts before its next start".to_owned()
        }
        false => format!(
            "the server is draining: nothing of this run starts until `{}` or its next start",
            out.command("taskledger drain --cancel")
        ),
    })
}

fn text(result: &Value, out: &Output) -> String {
    let cancel = out.command("taskledger drain --cancel");
    let running = result.get("running").and_then(Value::as_u64).unwrap_or(0);
    let was = result.get("was_draining") == Some(&Value::Bool(true));
    match result.get("draining").and_then(Value::as_bool) {
        Some(true) if result.get("stopping") == Some(&Value::Bool(true)) => format!(
            "the server is stopping: no new attempts start, {running} running; nothing starts again before its next start"
        ),
        Some(true) if was => format!("already draining: no new attempts start, {running} running"),
        Some(true) => {
            format!("draining: no new attempts start, {running} running; `{cancel}` ends it")
        }
        Some(false) | None if was => {
            format!("no longer draining: new attempts start again, {running} running")
        }
        Some(false) | None => {
            format!("the server was not draining, nothing changed; {running} running")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(result: &Value) -> String {
        let mut out = Output::to(Box::new(Vec::new()), false, false);
        out.calls_with(" --url http://h:1".to_owned());
        text(result, &out)
    }

    #[test]
    fn the_answer_says_what_is_left() {
        let drained = said(&json!({"draining": true, "was_draining": false, "running": 2}));
        assert_eq!(
            drained,
            "draining: no new attempts start, 2 running; `taskledger drain --cancel --url http://h:1` ends it"
        );
        let begins = said(&json!({"draining": false, "was_draining": true, "running": 0}));
        assert_eq!(
            begins,
            "no longer draining: new attempts start again, 0 running"
        );
    }

    #[test]
    fn the_answer_says_when_nothing_has_changed() {
        let again = said(&json!({"draining": true, "was_draining": true, "running": 2}));
        assert_eq!(again, "already draining: no new attempts start, 2 running");
        let never = said(&json!({"draining": false, "was_draining": false, "running": 0}));
        assert_eq!(
            never,
            "the server was not draining, nothing changed; 0 running"
        );
    }

    #[test]
    fn what_a_drain_keeps_from_starting_is_told() {
        let out = Output::to(Box::new(Vec::new()), false, false);
        let warned = |code: &str, steps: Value| {
            let group = json!({"code": "waits_for_descendants"});
            let reasons = [group, json!({"code": code, "next_steps": steps})];
            warning(&json!({ "reasons": reasons }), &out)
        };
        let drains = warned("draining", json!([{"method": "system.drain"}]));
        assert_eq!(
            drains.as_deref(),
            Some(
                "the server is draining: nothing of this run starts until `taskledger drain --cancel` or its next start"
            )
        );
        let stops = warned("draining", json!([])).unwrap();
        assert!(stops.starts_with("the server is stopping"), "{stops}");
        assert_eq!(warned("running", json!([])), None);
    }

    #[test]
    fn a_drain_that_belongs_to_a_stop_has_no_end() {
        let stopping =
            json!({"draining": true, "was_draining": true, "stopping": true, "running": 1});
        assert_eq!(
            said(&stopping),
            "the server is stopping: no new attempts start, 1 running; nothing starts again before its next start"
        );
    }
}
