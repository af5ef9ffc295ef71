//! Connections to the tables of the broker, and their schema. Owns what a commit survives and how long a statement may
//! take; may not know what the tables hold.

use crate::BrokerStore;
use sqlx::migrate::Migrator;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use taskledger_beside::{OpenError, Settings, StoreLocation, Survives};
use taskledger_log::postgres as log;
use taskledger_log::witness::Source as Checkpoint;
use taskledger_sql::Engine;
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
/// Where the place in the log is recorded.
pub const CHECKPOINT: Checkpoint = Checkpoint {
    store: "the inboxes of the broker",
    file: BROKER_FILE,
    table: "taskledger_broker.state",
    query: "SELECT position, CAST(NULL AS BYTEA) FROM {table} WHERE one = 1",
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_broker",
        include_str!("../../../migrations/sqlite/broker/0001_broker.sql"),
    )])
});

static PLACE: StoreLocation = StoreLocation {
    what: "the broker's tables",
    file: BROKER_FILE,
    migrations: &MIGRATIONS,
    steps: STEPS,
    settings: Settings {
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
    },
};

impl BrokerStore {
    /// Opens or makes the file in a data folder that no other process uses. `tenant`: whose log it is.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_folder(folder: &Path, tenant: Arc<str>) -> Result<Self, OpenError> {
        let connections = PLACE.in_folder(folder).await?;
        Ok(Self::new(Engine::Sqlite, connections, tenant))
    }

    /// Opens the tables of a database, made or brought up to date if need be. The log's are there. `tenant`: whose log
    /// it is.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_database(options: &log::Options, tenant: Arc<str>) -> Result<Self, OpenError> {
        let connections = PLACE.in_database(options).await?;
        Ok(Self::new(Engine::Postgres, connections, tenant))
    }
}
