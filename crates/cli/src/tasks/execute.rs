//! `taskledger tasks execute`

use super::retry::show_will_run;
use super::{CliError, Output, Params, Request};
use crate::input::read_workflow;
use crate::output::member;
use serde_json::Value;
use std::io;

/// Start a stored task, or tasks from a file, without waiting; `run` waits
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks execute 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks execute --file workflow.json")]
pub(super) struct Args {
    /// The stored task
    #[arg(value_name = "ID", required_unless_present = "file")]
    task_id: Option<String>,
    /// A `tasks.execute` request, its parameters or an array of tasks; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "task_id")]
    file: Option<String>,
    /// `failed`: failed tasks that were tolerated, and those behind completed tasks, run again too
    #[arg(long, value_name = "WHICH", value_parser = ["failed"], conflicts_with = "file")]
    include: Option<String>,
    /// Follow it to its end; the exit code is that of `run`
    #[arg(long, visible_alias = "wait")]
    watch: bool,
}

impl Args {
    pub(super) const fn waits(&self) -> bool {
        self.watch
    }

    pub(super) fn request(self) -> Result<Request, CliError> {
        let params = match &self.file {
            Some(file) => Value::Object(read_workflow(file)?),
            None => Params::default()
                .maybe("task_id", self.task_id)
                .maybe("include", self.include)
                .build(),
        };
        Ok(Request {
            method: "tasks.execute",
            params,
            show,
        })
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let id = member(result, "root_task_id");
    out.line(format!("{id}  {}", member(result, "status")))?;
    show_will_run(result, out)
}
