//! `taskledger tasks tree`

use super::as_of::AsOf;
use super::read::Read;
use super::{CliError, Params, Request, Text, When};
use crate::tree::{self, Line};
use serde_json::Value;

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

/// The tree, with how long each task took and what it waits for.
pub(super) fn table(result: &Value, when: &When, _columns: Option<usize>) -> Vec<Text> {
    let lines = tree::lines_at(result, when.now);
    lines.iter().map(Line::text).collect()
}

#[cfg(test)]
mod tests;
