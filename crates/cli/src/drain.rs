//! `taskledger drain`

use super::output::Output;
use super::{Api, CliError, Remote};
use serde_json::{Value, json};
use std::process::ExitCode;

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
    let result = api
        .call("system.drain", json!({"drain": !args.cancel}))
        .await?;
    if out.is_json() {
        out.value(&result)?;
    } else {
        out.lines([text(&result)])?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(result: &Value) -> String {
    let running = result.get("running").and_then(Value::as_u64).unwrap_or(0);
    // Servers of an earlier release do not say it.
    let was = result.get("was_draining").and_then(Value::as_bool);
    let is = result.get("draining").and_then(Value::as_bool);
    let was = was.unwrap_or(is != Some(true));
    match result.get("draining").and_then(Value::as_bool) {
        Some(true) if was => format!("already draining: no new attempts start, {running} running"),
        Some(true) => format!(
            "draining: no new attempts start, {running} running; `taskledger drain --cancel` ends it"
        ),
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

    #[test]
    fn the_answer_says_what_is_left() {
        let drained = text(&json!({"draining": true, "running": 2}));
        assert_eq!(
            drained,
            "draining: no new attempts start, 2 running; `taskledger drain --cancel` ends it"
        );
        let begins = text(&json!({"draining": false, "running": 0}));
        assert_eq!(
            begins,
            "no longer draining: new attempts start again, 0 running"
        );
    }

    #[test]
    fn the_answer_says_when_nothing_has_changed() {
        let again = text(&json!({"draining": true, "was_draining": true, "running": 2}));
        assert_eq!(again, "already draining: no new attempts start, 2 running");
        let never = text(&json!({"draining": false, "was_draining": false, "running": 0}));
        assert_eq!(
            never,
            "the server was not draining, nothing changed; 0 running"
        );
    }
}
