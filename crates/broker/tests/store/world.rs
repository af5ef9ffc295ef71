//! A store on one of the engines.

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};
use std::str::FromStr;
use std::sync::Arc;
use taskledger_broker::{BROKER_FILE, BrokerStore};
use taskledger_clock::SystemClock;
use taskledger_log::postgres::Options;
use taskledger_testkit::postgres::Database;
use taskledger_testkit::postgres::admin::Admin;
use tempfile::TempDir;

pub(crate) const TENANT: &str = "main";

enum Place {
    Folder(TempDir),
    Database(Database),
}

pub(crate) struct World {
    place: Place,
    pub(crate) store: Arc<BrokerStore>,
}

impl World {
    pub(crate) async fn on_sqlite() -> Self {
        Self::at(Place::Folder(tempfile::tempdir().unwrap())).await
    }

    pub(crate) async fn on_postgres() -> Self {
        Self::at(Place::Database(Database::create().await)).await
    }

    async fn at(place: Place) -> Self {
        let store = Arc::new(open(&place).await);
        Self { place, store }
    }

    /// The store of another server, where several may be; else the same one.
    pub(crate) async fn other(&self) -> Arc<BrokerStore> {
        match &self.place {
            Place::Folder(_) => self.store.clone(),
            Place::Database(_) => Arc::new(open(&self.place).await),
        }
    }

    /// A session of the test's own; on PostgreSQL.
    pub(crate) async fn admin(&self) -> Admin {
        let Place::Database(database) = &self.place else {
            panic!("there is no database");
        };
        Admin::of(database).await
    }

    /// Runs a text of SQL beside the store; on SQLite.
    pub(crate) async fn run(&self, sql: &str) {
        let Place::Folder(folder) = &self.place else {
            panic!("there is no file");
        };
        let options = SqliteConnectOptions::new().filename(folder.path().join(BROKER_FILE));
        let mut db = options.connect().await.unwrap();
        db.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
    }

    /// The same after a restart.
    pub(crate) async fn reopened(self) -> Self {
        self.store.close().await;
        Self::at(self.place).await
    }
}

async fn open(place: &Place) -> BrokerStore {
    let tenant = Arc::from(TENANT);
    match place {
        Place::Folder(folder) => BrokerStore::of_folder(folder.path(), tenant).await.unwrap(),
        Place::Database(database) => {
            let options = PgConnectOptions::from_str(database.url()).unwrap();
            let options = Options::new(options, Arc::new(SystemClock::default()));
            BrokerStore::of_database(&options, tenant).await.unwrap()
        }
    }
}
