//! Connections to the tables of webhooks, and their schema.

use super::{Error, Store};
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgListener, PgPool};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_beside::{self as beside, Connections, Settings, StoreLocation, Survives};
use taskledger_clock::SharedClock;
use taskledger_log::postgres as log;
use taskledger_log::witness::Source as Checkpoint;
use taskledger_sealing::{Keyring, KeysError};
use taskledger_sql::migrations::migrator;
use taskledger_sql::{Columns, Tx};
use tokio::time::{sleep, timeout};

/// File of the webhooks in the data folder.
pub const WEBHOOKS_FILE: &str = "webhooks.db";
/// The tables on PostgreSQL.
pub const STEPS: log::Steps = log::Steps {
    purpose: "webhooks",
    steps: &[(
        "0001_webhooks",
        include_str!("../../../../migrations/postgres/webhooks/0001_webhooks.sql"),
    )],
};
/// Where the outbox records its place in the log.
pub const CHECKPOINT: Checkpoint = Checkpoint {
    store: "the webhooks",
    file: WEBHOOKS_FILE,
    table: "taskledger_webhooks.state",
    query: "SELECT position, CAST(NULL AS BYTEA) FROM {table}",
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_webhooks",
        include_str!("../../../../migrations/sqlite/webhooks/0001_webhooks.sql"),
    )])
});

/// The schema, which is also the channel on which servers hear of new deliveries.
const SCHEMA: &str = "taskledger_webhooks";
static PLACE: StoreLocation = StoreLocation {
    what: "the webhooks",
    file: WEBHOOKS_FILE,
    migrations: &MIGRATIONS,
    steps: STEPS,
    settings: Settings {
        schema: SCHEMA,
        application_name: "taskledger webhooks",
        // Outbox, worker, sweeper, calls, and one that listens.
        connections: 6,
        acquire_timeout: Duration::from_secs(10),
        statement_timeout_ms: 20_000,
        lock_timeout_ms: 10_000,
        statements_kept: 128,
        file_survives: Survives::PowerCut,
    },
};
/// How long a connection that listens may take to be made, and the pause before the next try.
const LISTEN_WAIT: Duration = Duration::from_secs(5);
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Why the store cannot be opened; the operator can mend it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The tables cannot be made or used.
    #[error(transparent)]
    Tables(#[from] beside::OpenError),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] Error),
    /// The keys do not fit what was sealed.
    #[error("the webhooks cannot be used: {0}")]
    Keys(#[from] KeysError),
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
        let store = Self::new(PLACE.in_folder(folder).await?, keys, clock);
        store.end_leases().await?;
        store.refuse_unknown_keys().await?;
        Ok(store)
    }

    /// Whoever held leases is gone: this process is the only one.
    async fn end_leases(&self) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let args = tx.args();
        tx.execute(END_LEASES, args).await?;
        Ok(tx.commit().await?)
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
        let store = Self::new(PLACE.in_database(options).await?, keys, clock);
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

const END_LEASES: &str = "UPDATE endpoints SET lease_until = NULL WHERE lease_until IS NOT NULL";
const SEALING_KEYS: &str = "SELECT DISTINCT key_id FROM (SELECT key_id FROM endpoint_keys UNION SELECT key_id FROM endpoint_headers) AS k";

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
