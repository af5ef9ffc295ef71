//! Endpoints: made, shown, changed, deleted.

use super::deliveries::{DISABLE, hold, look_again};
use super::intake::hold_state;
use super::lanes::reorder;
use super::row::{ENDPOINT, endpoint, events_text, schedule_text};
use super::sweep::{cancel_open, remove};
use super::{Error, Store, connect};
use crate::webhooks::delivery::{Key, Secret};
use crate::webhooks::endpoint::{
    DisabledReason, Endpoint, EndpointId, EventName, Filter, Life, Ordering,
};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use taskledger_domain::{FlowId, Position, Timestamp};
use taskledger_projections::sql::{Columns, MultiRow, Tx};

/// Endpoints in all: what one event may have to be noted for in one transaction.
pub const ENDPOINTS_MAX: i64 = 20_000;
/// Callbacks whose executions have not ended: each is looked at when a server starts.
pub const CALLBACKS_MAX: i64 = 200_000;
/// Old keys of an endpoint that still sign: each adds a signature to each message.
pub const OLD_KEYS_MAX: i64 = 5;

/// An endpoint to be made.
#[derive(Debug, Clone)]
pub struct New {
    /// Fresh.
    pub id: EndpointId,
    /// Where to send.
    pub url: Arc<str>,
    /// For people.
    pub description: Arc<str>,
    /// What to send.
    pub filter: Filter,
    /// How long it lives.
    pub life: Life,
    /// What waits for what.
    pub ordering: Ordering,
    /// Seconds before each attempt.
    pub schedule: Option<Arc<[u32]>>,
    /// Headers of its own.
    pub headers: Vec<(Arc<str>, Secret)>,
    /// What signs; `None`: nothing, for callbacks only.
    pub secret: Option<Secret>,
}

/// What became of an order to make one.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// Made.
    Yes(Box<Endpoint>),
    /// There are as many as there may be.
    Full(i64),
    /// The id is that of another one.
    Taken,
}

/// What is changed of an endpoint; `None`: it stays.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Where to send.
    pub url: Option<Arc<str>>,
    /// For people.
    pub description: Option<Arc<str>>,
    /// Which events; `Some(None)`: everything about tasks.
    pub events: Option<Option<Arc<[EventName]>>>,
    /// Which flow; `Some(None)`: any.
    pub flow: Option<Option<FlowId>>,
    /// Whose flows; `Some(None)`: anybody's.
    pub user: Option<Option<Arc<str>>>,
    /// What waits for what.
    pub ordering: Option<Ordering>,
    /// Seconds before each attempt; `Some(None)`: the server's.
    pub schedule: Option<Option<Arc<[u32]>>>,
    /// All headers of its own.
    pub headers: Option<Vec<(Arc<str>, Secret)>>,
}

static HEADER_NAMES: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT endpoint, name FROM endpoint_headers WHERE endpoint IN (",
        1,
        ") ORDER BY endpoint, name",
    )
});

impl Store {
    /// Makes an endpoint, which gets the events above `head`, the end of the log that its caller saw
    /// before, or above the outbox's place, if that is further.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Keys`] when there is something secret and no key.
    pub async fn create(
        &self,
        new: &New,
        head: Position,
        now: Timestamp,
    ) -> Result<Created, Error> {
        let created = self.order(self.create_one(new, head, now)).await?;
        self.now_wanted();
        Ok(created)
    }

    async fn create_one(
        &self,
        new: &New,
        head: Position,
        now: Timestamp,
    ) -> Result<Created, Error> {
        let is_callback = matches!(new.life, Life::Run(_));
        let mut tx = self.write().await?;
        // A callback is found by the event that names it, and nobody else waits for it.
        let since = if is_callback {
            head
        } else {
            let state = hold_state(&mut tx).await?;
            raise_generation(&mut tx).await?;
            state.position.map_or(head, |position| position.max(head))
        };
        let (count, max) = if is_callback {
            (COUNT_CALLBACKS, CALLBACKS_MAX)
        } else {
            (COUNT_LASTING, ENDPOINTS_MAX)
        };
        let args = tx.args();
        if Columns::of(&tx.fetch_one(count, args).await?).int()? >= max {
            tx.rollback().await?;
            return Ok(Created::Full(max));
        }
        if one(&mut tx, new.id).await?.is_some() {
            tx.rollback().await?;
            return Ok(Created::Taken);
        }
        let mut args = tx.args();
        args.id(new.id.0);
        args.text(new.url.clone());
        args.text(new.description.clone());
        bind_filter(&mut args, &new.filter);
        args.int(i64::from(is_callback));
        args.name(new.ordering.as_str());
        args.text(new.schedule.as_deref().map(|s| Arc::from(schedule_text(s))));
        args.position(since);
        args.time(now);
        let row = tx.fetch_one(INSERT, args).await?;
        let no = Columns::of(&row).int()?;
        self.put_headers(&mut tx, (no, new.id), &new.headers)
            .await?;
        if let Some(secret) = &new.secret {
            self.put_key(&mut tx, (no, new.id), secret, now).await?;
        }
        let made = one(&mut tx, new.id).await?;
        tx.commit().await?;
        let (_, made) = made.ok_or_else(|| Error::Damaged("a new row is not there".to_owned()))?;
        Ok(Created::Yes(Box::new(made)))
    }

