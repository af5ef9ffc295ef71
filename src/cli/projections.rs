//! `taskledger projections`: the read models.

use super::{Access, Api, CliError, storage};
use crate::cli::progress::Progress;
use crate::config::StorageConfig;
use crate::server::{self, Database, READ_MODELS_FILE, StartError, Storage};
use crate::store::lock::{DataDirLock, LockError};
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::{self, SqliteStore};
use crate::store::witness::LostEvents;
use crate::subscription::rebuild::beside;
use clap::Subcommand;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{Action, By, Entry, Outcome};
use taskledger_cli::following::say;
use taskledger_cli::output::Output;
use taskledger_domain::Position;
use taskledger_projections::{Found, ReadModels};

/// Rebuild the read models
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the read models again from the log
    #[command(after_help = "\
No server may use the data folder, but with --url a running server rebuilds its own read models while it
serves, and interrupting this command does not interrupt the rebuild. With a database, servers may be running:
they use the old read models until the new ones have caught up.

Examples:
  taskledger projections rebuild --data-dir ./taskledger-data
  taskledger projections rebuild --url http://127.0.0.1:8000
  taskledger projections rebuild --database-url postgres://owner@h/ledger")]
    Rebuild {
        #[command(flatten)]
        storage: StorageConfig,

        /// The running server that rebuilds its read models
        #[arg(long, value_name = "URL", conflicts_with = "database_url", value_parser = taskledger_cli::http_api::server_url)]
        url: Option<String>,
        #[command(flatten)]
        access: Access,
    },
}

/// Runs it.
pub(super) async fn projections(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let Command::Rebuild {
        storage,
        url,
        access,
    } = args.command;
    let mut progress = Progress::of("events");
    let entry = Entry::done(By::operator(), Action::Rebuild, None);
    let url = match url {
        None if access.names_context() => access.url(None)?,
        url => url,
    };
    let rebuilt = match url {
        Some(url) => ask_server(&access.api(&url)?, &mut progress).await,
        None => match storage::storage(&storage)? {
            Storage::Folder(folder) => {
                let _lock = free(&folder)?;
                let rebuilt = in_folder(&folder, &mut progress);
                storage::audited(&storage, entry, Outcome::Refused, rebuilt).await
            }
            Storage::Database(database) => {
                let rebuilt = in_database(&database, &mut progress);
                storage::audited(&storage, entry, Outcome::Refused, rebuilt).await
            }
        },
    };
    progress.end();
    let position = rebuilt?;
    if out.is_json() {
        out.value(&json!({"position": position}))?;
    } else {
        out.lines([format!(
            "rebuilt: the read models contain the log up to position {position}"
        )])?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How often a server is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// Has a server rebuild its read models and follows it to the end.
async fn ask_server(api: &dyn Api, progress: &mut Progress) -> Result<Position, CliError> {
    api.call("system.rebuild", json!({})).await?;
    loop {
        let health = api.call("system.health", json!({})).await?;
        let rebuild = &health["projections"]["rebuild"];
        let position = rebuild["position"].as_u64().unwrap_or(0);
        match rebuild["state"].as_str() {
            Some("running") => {
                progress.at(position, rebuild["of"].as_u64().unwrap_or(position));
                tokio::time::sleep(ASK_EVERY).await;
            }
            Some("done") => return Ok(position),
            Some(_) => {
                let reason = rebuild["reason"].as_str().unwrap_or("no reason given");
                return Err(CliError::Failed(format!(
                    "the old read models serve on: {reason}"
                )));
            }
            None => {
                return Err(CliError::Failed(
                    "the server knows of no rebuild: it was restarted, or another server answered"
                        .to_owned(),
                ));
            }
        }
    }
}

/// Rebuilds beside the rows that the servers on a database may be serving.
async fn in_database(database: &Database, progress: &mut Progress) -> Result<Position, CliError> {
    let lost = server::lost_in_database(database).await;
    refuse_lost(lost.map_err(|e| CliError::failed(&e))?)?;
    let store = PostgresStore::open(database.log(storage::clock())).await;
    let store = Arc::new(store.map_err(|e| CliError::failed(&e))?);
    let models = ReadModels::open(&database.read_models()).await;
    let models = Arc::new(models.map_err(|e| CliError::failed(&e))?.0);
    let done = beside(store.clone(), &models, |at, head| progress.at(at, head)).await;
    store.close().await;
    done.map_err(|e| CliError::failed(&e))
}

/// Rows that contain more than the log may be the last copy of what it has lost.
fn refuse_lost(lost: Option<LostEvents>) -> Result<(), CliError> {
    match lost {
        None => Ok(()),
        Some(lost) => Err(CliError::Failed(StartError::LostEvents(lost).to_string())),
    }
}

/// Keeps servers from a data folder with a log.
fn free(folder: &Path) -> Result<DataDirLock, CliError> {
    storage::log_in(folder).map_err(CliError::Failed)?;
    DataDirLock::acquire(folder).map_err(|error| match &error {
        LockError::Held { .. } => {
            CliError::Failed(format!("{error}; a running server rebuilds with `--url`"))
        }
        LockError::Unusable { .. } => CliError::failed(&error),
    })
}

/// Rebuilds the read models of a data folder that no server uses.
async fn in_folder(folder: &Path, progress: &mut Progress) -> Result<Position, CliError> {
    let lost = server::lost_in_folder(folder).map_err(|e| CliError::failed(&e))?;
    refuse_lost(lost)?;
    let store = SqliteStore::open(sqlite::Options::new(folder, storage::clock()));
    let store = Arc::new(store.map_err(|e| CliError::failed(&e))?);
    let options = taskledger_projections::Options::new(folder.join(READ_MODELS_FILE));
    let (models, found) = ReadModels::open(&options)
        .await
        .map_err(|e| CliError::failed(&e))?;
    if let Found::Damaged { .. } = found {
        say(&format!("WARNING: the read models are {found}"));
    }
    let models = Arc::new(models);
    let done = beside(store.clone(), &models, |at, head| progress.at(at, head)).await;
    store.close().await;
    if let Ok(models) = Arc::try_unwrap(models) {
        models.close().await.map_err(|e| CliError::failed(&e))?;
    }
    done.map_err(|e| CliError::failed(&e))
}
