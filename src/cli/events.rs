//! `taskledger events`: the log as it is stored, and what a server tells of it.

mod export;
mod import;
mod tail;
mod verify;

use super::CliError;
use super::output::Output;
use clap::Subcommand;
use std::process::ExitCode;

/// Export, import or verify a log; follow what happens on a server
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Export(export::Args),
    Import(import::Args),
    Tail(tail::Args),
    Verify(verify::Args),
}

/// Runs one of them.
pub(super) async fn events(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Export(args) => export::export(args, out).await,
        Command::Import(args) => import::import(args, out).await,
        Command::Tail(args) => tail::tail(args, out).await,
        Command::Verify(args) => verify::verify(args, out).await,
    }
}
