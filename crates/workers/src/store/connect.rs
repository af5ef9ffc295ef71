//! Connections to the tables of workers, and their schema.

use super::WorkerStore;
use sqlx::migrate::Migrator;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_beside::{OpenError, Settings, StoreLocation, Survives};
use taskledger_log::postgres as log;
use taskledger_sql::migrations::migrator;

/// File of the workers in the data folder.
pub const WORKERS_FILE: &str = "workers.db";
/// The tables on PostgreSQL.
pub const STEPS: log::Steps = log::Steps {
    purpose: "workers",
    steps: &[(
        "0001_workers",
        include_str!("../../../../migrations/postgres/workers/0001_workers.sql"),
    )],
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_workers",
        include_str!("../../../../migrations/sqlite/workers/0001_workers.sql"),
    )])
});

static PLACE: StoreLocation = StoreLocation {
    what: "the workers",
    file: WORKERS_FILE,
    migrations: &MIGRATIONS,
    steps: STEPS,
    settings: Settings {
        schema: "taskledger_workers",
        application_name: "taskledger workers",
        // Renewals, flows that are loaded, the registry, changes; tickets, one call at a time.
        connections: 5,
        acquire_timeout: Duration::from_secs(5),
        statement_timeout_ms: 8_000,
        lock_timeout_ms: 5_000,
        statements_kept: 64,
        file_survives: Survives::Kill,
    },
};

impl WorkerStore {
    /// Opens or makes the file in a data folder that no other process uses.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_folder(folder: &Path) -> Result<Self, OpenError> {
        Ok(Self::new(PLACE.in_folder(folder).await?))
    }

    /// Opens the tables of a database, made or brought up to date if need be. The log's are there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_database(options: &log::Options) -> Result<Self, OpenError> {
        Ok(Self::new(PLACE.in_database(options).await?))
    }
}
