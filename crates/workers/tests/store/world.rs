//! A store on one of the engines.

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};
use std::str::FromStr;
use std::sync::Arc;
use taskledger_clock::SystemClock;
use taskledger_domain::Timestamp;
use taskledger_log::postgres::Options;
use taskledger_testkit::postgres::Database;
use taskledger_workers::store::WORKERS_FILE;
use taskledger_workers::{Method, WorkerStore};
use tempfile::TempDir;

/// 2026-01-01T00:00:00Z.
pub(crate) const START: Timestamp = Timestamp(1_767_225_600_000_000);
pub(crate) const SECOND: u64 = 1_000;
pub(crate) const DAY: u64 = 24 * 3_600 * SECOND;

enum Place {
    Folder(TempDir),
    Database(Database),
}

pub(crate) struct World {
    place: Place,
    pub(crate) store: WorkerStore,
}

impl World {
    pub(crate) async fn on_sqlite() -> Self {
        Self::at(Place::Folder(tempfile::tempdir().unwrap())).await
    }

    pub(crate) async fn on_postgres() -> Self {
        Self::at(Place::Database(Database::create().await)).await
    }

    async fn at(place: Place) -> Self {
        let store = open(&place).await;
        Self { place, store }
    }

    /// Runs a text of SQL beside the store; on SQLite.
    pub(crate) async fn run(&self, sql: &str) {
        let Place::Folder(folder) = &self.place else {
            panic!("there is no file");
        };
        let options = SqliteConnectOptions::new().filename(folder.path().join(WORKERS_FILE));
        let mut db = options.connect().await.unwrap();
        db.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
    }

    /// The same after a restart.
    pub(crate) async fn reopened(self) -> Self {
        self.store.close().await;
        Self::at(self.place).await
    }
}

async fn open(place: &Place) -> WorkerStore {
    match place {
        Place::Folder(folder) => WorkerStore::of_folder(folder.path()).await.unwrap(),
        Place::Database(database) => {
            let options = PgConnectOptions::from_str(database.url()).unwrap();
            let options = Options::new(options, Arc::new(SystemClock::default()));
            WorkerStore::of_database(&options).await.unwrap()
        }
    }
}

/// A method without anything but a name.
pub(crate) fn method(name: &str, by: &str) -> Method {
    Method {
        name: Arc::from(name),
        description: None,
        input_schema: None,
        output_schema: None,
        defaults: None,
        limit: None,
        declared_by: Arc::from(by),
        declared_at: START,
    }
}
