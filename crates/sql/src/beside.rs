//! Connections to a small set of tables that lies beside the log: a file of its own in the data folder, or a
//! schema of its own in the database.

use crate::calls::{begin_on_postgres, begin_on_sqlite};
use crate::{Engine, Error, Tx, is_at_rest};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Executor, Sqlite};
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::timeout;

/// Connections that read the file beside its one writer.
const FILE_READERS: u32 = 2;
/// A connection that nobody needs is closed after this time.
const IDLE: Duration = Duration::from_secs(60);
/// How long a connection that comes back may take to show that it lives.
const ALIVE_WAIT: Duration = Duration::from_secs(1);
/// How long the server may take to close connections: nothing depends on it.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// How long a statement waits for a lock of another process on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings in which such tables differ.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Their schema in PostgreSQL.
    pub schema: &'static str,
    /// What their connections are called there.
    pub application_name: &'static str,
    /// Connections to PostgreSQL.
    pub connections: u32,
    /// How long an order waits for a connection.
    pub acquire_timeout: Duration,
    /// How long one statement may take on PostgreSQL, in milliseconds.
    pub statement_timeout_ms: u64,
    /// How long a statement waits there for a row that another server holds, in milliseconds.
    pub lock_timeout_ms: u64,
    /// Statements that a connection keeps prepared.
    pub statements_kept: usize,
    /// What a commit to the file survives.
    pub file_survives: Survives,
}

/// What a commit to a file survives once it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survives {
    /// A power cut: each commit is synced.
    PowerCut,
    /// A kill of the process. A power cut may undo the newest commits, unless [`Connections::sync`] was called
    /// after them; it never leaves half of one.
    Kill,
}

