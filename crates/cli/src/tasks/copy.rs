//! `taskledger tasks copy`

use super::{CliError, Output, Params, Request};
use crate::output::member;
use serde_json::Value;
use std::io;

/// Copy a task, to run it again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks copy 0f8fad5b-d9cb-469f-a165-70867728950e --children")]
pub(super) struct Args {
    /// The original
    #[arg(value_name = "ID")]
    task_id: String,
    /// Also copy everything that a run of it would cover
    #[arg(long)]
    children: bool,
    /// Parent of the copy; without one, the copy starts a new flow
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        Ok(Request {
            method: "tasks.copy",
            params: Params::default()
                .with("task_id", self.task_id)
                .flag("copy_children", self.children)
                .maybe("parent_id", self.parent)
                .build(),
            show,
        })
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let id = member(result, "copied_task_id");
    out.line(format!("{id}  {}", member(result, "status")))?;
    let dropped = member(result, "dropped_dependencies");
    if !dropped.is_empty() && dropped != "[]" {
        out.line(format!("dependencies that were not copied: {dropped}"))?;
    }
    Ok(())
}
