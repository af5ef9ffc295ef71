//! `taskledger events verify`

use crate::cli::output::{Output, counted};
use crate::cli::{CliError, storage};
use crate::config::StorageConfig;
use std::process::ExitCode;

/// Check every row of the log; names the damaged ones
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events verify --data-dir ./taskledger-data

Exit code 1 if a row is damaged.")]
pub(super) struct Args {
    #[command(flatten)]
    storage: StorageConfig,
}

/// Reads every row, reports, and exits with 1 when one cannot be believed.
pub(super) async fn verify(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let report = storage::verify(&args.storage).await?;
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
        let dropped = match report.dropped {
            0 => String::new(),
            dropped => format!(", {dropped} more were dropped with archived flows"),
        };
        out.lines([format!(
            "{verdict}: {} in {}{dropped}",
            counted(report.events, "event", "events"),
            counted(report.streams, "flow", "flows"),
        )])?;
    }
    Ok(if report.is_sound() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
