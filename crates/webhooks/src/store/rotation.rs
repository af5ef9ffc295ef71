//! The signing secrets of an endpoint: read, replaced, and told apart from those of others.

use super::deliveries::hold;
use super::endpoints::one;
use super::{Error, Store};
use crate::delivery::{Key, Secret};
use crate::endpoint::{Endpoint, EndpointId};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::Columns;

/// Old keys of an endpoint that still sign: each adds a signature to each message.
pub const OLD_KEYS_MAX: i64 = 5;

/// The result of rotating a secret.
#[derive(Debug, Clone, PartialEq)]
pub enum Rotated {
    /// The new secret signs.
    Yes(Box<Endpoint>),
    /// As many old ones sign as may; nothing was changed.
    Full {
        /// When the first of them ends.
        until: Timestamp,
    },
    /// There is no such endpoint.
    Unknown,
}

impl Store {
    /// The keys that sign at `now`, the newest first; `None`: there is no such endpoint.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Keys`] when they do not open.
    pub async fn signing_keys(
        &self,
        id: EndpointId,
        now: Timestamp,
    ) -> Result<Option<Vec<Key>>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let Some((no, _)) = one(&mut tx, id).await? else {
                return Ok(None);
            };
            let mut secrets = self.secrets(&mut tx, &[(no, id)], now).await?;
            tx.commit().await?;
            let found = secrets.remove(&no);
            let found = found.ok_or_else(|| Error::Damaged("a secret does not open".to_owned()))?;
            Ok(Some(found.keys))
        };
        self.order(work).await
    }

    /// Lets a new secret sign. The present one signs too until `old_until`, and so do the older ones,
    /// unless they end before. Refused while more than [`OLD_KEYS_MAX`] old ones would sign.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn rotate(
        &self,
        id: EndpointId,
        secret: &Secret,
        old_until: Timestamp,
        now: Timestamp,
    ) -> Result<Rotated, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let Some(held) = hold(&mut tx, id).await? else {
                tx.rollback().await?;
                return Ok(Rotated::Unknown);
            };
            let mut args = tx.args();
            args.int(held.no);
            args.time(now);
            let row = tx.fetch_one(SIGNING, args).await?;
            let mut c = Columns::of(&row);
            if let (true, Some(until)) = (c.int()? > OLD_KEYS_MAX, c.opt_time()?)
                && old_until > now
            {
                tx.rollback().await?;
                return Ok(Rotated::Full { until });
            }
            let mut args = tx.args();
            args.int(held.no);
            args.time(old_until);
            tx.execute(LET_EXPIRE, args).await?;
            let digest = held.lasts.then(|| self.keys.digest(&secret.0)).flatten();
            self.put_key(&mut tx, (held.no, id), (secret, digest), now)
                .await?;
            let mut args = tx.args();
            args.int(held.no);
            args.time(now);
            tx.execute(ERASE_EXPIRED, args).await?;
            let mut args = tx.args();
            args.int(held.no);
            args.time(now);
            tx.execute("UPDATE endpoints SET updated_at = $2 WHERE no = $1", args)
                .await?;
            let found = one(&mut tx, id).await?;
            tx.commit().await?;
            let found = found.map(|(_, endpoint)| Rotated::Yes(Box::new(endpoint)));
            Ok(found.unwrap_or(Rotated::Unknown))
        };
        self.order(work).await
    }

    /// Whether a lasting endpoint of `owner` (`None`: without an owner) signs with this secret at `now`. Endpoints of
    /// others do not count, so that no caller learns of them. Cost: O(keys of the server).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn is_in_use(
        &self,
        secret: &Secret,
        owner: Option<&Arc<str>>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut found = false;
            for digest in self.keys.digests(&secret.0) {
                let mut args = tx.args();
                args.bytes(digest);
                args.time(now);
                // No owner has an empty name.
                args.text(Some(owner.cloned().unwrap_or_default()));
                found |= tx.fetch_optional(SAME_SECRET, args).await?.is_some();
            }
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }
}

/// How many sign, and when the first of them ends.
const SIGNING: &str = "SELECT count(*), min(expires_at) FROM endpoint_keys
    WHERE endpoint = $1 AND (expires_at IS NULL OR expires_at > $2)";
const LET_EXPIRE: &str = "UPDATE endpoint_keys SET expires_at = $2
    WHERE endpoint = $1 AND (expires_at IS NULL OR expires_at > $2)";
const ERASE_EXPIRED: &str = "DELETE FROM endpoint_keys WHERE endpoint = $1 AND expires_at <= $2";
// By `endpoint_keys_digest`. Callbacks have no digest: callers give many executions the same secret.
const SAME_SECRET: &str = "SELECT 1 FROM endpoint_keys
    INNER JOIN endpoints ON endpoints.no = endpoint_keys.endpoint
    WHERE digest = $1 AND (expires_at IS NULL OR expires_at > $2)
        AND COALESCE(owner, '') = $3
    LIMIT 1";
