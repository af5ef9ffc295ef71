//! `taskledger tasks retry`

use super::{CliError, Output, Params, Request, execute};
use serde_json::Value;
use std::io;

/// Run a failed task again, and what waits for it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks retry 0f8fad5b-d9cb-469f-a165-70867728950e")]
pub(super) struct Args {
    /// The failed task
    #[arg(value_name = "ID")]
    task_id: String,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        Ok(Request {
            method: "tasks.retry",
            params: Params::default().with("task_id", self.task_id).build(),
            show,
        })
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    execute::show(result, out)
}
