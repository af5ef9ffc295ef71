//! Code that the stores beside the log share: the place of their tables, opening, errors, transactions, and owners.
//!
//! A store has a file of its own in the data folder, or a schema of its own in the database of the log. May not: know
//! what a store keeps, or read the log.

mod owner;
mod store;

pub use owner::Owner;
pub use store::{ORDER_WAIT, named};
pub use taskledger_sql::beside::{Connections, Settings, Survives};

use sqlx::migrate::Migrator;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use taskledger_log::postgres as log;
use taskledger_private as private;
use taskledger_sql::beside::FileError;

/// The place of a store's tables.
#[derive(Debug)]
pub struct StoreLocation {
    /// What the store keeps, as messages say it: `the schedules`.
    pub what: &'static str,
    /// Its file in a data folder.
    pub file: &'static str,
    /// The tables in the file.
    pub migrations: &'static LazyLock<Migrator>,
    /// The tables on PostgreSQL.
    pub steps: log::Steps,
    /// How they are reached.
    pub settings: Settings,
}

/// Why a store cannot be opened; the operator can mend it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be used.
    #[error("{what} in `{path}` cannot be opened: {source}")]
    File {
        /// What is kept there.
        what: &'static str,
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The error from SQLite.
        source: sqlx::Error,
    },
    /// The file is of a newer program, or not ours.
    #[error("{what} in `{path}` cannot be brought up to date: {source}")]
    Migration {
        /// What is kept there.
        what: &'static str,
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The migration that failed, or the one that is unknown.
        source: sqlx::migrate::MigrateError,
    },
    /// The tables in the database cannot be made or used.
    #[error(transparent)]
    Database(#[from] log::OpenError),
}

impl StoreLocation {
    /// Opens or makes the file in a data folder that no other process uses.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn in_folder(&self, folder: &Path) -> Result<Connections, OpenError> {
        let path = folder.join(self.file);
        let made = private::make_if_missing(&path).map_err(sqlx::Error::from);
        let opened = match made {
            Ok(()) => Connections::of_file(&path, &self.settings, self.migrations).await,
            Err(error) => Err(error.into()),
        };
        opened.map_err(|error| self.unusable(path, error))
    }

    /// The error for a file at `path` that cannot be used.
    #[must_use]
    pub fn unusable(&self, path: PathBuf, error: FileError) -> OpenError {
        let what = self.what;
        match error {
            FileError::File(source) => OpenError::File { what, path, source },
            FileError::Migration(source) => OpenError::Migration { what, path, source },
        }
    }

    /// Opens the tables of a database, made or brought up to date if need be. The log's are there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn in_database(&self, options: &log::Options) -> Result<Connections, OpenError> {
        log::take(options, self.steps).await?;
        Ok(Connections::of_database(&options.connect, self.settings))
    }
}
