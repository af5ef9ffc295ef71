//! The log of deliveries, and what people order by hand.

use super::deliveries::{hold, look_again};
use super::intake::{Recipient, hold_state, put_one};
use super::{Error, Store, connect};
use crate::webhooks::endpoint::{EndpointId, EventName};
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use taskledger_domain::{TaskId, Timestamp};
use taskledger_projections::sql::{Args, Columns, MultiRow, Tx};

/// Deliveries that one transaction of a recovery changes.
const RECOVER_ROWS: i64 = 1000;

/// Which deliveries to show.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// Only of this endpoint.
    pub endpoint: Option<EndpointId>,
    /// Only in this state.
    pub state: Option<&'static str>,
    /// Only about this task.
    pub task: Option<TaskId>,
    /// Only made at this time or after it.
    pub since: Option<Timestamp>,
    /// Only made before this time.
    pub until: Option<Timestamp>,
    /// Below this id: the page before ended there.
    pub below: Option<i64>,
}

/// A delivery as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeliveryView {
    /// Its id.
    pub id: i64,
    /// The endpoint; null when it is gone.
    pub endpoint_id: Option<EndpointId>,
    /// `webhook-id`.
    pub webhook_id: Arc<str>,
    /// What it tells.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// About which task.
    pub task_id: Option<TaskId>,
    /// `waiting`, `delivered`, `dead`, `cancelled`, `superseded`.
    pub state: Arc<str>,
    /// Attempts of the schedule.
    pub attempts: u32,
    /// Not before this time is the next one; null when none follows, or another message is first.
    pub next_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// All attempts, oldest first.
    pub log: Vec<AttemptView>,
}

/// An attempt as the owner of the endpoint sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptView {
    /// From 1.
    pub number: u32,
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub duration_ms: u32,
    /// The status of the answer.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<Arc<str>>,
    /// More about it.
    pub detail: Option<Arc<str>>,
    /// Where it went.
    pub remote: Option<Arc<str>>,
    /// The beginning of the answer.
    pub response: Option<Arc<str>>,
    /// `scheduled` or `manual`.
    pub trigger: &'static str,
}

/// What became of an order to send a message again.
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

/// Which deliveries are sent anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recover {
    /// Made at this time or after it.
    pub since: Timestamp,
    /// Made before this time.
    pub until: Option<Timestamp>,
    /// Those that have arrived too, not only those that were given up.
    pub all: bool,
}

static ATTEMPTS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT delivery, number, at, duration_ms, status, error, detail, remote, response, by_hand
         FROM attempts WHERE delivery IN (",
        1,
        ") ORDER BY delivery, number",
    )
});

impl Store {
    /// Deliveries with their attempts, newest first. Cost: O(limit) and what the filter passes over.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn deliveries(
        &self,
        filter: &DeliveryFilter,
        limit: usize,
    ) -> Result<Vec<DeliveryView>, Error> {
        self.order(async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            let wheres = conditions(filter, &mut args);
            args.int(i64::try_from(limit).unwrap_or(i64::MAX));
            let text = format!(
                "SELECT d.id, e.id, m.id, m.type, d.task_id, d.state, d.attempts, d.next_at, d.hand_at,
                    d.created_at, d.ended_at
                 FROM deliveries d JOIN messages m ON m.no = d.message
                 LEFT JOIN endpoints e ON e.no = d.endpoint
                 {wheres} ORDER BY d.id DESC LIMIT ${}",
                args.len()
            );
            let rows = tx.fetch_all(sqlx::AssertSqlSafe(text), args).await?;
            let views: Result<Vec<_>, Error> =
                rows.iter().map(|row| view(&mut Columns::of(row))).collect();
            let mut views = views?;
            with_attempts(&mut tx, &mut views).await?;
            tx.commit().await?;
            Ok(views)
        })
        .await
    }

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

    /// Makes a message that tests an endpoint, due at once. Its delivery; `None`: no such endpoint.
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
                ordering: crate::webhooks::endpoint::Ordering::None,
            };
            let body = json!({"type": EventName::Test, "timestamp": now, "endpoint_id": id});
            let message = self.message(EventName::Test, body, vec![to]);
            let no = put_one(&mut tx, message, now).await?;
            let mut args = tx.args();
            args.int(no);
            let text = "SELECT id FROM deliveries WHERE message = $1";
            let delivery = Columns::of(&tx.fetch_one(text, args).await?).int()?;
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

