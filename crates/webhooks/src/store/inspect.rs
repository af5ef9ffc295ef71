//! Actions that people request by hand: send again, start over, test.

use super::deliveries::{hold, look_again};
use super::intake::{Recipient, hold_state, put_one};
use super::{Error, Store, connect};
use crate::endpoint::{EndpointId, EventName};
use serde_json::json;
use std::sync::{Arc, LazyLock};
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, MultiRow, Tx};

/// Deliveries that one transaction of a recovery changes.
const RECOVER_ROWS: i64 = 1000;

/// The result of sending a message again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redelivered {
    /// It is due now.
    Queued(i64),
    /// The same order was taken before.
    Already(i64),
    /// There is no such delivery, or its endpoint is gone.
    Unknown,
    /// Nothing is sent to its endpoint.
    Disabled,
}

/// The deliveries that are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recover {
    /// Made at this time or after it.
    pub since: Timestamp,
    /// Made before this time.
    pub until: Option<Timestamp>,
    /// Those that have arrived too, not only those that were given up.
    pub all: bool,
}

impl Store {
    /// Makes a delivery due by hand, once for each `request_key`. Its schedule goes on beside.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn redeliver(
        &self,
        delivery: i64,
        request_key: Option<Arc<str>>,
        now: Timestamp,
    ) -> Result<Redelivered, Error> {
        let done = self
            .order(self.redeliver_one(delivery, request_key, now))
            .await?;
        self.now_due();
        Ok(done)
    }

    async fn redeliver_one(
        &self,
        delivery: i64,
        request_key: Option<Arc<str>>,
        now: Timestamp,
    ) -> Result<Redelivered, Error> {
        let mut tx = self.write().await?;
        let mut args = tx.args();
        args.int(delivery);
        let found = tx.fetch_optional(ENDPOINT_OF, args).await?;
        let held = match &found {
            Some(row) => hold(&mut tx, EndpointId(Columns::of(row).id()?)).await?,
            None => None,
        };
        let outcome = match held {
            None => Redelivered::Unknown,
            Some(held) if held.disabled => Redelivered::Disabled,
            Some(held) => match first_time(&mut tx, request_key, delivery, now).await? {
                Some(before) => Redelivered::Already(before),
                None => {
                    let mut args = tx.args();
                    args.int(delivery);
                    args.time(now);
                    tx.execute(BY_HAND, args).await?;
                    look_again(&mut tx, held).await?;
                    connect::announce(&mut tx).await?;
                    tx.commit().await?;
                    return Ok(Redelivered::Queued(delivery));
                }
            },
        };
        tx.rollback().await?;
        Ok(outcome)
    }

    /// Lets deliveries of an endpoint begin their schedule anew, in their order. Returns how many;
    /// `None`: there is no such endpoint. Cost: O(deliveries), in slices.
    ///
    /// # Errors
    /// [`Error`]: some may have begun anew; ask again.
    pub async fn recover(
        &self,
        id: EndpointId,
        which: Recover,
        now: Timestamp,
    ) -> Result<Option<u64>, Error> {
        let (mut done, mut after) = (0, 0);
        loop {
            let some = self.order(self.recover_some(id, which, after, now)).await?;
            let Some((count, last)) = some else {
                return Ok(None);
            };
            done += count;
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
        self.now_due();
        Ok(Some(done))
    }

    /// How many of a slice begin anew, and where the next slice begins.
    async fn recover_some(
        &self,
        id: EndpointId,
        which: Recover,
        after: i64,
        now: Timestamp,
    ) -> Result<Option<(u64, Option<i64>)>, Error> {
        let mut tx = self.write().await?;
        let Some(held) = hold(&mut tx, id).await? else {
            tx.rollback().await?;
            return Ok(None);
        };
        let mut args = tx.args();
        args.int(held.no);
        args.int(after);
        args.time(which.since);
        args.time(which.until.unwrap_or(Timestamp(i64::MAX)));
        args.int(RECOVER_ROWS);
        let text = if which.all {
            RECOVERABLE
        } else {
            RECOVERABLE_DEAD
        };
        let rows = tx.fetch_all(text, args).await?;
        let found: Result<Vec<_>, Error> = rows
            .iter()
            .map(|row| {
                let mut c = Columns::of(row);
                Ok((c.int()?, c.opt_id()?))
            })
            .collect();
        let found = found?;
        REVIVE
            .execute(&mut tx, &found, |(delivery, lane), args| {
                args.int(*delivery);
                args.time(lane.is_none().then_some(now));
            })
            .await?;
        let mut lanes: Vec<_> = found.iter().filter_map(|(_, lane)| *lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        for lane in lanes {
            // An older message may be before the one that was first until now.
            let mut args = tx.args();
            args.int(held.no);
            args.id(lane);
            tx.execute(BEHIND_FIRST, args).await?;
            super::deliveries::promote(&mut tx, held.no, lane, now).await?;
        }
        look_again(&mut tx, held).await?;
        connect::announce(&mut tx).await?;
        tx.commit().await?;
        let full = found.len() as i64 == RECOVER_ROWS;
        let last = found.last().filter(|_| full).map(|(delivery, _)| *delivery);
        Ok(Some((found.len() as u64, last)))
    }

    /// Makes a message that tests an endpoint, due at once and tried once. Its delivery; `None`: no such
    /// endpoint.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn test(&self, id: EndpointId, now: Timestamp) -> Result<Option<i64>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            hold_state(&mut tx).await?;
            let Some(held) = hold(&mut tx, id).await? else {
                tx.rollback().await?;
                return Ok(None);
            };
            let to = Recipient {
                endpoint: held.no,
                ordering: crate::endpoint::Ordering::None,
                reports: None,
            };
            let body = json!({"type": EventName::Test, "timestamp": now, "endpoint_id": id});
            let message = self.message(EventName::Test, body, vec![to]);
            let no = put_one(&mut tx, message, now).await?;
            let mut args = tx.args();
            args.int(no);
            let delivery = Columns::of(&tx.fetch_one(TRY_ONCE, args).await?).int()?;
            tx.commit().await?;
            Ok(Some(delivery))
        };
        let made = self.order(work).await?;
        self.now_due();
        Ok(made)
    }
}

