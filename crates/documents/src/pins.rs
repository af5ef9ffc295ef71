//! Remembers which version a call under an idempotency key runs.

use crate::reading::newest;
use crate::saving::key;
use crate::{DocumentStore, Error};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use taskledger_beside::Owner;
use taskledger_domain::Timestamp;
use taskledger_sql::{Args, Columns, Row, Tx};

/// Milliseconds for which a version stays pinned: as long as idempotency keys are remembered.
pub const PIN_LIFETIME_MS: u64 = 24 * 3600 * 1000;

/// The version that a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pinned {
    /// Number of the pinned version.
    pub version: u32,
    /// Whether this is the first call.
    pub is_first: bool,
}

impl DocumentStore {
    /// The version that the first call of a caller under a key got, which is the newest at that time; `None` if nothing
    /// is kept by the name.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn pin(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        (caller, by_key, now): (&str, &str, Timestamp),
    ) -> Result<Option<Pinned>, Error> {
        let call = digest(caller, by_key);
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            let lifetime = i64::try_from(PIN_LIFETIME_MS * 1000).unwrap_or(i64::MAX);
            args.time(Timestamp(now.0.saturating_sub(lifetime)));
            tx.execute(SWEEP, args).await?;
            let args = call_of(&tx, owner, name, &call);
            let pinned: Option<Row> = tx.fetch_optional(PINNED, args).await?;
            let pinned = pinned.as_ref().map(|row| Columns::of(row).number());
            let version = match pinned.transpose()? {
                Some(version) => Some(Pinned {
                    version,
                    is_first: false,
                }),
                None => newest(&mut tx, owner, name).await?.map(|it| Pinned {
                    version: it.version,
                    is_first: true,
                }),
            };
            if let Some(first) = version.filter(|it| it.is_first) {
                let mut args = call_of(&tx, owner, name, &call);
                args.int(i64::from(first.version));
                args.time(now);
                tx.execute(PIN, args).await?;
            }
            tx.commit().await?;
            Ok(version)
        };
        self.order(work).await
    }

    /// Forgets the version of a call that has begun nothing.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn unpin(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        (caller, by_key): (&str, &str),
    ) -> Result<(), Error> {
        let call = digest(caller, by_key);
        let work = async {
            let mut tx = self.write().await?;
            let args = call_of(&tx, owner, name, &call);
            tx.execute(UNPIN, args).await?;
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }
}

fn digest(caller: &str, key: &str) -> Vec<u8> {
    let mut hash = Sha256::new();
    // The length keeps apart what could be mixed up.
    hash.update((caller.len() as u64).to_le_bytes());
    hash.update(caller);
    hash.update(key);
    hash.finalize().to_vec()
}

fn call_of(tx: &Tx<'_>, owner: &Owner, name: &Arc<str>, call: &[u8]) -> Args {
    let mut args = key(tx, owner, name);
    args.bytes(call.to_vec());
    args
}

const SWEEP: &str = "DELETE FROM pins WHERE at < $1";
const PINNED: &str = "SELECT version FROM pins
    WHERE tenant = $1 AND owner = $2 AND name = $3 AND call = $4";
const PIN: &str = "INSERT INTO pins (tenant, owner, name, call, version, at)
    VALUES ($1, $2, $3, $4, $5, $6)";
const UNPIN: &str = "DELETE FROM pins WHERE tenant = $1 AND owner = $2 AND name = $3 AND call = $4";
