//! The log that `--data-dir` or `--database-url` names, for commands that work on it without a server.

use super::CliError;
use crate::clock::{SharedClock, SystemClock};
use crate::config::StorageConfig;
use crate::store::lock::DataDirLock;
use crate::store::sqlite::export::Export;
use crate::store::sqlite::import::Import;
use crate::store::sqlite::{self, LEDGER_FILE};
use crate::store::transfer::{Source, Target};
use std::sync::Arc;
use taskledger_domain::Position;

/// The clock of the machine.
pub(super) fn clock() -> SharedClock {
    Arc::new(SystemClock::default())
}

/// The log from after `after` on; a server may be writing to it.
pub(super) async fn source(
    storage: &StorageConfig,
    after: Position,
) -> Result<Box<dyn Source>, CliError> {
    let export = Export::open(&storage.data_dir.join(LEDGER_FILE), after);
    Ok(Box::new(export.map_err(|e| CliError::failed(&e))?))
}

/// An empty log to import into, with what keeps others from it meanwhile.
pub(super) async fn target(
    storage: &StorageConfig,
) -> Result<(Box<dyn Target>, Option<DataDirLock>), CliError> {
    let lock = DataDirLock::acquire(&storage.data_dir).map_err(|e| CliError::failed(&e))?;
    let import = Import::begin(&storage.data_dir).map_err(|e| CliError::failed(&e))?;
    Ok((Box::new(import), Some(lock)))
}

/// Checks every row of the log.
pub(super) async fn verify(storage: &StorageConfig) -> Result<sqlite::verify::Report, CliError> {
    let path = storage.data_dir.join(LEDGER_FILE);
    let verified = tokio::task::spawn_blocking(move || sqlite::verify(&path, |_, _| ()));
    let verified = verified.await.map_err(|e| CliError::failed(&e))?;
    verified.map_err(|e| CliError::failed(&e))
}
