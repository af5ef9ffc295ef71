//! Connections to the tables of webhooks, and their schema.

use super::{Error, Store};
use sqlx::migrate::Migrator;
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection, Executor, Sqlite};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_clock::SharedClock;
use taskledger_log::{postgres as log, private};
use taskledger_sealing::{Keyring, KeysError};
use taskledger_sql::migrations::migrator;
use taskledger_sql::{Columns, Tx};
use tokio::time::{sleep, timeout};

/// File of the webhooks in the data folder.
pub const WEBHOOKS_FILE: &str = "webhooks.db";
/// The tables on PostgreSQL.
pub const STEPS: log::Steps = log::Steps {
    purpose: "webhooks",
    steps: &[
        (
            "0001_webhooks",
            include_str!("../../../../migrations/postgres/webhooks/0001_webhooks.sql"),
        ),
        (
            "0002_endpoints_that_are_gone",
            include_str!(
                "../../../../migrations/postgres/webhooks/0002_endpoints_that_are_gone.sql"
            ),
        ),
        (
            "0003_owners",
            include_str!("../../../../migrations/postgres/webhooks/0003_owners.sql"),
        ),
    ],
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[
        (
            "0001_webhooks",
            include_str!("../../../../migrations/sqlite/webhooks/0001_webhooks.sql"),
        ),
        (
            "0002_endpoints_that_are_gone",
            include_str!("../../../../migrations/sqlite/webhooks/0002_endpoints_that_are_gone.sql"),
        ),
        (
            "0003_owners",
            include_str!("../../../../migrations/sqlite/webhooks/0003_owners.sql"),
        ),
    ])
});

