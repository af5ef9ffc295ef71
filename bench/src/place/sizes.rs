//! How much a place takes on disk.

use super::Place;
use sqlx::{Connection, PgConnection};
use std::fs::File;
use std::path::Path;

/// The log with its claims and indexes.
const LOG_FILE: &str = "ledger.db";
/// What queries read.
const READ_MODELS_FILE: &str = "read_models.db";
/// The same, in a database.
const LOG_SCHEMA: &str = "taskledger";

/// Bytes, indexes included; what is free within the files does not count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) log: f64,
    pub(crate) read_models: f64,
}

impl Place {
    /// Its sizes now; a server may be running on it.
    pub(crate) async fn sizes(&self) -> Result<Sizes, String> {
        match self.database() {
            Some(url) => in_database(url).await.map_err(|e| e.to_string()),
            None => Ok(Sizes {
                log: used(&self.folder().join(LOG_FILE))?,
                read_models: used(&self.folder().join(READ_MODELS_FILE))?,
            }),
        }
    }

    /// Has the system forget the contents of its files, so that they are read from the disk again. Nothing
    /// for a database, whose files are elsewhere.
    pub(crate) fn forget_files(&self) -> Result<(), String> {
        let entries = std::fs::read_dir(self.folder()).map_err(|e| e.to_string())?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            if !path.is_file() {
                continue;
            }
            // What is not on disk yet cannot be forgotten.
            let forgotten = File::open(&path).and_then(|file| {
                file.sync_all()?;
                let advice = rustix::fs::Advice::DontNeed;
                rustix::fs::fadvise(&file, 0, None, advice).map_err(Into::into)
            });
            forgotten.map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(())
    }
}

fn used(file: &Path) -> Result<f64, String> {
    let read_only = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let pages = || {
        let db = rusqlite::Connection::open_with_flags(file, read_only)?;
        let figure = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, f64>(0));
        Ok((figure("page_count")? - figure("freelist_count")?) * figure("page_size")?)
    };
    pages().map_err(|e: rusqlite::Error| format!("{}: {e}", file.display()))
}

async fn in_database(url: &str) -> Result<Sizes, sqlx::Error> {
    let mut db = PgConnection::connect(url).await?;
    let sizes: Vec<(bool, i64)> = sqlx::query_as(
        "SELECT nspname = $1, SUM(pg_total_relation_size(pg_class.oid))::bigint
         FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
         WHERE relkind = 'r' AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
         GROUP BY 1",
    )
    .bind(LOG_SCHEMA)
    .fetch_all(&mut db)
    .await?;
    db.close().await?;
    let sum = |log: bool| {
        let of = sizes.iter().filter(|(is_log, _)| *is_log == log);
        of.map(|(_, bytes)| *bytes as f64).sum()
    };
    Ok(Sizes {
        log: sum(true),
        read_models: sum(false),
    })
}
