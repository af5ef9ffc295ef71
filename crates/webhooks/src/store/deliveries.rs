//! Statements for the worker: taking deliveries, and recording attempts.

use super::row::{self, health};
use super::{Error, Store, connect, for_update};
use crate::delivery::{
    AttemptReport, Cause, Deliveries, DeliveryId, DeliveryState, Due, Health, Lease, Leased, Next,
    Recorded, Unavailable,
};
use crate::endpoint::EndpointId;
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::LazyLock;
use taskledger_domain::{FlowId, TaskId, Timestamp};
use taskledger_sql::{Columns, Engine, MultiRow, Tx};
use uuid::Uuid;

impl From<Error> for Unavailable {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// An endpoint whose row is held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) no: i64,
    pub(super) lasts: bool,
    pub(super) token: i64,
    pub(super) disabled: bool,
    pub(super) open_until: Option<Timestamp>,
}

#[async_trait]
impl Deliveries for Store {
    async fn lease(
        &self,
        worker: Uuid,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Leased>, Unavailable> {
        Ok(self
            .order(self.take_leases(worker, now, until, limit))
            .await?)
    }

    async fn renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<bool>, Unavailable> {
        Ok(self.order(self.renew_leases(leases, until)).await?)
    }

    async fn due(
        &self,
        lease: &Lease,
        now: Timestamp,
        under_way: &[DeliveryId],
        limit: usize,
    ) -> Result<Vec<Due>, Unavailable> {
        Ok(self
            .order(self.due_now(lease, now, under_way, limit))
            .await?)
    }

    async fn record(&self, lease: &Lease, told: AttemptReport) -> Result<Recorded, Unavailable> {
        let says = told.say.is_some();
        let recorded = self.order(self.record_attempt(lease, &told)).await?;
        if recorded == Recorded::Yes && says {
            self.now_due();
        }
        Ok(recorded)
    }

    async fn release(&self, lease: &Lease) -> Result<(), Unavailable> {
        Ok(self.order(self.give_back(lease)).await?)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, Unavailable> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let row = tx.fetch_one(NEXT_DUE, args).await?;
            tx.commit().await?;
            Ok(Columns::of(&row).opt_time()?)
        };
        Ok(self.order(work).await?)
    }

    async fn changed(&self) {
        self.hear().await;
    }
}

impl Store {
    async fn take_leases(
        &self,
        worker: Uuid,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Leased>, Error> {
        let mut tx = self.write().await?;
        let mut args = tx.args();
        args.time(now);
        args.int(i64::try_from(limit).unwrap_or(i64::MAX));
        args.id(worker);
        args.time(until);
        let text = match tx.engine() {
            Engine::Sqlite => LEASE_SQLITE,
            Engine::Postgres => LEASE_POSTGRES,
        };
        let rows = tx.fetch_all(text, args).await?;
        let mut taken = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut c = Columns::of(row);
            let (no, id, token) = (c.int()?, EndpointId(c.id()?), c.int()?);
            let leased = Leased {
                lease: Lease {
                    endpoint: id,
                    token,
                },
                url: c.text()?,
                owner: c.opt_text()?,
                headers: Vec::new(),
                keys: Vec::new(),
                ordering: row::ordering(c.word()?)?,
                schedule: row::schedule(c.opt_word()?)?,
                content_type: c.opt_text()?,
                health: health(&mut c)?,
            };
            taken.push((c.opt_time()?, no, leased));
        }
        let of: Vec<_> = taken
            .iter()
            .map(|(_, no, leased)| (*no, leased.lease.endpoint))
            .collect();
        let mut secrets = self.secrets(&mut tx, &of, now).await?;
        tx.commit().await?;
        taken.sort_by_key(|(next_at, no, _)| (*next_at, *no));
        // One whose secrets do not open stays leased, so that it is looked at again later and not at once.
        let complete = taken.into_iter().filter_map(|(_, no, mut leased)| {
            let found = secrets.remove(&no)?;
            leased.keys = found.keys;
            leased.headers = found.headers;
            Some(leased)
        });
        Ok(complete.collect())
    }

