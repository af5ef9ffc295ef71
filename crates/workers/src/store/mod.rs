//! The tables of workers, on SQLite (`workers.db` in the data folder) or PostgreSQL, under one code.
//!
//! Owns: connections, schema, and the rows of methods, renewals, tickets, presence and drains. May not: decide
//! who may claim what. Times come with the calls. Renewals, tickets and presence survive a kill of the process,
//! but not a power cut; methods and drains survive both before they are answered.

mod connect;
mod drains;
mod methods;
mod presence;
mod renewals;
mod tickets;

pub use connect::{STEPS, WORKERS_FILE};
pub use drains::{DRAINS_MAX, TooManyDrains};
pub use methods::{METHODS_BYTES_MAX, METHODS_MAX};
pub use presence::{News, PRESENCE_KEPT_MS};
pub use renewals::{RENEWALS_KEPT_MS, Renewal};

use std::time::Duration;
use taskledger_beside::Connections;
use taskledger_domain::{LeaseId, Timestamp};
use taskledger_sql::{Args, Columns, MultiRow, Tx, in_slices, with_sources};
use tokio::time::timeout;

/// How long one order to the store may take: beyond it the connection is taken for dead.
const ORDER_WAIT: Duration = Duration::from_secs(10);
/// Rows that one transaction removes: others wait for it.
const SLICE: i64 = 1_000;

/// The store cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database does not answer; retry.
    #[error("the store of workers is not available: {0}")]
    Database(#[from] sqlx::Error),
    /// No answer in time; retry.
    #[error("the store of workers gave no answer within {ORDER_WAIT:?}")]
    Late,
    /// A stored value cannot be read.
    #[error("the store of workers is damaged: {0}")]
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

/// Numbers that rise with changes; see [`WorkerStore::changes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Rises when a method is declared or undeclared and when a worker is drained or not any more.
    pub declared: i64,
    /// Rises when workers are announced ([`News::Announced`]).
    pub presence: i64,
}

/// The tables in one place. Lasts as long as the server; `close` lets go of the connections.
pub struct WorkerStore {
    connections: Connections,
}

impl std::fmt::Debug for WorkerStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerStore").finish_non_exhaustive()
    }
}

impl WorkerStore {
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

    /// A transaction that changes methods or drains, after all that began before it.
    async fn change(&self) -> Result<Tx<'static>, Error> {
        let mut tx = self.connections.write().await?;
        let args = tx.args();
        tx.execute(DECLARED, args).await?;
        Ok(tx)
    }

    /// Commits a change so that a power cut does not undo it.
    async fn commit(&self, tx: Tx<'static>) -> Result<(), Error> {
        tx.commit().await?;
        Ok(self.connections.sync().await?)
    }

    /// A transaction whose effect a power cut may undo.
    async fn write(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.write_unsynced().await?)
    }

    /// How far changes have come that servers must not overlook. Cost: one row.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn changes(&self) -> Result<Changes, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let row = tx.fetch_one(CHANGES, args).await?;
            let mut c = Columns::of(&row);
            let changes = Changes {
                declared: c.int()?,
                presence: c.int()?,
            };
            tx.commit().await?;
            Ok(changes)
        };
        self.order(work).await
    }

    /// Removes what is old at `now`: renewals and tickets whose lease ended long ago, workers that are gone. Returns how
    /// many rows.
    ///
    /// # Errors
    /// [`Error`]: what was removed is removed; ask again later.
    pub async fn sweep(&self, now: Timestamp) -> Result<u64, Error> {
        let renewals = self.remove_before(renewals::SWEEP, minus_ms(now, RENEWALS_KEPT_MS));
        let renewals = renewals.await?;
        let presence = self.remove_before(presence::SWEEP, minus_ms(now, PRESENCE_KEPT_MS));
        let presence = presence.await?;
        let tickets = self.remove_before(tickets::SWEEP, minus_ms(now, RENEWALS_KEPT_MS));
        Ok(renewals + presence + tickets.await?)
    }

    /// Removes the rows of these leases.
    async fn remove(&self, statement: &MultiRow, leases: &[LeaseId]) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            statement.execute(&mut tx, leases, lease).await?;
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }

    async fn remove_before(&self, statement: &'static str, old: Timestamp) -> Result<u64, Error> {
        in_slices(SLICE, || {
            let work = async move {
                let mut tx = self.write().await?;
                let mut args = tx.args();
                args.time(old);
                args.int(SLICE);
                let removed = tx.execute(statement, args).await?;
                tx.commit().await?;
                Ok(removed)
            };
            self.order(work)
        })
        .await
    }

    /// Closes all connections.
    pub async fn close(&self) {
        if !self.connections.close().await {
            tracing::warn!("the connections to the store of workers were not closed in time");
        }
    }
}

/// The parameter of a statement that names leases.
fn lease(lease: &LeaseId, args: &mut Args) {
    args.id(lease.0);
}

/// So many milliseconds before `time`.
fn minus_ms(time: Timestamp, ms: u64) -> Timestamp {
    let micros = i64::try_from(ms.saturating_mul(1_000)).unwrap_or(i64::MAX);
    Timestamp(time.0.saturating_sub(micros))
}

const CHANGES: &str = "SELECT declared, presence FROM state WHERE one = 1";
const DECLARED: &str = "UPDATE state SET declared = declared + 1 WHERE one = 1";
