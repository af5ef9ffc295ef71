//! `taskledger tasks get`

use super::as_of::AsOf;
use super::read::Read;
use super::{CliError, Output, Params, Request};
use crate::output::members;
use serde_json::Value;
use std::io;

/// Show one task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks get 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks get 0f8fad5b-d9cb-469f-a165-70867728950e --as-of 1042
  taskledger tasks get 0f8fad5b-d9cb-469f-a165-70867728950e --json | jq .result")]
pub(super) struct Args {
    /// The task
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
            method: "tasks.get",
            params: self
                .as_of
                .add_to(Params::default().with("task_id", self.task_id))
                .read(&self.read)
                .build(),
            show,
        })
    }
}

pub(super) fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    const FIRST: [&str; 6] = ["id", "name", "status", "progress", "error", "result"];
    members(result, &FIRST, out)
}