/// The schema, which is also the channel on which servers hear of new deliveries.
const SCHEMA: &str = "taskledger_webhooks";
const APPLICATION_NAME: &str = "taskledger webhooks";
/// Connections to PostgreSQL: outbox, worker, sweeper, calls, and one that listens.
const CONNECTIONS: u32 = 6;
/// Connections that read the file beside its one writer.
const FILE_READERS: u32 = 2;
/// How long an order waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one statement may take on PostgreSQL.
const STATEMENT_TIMEOUT_MS: u64 = 20_000;
/// How long a statement waits for a row that another server holds.
const LOCK_TIMEOUT_MS: u64 = 10_000;
/// A connection that nobody needs is closed after this time.
const IDLE: Duration = Duration::from_secs(60);
/// How long a connection that comes back may take to show that it lives.
const ALIVE_WAIT: Duration = Duration::from_secs(1);
/// How long the server may take to close connections: nothing depends on it.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// How long a connection that listens may take to be made, and the pause before the next try.
const LISTEN_WAIT: Duration = Duration::from_secs(5);
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long a statement waits for a lock of another process on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the store cannot be opened; the operator can mend it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be used.
    #[error("the webhooks in `{path}` cannot be opened: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: sqlx::Error,
    },
    /// The file is of a newer program, or not ours.
    #[error("the webhooks in `{path}` cannot be brought up to date: {source}")]
    Migration {
        /// The file.
        path: PathBuf,
        /// Why.
        source: sqlx::migrate::MigrateError,
    },
    /// The tables in the database cannot be made or used.
    #[error(transparent)]
    Database(#[from] log::OpenError),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] Error),
    /// The keys do not fit what was sealed.
    #[error("the webhooks cannot be used: {0}")]
    Keys(#[from] KeysError),
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

impl Store {
    /// Opens or makes the file in a data folder that no other process uses.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_folder(
        folder: &Path,
        keys: Keyring,
        clock: SharedClock,
    ) -> Result<Self, OpenError> {
        let path = folder.join(WEBHOOKS_FILE);
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
            .statement_cache_capacity(128);
        let writer = file_pool(1).connect_lazy_with(options.clone());
        let mut first = writer.acquire().await.map_err(failed)?;
        MIGRATIONS
            .run_direct(None, &mut *first, false)
            .await
            .map_err(|source| OpenError::Migration {
                path: path.clone(),
                source,
            })?;
        // Whoever held leases is gone: this process is the only one.
        first
            .execute("UPDATE endpoints SET lease_until = NULL WHERE lease_until IS NOT NULL")
            .await
            .map_err(failed)?;
        drop(first);
        let readers = file_pool(FILE_READERS).connect_lazy_with(options.read_only(true));
        let store = Self::new(Connections::File { writer, readers }, keys, clock);
        store.refuse_unknown_keys().await?;
        Ok(store)
    }

    /// Opens the tables of a database, made or brought up to date if need be. The log's are there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_database(
        options: &log::Options,
        keys: Keyring,
        clock: SharedClock,
    ) -> Result<Self, OpenError> {
        log::take(options, STEPS).await?;
        let pool = PgPoolOptions::new()
            .min_connections(0)
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(IDLE)
            .after_connect(|db, _| Box::pin(set_up(db)))
            .after_release(|db, _| Box::pin(alive(db)))
            .connect_lazy_with(connect_options(&options.connect));
        let store = Self::new(Connections::Database(pool), keys, clock);
        store.refuse_unknown_keys().await?;
        Ok(store)
    }

    /// What was sealed must be readable: a server that finds out later would have begun to send
    /// without signatures, or not at all.
    async fn refuse_unknown_keys(&self) -> Result<(), OpenError> {
        for id in self.sealing_keys().await? {
            if !self.keys.knows(&id) {
                return Err(KeysError::Unknown { id }.into());
            }
        }
        Ok(())
    }

    /// The names of all keys with which something was sealed. Cost: O(secrets).
    async fn sealing_keys(&self) -> Result<Vec<String>, Error> {
        let mut tx = self.read().await?;
        let args = tx.args();
        let rows = tx.fetch_all(SEALING_KEYS, args).await?;
        let names = rows
            .iter()
            .map(|row| Columns::of(row).word().map(str::to_owned));
        let names: Result<Vec<_>, _> = names.collect();
        tx.commit().await?;
        Ok(names?)
    }

    /// Returns when something may be due; see the port.
    pub(super) async fn hear(&self) {
        let Connections::Database(pool) = &self.connections else {
            return self.due.notified().await;
        };
        let elsewhere = async {
            let mut listener = self.listener.lock().await;
            listener
                .get_or_insert_with(|| Listener {
                    pool: pool.clone(),
                    listener: None,
                })
                .heard()
                .await;
        };
        tokio::select! {
            () = self.due.notified() => {}
            () = elsewhere => {}
        }
    }
}

const SEALING_KEYS: &str = "SELECT DISTINCT key_id FROM (SELECT key_id FROM endpoint_keys UNION SELECT key_id FROM endpoint_headers) AS k";

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
                    tracing::warn!("the connections of the webhooks were not closed in time");
                }
            }
        }
    }
}

/// Tells the servers of a database that something may be due, when the transaction commits.
pub(super) async fn announce(tx: &mut Tx<'_>) -> Result<(), Error> {
    match tx.engine() {
        taskledger_sql::Engine::Sqlite => {}
        taskledger_sql::Engine::Postgres => {
            let args = tx.args();
            tx.execute("SELECT pg_notify('taskledger_webhooks', '')", args)
                .await?;
        }
    }
    Ok(())
}

/// A connection on which other servers are heard; made when it is needed.
pub(super) struct Listener {
    pool: PgPool,
    listener: Option<PgListener>,
}

impl Listener {
    async fn heard(&mut self) {
        if let Some(listener) = &mut self.listener {
            match listener.try_recv().await {
                Ok(Some(_)) => while listener.next_buffered().is_some() {},
                // What was said meanwhile is lost.
                Ok(None) | Err(_) => self.listener = None,
            }
            return;
        }
        loop {
            if let Ok(Ok(listener)) = timeout(LISTEN_WAIT, listen(&self.pool)).await {
                self.listener = Some(listener);
                // Something may have happened before it listened.
                return;
            }
            sleep(LISTEN_AGAIN_AFTER).await;
        }
    }
}

async fn listen(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(SCHEMA).await?;
    Ok(listener)
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
        .statement_cache_capacity(128)
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