    /// An endpoint, callbacks included.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(&self, id: EndpointId) -> Result<Option<Endpoint>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let found = one(&mut tx, id).await?;
            tx.commit().await?;
            Ok(found.map(|(_, endpoint)| endpoint))
        };
        self.order(work).await
    }

    /// Lasting endpoints with a number above `after`, oldest first, each with its number.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(&self, after: i64, limit: usize) -> Result<Vec<(i64, Endpoint)>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.int(after);
            args.int(i64::try_from(limit).unwrap_or(i64::MAX));
            let text = format!(
                "SELECT {ENDPOINT} FROM endpoints WHERE no > $1 AND is_callback = 0 ORDER BY no LIMIT $2"
            );
            let rows = tx.fetch_all(sqlx::AssertSqlSafe(text), args).await?;
            let found: Result<Vec<_>, Error> = rows
                .iter()
                .map(|row| endpoint(&mut Columns::of(row)))
                .collect();
            let mut found = found?;
            with_header_names(&mut tx, &mut found).await?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// Changes an endpoint; `None`: there is none.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn update(
        &self,
        id: EndpointId,
        change: &Change,
        now: Timestamp,
    ) -> Result<Option<Endpoint>, Error> {
        let changed = self.order(self.update_one(id, change, now)).await?;
        self.now_wanted();
        self.now_due();
        Ok(changed)
    }

    async fn update_one(
        &self,
        id: EndpointId,
        change: &Change,
        now: Timestamp,
    ) -> Result<Option<Endpoint>, Error> {
        let mut tx = self.write().await?;
        hold_state(&mut tx).await?;
        raise_generation(&mut tx).await?;
        let Some(held) = hold(&mut tx, id).await? else {
            tx.rollback().await?;
            return Ok(None);
        };
        let Some((no, mut found)) = one(&mut tx, id).await? else {
            tx.rollback().await?;
            return Ok(None);
        };
        if let Some(headers) = &change.headers {
            self.put_headers(&mut tx, (no, id), headers).await?;
        }
        let reordered = change.ordering.filter(|o| *o != found.ordering);
        let change = change.clone();
        found.url = change.url.unwrap_or(found.url);
        found.description = change.description.unwrap_or(found.description);
        let filter = &mut found.filter;
        filter.events = change.events.unwrap_or(filter.events.take());
        filter.flow = change.flow.unwrap_or(filter.flow);
        filter.user = change.user.unwrap_or(filter.user.take());
        found.ordering = change.ordering.unwrap_or(found.ordering);
        found.schedule = change.schedule.unwrap_or(found.schedule);
        let mut args = tx.args();
        args.int(no);
        args.text(found.url);
        args.text(found.description);
        bind_filter(&mut args, &found.filter);
        args.name(found.ordering.as_str());
        args.text(
            found
                .schedule
                .as_deref()
                .map(|s| Arc::from(schedule_text(s))),
        );
        args.time(now);
        tx.execute(UPDATE, args).await?;
        if let Some(ordering) = reordered {
            reorder(&mut tx, no, ordering, now).await?;
            look_again(&mut tx, held).await?;
        }
        let changed = one(&mut tx, id).await?;
        connect::announce(&mut tx).await?;
        tx.commit().await?;
        Ok(changed.map(|(_, endpoint)| endpoint))
    }

    /// Deletes an endpoint with its secrets; its open deliveries become `cancelled`, and what was sent
    /// stays in the log of deliveries. Returns how many were open; `None`: there is no such endpoint.
    /// Cost: O(open deliveries).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete(&self, id: EndpointId, now: Timestamp) -> Result<Option<u64>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            hold_state(&mut tx).await?;
            raise_generation(&mut tx).await?;
            let Some(held) = hold(&mut tx, id).await? else {
                tx.rollback().await?;
                return Ok(None);
            };
            let cancelled = cancel_open(&mut tx, held.no, now).await?;
            remove(&mut tx, held.no).await?;
            tx.commit().await?;
            Ok(Some(cancelled))
        };
        let deleted = self.order(work).await?;
        self.now_wanted();
        Ok(deleted)
    }

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
                tx.execute(DISABLE, args).await?;
            }
            let found = one(&mut tx, id).await?;
            tx.commit().await?;
            Ok(found.map(|(_, endpoint)| endpoint))
        };
        self.order(work).await
    }

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

    /// Lets a new secret sign; the present one signs too until `old_until`, and of the older ones the
    /// newest [`OLD_KEYS_MAX`] in all. `None`: there is no such endpoint.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn rotate(
        &self,
        id: EndpointId,
        secret: &Secret,
        old_until: Timestamp,
        now: Timestamp,
    ) -> Result<Option<()>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let Some(held) = hold(&mut tx, id).await? else {
                tx.rollback().await?;
                return Ok(None);
            };
            let mut args = tx.args();
            args.int(held.no);
            args.time(old_until);
            tx.execute(LET_EXPIRE, args).await?;
            self.put_key(&mut tx, (held.no, id), secret, now).await?;
            let mut args = tx.args();
            args.int(held.no);
            args.time(now);
            tx.execute(ERASE_EXPIRED, args).await?;
            let mut args = tx.args();
            args.int(held.no);
            args.int(OLD_KEYS_MAX + 1);
            tx.execute(ERASE_OLDEST, args).await?;
            tx.commit().await?;
            Ok(Some(()))
        };
        self.order(work).await
    }
}