    async fn renew_leases(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<bool>, Error> {
        let mut tx = self.write().await?;
        let rows = RENEW
            .fetch(&mut tx, leases, |lease, args| {
                args.id(lease.endpoint.0);
                args.int(lease.token);
                args.time(until);
            })
            .await?;
        let kept: Result<Vec<_>, _> = rows.iter().map(|row| Columns::of(row).id()).collect();
        let kept = kept?;
        tx.commit().await?;
        Ok(leases
            .iter()
            .map(|lease| kept.contains(&lease.endpoint.0))
            .collect())
    }

    async fn due_now(
        &self,
        lease: &Lease,
        now: Timestamp,
        under_way: &[DeliveryId],
        limit: usize,
    ) -> Result<Vec<Due>, Error> {
        let mut tx = self.read().await?;
        let mut found = Vec::new();
        let mut args = tx.args();
        args.id(lease.endpoint.0);
        args.int(lease.token);
        if let Some(row) = tx.fetch_optional(LEASED, args).await? {
            let no = Columns::of(&row).int()?;
            let rows_max = i64::try_from(limit + under_way.len()).unwrap_or(i64::MAX);
            for text in [DUE_BY_HAND, DUE] {
                let mut args = tx.args();
                args.int(no);
                args.time(now);
                args.int(rows_max);
                for row in tx.fetch_all(text, args).await? {
                    let mut c = Columns::of(&row);
                    let due = Due {
                        id: DeliveryId(c.int()?),
                        message_id: c.text()?,
                        task: c.opt_id()?.map(TaskId),
                        flow: c.opt_id()?.map(FlowId),
                        body: Bytes::copy_from_slice(c.bytes()?),
                        attempts: c.number()?,
                        traceparent: c.opt_text()?,
                        cause: row::cause(c.int()?)?,
                    };
                    if found.len() < limit && !under_way.contains(&due.id) {
                        found.push(due);
                    }
                }
            }
        }
        tx.commit().await?;
        Ok(found)
    }

    async fn record_attempt(&self, lease: &Lease, told: &AttemptReport) -> Result<Recorded, Error> {
        let mut tx = self.write().await?;
        if told.say.is_some() {
            super::intake::hold_state(&mut tx).await?;
        }
        let held = match hold(&mut tx, lease.endpoint).await? {
            None => return end(tx, Recorded::Gone).await,
            Some(held) if held.token != lease.token => return end(tx, Recorded::Fenced).await,
            Some(held) => held,
        };
        let mut args = tx.args();
        args.int(told.delivery.0);
        args.int(held.no);
        let Some(row) = tx.fetch_optional(DELIVERY, args).await? else {
            return end(tx, Recorded::Gone).await;
        };
        let mut c = Columns::of(&row);
        let is_open = row::state(c.word()?)? == DeliveryState::Waiting;
        let lane = c.opt_id()?;
        let mut args = tx.args();
        args.int(told.delivery.0);
        args.time(told.attempt.at);
        args.int(i64::from(told.attempt.duration_ms));
        args.int(told.attempt.cause.number());
        args.int(told.attempt.status.map(i64::from));
        if tx.fetch_optional(KNOWN, args).await?.is_some() {
            // The answer of its commit was lost.
            return end(tx, Recorded::Yes).await;
        }
        let now = ended_at(told);
        note_attempt(&mut tx, told).await?;
        let ended = change(&mut tx, told, is_open, now).await?;
        if let (true, Some(lane)) = (ended, lane) {
            // Due since before: clocks that count in larger steps must not make it wait.
            promote(&mut tx, held.no, lane, told.attempt.at).await?;
        }
        note_health(&mut tx, held, told, now).await?;
        if let Some(event) = told.say {
            let about = (held.no, lease.endpoint);
            self.say(&mut tx, event, about, told).await?;
            connect::announce(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(Recorded::Yes)
    }

    async fn give_back(&self, lease: &Lease) -> Result<(), Error> {
        let mut tx = self.write().await?;
        if let Some(held) = hold(&mut tx, lease.endpoint).await?
            && held.token == lease.token
        {
            let mut args = tx.args();
            args.int(held.no);
            tx.execute(RELEASE, args).await?;
            look_again(&mut tx, held).await?;
            connect::announce(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

async fn end<T>(tx: Tx<'_>, outcome: T) -> Result<T, Error> {
    tx.rollback().await?;
    Ok(outcome)
}

/// When the attempt was over, by the clock of whoever made it.
fn ended_at(told: &AttemptReport) -> Timestamp {
    Timestamp(told.attempt.at.0 + i64::from(told.attempt.duration_ms) * 1000)
}

/// Holds the row of an endpoint until the transaction ends.
pub(super) async fn hold(tx: &mut Tx<'_>, id: EndpointId) -> Result<Option<Held>, Error> {
    let mut args = tx.args();
    args.id(id.0);
    let text = format!("{HOLD}{}", for_update(tx));
    let row = tx.fetch_optional(sqlx::AssertSqlSafe(text), args).await?;
    let Some(row) = row else { return Ok(None) };
    let mut c = Columns::of(&row);
    Ok(Some(Held {
        no: c.int()?,
        token: c.int()?,
        disabled: c.opt_word()?.is_some(),
        open_until: c.opt_time()?,
        lasts: c.int()? == 0,
    }))
}

/// Sets when an endpoint is to be looked at next, from what waits for it. Cost: O(1).
pub(super) async fn look_again(tx: &mut Tx<'_>, held: Held) -> Result<(), Error> {
    let mut next = None;
    if !held.disabled {
        for text in [FIRST_DUE, FIRST_BY_HAND] {
            let mut args = tx.args();
            args.int(held.no);
            let first = Columns::of(&tx.fetch_one(text, args).await?).opt_time()?;
            next = match (next, first) {
                (Some(a), Some(b)) => Some(std::cmp::min::<Timestamp>(a, b)),
                (a, b) => a.or(b),
            };
        }
    }
    let next = next.map(|at| held.open_until.map_or(at, |open| at.max(open)));
    let mut args = tx.args();
    args.int(held.no);
    args.time(next);
    tx.execute("UPDATE endpoints SET next_at = $2 WHERE no = $1", args)
        .await?;
    Ok(())
}

/// Lets the first open message of a lane be sent, if it is not already. Cost: O(1).
pub(super) async fn promote(
    tx: &mut Tx<'_>,
    endpoint: i64,
    lane: Uuid,
    now: Timestamp,
) -> Result<(), Error> {
    let mut args = tx.args();
    args.int(endpoint);
    args.id(lane);
    args.time(now);
    tx.execute(PROMOTE, args).await?;
    Ok(())
}

async fn note_attempt(tx: &mut Tx<'_>, told: &AttemptReport) -> Result<(), Error> {
    let attempt = &told.attempt;
    let mut args = tx.args();
    args.int(told.delivery.0);
    let newest = "SELECT coalesce(max(number), 0) FROM attempts WHERE delivery = $1";
    let number = Columns::of(&tx.fetch_one(newest, args).await?).int()? + 1;
    let mut args = tx.args();
    args.int(told.delivery.0);
    args.int(number);
    args.time(attempt.at);
    args.int(i64::from(attempt.duration_ms));
    args.int(attempt.status.map(i64::from));
    args.name(attempt.error);
    args.text(attempt.detail.clone());
    args.text(attempt.remote.clone());
    args.text(attempt.response.clone());
    args.int(attempt.cause.number());
    tx.execute(INSERT_ATTEMPT, args).await?;
    Ok(())
}

/// Changes the delivery as the attempt says. Returns whether an open one has ended.
async fn change(
    tx: &mut Tx<'_>,
    told: &AttemptReport,
    is_open: bool,
    now: Timestamp,
) -> Result<bool, Error> {
    let counted = i64::from(told.attempt.cause != Cause::Manual);
    // One that was ended meanwhile (cancelled, superseded) stays so, unless it has arrived.
    let (state, next_at) = match told.next {
        Next::Delivered => (Some(DeliveryState::Delivered), None),
        Next::Dead if is_open => (Some(DeliveryState::Dead), None),
        Next::RetryAt(at) if is_open => (None, Some(at)),
        Next::Dead | Next::RetryAt(_) | Next::Unchanged => {
            if told.attempt.cause.by_hand() {
                let mut args = tx.args();
                args.int(told.delivery.0);
                let text = "UPDATE deliveries SET hand_at = NULL WHERE id = $1";
                tx.execute(text, args).await?;
            }
            return Ok(false);
        }
    };
    let ends = state.is_some();
    let mut args = tx.args();
    args.int(told.delivery.0);
    args.name(state.unwrap_or(DeliveryState::Waiting).as_str());
    args.time(next_at);
    args.int(counted);
    args.time(ends.then_some(now));
    args.int(i64::from(told.attempt.cause.by_hand() || ends));
    tx.execute(CHANGE, args).await?;
    Ok(ends && is_open)
}

async fn note_health(
    tx: &mut Tx<'_>,
    held: Held,
    told: &AttemptReport,
    now: Timestamp,
) -> Result<(), Error> {
    let Health {
        failures,
        failing_since,
        window,
        open_until,
        openings,
    } = told.health;
    let mut args = tx.args();
    args.int(held.no);
    args.int(i64::from(failures));
    args.time(failing_since);
    args.time(window.since);
    args.int(i64::from(window.attempts));
    args.int(i64::from(window.failures));
    args.time(open_until);
    args.int(i64::from(openings));
    tx.execute(HEALTH, args).await?;
    if let (Some(reason), false) = (told.disable, held.disabled) {
        let mut args = tx.args();
        args.int(held.no);
        args.name(reason.as_str());
        args.time(now);
        tx.execute(DISABLE, args).await?;
    }
    Ok(())
}

const DISABLE: &str = "UPDATE endpoints
    SET disabled_reason = $2, disabled_at = $3, next_at = NULL WHERE no = $1";

// Both rely on `endpoints_next`.
const LEASE_SQLITE: &str = "WITH picked AS MATERIALIZED (
        SELECT no FROM endpoints
        WHERE next_at <= $1 AND disabled_reason IS NULL
          AND (open_until IS NULL OR open_until <= $1)
          AND (lease_until IS NULL OR lease_until <= $1)
        ORDER BY next_at LIMIT $2)
    UPDATE endpoints SET lease_owner = $3, lease_token = lease_token + 1, lease_until = $4
    WHERE no IN (SELECT no FROM picked)
    RETURNING no, id, lease_token, url, owner, ordering, schedule, content_type, failures, failing_since,
        window_since, window_attempts, window_failures, open_until, openings, next_at";
const LEASE_POSTGRES: &str = "WITH picked AS MATERIALIZED (
        SELECT no FROM endpoints
        WHERE next_at <= $1 AND disabled_reason IS NULL
          AND (open_until IS NULL OR open_until <= $1)
          AND (lease_until IS NULL OR lease_until <= $1)
        ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED)
    UPDATE endpoints SET lease_owner = $3, lease_token = lease_token + 1, lease_until = $4
    WHERE no IN (SELECT no FROM picked)
    RETURNING no, id, lease_token, url, owner, ordering, schedule, content_type, failures, failing_since,
        window_since, window_attempts, window_failures, open_until, openings, next_at";
static RENEW: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "WITH told (id, token, until) AS (",
        3,
        ") UPDATE endpoints SET lease_until = told.until FROM told
         WHERE endpoints.id = told.id AND endpoints.lease_token = told.token RETURNING endpoints.id",
    )
});
const LEASED: &str = "SELECT no FROM endpoints
    WHERE id = $1 AND lease_token = $2 AND disabled_reason IS NULL";
const HOLD: &str =
    "SELECT no, lease_token, disabled_reason, open_until, is_callback FROM endpoints WHERE id = $1";
const RELEASE: &str = "UPDATE endpoints SET lease_owner = NULL, lease_until = NULL WHERE no = $1";
// By `deliveries_by_hand` and `deliveries_due`.
const DUE_BY_HAND: &str =
    "SELECT d.id, m.id, d.task_id, m.flow_id, m.body, d.attempts, m.traceparent,
        CASE WHEN m.type = 'webhook.test' AND d.state = 'waiting' THEN CAST(3 AS BIGINT) ELSE 1 END
    FROM deliveries d JOIN messages m ON m.no = d.message
    WHERE d.endpoint = $1 AND d.hand_at <= $2
    ORDER BY d.hand_at, d.id LIMIT $3";
const DUE: &str = "SELECT d.id, m.id, d.task_id, m.flow_id, m.body, d.attempts, m.traceparent,
        CASE WHEN d.recovered = 1 THEN CAST(2 AS BIGINT) ELSE 0 END
    FROM deliveries d JOIN messages m ON m.no = d.message
    WHERE d.endpoint = $1 AND d.next_at <= $2 AND d.hand_at IS NULL
    ORDER BY d.next_at, d.message LIMIT $3";
const FIRST_DUE: &str =
    "SELECT min(next_at) FROM deliveries WHERE endpoint = $1 AND next_at IS NOT NULL";
const FIRST_BY_HAND: &str =
    "SELECT min(hand_at) FROM deliveries WHERE endpoint = $1 AND hand_at IS NOT NULL";
/// An attempt that was recorded already. By the primary key: a delivery has few.
const KNOWN: &str = "SELECT 1 FROM attempts WHERE delivery = $1 AND at = $2 AND duration_ms = $3
    AND cause = $4 AND status IS NOT DISTINCT FROM $5";
const DELIVERY: &str = "SELECT state, lane FROM deliveries WHERE id = $1 AND endpoint = $2";
// By `deliveries_lane`.
const PROMOTE: &str = "UPDATE deliveries SET next_at = $3
    WHERE next_at IS NULL AND id = (
        SELECT id FROM deliveries WHERE endpoint = $1 AND lane = $2 AND state = 'waiting'
        ORDER BY message LIMIT 1)";
const INSERT_ATTEMPT: &str =
    "INSERT INTO attempts (delivery, number, at, duration_ms, status, error,
        detail, remote, response, cause)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const CHANGE: &str = "UPDATE deliveries SET state = $2, next_at = $3, attempts = attempts + $4,
        ended_at = $5, hand_at = CASE WHEN $6 = 1 THEN NULL ELSE hand_at END
    WHERE id = $1";
const HEALTH: &str = "UPDATE endpoints SET failures = $2, failing_since = $3, window_since = $4,
        window_attempts = $5, window_failures = $6, open_until = $7, openings = $8
    WHERE no = $1";
// The first by time are enough: what is leased comes back by itself.
const NEXT_DUE: &str = "SELECT min(at) FROM (
        SELECT CASE WHEN lease_until > next_at THEN lease_until ELSE next_at END AS at
        FROM endpoints WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1000) AS first";
