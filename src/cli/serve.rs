//! `taskledger serve`

use super::CliError;
use crate::config::ServerConfig;
use std::process::ExitCode;

/// Start the server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger serve
  taskledger serve --listen 0.0.0.0:8000 --data-dir /var/lib/taskledger
  taskledger serve --allow-command make --allow-command git --executor-limit command_executor=4

Every option can also be set by the variable shown with it. Stops on Ctrl-C and SIGTERM.")]
pub(super) struct Args {
    #[command(flatten)]
    config: ServerConfig,
}

/// Runs the server until it is told to stop.
pub(super) async fn serve(args: Args) -> Result<ExitCode, CliError> {
    crate::telemetry::init(&args.config.log)
        .map_err(|error| CliError::Usage(format!("--log-level: {error}")))?;
    start_server(args.config).await
}

/// To be filled: opens the store, starts mailboxes, projections, engine and `http::Service`.
async fn start_server(_config: ServerConfig) -> Result<ExitCode, CliError> {
    Err(CliError::NotWired("serve"))
}
