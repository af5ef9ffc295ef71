//! Places for the tables of a store beside the log, in tests.

use crate::postgres::Database;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use taskledger_clock::SystemClock;
use taskledger_log::postgres::Options;
use tempfile::TempDir;

/// One of the engines, with nothing on it.
#[derive(Debug)]
pub enum Place {
    /// SQLite.
    Folder(TempDir),
    /// PostgreSQL.
    Database(Database),
}

/// The argument with which a store is opened.
#[derive(Debug)]
pub enum Opening<'a> {
    /// The folder of its file.
    Folder(&'a Path),
    /// The database of its schema.
    Database(Box<Options>),
}

/// The options for opening a store in the database at this URL.
#[must_use]
pub fn options_of(url: &str) -> Options {
    let options = PgConnectOptions::from_str(url).unwrap();
    Options::new(options, Arc::new(SystemClock::default()))
}

impl Place {
    /// A folder that is removed with this.
    #[must_use]
    pub fn folder() -> Self {
        Self::Folder(tempfile::tempdir().unwrap())
    }

    /// A database that is removed with this.
    pub async fn database() -> Self {
        Self::Database(Database::create().await)
    }

    /// The argument with which the store at this place is opened.
    #[must_use]
    pub fn opening(&self) -> Opening<'_> {
        match self {
            Self::Folder(folder) => Opening::Folder(folder.path()),
            Self::Database(database) => Opening::Database(Box::new(options_of(database.url()))),
        }
    }

    /// Runs a text of SQL on the tables, beside the store.
    ///
    /// # Errors
    /// What the engine says of it.
    pub async fn run(&self, file: &str, schema: &str, sql: &str) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Folder(folder) => {
                let options = SqliteConnectOptions::new().filename(folder.path().join(file));
                let mut connection = options.connect().await?;
                connection.execute(sql).await?;
                connection.close().await
            }
            Self::Database(database) => {
                let options = PgConnectOptions::from_str(database.url())?;
                let options = options.options([("search_path", schema)]);
                let mut connection = options.connect().await?;
                connection.execute(sql).await?;
                connection.close().await
            }
        }
    }
}
