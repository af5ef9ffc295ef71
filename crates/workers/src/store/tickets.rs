//! The rows of tickets: places of methods with a limit, which all servers of the store share.

use super::{Error, WorkerStore, lease, owner_text};
use crate::method::MethodKey;
use std::sync::LazyLock;
use taskledger_domain::{LeaseId, Timestamp};
use taskledger_sql::{Args, Columns, MultiRow};

impl WorkerStore {
    /// Takes places of a method for attempts under these leases, which hold until `expires_at` unless they are
    /// renewed, after the places of `over` are free. Gives how many of the leases, the first ones, got a place:
    /// all of them when the method has no limit. Calls for one method happen one after the other. Cost:
    /// O(places taken of the method).
    ///
    /// # Errors
    /// [`Error`]; whether places are taken is not known then.
    pub async fn take_tickets(
        &self,
        method: &MethodKey,
        (leases, expires_at): (&[LeaseId], Timestamp),
        over: &[LeaseId],
        now: Timestamp,
    ) -> Result<usize, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.text(method.name.clone());
            args.text(owner_text(method.owner.as_ref()));
            let limit = tx.fetch_optional(LOCK, args).await?;
            let limit: Option<i64> = match &limit {
                Some(row) => Columns::of(row).opt_int()?,
                None => None,
            };
            GIVE_BACK.execute(&mut tx, over, lease).await?;
            let Some(limit) = limit else {
                tx.commit().await?;
                return Ok(leases.len());
            };
            let mut args = tx.args();
            args.text(method.name.clone());
            args.text(owner_text(method.owner.as_ref()));
            args.time(now);
            let taken = Columns::of(&tx.fetch_one(TAKEN, args).await?).int()?;
            let left = usize::try_from(limit - taken).unwrap_or_default();
            let granted = left.min(leases.len());
            let bind = |lease: &LeaseId, args: &mut Args| {
                args.id(lease.0);
                args.text(method.name.clone());
                args.text(owner_text(method.owner.as_ref()));
                args.time(expires_at);
            };
            KEEP.execute(&mut tx, &leases[..granted], bind).await?;
            tx.commit().await?;
            Ok(granted)
        };
        self.order(work).await
    }

    /// Attempts under way have these places, whatever limit there is, until these times unless they are renewed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn keep_tickets(
        &self,
        tickets: &[(MethodKey, LeaseId, Timestamp)],
    ) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            let bind = |(method, lease, expires_at): &(MethodKey, LeaseId, Timestamp),
                        args: &mut Args| {
                args.id(lease.0);
                args.text(method.name.clone());
                args.text(owner_text(method.owner.as_ref()));
                args.time(*expires_at);
            };
            KEEP.execute(&mut tx, tickets, bind).await?;
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }

    /// The places of these leases are free.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn give_tickets_back(&self, leases: &[LeaseId]) -> Result<(), Error> {
        self.remove(&GIVE_BACK, leases).await
    }
}

/// The limit of the method, and its row until the transaction ends.
const LOCK: &str =
    "UPDATE methods SET bytes = bytes WHERE name = $1 AND owner = $2 RETURNING attempts_max";
/// By the index `tickets_method`.
const TAKEN: &str = "SELECT count(*)
    FROM tickets LEFT JOIN renewals ON renewals.lease = tickets.lease
    WHERE tickets.method = $1 AND tickets.owner = $2
        AND (tickets.expires_at > $3 OR renewals.expires_at > $3)";
static KEEP: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "INSERT INTO tickets (lease, method, owner, expires_at)",
        4,
        "ON CONFLICT (lease) DO UPDATE SET expires_at = excluded.expires_at
            WHERE excluded.expires_at > tickets.expires_at",
    )
});
static GIVE_BACK: LazyLock<MultiRow> =
    LazyLock::new(|| MultiRow::new("DELETE FROM tickets WHERE lease IN (", 1, ")"));
/// By the index `tickets_expires_at`.
pub(super) const SWEEP: &str = "DELETE FROM tickets WHERE lease IN
    (SELECT tickets.lease FROM tickets LEFT JOIN renewals ON renewals.lease = tickets.lease
     WHERE tickets.expires_at < $1 AND (renewals.expires_at IS NULL OR renewals.expires_at < $1)
     ORDER BY tickets.expires_at LIMIT $2)";
