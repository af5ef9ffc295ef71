//! Connections to the tables of tokens and audit, and their schema.

use super::{AuthStore, Error};
use sqlx::migrate::Migrator;
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection, Executor, Sqlite};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_log::{postgres as log, private};
use taskledger_sql::Tx;
use taskledger_sql::migrations::migrator;
use tokio::time::timeout;

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
    ])
});

const SCHEMA: &str = "taskledger_auth";
const APPLICATION_NAME: &str = "taskledger auth";
/// Connections to PostgreSQL: look-ups, changes, the keeper.
const CONNECTIONS: u32 = 4;
/// Connections that read the file beside its one writer.
const FILE_READERS: u32 = 2;
/// How long an order waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one statement may take on PostgreSQL.
const STATEMENT_TIMEOUT_MS: u64 = 8_000;
/// How long a statement waits for a row that another server holds.
const LOCK_TIMEOUT_MS: u64 = 5_000;
/// A connection that nobody needs is closed after this time.
const IDLE: Duration = Duration::from_secs(60);
/// How long a connection that comes back may take to show that it lives.
const ALIVE_WAIT: Duration = Duration::from_secs(1);
/// How long the server may take to close connections: nothing depends on it.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// How long a statement waits for a lock of another process on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

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

/// The way to the tables.
pub(super) enum Connections {
    /// SQLite has one writer, so one connection writes.
    File {
        writer: SqlitePool,
        readers: SqlitePool,
    },
    Database(PgPool),
}

impl AuthStore {
    /// Opens or makes the file in a data folder that no other process uses.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_folder(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(AUTH_FILE);
        let failed = |source| OpenError::File {
            path: path.clone(),
            source,
        };
        private::make_if_missing(&path).map_err(|source| failed(source.into()))?;
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(false)
            .busy_timeout(BUSY_TIMEOUT)
            .statement_cache_capacity(64);
        let writer = file_pool(1).connect_lazy_with(options.clone());
        let mut first = writer.acquire().await.map_err(failed)?;
        MIGRATIONS
            .run_direct(None, &mut *first, false)
            .await
            .map_err(|source| OpenError::Migration {
                path: path.clone(),
                source,
            })?;
        drop(first);
        let readers = file_pool(FILE_READERS).connect_lazy_with(options.read_only(true));
        Ok(Self::new(Connections::File { writer, readers }))
    }

    /// Opens the tables of a database, made or brought up to date if need be. The log's are there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_database(options: &log::Options) -> Result<Self, OpenError> {
        log::take(options, STEPS).await?;
        let pool = PgPoolOptions::new()
            .min_connections(0)
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(IDLE)
            .after_connect(|db, _| Box::pin(set_up(db)))
            .after_release(|db, _| Box::pin(alive(db)))
            .connect_lazy_with(connect_options(&options.connect));
        Ok(Self::new(Connections::Database(pool)))
    }
}

impl Connections {
    /// A transaction that changes something.
    pub(super) async fn write(&self) -> Result<Tx<'static>, Error> {
        match self {
            Self::File { writer, .. } => match writer.begin_with("BEGIN IMMEDIATE").await {
                Ok(tx) => Ok(Tx::sqlite(tx)),
                // SQLite has ended a transaction by itself (a full disk), which the connection has
                // not noticed: it counts one that is open. A new connection does not.
                Err(sqlx::Error::InvalidSavePointStatement) => {
                    writer.acquire().await?.close().await?;
                    Ok(Tx::sqlite(writer.begin_with("BEGIN IMMEDIATE").await?))
                }
                Err(error) => Err(error.into()),
            },
            Self::Database(pool) => Ok(Tx::postgres(pool.begin().await?)),
        }
    }

    /// A transaction that reads one consistent state.
    pub(super) async fn read(&self) -> Result<Tx<'static>, Error> {
        Ok(match self {
            Self::File { readers, .. } => Tx::sqlite(readers.begin().await?),
            Self::Database(pool) => {
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                Tx::postgres(pool.begin_with(begin).await?)
            }
        })
    }

    pub(super) async fn close(&self) {
        match self {
            Self::File { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Self::Database(pool) => {
                if timeout(CLOSE_WAIT, pool.close()).await.is_err() {
                    tracing::warn!("the connections to the tokens were not closed in time");
                }
            }
        }
    }
}

fn file_pool(connections: u32) -> PoolOptions<Sqlite> {
    SqlitePoolOptions::new()
        .min_connections(0)
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(IDLE)
}

fn connect_options(connect: &PgConnectOptions) -> PgConnectOptions {
    connect
        .clone()
        .application_name(APPLICATION_NAME)
        .statement_cache_capacity(64)
        .options([("search_path", SCHEMA)])
}

/// Every statement here has an index, which the planner would not use while a table is small, and a
/// plan lives as long as its connection.
async fn set_up(db: &mut PgConnection) -> Result<(), sqlx::Error> {
    db.execute(sqlx::AssertSqlSafe(format!(
        "SET search_path = {SCHEMA}; SET statement_timeout = {STATEMENT_TIMEOUT_MS}; \
         SET lock_timeout = {LOCK_TIMEOUT_MS}; \
         SET idle_in_transaction_session_timeout = {STATEMENT_TIMEOUT_MS}; \
         SET default_transaction_isolation = 'read committed'; SET synchronous_commit = 'on'; \
         SET enable_seqscan = off; SET jit = off"
    )))
    .await?;
    Ok(())
}

async fn alive(db: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let late = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    timeout(ALIVE_WAIT, db.ping()).await.map_err(late)??;
    Ok(true)
}
