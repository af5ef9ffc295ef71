//! Connections to the tables of schedules, and their schema.

use crate::ScheduleStore;
use sqlx::migrate::Migrator;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_beside::{OpenError, Settings, StoreLocation, Survives};
use taskledger_log::postgres as log;
use taskledger_sql::migrations::migrator;

/// File of the schedules in the data folder.
pub const SCHEDULES_FILE: &str = "schedules.db";
/// The tables on PostgreSQL.
pub const STEPS: log::Steps = log::Steps {
    purpose: "schedules",
    steps: &[(
        "0001_schedules",
        include_str!("../../../migrations/postgres/schedules/0001_schedules.sql"),
    )],
};
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_schedules",
        include_str!("../../../migrations/sqlite/schedules/0001_schedules.sql"),
    )])
});

static PLACE: StoreLocation = StoreLocation {
    what: "the schedules",
    file: SCHEDULES_FILE,
    migrations: &MIGRATIONS,
    steps: STEPS,
    settings: Settings {
        schema: "taskledger_schedules",
        application_name: "taskledger schedules",
        // Calls that people make, and the looks of one server.
        connections: 2,
        acquire_timeout: Duration::from_secs(5),
        statement_timeout_ms: 8_000,
        lock_timeout_ms: 5_000,
        statements_kept: 64,
        file_survives: Survives::PowerCut,
    },
};

impl ScheduleStore {
    /// Opens or makes the file in a data folder that no other process uses.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_folder(folder: &Path) -> Result<Self, OpenError> {
        let store = Self::new(PLACE.in_folder(folder).await?);
        // Whoever held a lease was an earlier process: no other one uses the folder.
        let ended = store.end_leases().await;
        ended.map_err(|error| {
            let broken = sqlx::Error::Protocol(error.to_string());
            PLACE.unusable(folder.join(SCHEDULES_FILE), broken.into())
        })?;
        Ok(store)
    }

    async fn end_leases(&self) -> Result<(), crate::Error> {
        let work = async {
            let mut tx = self.write().await?;
            let args = tx.args();
            tx.execute(END_LEASES, args).await?;
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }

    /// Opens the tables of a database, made or brought up to date if need be. The log's are there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn of_database(options: &log::Options) -> Result<Self, OpenError> {
        Ok(Self::new(PLACE.in_database(options).await?))
    }
}

const END_LEASES: &str = "UPDATE schedules SET leased_until = 0, waits_since = NULL";
