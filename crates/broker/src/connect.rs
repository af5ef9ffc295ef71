//! Connections to the tables of the broker, and their schema. Owns what a commit survives and how long a statement may
//! take; may not know what the tables hold.

use crate::BrokerStore;
use sqlx::migrate::Migrator;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use taskledger_log::{postgres as log, private};
use taskledger_sql::Engine;
use taskledger_sql::beside::{Connections, FileError, Settings, Survives};
use taskledger_sql::migrations::migrator;

/// File of the broker in the data folder.
pub const BROKER_FILE: &str = "broker.db";
/// The tables on PostgreSQL.
pub const STEPS: log::Steps = log::Steps {
    purpose: "broker",
    steps: &[(
        "0001_broker",
        include_str!("../../../migrations/postgres/broker/0001_broker.sql"),
    )],
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_broker",
        include_str!("../../../migrations/sqlite/broker/0001_broker.sql"),
    )])
});

const SETTINGS: Settings = Settings {
    schema: "taskledger_broker",
    application_name: "taskledger broker",
    // Short orders: the intake, and streams that look into their inboxes.
    connections: 4,
    acquire_timeout: Duration::from_secs(5),
    statement_timeout_ms: 8_000,
    lock_timeout_ms: 5_000,
    statements_kept: 64,
    // What a power cut undoes is noted again from the log; outcomes whose marks are lost are delivered again.
    file_survives: Survives::Kill,
};

/// Why the store cannot be opened; the operator can mend it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be used.
    #[error("the broker's tables in `{path}` cannot be opened: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: sqlx::Error,
    },
    /// The file is of a newer program, or not ours.
    #[error("the broker's tables in `{path}` cannot be brought up to date: {source}")]
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

impl BrokerStore {
    /// Opens or makes the file in a data folder that no other process uses. `tenant`: whose log it is.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_folder(folder: &Path, tenant: Arc<str>) -> Result<Self, OpenError> {
        let path = folder.join(BROKER_FILE);
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
        Ok(Self::new(
            Engine::Sqlite,
            connections.map_err(failed)?,
            tenant,
        ))
    }

    /// Opens the tables of a database, made or brought up to date if need be. The log's are there. `tenant`: whose log
    /// it is.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_database(options: &log::Options, tenant: Arc<str>) -> Result<Self, OpenError> {
        log::take(options, STEPS).await?;
        let connections = Connections::of_database(&options.connect, SETTINGS);
        Ok(Self::new(Engine::Postgres, connections, tenant))
    }
}
