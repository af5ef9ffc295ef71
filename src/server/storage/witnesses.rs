//! Refuses a log that has lost events, and keeps copies of what the stores contain of them when the operator accepts
//! it.
//!
//! Owns: which stores are compared with the log, and what is copied before an older log is used. Nothing is erased:
//! the read models are renamed, and of each store that is moved back in the log a copy is kept.

use super::{Database, READ_MODELS_FILE};
use crate::private;
use crate::server::StartError;
use crate::store::EventStore;
use crate::store::sqlite::{LEDGER_FILE, OpenError};
use crate::store::witness::{self, Conflict, LostEvents, Source, Witness};
use crate::webhooks::store::CHECKPOINT as OUTBOX;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use std::io;
use std::path::{Path, PathBuf};
use taskledger_broker::CHECKPOINT as INBOXES;
use taskledger_domain::Timestamp;
use taskledger_projections::CHECKPOINT_QUERY;

const READ_MODELS: Source = Source {
    store: "the read models",
    file: READ_MODELS_FILE,
    table: "taskledger_rows.checkpoints",
    query: CHECKPOINT_QUERY,
};
/// The stores that record how far they have read the log.
const SOURCES: [Source; 3] = [READ_MODELS, OUTBOX, INBOXES];

/// Whether a server may start on a log that has lost events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OlderLog {
    /// It does not start.
    #[default]
    Refuse,
    /// The operator accepts the log as it is.
    Accept,
}

/// An older log that was accepted.
#[derive(Debug, Clone)]
pub(in crate::server) struct Accepted {
    /// What the log has lost.
    pub(in crate::server) lost: LostEvents,
    /// Files, schemas and tables that keep what the stores contained.
    pub(in crate::server) kept: Vec<String>,
}

/// The folders of a server that is alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folders<'a> {
    /// Of the log; `None` if it is in a store of its own.
    pub(super) log: Option<&'a Path>,
    pub(super) read_models: &'a Path,
    pub(super) beside: &'a Path,
}

impl Folders<'_> {
    fn file(&self, source: &Source) -> PathBuf {
        let folder = match source.file {
            READ_MODELS_FILE => self.read_models,
            _ => self.beside,
        };
        folder.join(source.file)
    }

    /// The checkpoints in the files. One that cannot be read proves nothing.
    fn witnesses(&self) -> Vec<Witness> {
        let read = |source: &Source| match witness::in_file(source, &self.file(source)) {
            Ok(witness) => witness,
            Err(error) => {
                let store = source.store;
                tracing::warn!(
                    store,
                    error,
                    "a store cannot say how far it has read the log"
                );
                None
            }
        };
        SOURCES.iter().filter_map(read).collect()
    }

    /// Compares the log with the stores, before any of them is opened for writing.
    pub(super) async fn compare(
        &self,
        log: Option<&dyn EventStore>,
        older: OlderLog,
        now: Timestamp,
    ) -> Result<Option<Accepted>, StartError> {
        let witnesses = self.witnesses();
        let compared = match (log, self.log) {
            (Some(log), _) => witness::compare(log, &witnesses).await?,
            (None, Some(folder)) => {
                match witness::compare_file(&folder.join(LEDGER_FILE), &witnesses) {
                    Ok(compared) => compared,
                    // Opening the log says what is wrong with it.
                    Err(error) => {
                        tracing::debug!(%error, "the log cannot be read without being opened");
                        Ok(())
                    }
                }
            }
            (None, None) => Ok(()),
        };
        let Err(lost) = compared else { return Ok(None) };
        if older == OlderLog::Refuse {
            return Err(StartError::LostEvents(lost));
        }
        let kept = self
            .keep(&lost, now)
            .map_err(|(path, source)| StartError::NotKept { path, source })?;
        Ok(Some(Accepted { lost, kept }))
    }

    /// Copies the files of a log that has lost events, and those of the stores that contain more.
    fn keep(&self, lost: &LostEvents, now: Timestamp) -> Result<Vec<String>, (PathBuf, io::Error)> {
        let mut kept = Vec::new();
        // A writer drops what SQLite cannot read of the write-ahead log.
        let log = self.log.map(|folder| folder.join(LEDGER_FILE));
        for source in log.iter().flat_map(|log| [log.clone(), with(log, "-wal")]) {
            if std::fs::metadata(&source).is_ok_and(|file| file.len() > 0) {
                kept.push(copy(&source, &aside(&source, now))?);
            }
        }
        for source in SOURCES.iter().filter(|it| is_in_conflict(it, lost)) {
            let file = self.file(source);
            let is_read_models = source.file == READ_MODELS_FILE;
            for suffix in ["", "-wal"] {
                let from = with(&file, suffix);
                if !from.exists() {
                    continue;
                }
                // SQLite finds the write-ahead log by the name of its database.
                let to = with(&aside(&file, now), suffix);
                if is_read_models {
                    std::fs::rename(&from, &to).map_err(|error| (from, error))?;
                    kept.push(to.display().to_string());
                } else {
                    kept.push(copy(&from, &to)?);
                }
            }
            if is_read_models {
                let shared = with(&file, "-shm");
                if shared.exists() {
                    std::fs::remove_file(&shared).map_err(|error| (shared, error))?;
                }
            }
        }
        Ok(kept)
    }
}

