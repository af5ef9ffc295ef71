//! Which version a call under an idempotency key runs.

use crate::reading::newest;
use crate::saving::key;
use crate::version::Owner;
use crate::{DocumentStore, Error};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Row};

/// Milliseconds for which a version stays pinned: as long as idempotency keys are remembered.
pub const PIN_LIFETIME_MS: u64 = 24 * 3600 * 1000;

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
        (caller, by_key, now): (Arc<str>, Arc<str>, Timestamp),
    ) -> Result<Option<u32>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            let lifetime = i64::try_from(PIN_LIFETIME_MS * 1000).unwrap_or(i64::MAX);
            args.time(Timestamp(now.0.saturating_sub(lifetime)));
            tx.execute(SWEEP, args).await?;
            let mut args = key(&tx, owner, name);
            args.text(caller.clone());
            args.text(by_key.clone());
            let pinned: Option<Row> = tx.fetch_optional(PINNED, args).await?;
            let version = match &pinned {
                Some(row) => Some(Columns::of(row).number()?),
                None => newest(&mut tx, owner, name).await?.map(|it| it.version),
            };
            if let (None, Some(version)) = (&pinned, version) {
                let mut args = key(&tx, owner, name);
                args.text(caller);
                args.text(by_key);
                args.int(i64::from(version));
                args.time(now);
                tx.execute(PIN, args).await?;
            }
            tx.commit().await?;
            Ok(version)
        };
        self.order(work).await
    }
}

const SWEEP: &str = "DELETE FROM pins WHERE at < $1";
const PINNED: &str = "SELECT version FROM pins
    WHERE tenant = $1 AND owner = $2 AND name = $3 AND caller = $4 AND key = $5";
const PIN: &str = "INSERT INTO pins (tenant, owner, name, caller, key, version, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";
