//! `taskledger projections`: the read models.

use super::output::Output;
use super::progress::Progress;
use super::{Api, CliError, HttpApi, storage};
use crate::config::StorageConfig;
use crate::server::{Database, READ_MODELS_FILE, Storage};
use crate::store::lock::{DataDirLock, LockError};
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::{self, LEDGER_FILE, SqliteStore};
use crate::subscription::rebuild::{beside, rebuild};
use clap::Subcommand;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Position;
use taskledger_projections::{self as projections, ReadModels};

/// Rebuild what queries read
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the read models again from the log; without --url no server may use the data folder
    #[command(after_help = "\
With --url the server there does it while it serves: the old read models answer until the new ones
have caught up. Breaking off this command does not break off the rebuild.

Examples:
  taskledger projections rebuild --data-dir ./taskledger-data
  taskledger projections rebuild --url http://127.0.0.1:8000
  taskledger projections rebuild --database-url postgres://h/ledger

In a database, the old read models serve on too.")]
    Rebuild {
        #[command(flatten)]
        storage: StorageConfig,

        /// The server that rebuilds what it serves
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
}

/// Runs it.
pub(super) async fn projections(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Rebuild { url: Some(url), .. } => ask_server(&HttpApi::new(&url)?, out).await,
        Command::Rebuild { storage, url: None } => rebuild_here(&storage, out).await,
    }
}

/// How often a server is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// Has a server rebuild its read models and follows it to the end.
async fn ask_server(api: &dyn Api, out: &mut Output) -> Result<ExitCode, CliError> {
    api.call("system.rebuild", json!({})).await?;
    let mut progress = Progress::of("events");
    loop {
        let health = api.call("system.health", json!({})).await?;
        let rebuild = &health["projections"]["rebuild"];
        let position = rebuild["position"].as_u64().unwrap_or(0);
        match rebuild["state"].as_str() {
            Some("running") => {
                progress.at(position, rebuild["of"].as_u64().unwrap_or(position));
                tokio::time::sleep(ASK_EVERY).await;
            }
            Some("done") => {
                progress.end();
                return rebuilt(position, out);
            }
            Some(_) => {
                let reason = rebuild["reason"].as_str().unwrap_or("no reason given");
                return Err(CliError::Failed(format!(
                    "the old read models serve on: {reason}"
                )));
            }
            None => {
                return Err(CliError::Failed(
                    "the server was started anew, the old read models serve on".to_owned(),
                ));
            }
        }
    }
}

fn rebuilt(position: u64, out: &mut Output) -> Result<ExitCode, CliError> {
    if out.is_json() {
        out.value(&json!({"position": position}))?;
    } else {
        out.lines([format!("rebuilt from {position} events")])?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rebuilds the read models of a storage: in their place in a folder that no server uses, beside those
/// that serve in a database.
async fn rebuild_here(config: &StorageConfig, out: &mut Output) -> Result<ExitCode, CliError> {
    let done = match storage::storage(config)? {
        Storage::Folder(folder) => in_folder(folder).await,
        Storage::Database(database) => in_database(&database).await,
    };
    rebuilt(done?, out)
}

async fn in_folder(data_dir: PathBuf) -> Result<Position, CliError> {
    if !data_dir.join(LEDGER_FILE).exists() {
        return Err(CliError::Failed(format!(
            "there is no log in `{}`",
            data_dir.display()
        )));
    }
    let _lock = DataDirLock::acquire(&data_dir).map_err(|error| match &error {
        LockError::Held { .. } => {
            CliError::Failed(format!("{error}; a running server rebuilds with `--url`"))
        }
        LockError::Unusable { .. } => CliError::failed(&error),
    })?;
    let store = Arc::new(
        SqliteStore::open(sqlite::Options::new(&data_dir, storage::clock()))
            .map_err(|e| CliError::failed(&e))?,
    );
    let options = projections::Options::new(data_dir.join(READ_MODELS_FILE));
    let (models, _) = ReadModels::open(&options)
        .await
        .map_err(|e| CliError::failed(&e))?;
    let mut progress = Progress::of("events");
    let done = rebuild(store.clone(), &models, |at, head| progress.at(at, head)).await;
    progress.end();
    store.close().await;
    models.close().await.map_err(|e| CliError::failed(&e))?;
    done.map_err(|e| CliError::failed(&e))
}

async fn in_database(database: &Database) -> Result<Position, CliError> {
    let store = PostgresStore::open(database.log(storage::clock())).await;
    let store = Arc::new(store.map_err(|e| CliError::failed(&e))?);
    let models = ReadModels::open(&database.read_models()).await;
    let (models, _) = models.map_err(|e| CliError::failed(&e))?;
    let mut progress = Progress::of("events");
    let report = |at, head| progress.at(at, head);
    let done = beside(store.clone(), &Arc::new(models), report).await;
    progress.end();
    store.close().await;
    done.map_err(|e| CliError::failed(&e))
}
