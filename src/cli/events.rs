//! `taskledger events`: the log as it is on disk.

use super::CliError;
use super::output::Output;
use crate::store::sqlite::{self, LEDGER_FILE, export};
use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::sync::mpsc;

/// Lines read ahead of a slow reader of the output.
const LINES_WAITING_MAX: usize = 256;

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

/// Runs work that blocks away from the threads that serve sockets.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| CliError::failed(&error))?
}

/// Writes the log from after `after` to its present end; a server may be writing to it.
async fn export_events(
    data_dir: PathBuf,
    after: u64,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let (sender, mut lines) = mpsc::channel::<String>(LINES_WAITING_MAX);
    let reader = tokio::task::spawn_blocking(move || {
        for event in export::Export::open(&data_dir.join(LEDGER_FILE), after)
            .map_err(|e| CliError::failed(&e))?
        {
            let event = event.map_err(|e| CliError::failed(&e))?;
            let line = serde_json::to_string(&event).map_err(|e| CliError::failed(&e))?;
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
        Ok::<(), CliError>(())
    });
    while let Some(line) = lines.recv().await {
        out.line_of_many(&line)?;
    }
    out.flush()?;
    drop(lines);
    reader.await.map_err(|error| CliError::failed(&error))??;
    Ok(ExitCode::SUCCESS)
}

/// Reads every row, reports, and exits with 1 when one cannot be believed.
async fn verify_events(data_dir: PathBuf, out: &mut Output) -> Result<ExitCode, CliError> {
    let path = data_dir.join(LEDGER_FILE);
    let report =
        blocking(move || sqlite::verify(&path, |_, _| ()).map_err(|e| CliError::failed(&e)))
            .await?;
    if out.is_json() {
        out.value(&serde_json::json!({"sound": report.is_sound(), "report": report}))?;
    } else {
        out.lines(report.faults.iter().map(ToString::to_string))?;
        if report.more_faults > 0 {
            out.lines([format!("and {} more", report.more_faults)])?;
        }
        let verdict = if report.is_sound() {
            "sound"
        } else {
            "DAMAGED"
        };
        out.lines([format!(
            "{verdict}: {} events in {} flows",
            report.events, report.streams
        )])?;
    }
    Ok(if report.is_sound() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
