//! The log that `--data-dir` or `--database-url` names, for commands that work on it without a server.

pub(super) use taskledger_cli::clock;

use super::CliError;
use crate::config::StorageConfig;
use crate::server::{self, READ_MODELS_FILE, StartError, Storage};
use crate::store::chain::Mark;
use crate::store::lock::DataDirLock;
use crate::store::postgres;
use crate::store::sqlite::export::Export;
use crate::store::sqlite::import::Import;
use crate::store::sqlite::{self, LEDGER_FILE};
use crate::store::transfer::{Source, Target};
use crate::store::verify::Report;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taskledger_auth::store::{AUTH_FILE, AuditProof};
use taskledger_auth::{AuditLog, AuthStore, Entry, Outcome};
use taskledger_domain::Position;

/// What the settings name.
pub(super) fn storage(config: &StorageConfig) -> Result<Storage, CliError> {
    Storage::try_from(config).map_err(|error| {
        if matches!(error, StartError::DatabaseUrl(_)) {
            CliError::Usage(error.to_string())
        } else {
            CliError::failed(&error)
        }
    })
}

/// The file with the log in a data folder.
pub(super) fn log_in(folder: &Path) -> Result<PathBuf, String> {
    let file = folder.join(LEDGER_FILE);
    // What cannot be looked at says why when it is opened.
    if file.try_exists().is_ok_and(|exists| !exists) {
        return Err(format!(
            "there is no log in `{}`: no {LEDGER_FILE}; expected the data folder of a server, or --database-url",
            folder.display()
        ));
    }
    Ok(file)
}

/// The log from after `after` on; a server may be writing to it.
pub(super) async fn source(
    config: &StorageConfig,
    after: Position,
) -> Result<Box<dyn Source>, CliError> {
    Ok(match storage(config)? {
        Storage::Folder(folder) => {
            let export = Export::open(&log_in(&folder).map_err(CliError::Failed)?, after);
            Box::new(export.map_err(|e| CliError::failed(&e))?)
        }
        Storage::Database(database) => {
            let options = database.log(clock());
            let export = postgres::export::Export::open(&options, after).await;
            Box::new(export.map_err(|e| CliError::failed(&e))?)
        }
    })
}

/// An empty log to import into, with what keeps others from it meanwhile.
pub(super) async fn target(
    config: &StorageConfig,
) -> Result<(Box<dyn Target>, Option<DataDirLock>), CliError> {
    Ok(match storage(config)? {
        Storage::Folder(folder) => {
            let lock = DataDirLock::acquire(&folder).map_err(|e| CliError::failed(&e))?;
            match Import::begin(&folder, &[READ_MODELS_FILE]) {
                Ok(import) => (Box::new(import), Some(lock)),
                Err(error) => {
                    lock.undo();
                    return Err(CliError::failed(&error));
                }
            }
        }
        Storage::Database(database) => {
            let import = postgres::import::Import::begin(&database.log(clock())).await;
            (Box::new(import.map_err(|e| CliError::failed(&e))?), None)
        }
    })
}

/// The store of tokens and of the audit log.
async fn auth_store(config: &StorageConfig) -> Result<AuthStore, CliError> {
    let store = match storage(config)? {
        Storage::Folder(folder) => AuthStore::of_folder(&folder).await,
        Storage::Database(database) => AuthStore::of_database(&database.log(clock())).await,
    };
    store.map_err(|e| CliError::failed(&e))
}

/// Follows the hash chain of the audit log; `None`: there is no audit log yet.
pub(super) async fn prove_audit(config: &StorageConfig) -> Result<Option<AuditProof>, CliError> {
    if let Storage::Folder(folder) = storage(config)?
        && !folder.join(AUTH_FILE).exists()
    {
        return Ok(None);
    }
    let store = auth_store(config).await?;
    let proof = store.prove_audit().await;
    store.close().await;
    proof.map(Some).map_err(|e| CliError::failed(&e))
}

/// Writes a row into the audit log.
async fn record(config: &StorageConfig, entry: &Entry) -> Result<(), CliError> {
    let store = Arc::new(auth_store(config).await?);
    let written = AuditLog::new(store.clone(), clock()).record(entry).await;
    store.close().await;
    written.map_err(|e| CliError::failed(&e))
}

/// Does something that has a row in the audit log, which is written first: without it nothing is done. If it fails, a
/// second row has the outcome `failed`.
pub(super) async fn audited<T>(
    config: &StorageConfig,
    entry: Entry,
    failed: Outcome,
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let unwritten = |error| format!("nothing was done: the audit log cannot be written: {error}");
    let written = record(config, &entry).await;
    written.map_err(|error| CliError::Failed(unwritten(error)))?;
    let done = work.await;
    if done.is_err() {
        let outcome = failed;
        if let Err(error) = record(config, &Entry { outcome, ..entry }).await {
            eprintln!("the audit log does not say that it failed: {error}");
        }
    }
    done
}

/// Checks every row of the log, whose hash chain must go through `kept` if that is given.
pub(super) async fn verify(config: &StorageConfig, kept: Option<Mark>) -> Result<Report, CliError> {
    match storage(config)? {
        Storage::Folder(folder) => {
            let path = log_in(&folder).map_err(CliError::Failed)?;
            let verified = tokio::task::spawn_blocking(move || {
                let lost = server::lost_in_folder(&folder)?;
                let mut report = sqlite::verify(&path, kept, |_, _| ())?;
                lost.iter().for_each(|lost| report.compared(lost));
                Ok::<_, sqlite::OpenError>(report)
            });
            let verified = verified.await.map_err(|e| CliError::failed(&e))?;
            verified.map_err(|e| CliError::failed(&e))
        }
        Storage::Database(database) => {
            let verified = postgres::verify::verify(&database.log(clock()), kept, |_, _| ()).await;
            let mut report = verified.map_err(|e| CliError::failed(&e))?;
            let lost = server::lost_in_database(&database).await;
            let lost = lost.map_err(|e| CliError::failed(&e))?;
            lost.iter().for_each(|lost| report.compared(lost));
            Ok(report)
        }
    }
}
