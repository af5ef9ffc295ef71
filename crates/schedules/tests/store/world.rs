//! A store on one of the engines.

use taskledger_schedules::{SCHEDULES_FILE, ScheduleStore};
use taskledger_testkit::beside::{Opening, Place};

pub(crate) struct World {
    place: Place,
    pub(crate) store: ScheduleStore,
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
    pub(crate) async fn execute(&self, sql: &str) {
        let run = self.place.run(SCHEDULES_FILE, "taskledger_schedules", sql);
        run.await.unwrap();
    }

    /// The same store, opened again as after a restart.
    pub(crate) async fn reopened(self) -> Self {
        self.store.close().await;
        Self::at(self.place).await
    }
}

async fn open(place: &Place) -> ScheduleStore {
    let opened = match place.opening() {
        Opening::Folder(folder) => ScheduleStore::of_folder(folder).await,
        Opening::Database(options) => ScheduleStore::of_database(&options).await,
    };
    opened.unwrap()
}