fn conditions(filter: &DeliveryFilter, args: &mut Args) -> String {
    let mut wheres = Vec::new();
    let mut add = |args: &Args, condition: &str| {
        wheres.push(format!("{condition} ${}", args.len()));
    };
    if let Some(endpoint) = filter.endpoint {
        args.id(endpoint.0);
        add(args, "d.endpoint = (SELECT no FROM endpoints WHERE id =");
    }
    if let Some(task) = filter.task {
        args.id(task.0);
        add(args, "d.task_id =");
    }
    if let Some(state) = filter.state {
        args.name(state);
        add(args, "d.state =");
    }
    if let Some(since) = filter.since {
        args.time(since);
        add(args, "d.created_at >=");
    }
    if let Some(until) = filter.until {
        args.time(until);
        add(args, "d.created_at <");
    }
    if let Some(below) = filter.below {
        args.int(below);
        add(args, "d.id <");
    }
    if wheres.is_empty() {
        return String::new();
    }
    if filter.endpoint.is_some() {
        wheres[0].push(')');
    }
    format!("WHERE {}", wheres.join(" AND "))
}

fn view(c: &mut Columns<'_>) -> Result<DeliveryView, Error> {
    let id = c.int()?;
    let endpoint_id = c.opt_id()?.map(EndpointId);
    let webhook_id = c.text()?;
    let kind = c.text()?;
    let task_id = c.opt_id()?.map(TaskId);
    let state = c.text()?;
    let attempts = c.number()?;
    let (next_at, hand_at) = (c.opt_time()?, c.opt_time()?);
    Ok(DeliveryView {
        id,
        endpoint_id,
        webhook_id,
        kind,
        task_id,
        state,
        attempts,
        next_at: hand_at.or(next_at),
        created_at: c.time()?,
        ended_at: c.opt_time()?,
        log: Vec::new(),
    })
}

async fn with_attempts(tx: &mut Tx<'_>, views: &mut [DeliveryView]) -> Result<(), Error> {
    let rows = ATTEMPTS
        .fetch(tx, views, |view, args| args.int(view.id))
        .await?;
    let mut by_id: HashMap<i64, &mut DeliveryView> =
        views.iter_mut().map(|view| (view.id, view)).collect();
    for row in &rows {
        let mut c = Columns::of(row);
        let delivery = c.int()?;
        let attempt = AttemptView {
            number: c.number()?,
            at: c.time()?,
            duration_ms: c.number()?,
            status: c.opt_int()?.and_then(|status| u16::try_from(status).ok()),
            error: c.opt_text()?,
            detail: c.opt_text()?,
            remote: c.opt_text()?,
            response: c.opt_text()?,
            trigger: match c.int()? {
                0 => "scheduled",
                _ => "manual",
            },
        };
        if let Some(view) = by_id.get_mut(&delivery) {
            view.log.push(attempt);
        }
    }
    Ok(())
}

const ENDPOINT_OF: &str = "SELECT e.id FROM deliveries d JOIN endpoints e ON e.no = d.endpoint
    WHERE d.id = $1";
const BY_HAND: &str = "UPDATE deliveries SET hand_at = $2 WHERE id = $1";
const REQUEST: &str = "SELECT delivery FROM requests WHERE key = $1";
const INSERT_REQUEST: &str = "INSERT INTO requests (key, delivery, created_at) VALUES ($1, $2, $3)";
// By `deliveries_endpoint` and `deliveries_dead`.
const RECOVERABLE: &str = "SELECT id, lane FROM deliveries
    WHERE endpoint = $1 AND id > $2 AND state IN ('dead', 'delivered') AND created_at >= $3 AND created_at < $4
    ORDER BY id LIMIT $5";
const RECOVERABLE_DEAD: &str = "SELECT id, lane FROM deliveries
    WHERE endpoint = $1 AND id > $2 AND state = 'dead' AND created_at >= $3 AND created_at < $4
    ORDER BY id LIMIT $5";
static REVIVE: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "WITH told (id, at) AS (",
        2,
        ") UPDATE deliveries SET state = 'waiting', attempts = 0, next_at = told.at, ended_at = NULL
           FROM told WHERE deliveries.id = told.id",
    )
});
const BEHIND_FIRST: &str = "UPDATE deliveries SET next_at = NULL
    WHERE endpoint = $1 AND lane = $2 AND state = 'waiting' AND next_at IS NOT NULL AND id <> (
        SELECT id FROM deliveries WHERE endpoint = $1 AND lane = $2 AND state = 'waiting'
        ORDER BY message LIMIT 1)";
