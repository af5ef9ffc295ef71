//! Checks of the port that need no read of the log, and the limits on the size of calls.
//!
//! Owns: the limits that the backends share.

use super::row::claim_columns;
use super::{Append, ClaimKey, Error, NewClaim, Snapshot};
use taskledger_domain::EventId;

/// Events in one transaction: what a reader may have to wait for, and the work that one failure
/// undoes. One larger append is taken alone.
pub(super) const BATCH_EVENTS_MAX: usize = 1_000;
/// Payload bytes in one transaction, for the same reason.
pub(super) const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Payload bytes of one append: four times the largest request, since a command may write what it
/// was given more than once.
pub const APPEND_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a claim's key and of a fence's name: an index of Postgres takes rows of up to 2,700 bytes,
/// and a statement that meets a larger one fails with all that is in it. Keys of requests have
/// up to 2,065: 255 characters of four bytes, as many of a principal, and a method.
pub(super) const KEY_BYTES_MAX: usize = 2_560;
/// Bytes of one snapshot: a flow of the largest size takes about 20 MB.
pub const SNAPSHOT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Events in one page of `read_all`.
pub(super) const PAGE_EVENTS_MAX: usize = 10_000;
/// Payload bytes in one page of `read_all`, unless its first event is larger.
pub(super) const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Requests that wait for the committer; more wait in front of the queue.
pub(super) const QUEUE_LEN_MAX: usize = 4_096;
/// Payload bytes that wait for the committer: two of the largest appends.
pub(super) const QUEUE_BYTES_MAX: usize = 2 * APPEND_BYTES_MAX;

/// The size of a write within a transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// Whether an append keeps the rules; its size. Cost: O(events + claims).
pub(super) fn append(append: &Append) -> Result<Size, Error> {
    if append.events.is_empty() {
        return Err(Error::Invalid(
            "an append has at least one event".to_owned(),
        ));
    }
    if !claims_are_distinct(&append.claims) {
        return Err(Error::Invalid(
            "an append claims something twice".to_owned(),
        ));
    }
    for claim in &append.claims {
        key(claim_columns(&claim.key).1, "the key of a claim")?;
    }
    if let Some(fence) = &append.fence {
        key(fence.name.as_bytes(), "the name of a fence")?;
    }
    let events: usize = append.events.iter().map(|e| e.encoded.data.len()).sum();
    let claims: usize = append.claims.iter().map(|c| c.value.len()).sum();
    let bytes = events.saturating_add(claims);
    if bytes > APPEND_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "an append has at most {APPEND_BYTES_MAX} bytes of payload, this one has {bytes}"
        )));
    }
    Ok(Size {
        events: append.events.len(),
        bytes,
    })
}

/// Whether these are events that can be resolved.
pub(super) fn resolved(ids: &[EventId]) -> Result<(), Error> {
    if ids.is_empty() {
        return Err(Error::Invalid("no event ids to resolve".to_owned()));
    }
    Ok(())
}

/// Whether a key, called `what`, is short enough.
pub(super) fn key(bytes: &[u8], what: &str) -> Result<(), Error> {
    if bytes.len() > KEY_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "{what} has at most {KEY_BYTES_MAX} bytes, this one has {}",
            bytes.len()
        )));
    }
    Ok(())
}

/// Whether a snapshot is small enough; its size.
pub(super) fn snapshot(snapshot: &Snapshot) -> Result<Size, Error> {
    let bytes = snapshot.bytes.len();
    if bytes > SNAPSHOT_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "a snapshot has at most {SNAPSHOT_BYTES_MAX} bytes, this one has {bytes}"
        )));
    }
    Ok(Size { events: 0, bytes })
}

/// Whether two claims of one append are about the same thing. Cost: O(claims).
fn claims_are_distinct(claims: &[NewClaim]) -> bool {
    if claims.len() < 2 {
        return true;
    }
    let mut seen: std::collections::HashSet<&ClaimKey> =
        std::collections::HashSet::with_capacity(claims.len());
    claims.iter().all(|claim| seen.insert(&claim.key))
}
