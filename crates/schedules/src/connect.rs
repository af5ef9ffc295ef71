//! Connections to the tables of schedules, and their schema.

use crate::ScheduleStore;
use sqlx::migrate::Migrator;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_log::{postgres as log, private};
use taskledger_sql::beside::{Connections, FileError, Settings, Survives};
use taskledger_sql::migrations::migrator;

/// File of the schedules in the data folder.
pub const SCHEDULES_FILE: &str = "schedules.db";
/// The tables on PostgreSQL.
pub const STEPS: log::Steps = log::Steps {
    purpose: "schedules",
    steps: &[(
        "0001_schedules",
        include_str!("../../../migrations/postgres/schedules/0001_schedules.sql"),
    )],
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_schedules",
        include_str!("../../../migrations/sqlite/schedules/0001_schedules.sql"),
    )])
});

const SETTINGS: Settings = Settings {
    schema: "taskledger_schedules",
    application_name: "taskledger schedules",
    // Calls that people make, and the looks of one server.
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
    #[error("the schedules in `{path}` cannot be opened: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: sqlx::Error,
    },
    /// The file is of a newer program, or not ours.
    #[error("the schedules in `{path}` cannot be brought up to date: {source}")]
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

impl ScheduleStore {
    /// Opens or makes the file in a data folder that no other process uses.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_folder(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(SCHEDULES_FILE);
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
        let store = Self::new(connections.map_err(failed)?);
        // Whoever held a lease was an earlier process: no other one uses the folder.
        store.end_leases().await.map_err(failed)?;
        Ok(store)
    }

    async fn end_leases(&self) -> Result<(), FileError> {
        let broken = |error: crate::Error| sqlx::Error::Protocol(error.to_string());
        let work = async {
            let mut tx = self.write().await?;
            let args = tx.args();
            tx.execute(
                "UPDATE schedules SET leased_until = 0, waits_since = NULL",
                args,
            )
            .await?;
            Ok(tx.commit().await?)
        };
        Ok(self.order(work).await.map_err(broken)?)
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
