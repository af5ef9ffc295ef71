//! What is written beside the events, in the same transaction: claims, fences, snapshots.
//!
//! Owns: their statements, and the sweeping of expired claims in slices. Judges nothing but fences.

use crate::row::{claim_columns, snapshot_checksum};
use crate::{Fence, NewClaim, Snapshot};
use rusqlite::{Connection, OptionalExtension, Statement, params};
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

/// Prepared statements of the connection that writes.
#[derive(Debug)]
pub(super) struct Beside<'c> {
    put_claim: Statement<'c>,
    fence: Statement<'c>,
    raise_fence: Statement<'c>,
    put_snapshot: Statement<'c>,
    sweep: Statement<'c>,
    claims_since_sweep: usize,
    transactions_since_sweep: usize,
}

impl<'c> Beside<'c> {
    /// Prepares all statements.
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            put_claim: connection.prepare(PUT_CLAIM)?,
            fence: connection.prepare(FENCE)?,
            raise_fence: connection.prepare(RAISE_FENCE)?,
            put_snapshot: connection.prepare(PUT_SNAPSHOT)?,
            sweep: connection.prepare(SWEEP_CLAIMS)?,
            claims_since_sweep: 0,
            transactions_since_sweep: 0,
        })
    }

    /// A transaction is done; sweeps are counted in them.
    pub(super) const fn committed(&mut self) {
        self.transactions_since_sweep += 1;
    }

    /// Deletes some claims that are expired at `now`, when it is time to.
    pub(super) fn sweep_when_due(&mut self, now: Timestamp) -> rusqlite::Result<()> {
        if self.claims_since_sweep < SWEEP_AFTER_CLAIMS
            && self.transactions_since_sweep < SWEEP_AFTER_TRANSACTIONS
        {
            return Ok(());
        }
        self.claims_since_sweep = 0;
        self.transactions_since_sweep = 0;
        self.sweep.execute(params![now.0, SWEEP_ROWS_MAX])?;
        Ok(())
    }

    /// Writes a claim that was judged to be free.
    pub(super) fn put_claim(&mut self, claim: &NewClaim) -> rusqlite::Result<()> {
        let (kind, key) = claim_columns(&claim.key);
        let expires_at = claim.expires_at.map(|at| at.0);
        if expires_at.is_some() {
            self.claims_since_sweep += 1;
        }
        self.put_claim
            .execute(params![kind, key, &*claim.value, expires_at])?;
        Ok(())
    }

    /// Whether a higher token than the fence's has been raised.
    pub(super) fn is_fenced(&mut self, fence: &Fence) -> rusqlite::Result<bool> {
        let current: Option<i64> = self
            .fence
            .query_row([&*fence.name], |row| row.get(0))
            .optional()?;
        Ok(current.is_some_and(|token| token.cast_unsigned() > fence.token))
    }

    /// The new token of a fence.
    pub(super) fn raise_fence(&mut self, name: &str) -> rusqlite::Result<u64> {
        self.raise_fence
            .query_row([name], |row| row.get::<_, i64>(0))
            .map(i64::cast_unsigned)
    }

    /// Writes a snapshot of stream `number`, unless a newer one of the same format is there.
    pub(super) fn put_snapshot(
        &mut self,
        flow: FlowId,
        number: i64,
        snapshot: &Snapshot,
    ) -> rusqlite::Result<()> {
        let checksum = snapshot_checksum(flow, snapshot.format, snapshot.version, &snapshot.bytes);
        self.put_snapshot.execute(params![
            number,
            snapshot.format,
            snapshot.version.cast_signed(),
            checksum,
            snapshot.bytes
        ])?;
        Ok(())
    }
}