/// The delivery of an earlier order with the same key; notes this one if there was none.
async fn first_time(
    tx: &mut Tx<'_>,
    key: Option<Arc<str>>,
    delivery: i64,
    now: Timestamp,
) -> Result<Option<i64>, Error> {
    let Some(key) = key else { return Ok(None) };
    let mut args = tx.args();
    args.text(key.clone());
    let before = tx.fetch_optional(REQUEST, args).await?;
    if let Some(row) = before {
        return Ok(Some(Columns::of(&row).int()?));
    }
    let mut args = tx.args();
    args.text(key);
    args.int(delivery);
    args.time(now);
    tx.execute(INSERT_REQUEST, args).await?;
    Ok(None)
}

const ENDPOINT_OF: &str = "SELECT e.id FROM deliveries d JOIN endpoints e ON e.no = d.endpoint
    WHERE d.id = $1";
const BY_HAND: &str = "UPDATE deliveries SET hand_at = $2 WHERE id = $1";
const REQUEST: &str = "SELECT delivery FROM requests WHERE key = $1";
const INSERT_REQUEST: &str = "INSERT INTO requests (key, delivery, created_at) VALUES ($1, $2, $3)";
// By `deliveries_endpoint` and `deliveries_dead`.
const RECOVERABLE: &str =
    "SELECT d.id, d.lane FROM deliveries d JOIN messages m ON m.no = d.message
    WHERE d.endpoint = $1 AND d.id > $2 AND d.state IN ('dead', 'delivered')
      AND d.created_at >= $3 AND d.created_at < $4 AND m.type <> 'webhook.test'
    ORDER BY d.id LIMIT $5";
const RECOVERABLE_DEAD: &str =
    "SELECT d.id, d.lane FROM deliveries d JOIN messages m ON m.no = d.message
    WHERE d.endpoint = $1 AND d.id > $2 AND d.state = 'dead'
      AND d.created_at >= $3 AND d.created_at < $4 AND m.type <> 'webhook.test'
    ORDER BY d.id LIMIT $5";
/// A test has no schedule.
const TRY_ONCE: &str = "UPDATE deliveries SET hand_at = next_at, next_at = NULL
    WHERE message = $1 RETURNING id";
static REVIVE: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "WITH told (id, at) AS (",
        2,
        ") UPDATE deliveries SET state = 'waiting', attempts = 0, recovered = 1, next_at = told.at, ended_at = NULL
           FROM told WHERE deliveries.id = told.id",
    )
});
const BEHIND_FIRST: &str = "UPDATE deliveries SET next_at = NULL
    WHERE endpoint = $1 AND lane = $2 AND state = 'waiting' AND next_at IS NOT NULL AND id <> (
        SELECT id FROM deliveries WHERE endpoint = $1 AND lane = $2 AND state = 'waiting'
        ORDER BY message LIMIT 1)";
