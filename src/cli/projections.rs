//! `taskledger projections`: the read models.

use super::output::Output;
use super::{Api, CliError, HttpApi};
use crate::clock::{SharedClock, SystemClock};
use crate::server::READ_MODELS_FILE;
use crate::store::lock::{DataDirLock, LockError};
use crate::store::sqlite::{self, LEDGER_FILE, SqliteStore};
use crate::subscription::rebuild::rebuild;
use clap::Subcommand;
use serde_json::json;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use taskledger_projections::ReadModels;

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
  taskledger projections rebuild --url http://127.0.0.1:8000")]
    Rebuild {
        /// The data folder
        #[arg(
            long,
            value_name = "DIR",
            env = "TASKLEDGER_DATA_DIR",
            default_value = "./taskledger-data",
            conflicts_with = "url"
        )]
        data_dir: PathBuf,

        /// The server that rebuilds what it serves
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
}

/// Runs it.
pub(super) async fn projections(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Rebuild { url: Some(url), .. } => ask_server(&HttpApi::new(&url)?, out).await,
        Command::Rebuild {
            data_dir,
            url: None,
        } => rebuild_projections(data_dir, out).await,
    }
}

/// How often a server is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// Has a server rebuild its read models and follows it to the end.
async fn ask_server(api: &dyn Api, out: &mut Output) -> Result<ExitCode, CliError> {
    api.call("system.rebuild", json!({})).await?;
    loop {
        let health = api.call("system.health", json!({})).await?;
        let rebuild = &health["projections"]["rebuild"];
        let position = rebuild["position"].as_u64().unwrap_or(0);
        match rebuild["state"].as_str() {
            Some("running") => {
                show_progress(position, rebuild["of"].as_u64().unwrap_or(position));
                tokio::time::sleep(ASK_EVERY).await;
            }
            Some("done") => return rebuilt(position, out),
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

/// Shows people at a terminal how far a rebuild is.
fn show_progress(at: u64, head: u64) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{at} of {head} events");
    }
}

fn rebuilt(position: u64, out: &mut Output) -> Result<ExitCode, CliError> {
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    if out.is_json() {
        out.value(&json!({"position": position}))?;
    } else {
        out.lines([format!("rebuilt from {position} events")])?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rebuilds the read models of a data folder that no server uses.
async fn rebuild_projections(data_dir: PathBuf, out: &mut Output) -> Result<ExitCode, CliError> {
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
    let clock: SharedClock = Arc::new(SystemClock::default());
    let store = Arc::new(
        SqliteStore::open(sqlite::Options::new(&data_dir, clock))
            .map_err(|e| CliError::failed(&e))?,
    );
    let options = taskledger_projections::Options::new(data_dir.join(READ_MODELS_FILE));
    let (models, _) = ReadModels::open(&options)
        .await
        .map_err(|e| CliError::failed(&e))?;
    let done = rebuild(store.clone(), &models, show_progress).await;
    store.close().await;
    models.close().await.map_err(|e| CliError::failed(&e))?;
    rebuilt(done.map_err(|e| CliError::failed(&e))?, out)
}
