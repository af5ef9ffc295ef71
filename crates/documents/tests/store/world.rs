//! A store on one of the engines.

use taskledger_documents::{DocumentStore, WORKFLOWS_FILE};
use taskledger_testkit::beside::{Opening, Place};

pub(crate) struct World {
    place: Place,
    pub(crate) store: DocumentStore,
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
        let run = self.place.run(WORKFLOWS_FILE, "taskledger_workflows", sql);
        run.await.unwrap();
    }

    /// The same after a restart.
    pub(crate) async fn reopened(self) -> Self {
        self.store.close().await;
        Self::at(self.place).await
    }
}

async fn open(place: &Place) -> DocumentStore {
    let opened = match place.opening() {
        Opening::Folder(folder) => DocumentStore::of_folder(folder).await,
        Opening::Database(options) => DocumentStore::of_database(&options).await,
    };
    opened.unwrap()
}
