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
pub use methods::{METHODS_BYTES_MAX, METHODS_MAX, USERS_METHODS_BYTES_MAX, USERS_METHODS_MAX};
pub use presence::{News, PRESENCE_KEPT_MS};
pub use renewals::{RENEWALS_KEPT_MS, Renewal, Renewed};

use std::sync::Arc;
use taskledger_beside::{Connections, store_error, store_shell};
use taskledger_domain::{LeaseId, Timestamp};
use taskledger_sql::{Args, Columns, MultiRow, Tx, in_slices};

/// Rows that one transaction removes: others wait for it.
const SLICE: i64 = 1_000;

store_error!("workers");

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

store_shell!(WorkerStore, "workers");

impl WorkerStore {
    fn new(connections: Connections) -> Self {
        Self { connections }
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

    /// Removes what is old at `now`: renewals and tickets whose lease ended long ago, workers that are gone. Returns
    /// how many rows.
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
}

/// How an owner is stored. No user has an empty name.
fn owner_text(owner: Option<&Arc<str>>) -> Arc<str> {
    owner.map_or_else(|| Arc::from(""), Arc::clone)
}

/// The owner that is stored so.
fn owner_of(stored: Arc<str>) -> Option<Arc<str>> {
    Some(stored).filter(|owner| !owner.is_empty())
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
