//! The hash chain of the audit log: whether a row was changed or removed after it was written.
//!
//! The hash of a row is the SHA-256 of the hash of the row before it and of its own contents. The table `audit_chain`
//! has the hash of the last row and of the last one that was removed because of its age. Writers are serialized by the
//! store. Whoever can write to the database can also make a new chain: what the chain proves is that nothing but this
//! program has removed single rows.

use super::audit_row::AuditRow;
use super::{AuthStore, Error};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Tx};

/// Rows that are read or removed together.
const SLICE: i64 = 1_000;

/// What a walk along the chain has found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct AuditProof {
    /// Rows that were read.
    pub rows: u64,
    /// The first fault; `None`: no row was changed or removed.
    pub fault: Option<String>,
}

/// The ends of the chain.
struct Ends {
    head: Arc<str>,
    dropped: Arc<str>,
    kept: i64,
}

/// The hash of a row behind another one.
fn link(previous: &str, row: &AuditRow) -> String {
    let contents = json!([
        row.at.0,
        row.principal,
        row.token,
        row.address,
        row.request,
        row.action,
        row.object,
        row.outcome,
        row.detail,
    ]);
    let digest = Sha256::digest(format!("{previous}\n{contents}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn ends(tx: &mut Tx<'_>) -> Result<Ends, Error> {
    let args = tx.args();
    let found = tx.fetch_one(ENDS, args).await?;
    let mut c = Columns::of(&found);
    Ok(Ends {
        head: c.text()?,
        dropped: c.text()?,
        kept: c.int()?,
    })
}

/// The hash of a row that is about to be added; the chain ends with it from now on.
pub(super) async fn extend(tx: &mut Tx<'_>, row: &AuditRow) -> Result<String, Error> {
    let hash = link(&ends(tx).await?.head, row);
    let mut args = tx.args();
    args.text(Arc::<str>::from(hash.as_str()));
    tx.execute(EXTEND, args).await?;
    Ok(hash)
}

impl AuthStore {
    /// Removes the oldest rows of the audit log, up to the first that is not from before `old`. Returns how many.
    ///
    /// # Errors
    /// [`Error`]: what was removed is removed; ask again later.
    pub async fn sweep_audit(&self, old: Timestamp) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let slice = self.order(self.sweep_slice(old)).await?;
            removed += slice;
            if slice < SLICE.unsigned_abs() {
                return Ok(removed);
            }
        }
    }

    async fn sweep_slice(&self, old: Timestamp) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        let (mut last, mut count) = (None, 0_i64);
        for (row, hash) in page(&mut tx, 0).await? {
            if row.at >= old {
                break;
            }
            count += 1;
            last = Some((row.seq, hash));
        }
        let Some((seq, hash)) = last else {
            return Ok(0);
        };
        let mut args = tx.args();
        args.int(seq);
        tx.execute(REMOVE, args).await?;
        let mut args = tx.args();
        args.text(hash);
        args.int(count);
        tx.execute(DROP, args).await?;
        tx.commit().await?;
        Ok(count.unsigned_abs())
    }

    /// Follows the hash chain of the audit log. Cost: O(rows), in pages, each of which may take as long as a call.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn prove_audit(&self) -> Result<AuditProof, Error> {
        // One transaction: rows that are added meanwhile are not half seen.
        let mut tx = self.read().await?;
        let ends = self.order(ends(&mut tx)).await?;
        let (mut at, mut rows) = (0, 0);
        let mut previous = ends.dropped.clone();
        loop {
            let page = self.order(page(&mut tx, at)).await?;
            for (row, hash) in &page {
                if **hash != *link(&previous, row) {
                    let fault = format!(
                        "row {} of the audit log is not what was written behind the row before it: one of them was \
                         changed, or rows between them were removed",
                        row.seq
                    );
                    return Ok(AuditProof {
                        rows,
                        fault: Some(fault),
                    });
                }
                (at, previous, rows) = (row.seq, hash.clone(), rows + 1);
            }
            if page.len() < usize::try_from(SLICE).unwrap_or(usize::MAX) {
                break;
            }
        }
        tx.commit().await?;
        let expected = u64::try_from(ends.kept).unwrap_or_default();
        let is_whole = *previous == *ends.head && rows == expected;
        let fault = (!is_whole).then(|| {
            format!(
                "the audit log has {rows} rows behind those that were removed for their age, expected {expected}: rows at \
                 its end were removed"
            )
        });
        Ok(AuditProof { rows, fault })
    }
}

/// The rows behind a number, with their hashes.
async fn page(tx: &mut Tx<'_>, behind: i64) -> Result<Vec<(AuditRow, Arc<str>)>, Error> {
    let mut args = tx.args();
    args.int(behind);
    args.int(SLICE);
    let rows = tx.fetch_all(NEXT, args).await?;
    rows.iter().map(hashed).collect()
}

fn hashed(found: &taskledger_sql::Row) -> Result<(AuditRow, Arc<str>), Error> {
    let mut c = Columns::of(found);
    Ok((AuditRow::read(&mut c)?, c.text()?))
}

const ENDS: &str = "SELECT head, dropped, kept FROM audit_chain WHERE one = 1";
const EXTEND: &str = "UPDATE audit_chain SET head = $1, kept = kept + 1 WHERE one = 1";
const DROP: &str = "UPDATE audit_chain SET dropped = $1, kept = kept - $2 WHERE one = 1";
const REMOVE: &str = "DELETE FROM audit WHERE seq <= $1";
/// By the primary key.
const NEXT: &str =
    "SELECT seq, at, principal, token, address, request, action, object, outcome, detail, hash
    FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2";
