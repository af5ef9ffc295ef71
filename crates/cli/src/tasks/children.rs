//! `taskledger tasks children`

use super::read::Read;
use super::{CliError, Params, Request};

/// List the direct children of a task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks children 0f8fad5b-d9cb-469f-a165-70867728950e")]
pub(super) struct Args {
    /// The parent
    #[arg(value_name = "ID")]
    parent_id: String,
    #[command(flatten)]
    read: Read,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        Ok(Request {
            method: "tasks.children",
            params: Params::default()
                .with("parent_id", self.parent_id)
                .read(&self.read)
                .build(),
            show: |_, _| Ok(()),
        })
    }
}
