//! Drained workers as rows.

use super::{Error, WorkerStore};
use crate::presence::Drain;
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Row};

/// Drained workers in all.
pub const DRAINS_MAX: usize = 10_000;

/// There are as many drained workers as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{DRAINS_MAX} workers are drained; let some of them work again")]
pub struct TooManyDrains;

impl WorkerStore {
    /// The worker gets no new work from `now` on. Doing it again changes nothing.
    ///
    /// # Errors
    /// [`Error`]; within, [`TooManyDrains`].
    pub async fn drain(
        &self,
        (worker, principal): (&str, &str),
        now: Timestamp,
    ) -> Result<Result<(), TooManyDrains>, Error> {
        let work = async {
            let mut tx = self.change().await?;
            let mut args = tx.args();
            args.text(Arc::<str>::from(principal));
            args.text(Arc::<str>::from(worker));
            args.time(now);
            tx.execute(DRAIN, args).await?;
            let args = tx.args();
            let count: usize = Columns::of(&tx.fetch_one(COUNT, args).await?).number()?;
            if count > DRAINS_MAX {
                tx.rollback().await?;
                return Ok(Err(TooManyDrains));
            }
            self.commit(tx).await?;
            Ok(Ok(()))
        };
        self.order(work).await
    }

    /// The worker gets work again. Returns whether it was drained.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn undrain(&self, worker: &str, principal: &str) -> Result<bool, Error> {
        let work = async {
            let mut tx = self.change().await?;
            let mut args = tx.args();
            args.text(Arc::<str>::from(principal));
            args.text(Arc::<str>::from(worker));
            let removed = tx.execute(UNDRAIN, args).await? > 0;
            self.commit(tx).await?;
            Ok(removed)
        };
        self.order(work).await
    }

    /// All drained workers, by principal and name.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn drains(&self) -> Result<Vec<Drain>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let rows = tx.fetch_all(LIST, args).await?;
            let read = |row: &Row| {
                let mut c = Columns::of(row);
                Ok(Drain {
                    principal: c.text()?,
                    worker: c.text()?,
                    drained_at: c.time()?,
                })
            };
            let found = rows.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }
}

const DRAIN: &str = "INSERT INTO drains (principal, worker, drained_at) VALUES ($1, $2, $3)
    ON CONFLICT (principal, worker) DO NOTHING";
const UNDRAIN: &str = "DELETE FROM drains WHERE principal = $1 AND worker = $2";
const COUNT: &str = "SELECT count(*) FROM drains";
const LIST: &str = "SELECT principal, worker, drained_at FROM drains ORDER BY principal, worker";
