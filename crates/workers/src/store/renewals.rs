//! The rows of renewals: when leases of attempts outside the server expire.

use super::{Error, WorkerStore};
use std::collections::HashMap;
use std::sync::LazyLock;
use taskledger_domain::{FlowId, LeaseId, TaskId, Timestamp};
use taskledger_sql::{Args, Columns, MultiRow};

/// How long a renewal is kept after its lease has ended, in milliseconds: a flow that nobody has loaded since
/// may still have the lease.
pub const RENEWALS_KEPT_MS: u64 = 24 * 3_600 * 1_000;

/// Until when a lease holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    /// The flow that the task belongs to.
    pub flow: FlowId,
    /// The task that is held under the lease.
    pub task: TaskId,
    /// Number of the attempt that is held, from 1.
    pub attempt: u32,
    /// Identifies the lease that was renewed.
    pub lease: LeaseId,
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// How often it was extended since its worker last renewed it, because its flow came to another process.
    pub graces: u32,
}

/// The stored part of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewed {
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// As [`Renewal::graces`].
    pub graces: u32,
}

impl WorkerStore {
    /// Keeps that leases hold until then, in place of what is kept of them. Survives a kill of the process once it
    /// returns.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn renew(&self, renewals: &[Renewal]) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            RENEW.execute(&mut tx, renewals, bind).await?;
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }

    /// Until when leases of a flow hold, as far as they were renewed. Cost: O(renewals of the flow).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn renewals(&self, flow: FlowId) -> Result<HashMap<LeaseId, Renewed>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.id(flow.0);
            let rows = tx.fetch_all(OF_FLOW, args).await?;
            let read = |row| {
                let mut c = Columns::of(row);
                let lease = LeaseId(c.id()?);
                let expires_at = c.time()?;
                let graces = u32::try_from(c.int()?).unwrap_or(u32::MAX);
                Ok((lease, Renewed { expires_at, graces }))
            };
            let found = rows.iter().map(read).collect::<Result<_, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// These leases are over.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn forget_renewals(&self, leases: &[LeaseId]) -> Result<(), Error> {
        self.remove(&FORGET, leases).await
    }
}

fn bind(renewal: &Renewal, args: &mut Args) {
    args.id(renewal.lease.0);
    args.id(renewal.flow.0);
    args.id(renewal.task.0);
    args.int(i64::from(renewal.attempt));
    args.time(renewal.expires_at);
    args.int(i64::from(renewal.graces));
}

static RENEW: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "INSERT INTO renewals (lease, flow, task, attempt, expires_at, graces)",
        6,
        "ON CONFLICT (lease) DO UPDATE SET expires_at = excluded.expires_at, graces = excluded.graces",
    )
});
/// By the index `renewals_flow`.
const OF_FLOW: &str = "SELECT lease, expires_at, graces FROM renewals WHERE flow = $1";
static FORGET: LazyLock<MultiRow> =
    LazyLock::new(|| MultiRow::new("DELETE FROM renewals WHERE lease IN (", 1, ")"));
/// By the index `renewals_expires_at`.
pub(super) const SWEEP: &str = "DELETE FROM renewals WHERE lease IN
    (SELECT lease FROM renewals WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)";
