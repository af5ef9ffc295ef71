//! `taskledger tasks delete`

use super::{CliError, Output, Params, Request};
use serde_json::Value;
use std::io;

/// Delete a task that has not started
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks delete 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks delete 0f8fad5b-d9cb-469f-a165-70867728950e --cascade")]
pub(super) struct Args {
    /// The task
    #[arg(value_name = "ID")]
    task_id: String,
    /// Delete everything below it too
    #[arg(long)]
    cascade: bool,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        Ok(Request {
            method: "tasks.delete",
            params: Params::default()
                .with("task_id", self.task_id)
                .flag("cascade", self.cascade)
                .build(),
            show,
        })
    }
}

fn show(_: &Value, out: &mut Output) -> io::Result<()> {
    out.line("deleted")
}
