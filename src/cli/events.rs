//! `taskledger events`: the log as it is on disk.

use super::CliError;
use super::output::Output;
use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;

/// Export or verify the log of a data folder
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write every event as one line of JSON, in order
    #[command(after_help = "\
Examples:
  taskledger events export --data-dir ./taskledger-data > events.jsonl
  taskledger events export --after 1000 | head")]
    Export(Export),
    /// Check every row of the log; names the first damaged one
    #[command(after_help = "\
Examples:
  taskledger events verify --data-dir ./taskledger-data

Exit code 1 if a row is damaged.")]
    Verify(Verify),
}

/// What to export.
#[derive(Debug, clap::Args)]
struct Export {
    /// The data folder
    #[arg(
        long,
        value_name = "DIR",
        env = "TASKLEDGER_DATA_DIR",
        default_value = "./taskledger-data"
    )]
    data_dir: PathBuf,
    /// Only events after this position
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    after: u64,
}

/// What to verify.
#[derive(Debug, clap::Args)]
struct Verify {
    /// The data folder
    #[arg(
        long,
        value_name = "DIR",
        env = "TASKLEDGER_DATA_DIR",
        default_value = "./taskledger-data"
    )]
    data_dir: PathBuf,
}

/// Runs one of them.
pub(super) async fn events(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Export(export) => export_events(export.data_dir, export.after, out).await,
        Command::Verify(verify) => verify_events(verify.data_dir, out).await,
    }
}

/// To be filled: pages through the log after `after` and writes one line each.
async fn export_events(
    _data_dir: PathBuf,
    _after: u64,
    _out: &mut Output,
) -> Result<ExitCode, CliError> {
    Err(CliError::NotWired("events export"))
}

/// To be filled: reads every row and reports.
async fn verify_events(_data_dir: PathBuf, _out: &mut Output) -> Result<ExitCode, CliError> {
    Err(CliError::NotWired("events verify"))
}
