//! `taskledger tasks delete`

use super::bulk::{self, Change, Options};
use super::{Api, CliError, Output, Params, Request, When};
use serde_json::Value;
use std::io;
use std::process::ExitCode;

/// Delete a task that has not started, or several
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks delete 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks delete 0f8fad5b-d9cb-469f-a165-70867728950e --cascade
  taskledger tasks delete --label batch=nightly --cascade --yes

The options that select tasks are those of `tasks list`: each pending task that the list would show is deleted.")]
pub(super) struct Args {
    /// The task
    #[arg(value_name = "ID")]
    task_id: Option<String>,
    /// Delete everything below it too
    #[arg(long)]
    cascade: bool,
    #[command(flatten)]
    several: Options,
}

impl Args {
    /// What is said of each task.
    fn said(&self) -> Params {
        Params::default().flag("cascade", self.cascade)
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
            verb: ("delete", "deleted"),
            method: "tasks.delete",
            params: self.said().build(),
            from: &["pending"],
            takes_below: false,
        };
        bulk::change(&self.several, &change, api, when, out).await
    }

    pub(super) fn request(self) -> Result<Request, CliError> {
        bulk::is_one(self.task_id.as_ref(), &self.several.which)?;
        Ok(Request {
            method: "tasks.delete",
            params: self.said().maybe("task_id", self.task_id).build(),
            show,
        })
    }
}

fn show(_: &Value, out: &mut Output) -> io::Result<()> {
    out.line("deleted")
}
