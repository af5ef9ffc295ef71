//! Workflow documents that users keep by name, with all their versions.
//!
//! Owns the tables, on SQLite (`workflows.db` in the data folder) or PostgreSQL, under one code. Each name of an owner
//! is a stream of events, `saved` and `deleted`, whose number is the version; a deletion removes the documents and
//! leaves the events. May not: read documents, or decide who may do what. It cannot be made again from the log, so it
//! is never thrown away.

mod connect;
mod pins;
mod reading;
mod saving;
mod version;

pub use connect::{STEPS, WORKFLOWS_FILE};
pub use pins::{PIN_LIFETIME_MS, Pinned};
pub use saving::{BYTES_MAX, NAMES_MAX, Refusal, Saved, VERSIONS_MAX};
pub use version::{Document, Event, EventKind, Form, NewVersion, Version};

use std::time::Duration;
use taskledger_beside::Connections;
use taskledger_sql::{Tx, with_sources};
use tokio::time::timeout;

/// How long one order to the store may take: beyond it the connection is taken for dead.
const ORDER_WAIT: Duration = Duration::from_secs(10);

/// The store cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database does not answer; retry.
    #[error("the store of workflows is not available: {0}")]
    Database(#[from] sqlx::Error),
    /// No answer in time; retry.
    #[error("the store of workflows gave no answer within {ORDER_WAIT:?}")]
    Late,
    /// A stored value cannot be read.
    #[error("the store of workflows is damaged: {0}")]
    Damaged(String),
}

impl From<taskledger_sql::Error> for Error {
    fn from(error: taskledger_sql::Error) -> Self {
        match error {
            taskledger_sql::Error::Unavailable(source) => Self::Database(source),
            taskledger_sql::Error::Damaged(reason) => Self::Damaged(reason),
            // None of its statements runs on a connection of this kind.
            other @ taskledger_sql::Error::Sqlite(_) => Self::Damaged(with_sources(&other)),
        }
    }
}

/// The tables in one place. Lasts as long as the server; `close` lets go of the connections.
pub struct DocumentStore {
    connections: Connections,
}

impl std::fmt::Debug for DocumentStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DocumentStore").finish_non_exhaustive()
    }
}

impl DocumentStore {
    fn new(connections: Connections) -> Self {
        Self { connections }
    }

    /// Runs one order to its end or not at all, within a few seconds.
    async fn order<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        timeout(ORDER_WAIT, work).await.map_err(|_| Error::Late)?
    }

    /// A transaction that reads one consistent state.
    async fn read(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.read().await?)
    }

    /// A transaction that changes something, after all that began before it.
    async fn write(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.write_in_turn().await?)
    }

    /// Closes all connections.
    pub async fn close(&self) {
        if !self.connections.close().await {
            tracing::warn!("the connections to the store of workflows were not closed in time");
        }
    }
}
