//! A store on one of the engines.

use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_testkit::beside::{Opening, Place};
use taskledger_workers::store::WORKERS_FILE;
use taskledger_workers::{Method, WorkerStore};

/// 2026-01-01T00:00:00Z.
pub(crate) const START: Timestamp = Timestamp(1_767_225_600_000_000);
pub(crate) const SECOND: u64 = 1_000;
pub(crate) const DAY: u64 = 24 * 3_600 * SECOND;

pub(crate) struct World {
    place: Place,
    pub(crate) store: WorkerStore,
}

impl World {
    pub(crate) async fn on_sqlite() -> Self {
        Self::at(Place::folder()).await
    }

    pub(crate) async fn on_postgres() -> Self {
        Self::at(Place::database().await).await
    }

    async fn at(place: Place) -> Self {
        let store = open(&place).await;
        Self { place, store }
    }

    /// Runs a text of SQL beside the store.
    pub(crate) async fn run(&self, sql: &str) {
        let run = self.place.run(WORKERS_FILE, "taskledger_workers", sql);
        run.await.unwrap();
    }

    /// The same after a restart.
    pub(crate) async fn reopened(self) -> Self {
        self.store.close().await;
        Self::at(self.place).await
    }
}

async fn open(place: &Place) -> WorkerStore {
    let opened = match place.opening() {
        Opening::Folder(folder) => WorkerStore::of_folder(folder).await,
        Opening::Database(options) => WorkerStore::of_database(&options).await,
    };
    opened.unwrap()
}

/// A method without anything but a name.
pub(crate) fn method(name: &str, by: &str) -> Method {
    Method {
        owner: None,
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
