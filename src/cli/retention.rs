//! `taskledger retention`

use super::{CliError, storage};
use crate::config::{StorageConfig, rest};
use crate::retention::{self, Done, Pace, Policy};
use crate::server::Alone;
use crate::server::Storage;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use taskledger_cli::output::Output;
use tokio_util::sync::CancellationToken;

/// Archive finished flows and remove them from the log
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger retention --older-than 30d --archive /backup/taskledger --dry-run
  taskledger retention --older-than 30d --archive /backup/taskledger --data-dir ./taskledger-data
  taskledger retention --older-than 30d --archive a --database-url postgres://owner@h/ledger

Stop the server first; a running server does the same every hour with `serve --retention-age 30d
--retention-archive DIR`. A flow is finished when all its tasks are completed, failed or cancelled. Each file
of the archive can be imported into an empty folder with `events import`. An interrupted run loses nothing,
and the next run continues it. The file of SQLite does not shrink: freed pages are reused.")]
pub(super) struct Args {
    /// Flows whose last event is older: a number with d, h, m or s, from `1h` to `36500d`
    #[arg(long, value_name = "AGE", value_parser = retention::age)]
    older_than: Duration,
    /// Folder of the archive; created if it is missing
    #[arg(long, value_name = "DIR")]
    archive: PathBuf,
    /// Also flows with pending tasks in which nothing runs: never executed, or blocked
    #[arg(long)]
    pending: bool,
    /// Print what would be archived, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    storage: StorageConfig,
}

/// Archives, then says how much.
pub(super) async fn retention(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let storage = storage::storage(&args.storage)?;
    if let Storage::Folder(folder) = &storage {
        storage::log_in(folder).map_err(CliError::Failed)?;
    }
    let alone = Alone::open(&storage, storage::clock()).await;
    let alone = alone.map_err(|e| CliError::failed(&e))?;
    let policy = Policy {
        age: args.older_than,
        rest: rest(args.pending),
        archive: args.archive,
        pace: Pace::Full,
    };
    let caught_up = alone.catch_up().await;
    let done = match caught_up {
        Err(error) => Err(CliError::failed(&error)),
        Ok(()) if args.dry_run => {
            let would = alone.retention.dry_run(&policy).await;
            would.map_err(|e| CliError::failed(&e))
        }
        Ok(()) => {
            let done = alone
                .retention
                .pass(&policy, &CancellationToken::new())
                .await;
            done.map_err(|e| CliError::failed(&e))
        }
    };
    alone.close().await;
    say(&done?, args.dry_run, out)?;
    Ok(ExitCode::SUCCESS)
}

fn say(done: &Done, dry_run: bool, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        out.value(&serde_json::json!(done))?;
        return Ok(());
    }
    let (flows, events) = (done.flows, done.events);
    if dry_run {
        out.line(format!("would archive {flows} flows with {events} events"))?;
        return Ok(());
    }
    out.line(format!("archived {flows} flows with {events} events"))?;
    out.lines(done.files.iter().map(|file| format!("  {file}")))?;
    out.line(format!("dropped {} events", done.dropped_events))?;
    if done.changed_flows > 0 {
        out.line(format!(
            "{} flows stay: they have changed meanwhile",
            done.changed_flows
        ))?;
    }
    if done.undropped_flows > 0 {
        let late = "stay in the log until the next run: webhooks or read models have not processed them yet";
        out.line(format!("{} archived flows {late}", done.undropped_flows))?;
    }
    if done.failed_flows > 0 {
        let failed = "could not be archived and stay as they are; standard error says why";
        out.line(format!("{} flows {failed}", done.failed_flows))?;
    }
    Ok(())
}
