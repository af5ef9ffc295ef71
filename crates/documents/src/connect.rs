//! Connections to the tables of workflows, and their schema.

use crate::DocumentStore;
use sqlx::migrate::Migrator;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_log::{postgres as log, private};
use taskledger_sql::beside::{Connections, FileError, Settings, Survives};
use taskledger_sql::migrations::migrator;

/// File of the workflows in the data folder.
pub const WORKFLOWS_FILE: &str = "workflows.db";
/// The tables on PostgreSQL.
pub const STEPS: log::Steps = log::Steps {
    purpose: "workflows",
    steps: &[(
        "0001_workflows",
        include_str!("../../../migrations/postgres/workflows/0001_workflows.sql"),
    )],
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_workflows",
        include_str!("../../../migrations/sqlite/workflows/0001_workflows.sql"),
    )])
});

const SETTINGS: Settings = Settings {
    schema: "taskledger_workflows",
    application_name: "taskledger workflows",
    // Calls that people make, a few a minute.
    connections: 2,
    acquire_timeout: Duration::from_secs(5),
    statement_timeout_ms: 8_000,
    lock_timeout_ms: 5_000,
    statements_kept: 64,
    file_survives: Survives::PowerCut,
};

/// Why the store cannot be opened; the operator can mend it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be used.
    #[error("the workflows in `{path}` cannot be opened: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: sqlx::Error,
    },
    /// The file is of a newer program, or not ours.
    #[error("the workflows in `{path}` cannot be brought up to date: {source}")]
    Migration {
        /// The file.
        path: PathBuf,
        /// Why.
        source: sqlx::migrate::MigrateError,
    },
    /// The tables in the database cannot be made or used.
    #[error(transparent)]
    Database(#[from] log::OpenError),
}

impl DocumentStore {
    /// Opens or makes the file in a data folder that no other process uses.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_folder(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(WORKFLOWS_FILE);
        let failed = |error| match error {
            FileError::File(source) => OpenError::File {
                path: path.clone(),
                source,
            },
            FileError::Migration(source) => OpenError::Migration {
                path: path.clone(),
                source,
            },
        };
        let made = private::make_if_missing(&path).map_err(sqlx::Error::from);
        made.map_err(|error| failed(error.into()))?;
        let connections = Connections::of_file(&path, &SETTINGS, &MIGRATIONS).await;
        Ok(Self::new(connections.map_err(failed)?))
    }

    /// Opens the tables of a database, made or brought up to date if need be. The log's are there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_database(options: &log::Options) -> Result<Self, OpenError> {
        log::take(options, STEPS).await?;
        let connections = Connections::of_database(&options.connect, SETTINGS);
        Ok(Self::new(connections))
    }
}
