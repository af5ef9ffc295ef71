//! Connections to the tables of tokens and audit, and their schema.

use super::AuthStore;
use sqlx::migrate::Migrator;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_beside::{OpenError, Settings, StoreLocation, Survives};
use taskledger_log::postgres as log;
use taskledger_sql::migrations::migrator;

/// File of tokens and audit in the data folder.
pub const AUTH_FILE: &str = "auth.db";
/// The tables on PostgreSQL.
pub const STEPS: log::Steps = log::Steps {
    purpose: "auth",
    steps: &[(
        "0001_tokens",
        include_str!("../../../../migrations/postgres/auth/0001_tokens.sql"),
    )],
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_tokens",
        include_str!("../../../../migrations/sqlite/auth/0001_tokens.sql"),
    )])
});

static PLACE: StoreLocation = StoreLocation {
    what: "the tokens",
    file: AUTH_FILE,
    migrations: &MIGRATIONS,
    steps: STEPS,
    settings: Settings {
        schema: "taskledger_auth",
        application_name: "taskledger auth",
        // Look-ups, changes, the keeper.
        connections: 4,
        acquire_timeout: Duration::from_secs(5),
        statement_timeout_ms: 8_000,
        lock_timeout_ms: 5_000,
        statements_kept: 64,
        file_survives: Survives::PowerCut,
    },
};

impl AuthStore {
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
