//! `taskledger drain`

use super::output::Output;
use super::{Api, CliError, Remote};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Have a server begin nothing any more, while what is under way goes on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger drain
  taskledger drain --cancel

A drained server keeps running and takes the outcomes of what is under way. It begins tasks again with
--cancel, or when it is started anew. SIGTERM drains a server too, and stops it then.")]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Begin tasks again
    #[arg(long)]
    cancel: bool,
}

/// Does what was asked and shows the result.
pub(super) async fn drain(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
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
    match result.get("draining").and_then(Value::as_bool) {
        Some(true) => format!("draining: nothing begins any more, {running} running"),
        Some(false) | None => format!("tasks begin again, {running} running"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_what_is_left() {
        let drained = text(&json!({"draining": true, "running": 2}));
        assert_eq!(drained, "draining: nothing begins any more, 2 running");
        let begins = text(&json!({"draining": false, "running": 0}));
        assert_eq!(begins, "tasks begin again, 0 running");
    }
}
