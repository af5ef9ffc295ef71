//! Connections to the tables of workflows, and their schema.

use crate::DocumentStore;
use sqlx::migrate::Migrator;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_beside::{OpenError, Settings, StoreLocation, Survives};
use taskledger_log::postgres as log;
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

static PLACE: StoreLocation = StoreLocation {
    what: "the workflows",
    file: WORKFLOWS_FILE,
    migrations: &MIGRATIONS,
    steps: STEPS,
    settings: Settings {
        schema: "taskledger_workflows",
        application_name: "taskledger workflows",
        // Calls that people make, a few a minute.
        connections: 2,
        acquire_timeout: Duration::from_secs(5),
        statement_timeout_ms: 8_000,
        lock_timeout_ms: 5_000,
        statements_kept: 64,
        file_survives: Survives::PowerCut,
    },
};

impl DocumentStore {
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
