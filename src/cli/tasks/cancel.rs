//! `taskledger tasks cancel`

use super::{CliError, Output, Params, Request};
use crate::cli::output::member;
use serde_json::Value;
use std::io;

/// Stop a task for good
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks cancel 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks cancel 0f8fad5b-d9cb-469f-a165-70867728950e --cascade --reason 'not needed'")]
pub(super) struct Args {
    /// The task; a group takes everything below it along
    #[arg(value_name = "ID")]
    task_id: String,
    /// Also cancel what is below a task that is no group
    #[arg(long)]
    cascade: bool,
    /// Why; becomes the task's error
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        Ok(Request {
            method: "tasks.cancel",
            params: Params::default()
                .with("task_id", self.task_id)
                .flag("cascade", self.cascade)
                .maybe("reason", self.reason)
                .build(),
            show,
        })
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    out.line(format!(
        "{}  {}",
        member(result, "task_id"),
        member(result, "status")
    ))
}
