//! `taskledger tasks retry`

use super::{CliError, Output, Params, Request};
use crate::cli::output::member;
use serde_json::Value;
use std::io;

/// Run a failed task again, and what waits for it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks retry 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks retry @last --wait")]
pub(super) struct Args {
    /// The failed task
    #[arg(value_name = "ID")]
    task_id: String,
    /// Follow it to its end; the exit code is that of `run`
    #[arg(long, visible_alias = "watch")]
    wait: bool,
}

impl Args {
    pub(super) const fn waits(&self) -> bool {
        self.wait
    }

    pub(super) fn request(self) -> Result<Request, CliError> {
        Ok(Request {
            method: "tasks.retry",
            params: Params::default().with("task_id", self.task_id).build(),
            show,
        })
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let id = member(result, "task_id");
    out.line(format!("{id}  {}", member(result, "status")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use taskledger_terminal::testing::Buffer;

    #[test]
    fn the_task_is_shown_and_not_the_root_of_its_flow() {
        let buffer = Buffer::default();
        let mut out = Output::to(Box::new(buffer.clone()), false, false);
        let result =
            json!({"root_task_id": "r", "task_id": "t", "status": "started", "run_id": "n"});
        show(&result, &mut out).unwrap();
        assert_eq!(buffer.text(), "t  started\n");
    }
}
