//! Writes what belongs to the same transaction as the events: claims, fences, snapshots.
//!
//! Owns: their statements, and the sweeping of expired claims in slices. Judges nothing but fences.

use crate::row::{claim_columns, snapshot_checksum};
use crate::{Fence, NewClaim, Snapshot};
use rusqlite::{Connection, OptionalExtension, params};
use taskledger_domain::{FlowId, Timestamp};

/// Expired claims that one sweep deletes: a few milliseconds of the committer's time.
const SWEEP_ROWS_MAX: u32 = 4_096;
/// Claims with an expiry written between two sweeps; half of a sweep, so that sweeping keeps up.
const SWEEP_AFTER_CLAIMS: usize = 2_048;
/// Transactions between two sweeps when few claims are written.
const SWEEP_AFTER_TRANSACTIONS: usize = 1_024;

/// Replaces only what was judged to be expired.
const PUT_CLAIM: &str =
    "INSERT OR REPLACE INTO claims (kind, key, value, expires_at) VALUES (?1, ?2, ?3, ?4)";
/// By `claims_by_expiry`.
const SWEEP_CLAIMS: &str = "DELETE FROM claims WHERE (kind, key) IN (SELECT kind, key FROM claims \
                            WHERE expires_at < ?1 ORDER BY expires_at LIMIT ?2)";
/// By the primary key.
const FENCE: &str = "SELECT token FROM fences WHERE name = ?1";
const RAISE_FENCE: &str = "INSERT INTO fences (name, token) VALUES (?1, 1) \
                           ON CONFLICT (name) DO UPDATE SET token = token + 1 RETURNING token";
/// An older snapshot never replaces a newer one of the same format.
const PUT_SNAPSHOT: &str = "INSERT INTO snapshots (stream, format, version, checksum, bytes) \
                            VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (stream) DO UPDATE SET \
                            format = excluded.format, version = excluded.version, \
                            checksum = excluded.checksum, bytes = excluded.bytes \
                            WHERE excluded.format <> format OR excluded.version >= version";

/// What has been written since expired claims were last swept.
#[derive(Debug, Default)]
pub(super) struct Beside {
    claims_since_sweep: usize,
    transactions_since_sweep: usize,
}

impl Beside {
    /// A transaction is done; sweeps are counted in them.
    pub(super) const fn committed(&mut self) {
        self.transactions_since_sweep += 1;
    }

    /// Deletes some claims that are expired at `now`, when it is time to.
    pub(super) fn sweep_when_due(
        &mut self,
        db: &Connection,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        if self.claims_since_sweep < SWEEP_AFTER_CLAIMS
            && self.transactions_since_sweep < SWEEP_AFTER_TRANSACTIONS
        {
            return Ok(());
        }
        self.claims_since_sweep = 0;
        self.transactions_since_sweep = 0;
        db.prepare_cached(SWEEP_CLAIMS)?
            .execute(params![now.0, SWEEP_ROWS_MAX])?;
        Ok(())
    }

    /// Writes a claim that was judged to be free.
    pub(super) fn put_claim(&mut self, db: &Connection, claim: &NewClaim) -> rusqlite::Result<()> {
        let (kind, key) = claim_columns(&claim.key);
        let expires_at = claim.expires_at.map(|at| at.0);
        if expires_at.is_some() {
            self.claims_since_sweep += 1;
        }
        db.prepare_cached(PUT_CLAIM)?
            .execute(params![kind, key, &*claim.value, expires_at])?;
        Ok(())
    }
}

/// Whether a higher token than the fence's has been raised.
pub(super) fn is_fenced(db: &Connection, fence: &Fence) -> rusqlite::Result<bool> {
    let current: Option<i64> = db
        .prepare_cached(FENCE)?
        .query_row([&*fence.name], |row| row.get(0))
        .optional()?;
    Ok(current.is_some_and(|token| token.cast_unsigned() > fence.token))
}

/// The new token of a fence.
pub(super) fn raise_fence(db: &Connection, name: &str) -> rusqlite::Result<u64> {
    db.prepare_cached(RAISE_FENCE)?
        .query_row([name], |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}

/// Writes a snapshot of stream `number`, unless a newer one of the same format is there.
pub(super) fn put_snapshot(
    db: &Connection,
    flow: FlowId,
    number: i64,
    snapshot: &Snapshot,
) -> rusqlite::Result<()> {
    let checksum = snapshot_checksum(flow, snapshot.format, snapshot.version, &snapshot.bytes);
    db.prepare_cached(PUT_SNAPSHOT)?.execute(params![
        number,
        snapshot.format,
        snapshot.version.cast_signed(),
        checksum,
        snapshot.bytes
    ])?;
    Ok(())
}
