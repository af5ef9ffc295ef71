//! Places for read models, on each engine.

use crate::patience::rows_in;
use crate::postgres::Database;
use sqlx::postgres::PgConnectOptions;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use taskledger_domain::Recorded;
use taskledger_projections::{Options, Place, ReadModels};

/// What holds the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A file of its own.
    Sqlite,
    /// A schema of its own in a database of the test.
    Postgres,
}

/// A place for read models; gone with the value.
pub struct Ground {
    options: Options,
    _folder: Option<tempfile::TempDir>,
    database: Option<Arc<Database>>,
}

impl Ground {
    /// An empty place.
    pub async fn new(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => Self::file(),
            Engine::Postgres => Self::schema(&Arc::new(Database::create().await)),
        }
    }

    fn file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            options: Options::new(folder.path().join("read_models.db")),
            _folder: Some(folder),
            database: None,
        }
    }

    fn schema(database: &Arc<Database>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let connect = PgConnectOptions::from_str(database.url()).unwrap();
        let mut options = rows_in(connect);
        if let Place::Postgres(place) = &mut options.place {
            place.schema = format!("rows_{}", NEXT.fetch_add(1, Ordering::SeqCst));
        }
        Self {
            options,
            _folder: None,
            database: Some(Arc::clone(database)),
        }
    }

    /// Another place, on the same server.
    pub async fn another(&self) -> Self {
        match &self.database {
            None => Self::file(),
            Some(database) => Self::schema(database),
        }
    }

    /// What opens the read models here.
    pub fn options(&self) -> Options {
        self.options.clone()
    }

    /// The file, when it is one.
    pub fn path(&self) -> &std::path::Path {
        match &self.options.place {
            Place::File(path) => path,
            Place::Postgres(_) => panic!("not a file"),
        }
    }

    /// A connection of the test's own, and the schema.
    pub async fn admin(&self) -> (sqlx::PgConnection, String) {
        let Place::Postgres(place) = &self.options.place else {
            panic!("not on PostgreSQL");
        };
        let db = <sqlx::PgConnection as sqlx::Connection>::connect_with(&place.connect)
            .await
            .unwrap();
        (db, place.schema.clone())
    }

    /// Opens the read models here, with rows that are as the log left them.
    pub async fn open(&self) -> ReadModels {
        ReadModels::open(&self.options).await.unwrap().0
    }

    /// Read models here of a log that is fed in batches of the given size.
    pub async fn fed(&self, log: &[Arc<Recorded>], batch: usize) -> ReadModels {
        let models = self.open().await;
        for events in log.chunks(batch.max(1)) {
            models.apply(events).await.unwrap();
        }
        models
    }
}

/// Empty read models in a place that lives as long as the second value.
pub async fn empty(engine: Engine) -> (ReadModels, Ground) {
    fed(engine, &[], 1).await
}

/// Read models of a log that was fed in batches of the given size.
pub async fn fed(engine: Engine, log: &[Arc<Recorded>], batch: usize) -> (ReadModels, Ground) {
    let ground = Ground::new(engine).await;
    (ground.fed(log, batch).await, ground)
}

/// One test on each engine, for each claim.
#[macro_export]
macro_rules! on_both_engines {
    ($($(#[$meta:meta])* $claim:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test] $(#[$meta])* async fn $claim() {
                super::$claim($crate::ground::Engine::Sqlite).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test] $(#[$meta])* async fn $claim() {
                super::$claim($crate::ground::Engine::Postgres).await;
            })*
        }
    };
}
