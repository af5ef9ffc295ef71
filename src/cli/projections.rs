//! `taskledger projections`: the read models.

use super::CliError;
use super::output::Output;
use super::progress::Progress;
use crate::clock::{SharedClock, SystemClock};
use crate::config::StorageConfig;
use crate::server::READ_MODELS_FILE;
use crate::store::lock::DataDirLock;
use crate::store::sqlite::{self, LEDGER_FILE, SqliteStore};
use crate::subscription::rebuild::rebuild;
use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use taskledger_projections::ReadModels;

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
        #[command(flatten)]
        storage: StorageConfig,
    },
}

/// Runs it.
pub(super) async fn projections(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Rebuild { storage } => rebuild_projections(storage.data_dir, out).await,
    }
}

/// Rebuilds the read models of a data folder that no server uses.
async fn rebuild_projections(data_dir: PathBuf, out: &mut Output) -> Result<ExitCode, CliError> {
    if !data_dir.join(LEDGER_FILE).exists() {
        return Err(CliError::Failed(format!(
            "there is no log in `{}`",
            data_dir.display()
        )));
    }
    let _lock = DataDirLock::acquire(&data_dir).map_err(|e| CliError::failed(&e))?;
    let clock: SharedClock = Arc::new(SystemClock::default());
    let store = Arc::new(
        SqliteStore::open(sqlite::Options::new(&data_dir, clock))
            .map_err(|e| CliError::failed(&e))?,
    );
    let options = taskledger_projections::Options::new(data_dir.join(READ_MODELS_FILE));
    let (models, _) = ReadModels::open(&options)
        .await
        .map_err(|e| CliError::failed(&e))?;
    let mut progress = Progress::of("events");
    let rebuilt = rebuild(store.clone(), &models, |at, head| progress.at(at, head)).await;
    store.close().await;
    models.close().await.map_err(|e| CliError::failed(&e))?;
    progress.end();
    let position = rebuilt.map_err(|e| CliError::failed(&e))?;
    if out.is_json() {
        out.value(&serde_json::json!({"position": position}))?;
    } else {
        out.lines([format!("rebuilt from {position} events")])?;
    }
    Ok(ExitCode::SUCCESS)
}