fn is_in_conflict(source: &Source, lost: &LostEvents) -> bool {
    let mut witnesses = lost.conflicts.iter().map(Conflict::witness);
    witnesses.any(|it| it.store == source.store)
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The name under which a file is kept.
fn aside(path: &Path, now: Timestamp) -> PathBuf {
    with(path, &format!(".set-aside-{}", now.0))
}

/// Copies a file, readable by its owner only, and waits until it is on disk.
fn copy(from: &Path, to: &Path) -> Result<String, (PathBuf, io::Error)> {
    let copied = || {
        private::make_if_missing(to)?;
        std::fs::copy(from, to)?;
        std::fs::File::open(to)?.sync_all()
    };
    copied().map_err(|error| (to.to_owned(), error))?;
    Ok(to.display().to_string())
}

/// Compares the log in a data folder with the stores there; a server may be running.
///
/// # Errors
/// Why the log cannot be read.
pub fn lost_in_folder(folder: &Path) -> Result<Option<LostEvents>, OpenError> {
    let folders = Folders {
        log: Some(folder),
        read_models: folder,
        beside: folder,
    };
    // In this order: the log grows, and what the stores have read with it.
    let witnesses = folders.witnesses();
    Ok(witness::compare_file(&folder.join(LEDGER_FILE), &witnesses)?.err())
}

/// Compares the log in a database with the stores there.
///
/// # Errors
/// [`StartError`]: one of them cannot be read.
pub async fn lost_in_database(database: &Database) -> Result<Option<LostEvents>, StartError> {
    let compared = witness::compare_database(&database.connect, &SOURCES).await;
    Ok(compared.map_err(StartError::Checkpoints)?.err())
}

/// The same at the start of a server. Other servers must be stopped before an older log is accepted.
pub(super) async fn compare_in_database(
    database: &Database,
    older: OlderLog,
    now: Timestamp,
) -> Result<Option<Accepted>, StartError> {
    let Some(lost) = lost_in_database(database).await? else {
        return Ok(None);
    };
    if older == OlderLog::Refuse {
        return Err(StartError::LostEvents(lost));
    }
    let kept = keep_in_database(database, &lost, now).await;
    let kept = kept.map_err(StartError::Checkpoints)?;
    Ok(Some(Accepted { lost, kept }))
}

/// Renames the schema of the read models and copies the tables that are moved back, in one transaction.
async fn keep_in_database(
    database: &Database,
    lost: &LostEvents,
    now: Timestamp,
) -> Result<Vec<String>, sqlx::Error> {
    let suffix = format!("set_aside_{}", now.0);
    let mut statements = Vec::new();
    let mut kept = Vec::new();
    if is_in_conflict(&READ_MODELS, lost) {
        let schema = taskledger_projections::SCHEMA_DEFAULT;
        statements.push(format!("ALTER SCHEMA {schema} RENAME TO {schema}_{suffix}"));
        kept.push(format!("schema {schema}_{suffix}"));
    }
    let tables = [
        (&OUTBOX, "taskledger_webhooks.endpoints"),
        (&INBOXES, "taskledger_broker.published"),
        (&INBOXES, "taskledger_broker.outcomes"),
    ];
    for (_, table) in tables.iter().filter(|(of, _)| is_in_conflict(of, lost)) {
        statements.push(format!("CREATE TABLE {table}_{suffix} AS TABLE {table}"));
        kept.push(format!("table {table}_{suffix}"));
    }
    let mut connection = PgConnection::connect_with(&database.connect).await?;
    let mut transaction = connection.begin().await?;
    for statement in statements {
        sqlx::query(AssertSqlSafe(statement))
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    // A server that does not answer a farewell notices later.
    let _ = connection.close().await;
    Ok(kept)
}
