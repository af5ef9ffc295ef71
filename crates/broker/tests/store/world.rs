//! A store on one of the engines.

use std::sync::Arc;
use taskledger_broker::{BROKER_FILE, BrokerStore};
use taskledger_testkit::beside::{Opening, Place};
use taskledger_testkit::postgres::admin::Admin;

pub(crate) const TENANT: &str = "main";

pub(crate) struct World {
    place: Place,
    pub(crate) store: Arc<BrokerStore>,
}

impl World {
    pub(crate) async fn on_sqlite() -> Self {
        Self::at(Place::folder()).await
    }

    pub(crate) async fn on_postgres() -> Self {
        Self::at(Place::database().await).await
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

    /// Runs a text of SQL beside the store.
    pub(crate) async fn run(&self, sql: &str) {
        let run = self.place.run(BROKER_FILE, "taskledger_broker", sql);
        run.await.unwrap();
    }

    /// The same after a restart.
    pub(crate) async fn reopened(self) -> Self {
        self.store.close().await;
        Self::at(self.place).await
    }
}

async fn open(place: &Place) -> BrokerStore {
    let tenant = Arc::from(TENANT);
    let opened = match place.opening() {
        Opening::Folder(folder) => BrokerStore::of_folder(folder, tenant).await,
        Opening::Database(options) => BrokerStore::of_database(&options, tenant).await,
    };
    opened.unwrap()
}
