//! `taskledger tasks cancel`

use super::bulk::{self, Change, Options};
use super::{Api, CliError, Output, Params, Request, When};
use crate::output::member;
use serde_json::Value;
use std::io;
use std::process::ExitCode;

/// Cancel a task, or several
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks cancel 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks cancel 0f8fad5b-d9cb-469f-a165-70867728950e --cascade --reason 'not needed'
  taskledger tasks cancel --label batch=nightly --yes

The options that select tasks are those of `tasks list`: each unfinished task that the list would show is
cancelled.")]
pub(super) struct Args {
    /// The task; cancelling a group cancels everything below it
    #[arg(value_name = "ID")]
    task_id: Option<String>,
    /// Also cancel the tasks below a task that is not a group
    #[arg(long)]
    cascade: bool,
    /// Why; becomes the task's error
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    several: Options,
}

impl Args {
    /// What is said of each task.
    fn said(&self) -> Params {
        Params::default()
            .flag("cascade", self.cascade)
            .maybe("reason", self.reason.clone())
    }

    pub(super) fn is_bulk(&self) -> bool {
        self.several.are_meant(self.task_id.as_ref())
    }

    pub(super) async fn bulk(
        self,
        api: &dyn Api,
        when: &When,
        out: &mut Output,
    ) -> Result<ExitCode, CliError> {
        let change = Change {
            verb: ("cancel", "cancelled"),
            method: "tasks.cancel",
            params: self.said().build(),
            from: &["in_progress", "pending"],
            takes_below: false,
        };
        bulk::change(&self.several, &change, api, when, out).await
    }

    pub(super) fn request(self) -> Result<Request, CliError> {
        bulk::is_one(self.task_id.as_ref(), &self.several.which)?;
        Ok(Request {
            method: "tasks.cancel",
            params: self.said().maybe("task_id", self.task_id).build(),
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
