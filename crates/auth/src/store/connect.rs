//! Connections to the tables of tokens and audit, and their schema.

use super::AuthStore;
use sqlx::migrate::Migrator;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_log::{postgres as log, private};
use taskledger_sql::beside::{Connections, FileError, Settings, Survives};
use taskledger_sql::migrations::migrator;

/// File of tokens and audit in the data folder.
pub const AUTH_FILE: &str = "auth.db";
/// The tables on PostgreSQL.
pub const STEPS: log::Steps = log::Steps {
    purpose: "auth",
    steps: &[
        (
            "0001_tokens",
            include_str!("../../../../migrations/postgres/auth/0001_tokens.sql"),
        ),
        (
            "0002_secrets",
            include_str!("../../../../migrations/postgres/auth/0002_secrets.sql"),
        ),
        (
            "0003_denied_jwts",
            include_str!("../../../../migrations/postgres/auth/0003_denied_jwts.sql"),
        ),
        (
            "0004_agents",
            include_str!("../../../../migrations/postgres/auth/0004_agents.sql"),
        ),
    ],
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[
        (
            "0001_tokens",
            include_str!("../../../../migrations/sqlite/auth/0001_tokens.sql"),
        ),
        (
            "0002_secrets",
            include_str!("../../../../migrations/sqlite/auth/0002_secrets.sql"),
        ),
        (
            "0003_denied_jwts",
            include_str!("../../../../migrations/sqlite/auth/0003_denied_jwts.sql"),
        ),
        (
            "0004_agents",
            include_str!("../../../../migrations/sqlite/auth/0004_agents.sql"),
        ),
    ])
});

const SETTINGS: Settings = Settings {
    schema: "taskledger_auth",
    application_name: "taskledger auth",
    // Look-ups, changes, the keeper.
    connections: 4,
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
    #[error("the tokens in `{path}` cannot be opened: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: sqlx::Error,
    },
    /// The file is of a newer program, or not ours.
    #[error("the tokens in `{path}` cannot be brought up to date: {source}")]
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

impl AuthStore {
    /// Opens or makes the file in a data folder that no other process uses.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_folder(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(AUTH_FILE);
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
