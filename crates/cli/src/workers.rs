//! `taskledger workers`: who does the tasks of remote methods, and what is known about these methods.
//!
//! Owns: the calls `workers.*`, one command each, and how answers are shown.

mod declare;
mod drain;
pub(super) mod list;
mod methods;
#[cfg(test)]
mod tests;

use super::output::Output;
use super::request::{Params, Request};
use super::{CliError, Remote};
use clap::Subcommand;
use std::process::ExitCode;

/// List and drain workers; declare their methods
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger workers list
  taskledger workers methods
  taskledger workers drain gpu-1
  taskledger workers declare text.upper --input-schema upper.json --defaults '{\"retry_count\": 3}' --limit 20
  taskledger workers undeclare text.upper
  taskledger workers undeclare text.upper --owner ann

`taskledger worker` runs a program as a worker.")]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List workers with their methods and their tasks
    List,
    /// List the methods that were declared or that workers ask for
    Methods,
    Drain(drain::Args),
    Declare(Box<declare::Args>),
    /// Remove a declaration; tasks of the method wait for a worker that asks for it
    Undeclare(declare::Undeclare),
}

impl Command {
    fn request(self) -> Result<Request, CliError> {
        Ok(match self {
            Self::List => list::request(),
            Self::Methods => methods::request(),
            Self::Drain(args) => args.request(),
            Self::Declare(args) => args.request()?,
            Self::Undeclare(args) => args.request(),
        })
    }
}

/// Does what was asked and shows the result.
pub async fn workers(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    if let Command::Undeclare(undeclared) = &args.command {
        return declare::undeclare(undeclared, &args.remote, out).await;
    }
    let request = args.command.request()?;
    request.answered(&args.remote, out).await?;
    Ok(ExitCode::SUCCESS)
}
