//! Enables and disables endpoints.

use super::deliveries::{hold, look_again};
use super::endpoints::one;
use super::{Error, Store, connect};
use crate::endpoint::{DisabledReason, Endpoint, EndpointId};
use taskledger_domain::Timestamp;

impl Store {
    /// Lets an endpoint be sent to again, with a clean slate; `None`: there is none.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enable(&self, id: EndpointId, now: Timestamp) -> Result<Option<Endpoint>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let Some(mut held) = hold(&mut tx, id).await? else {
                tx.rollback().await?;
                return Ok(None);
            };
            let mut args = tx.args();
            args.int(held.no);
            args.time(now);
            tx.execute(ENABLE, args).await?;
            held.disabled = false;
            held.open_until = None;
            look_again(&mut tx, held).await?;
            let found = one(&mut tx, id).await?;
            connect::announce(&mut tx).await?;
            tx.commit().await?;
            Ok(found.map(|(_, endpoint)| endpoint))
        };
        let enabled = self.order(work).await?;
        self.now_due();
        Ok(enabled)
    }

    /// Stops sending to an endpoint; what it would get is kept for it. `None`: there is none.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn disable(&self, id: EndpointId, now: Timestamp) -> Result<Option<Endpoint>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let Some(held) = hold(&mut tx, id).await? else {
                tx.rollback().await?;
                return Ok(None);
            };
            if !held.disabled {
                let mut args = tx.args();
                args.int(held.no);
                args.name(DisabledReason::Requested.as_str());
                args.time(now);
                tx.execute(DISABLE_BY_OWNER, args).await?;
            }
            let found = one(&mut tx, id).await?;
            tx.commit().await?;
            Ok(found.map(|(_, endpoint)| endpoint))
        };
        self.order(work).await
    }
}

const ENABLE: &str =
    "UPDATE endpoints SET disabled_reason = NULL, disabled_at = NULL, failures = 0,
        failing_since = NULL, window_since = NULL, window_attempts = 0, window_failures = 0,
        open_until = NULL, openings = 0, updated_at = $2
    WHERE no = $1";
const DISABLE_BY_OWNER: &str = "UPDATE endpoints
    SET disabled_reason = $2, disabled_at = $3, next_at = NULL, updated_at = $3 WHERE no = $1";
