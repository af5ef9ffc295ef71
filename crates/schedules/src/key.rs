//! Derives ids from a schedule and one of its times: always the same, on every server and after every crash.

use sha2::{Digest, Sha256};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use uuid::Uuid;

/// The key of a time of a schedule.
#[must_use]
pub fn key_of_time(at: Timestamp) -> Arc<str> {
    Arc::from(at.0.to_string())
}

/// The key of a run that is started by hand, under a key of its caller.
#[must_use]
pub fn key_by_hand(key: &str) -> Arc<str> {
    Arc::from(format!("now:{key}"))
}

/// The id of the flow that a schedule starts under a key: a UUID v4, which the log takes once.
#[must_use]
pub fn flow_of(schedule: Uuid, key: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest(b"flow", schedule, key)[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

/// Milliseconds by which the start of a time is put off, from 0 to `max_ms`.
#[must_use]
pub fn jitter_ms(schedule: Uuid, at: Timestamp, max_ms: u64) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest(b"jitter", schedule, &at.0.to_string())[..8]);
    u64::from_le_bytes(bytes) % max_ms.saturating_add(1)
}

fn digest(purpose: &[u8], schedule: Uuid, key: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"taskledger schedule ");
    hash.update(purpose);
    hash.update(schedule.as_bytes());
    hash.update(key);
    hash.finalize().into()
}
