//! A store on one of the engines.

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor};
use std::str::FromStr;
use std::sync::Arc;
use taskledger_clock::SystemClock;
use taskledger_log::postgres::Options;
use taskledger_schedules::{SCHEDULES_FILE, ScheduleStore};
use taskledger_testkit::postgres::Database;
use tempfile::TempDir;

enum Place {
    Folder(TempDir),
    Database(Database),
}

pub(crate) struct World {
    place: Place,
    pub(crate) store: ScheduleStore,
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

    /// Runs a statement on the tables beside the store.
    pub(crate) async fn execute(&self, sql: &'static str) {
        match &self.place {
            Place::Folder(folder) => {
                let options =
                    SqliteConnectOptions::new().filename(folder.path().join(SCHEDULES_FILE));
                let mut connection = options.connect().await.unwrap();
                connection.execute(sql).await.unwrap();
                connection.close().await.unwrap();
            }
            Place::Database(database) => {
                let options = PgConnectOptions::from_str(database.url()).unwrap();
                let options = options.options([("search_path", "taskledger_schedules")]);
                let mut connection = options.connect().await.unwrap();
                connection.execute(sql).await.unwrap();
                connection.close().await.unwrap();
            }
        }
    }

    /// The same store, opened again as after a restart.
    pub(crate) async fn reopened(self) -> Self {
        self.store.close().await;
        Self::at(self.place).await
    }
}

async fn open(place: &Place) -> ScheduleStore {
    match place {
        Place::Folder(folder) => ScheduleStore::of_folder(folder.path()).await.unwrap(),
        Place::Database(database) => {
            let options = PgConnectOptions::from_str(database.url()).unwrap();
            let options = Options::new(options, Arc::new(SystemClock::default()));
            ScheduleStore::of_database(&options).await.unwrap()
        }
    }
}
