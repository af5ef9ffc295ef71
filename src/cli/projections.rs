//! `taskledger projections`: the read models.

use super::CliError;
use super::output::Output;
use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;

/// Rebuild what queries read
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Drop the read models and build them again from the log; the server must be stopped
    #[command(after_help = "\
Examples:
  taskledger projections rebuild --data-dir ./taskledger-data")]
    Rebuild {
        /// The data folder
        #[arg(
            long,
            value_name = "DIR",
            env = "TASKLEDGER_DATA_DIR",
            default_value = "./taskledger-data"
        )]
        data_dir: PathBuf,
    },
}

/// Runs it.
pub(super) async fn projections(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Rebuild { data_dir } => rebuild_projections(data_dir, out).await,
    }
}

/// To be filled: rebuilds the read models of a data folder and reports.
async fn rebuild_projections(_data_dir: PathBuf, _out: &mut Output) -> Result<ExitCode, CliError> {
    Err(CliError::NotWired("projections rebuild"))
}