/// Why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be used.
    #[error(transparent)]
    File(#[from] sqlx::Error),
    /// It is of a newer program, or not ours.
    #[error(transparent)]
    Migration(#[from] MigrateError),
}

/// The way to the tables.
#[derive(Debug)]
pub enum Connections {
    /// SQLite has one writer, so one connection writes.
    File {
        /// The one.
        writer: SqlitePool,
        /// The others.
        readers: SqlitePool,
    },
    /// Any connection may write.
    Database(PgPool),
}

impl Connections {
    /// Opens a file that is there, which no other process uses, and brings its tables up to date.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn of_file<'a>(
        path: &'a Path,
        settings: &'a Settings,
        migrations: &'a Migrator,
    ) -> Pin<Box<dyn Future<Output = Result<Self, FileError>> + Send + 'a>> {
        Box::pin(Self::opened(path, settings, migrations))
    }

    async fn opened(
        path: &Path,
        settings: &Settings,
        migrations: &Migrator,
    ) -> Result<Self, FileError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(match settings.file_survives {
                Survives::PowerCut => SqliteSynchronous::Full,
                Survives::Kill => SqliteSynchronous::Normal,
            })
            .foreign_keys(false)
            .busy_timeout(BUSY_TIMEOUT)
            .statement_cache_capacity(settings.statements_kept);
        let writer = file_pool(1, settings).connect_lazy_with(options.clone());
        let mut first = writer.acquire().await?;
        migrations.run_direct(None, &mut *first, false).await?;
        drop(first);
        let readers = file_pool(FILE_READERS, settings).connect_lazy_with(options.read_only(true));
        Ok(Self::File { writer, readers })
    }

    /// Connects to tables of a database, which are there, when that is first needed.
    #[must_use]
    pub fn of_database(connect: &PgConnectOptions, settings: Settings) -> Self {
        let options = connect
            .clone()
            .application_name(settings.application_name)
            .statement_cache_capacity(settings.statements_kept)
            .options([("search_path", settings.schema)]);
        let pool = PgPoolOptions::new()
            .min_connections(0)
            .max_connections(settings.connections)
            .acquire_timeout(settings.acquire_timeout)
            .idle_timeout(IDLE)
            .after_connect(move |db, _| Box::pin(set_up(db, settings)))
            .after_release(|db, _| Box::pin(is_at_rest(db, ALIVE_WAIT)))
            .connect_lazy_with(options);
        Self::Database(pool)
    }

    /// A transaction that changes something.
    ///
    /// # Errors
    /// The database does not answer; retry.
    pub async fn write(&self) -> Result<Tx<'static>, sqlx::Error> {
        match self {
            Self::File { writer, .. } => match begin_on_sqlite(writer, "BEGIN IMMEDIATE").await {
                Ok(tx) => Ok(Tx::sqlite(tx)),
                // SQLite has ended a transaction by itself (a full disk), which the connection has
                // not noticed: it counts one that is open. A new connection does not.
                Err(sqlx::Error::InvalidSavePointStatement) => {
                    writer.acquire().await?.close().await?;
                    Ok(Tx::sqlite(
                        begin_on_sqlite(writer, "BEGIN IMMEDIATE").await?,
                    ))
                }
                Err(error) => Err(error),
            },
            Self::Database(pool) => Ok(Tx::postgres(begin_on_postgres(pool, "BEGIN").await?)),
        }
    }

    /// The same, after all of its kind that began before it: on PostgreSQL it holds the only row of the table `state`.
    ///
    /// # Errors
    /// The database does not answer; retry.
    pub async fn write_in_turn(&self) -> Result<Tx<'static>, Error> {
        let mut tx = self.write().await?;
        match tx.engine() {
            // The transaction itself is the lock.
            Engine::Sqlite => {}
            Engine::Postgres => {
                let args = tx.args();
                tx.fetch_one(HOLD, args).await?;
            }
        }
        Ok(tx)
    }

    /// A transaction that changes something that a power cut may undo: its commit does not wait for the disk,
    /// on a file only where its [`Survives`] says so.
    ///
    /// # Errors
    /// The database does not answer; retry.
    pub async fn write_unsynced(&self) -> Result<Tx<'static>, sqlx::Error> {
        match self {
            Self::File { .. } => self.write().await,
            Self::Database(pool) => {
                let begin = "BEGIN; SET LOCAL synchronous_commit = 'off'";
                Ok(Tx::postgres(begin_on_postgres(pool, begin).await?))
            }
        }
    }

    /// Makes what was committed survive a power cut, where commits alone do not.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn sync(&self) -> Result<(), sqlx::Error> {
        match self {
            // Moving the write-ahead log into the file syncs both.
            Self::File { writer, .. } => {
                writer.execute("PRAGMA wal_checkpoint(FULL)").await?;
                Ok(())
            }
            Self::Database(_) => Ok(()),
        }
    }

    /// A transaction that reads one consistent state.
    ///
    /// # Errors
    /// The database does not answer; retry.
    pub async fn read(&self) -> Result<Tx<'static>, sqlx::Error> {
        Ok(match self {
            Self::File { readers, .. } => Tx::sqlite(begin_on_sqlite(readers, "BEGIN").await?),
            Self::Database(pool) => {
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                Tx::postgres(begin_on_postgres(pool, begin).await?)
            }
        })
    }

    /// Closes all connections; says whether that was done in time.
    pub async fn close(&self) -> bool {
        match self {
            Self::File { writer, readers } => {
                readers.close().await;
                writer.close().await;
                true
            }
            Self::Database(pool) => timeout(CLOSE_WAIT, pool.close()).await.is_ok(),
        }
    }
}

fn file_pool(connections: u32, settings: &Settings) -> PoolOptions<Sqlite> {
    SqlitePoolOptions::new()
        .min_connections(0)
        .max_connections(connections)
        .acquire_timeout(settings.acquire_timeout)
        .idle_timeout(IDLE)
}

/// Every statement of such tables has an index, which the planner would not use while a table is small,
/// and a plan lives as long as its connection.
async fn set_up(db: &mut PgConnection, settings: Settings) -> Result<(), sqlx::Error> {
    let Settings {
        schema,
        statement_timeout_ms,
        lock_timeout_ms,
        ..
    } = settings;
    db.execute(sqlx::AssertSqlSafe(format!(
        "SET search_path = {schema}; SET statement_timeout = {statement_timeout_ms}; \
         SET lock_timeout = {lock_timeout_ms}; \
         SET idle_in_transaction_session_timeout = {statement_timeout_ms}; \
         SET default_transaction_isolation = 'read committed'; SET synchronous_commit = 'on'; \
         SET enable_seqscan = off; SET jit = off"
    )))
    .await?;
    Ok(())
}

const HOLD: &str = "SELECT one FROM state WHERE one = 1 FOR UPDATE";