/// One endpoint with its number.
async fn one(tx: &mut Tx<'_>, id: EndpointId) -> Result<Option<(i64, Endpoint)>, Error> {
    let mut args = tx.args();
    args.id(id.0);
    let text = format!("SELECT {ENDPOINT} FROM endpoints WHERE id = $1");
    let row = tx.fetch_optional(sqlx::AssertSqlSafe(text), args).await?;
    let Some(row) = row else { return Ok(None) };
    let mut found = vec![endpoint(&mut Columns::of(&row))?];
    with_header_names(tx, &mut found).await?;
    Ok(found.pop())
}

async fn with_header_names(tx: &mut Tx<'_>, found: &mut [(i64, Endpoint)]) -> Result<(), Error> {
    let rows = HEADER_NAMES
        .fetch(tx, found, |(no, _), args| args.int(*no))
        .await?;
    let mut by_number: HashMap<i64, &mut Endpoint> =
        found.iter_mut().map(|(no, e)| (*no, e)).collect();
    for row in &rows {
        let mut c = Columns::of(row);
        if let Some(endpoint) = by_number.get_mut(&c.int()?) {
            endpoint.header_names.push(c.text()?);
        }
    }
    Ok(())
}

fn bind_filter(args: &mut taskledger_projections::sql::Args, filter: &Filter) {
    args.text(filter.events.as_deref().map(|e| Arc::from(events_text(e))));
    args.opt_id(filter.flow.map(|flow| flow.0));
    args.text(filter.user.clone());
}

/// The state is held.
pub(super) async fn raise_generation(tx: &mut Tx<'_>) -> Result<(), Error> {
    let args = tx.args();
    tx.execute("UPDATE state SET generation = generation + 1", args)
        .await?;
    connect::announce(tx).await
}

const COUNT_CALLBACKS: &str =
    "SELECT count(*) FROM endpoints WHERE is_callback = 1 AND run_ended = 0";
const COUNT_LASTING: &str = "SELECT count(*) FROM endpoints WHERE is_callback = 0";
const INSERT: &str = "INSERT INTO endpoints (id, url, description, events, flow_id, user_id,
        is_callback, ordering, schedule, since, created_at, updated_at, run_ended, failures,
        window_attempts, window_failures, openings, lease_token)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, 0, 0, 0, 0, 0, 0) RETURNING no";
const UPDATE: &str = "UPDATE endpoints SET url = $2, description = $3, events = $4, flow_id = $5,
        user_id = $6, ordering = $7, schedule = $8, updated_at = $9
    WHERE no = $1";
const ENABLE: &str =
    "UPDATE endpoints SET disabled_reason = NULL, disabled_at = NULL, failures = 0,
        failing_since = NULL, window_since = NULL, window_attempts = 0, window_failures = 0,
        open_until = NULL, openings = 0, updated_at = $2
    WHERE no = $1";
const LET_EXPIRE: &str = "UPDATE endpoint_keys SET expires_at = $2
    WHERE endpoint = $1 AND (expires_at IS NULL OR expires_at > $2)";
const ERASE_EXPIRED: &str = "DELETE FROM endpoint_keys WHERE endpoint = $1 AND expires_at <= $2";
const ERASE_OLDEST: &str = "DELETE FROM endpoint_keys WHERE endpoint = $1 AND number NOT IN (
        SELECT number FROM endpoint_keys WHERE endpoint = $1 ORDER BY number DESC LIMIT $2)";
