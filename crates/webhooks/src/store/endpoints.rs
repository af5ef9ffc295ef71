//! Creates, shows, changes and deletes endpoints.

use super::deliveries::{hold, look_again};
use super::intake::hold_state;
use super::lanes::reorder;
use super::row::{ENDPOINT, endpoint, events_text, schedule_text};
use super::sweep::{cancel_open, remember, remove};
use super::{Error, Store, connect};
use crate::delivery::Secret;
use crate::endpoint::{Endpoint, EndpointId, EventName, Filter, KeyTimes, Life, Ordering};
use crate::reports::Reported;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use taskledger_domain::task::Selector;
use taskledger_domain::{FlowId, Position, Timestamp};
use taskledger_sql::{Columns, MultiRow, Tx};

/// Endpoints in all: what one event may have to be noted for in one transaction.
pub const ENDPOINTS_MAX: i64 = 20_000;
/// Callbacks whose executions have not ended: each is looked at when a server starts.
pub const CALLBACKS_MAX: i64 = 200_000;

/// An endpoint to be made.
#[derive(Debug, Clone)]
pub struct New {
    /// Fresh.
    pub id: EndpointId,
    /// Where to send.
    pub url: Arc<str>,
    /// Free text for people; empty when none was given.
    pub description: Arc<str>,
    /// The user that owns it; `None`: nobody.
    pub owner: Option<Arc<str>>,
    /// What to send.
    pub filter: Filter,
    /// How long it lives.
    pub life: Life,
    /// Which messages wait for earlier ones.
    pub ordering: Ordering,
    /// Seconds before each attempt.
    pub schedule: Option<Arc<[u32]>>,
    /// Headers of its own.
    pub headers: Vec<(Arc<str>, Secret)>,
    /// What signs; `None`: nothing, for callbacks only.
    pub secret: Option<Secret>,
    /// What it is besides an address, of a callback that gets reports; with its name.
    pub reported: Option<Reported>,
}

/// The result of creating an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// Made.
    Yes(Box<Endpoint>),
    /// There are as many as there may be.
    Full(i64),
    /// The id is that of another one.
    Taken,
}

/// The changes of an endpoint; `None`: it stays.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Where to send.
    pub url: Option<Arc<str>>,
    /// Free text for people.
    pub description: Option<Arc<str>>,
    /// Which events; `Some(None)`: everything about tasks.
    pub events: Option<Option<Arc<[EventName]>>>,
    /// Which flow; `Some(None)`: any.
    pub flow: Option<Option<FlowId>>,
    /// The user whose flows it is about; `Some(None)`: all users.
    pub user: Option<Option<Arc<str>>>,
    /// Which labels its tasks must have; an empty one: none.
    pub labels: Option<Selector>,
    /// Which messages wait for earlier ones.
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
static KEY_TIMES: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT endpoint, created_at, expires_at FROM endpoint_keys WHERE endpoint IN (",
        1,
        ") ORDER BY endpoint, number DESC",
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

    /// Adds the row of an endpoint with its secrets; its number. Whether there is room is known.
    pub(super) async fn insert(
        &self,
        tx: &mut Tx<'_>,
        new: &New,
        since: Position,
        now: Timestamp,
    ) -> Result<i64, Error> {
        let is_callback = matches!(new.life, Life::Run(_));
        let reported = new.reported.as_ref();
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
        args.text(new.owner.clone());
        args.text(reported.and_then(|it| it.name.clone()));
        args.text(reported.and_then(|it| it.scheme.clone()));
        args.text(reported.map(|it| it.content_type.clone()));
        args.text(labels_text(&new.filter.labels));
        let row = tx.fetch_one(INSERT, args).await?;
        let no = Columns::of(&row).int()?;
        self.put_headers(tx, (no, new.id), &new.headers).await?;
        if let Some(secret) = &new.secret {
            let digest = (!is_callback)
                .then(|| self.keys.digest(&secret.0))
                .flatten();
            self.put_key(tx, (no, new.id), (secret, digest), now)
                .await?;
        }
        Ok(no)
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
        if let Some(max) = self.has_no_room(&mut tx, is_callback).await? {
            tx.rollback().await?;
            return Ok(Created::Full(max));
        }
        if one(&mut tx, new.id).await?.is_some() {
            tx.rollback().await?;
            return Ok(Created::Taken);
        }
        self.insert(&mut tx, new, since, now).await?;
        let made = one(&mut tx, new.id).await?;
        tx.commit().await?;
        let (_, made) = made.ok_or_else(|| Error::Damaged("a new row is not there".to_owned()))?;
        Ok(Created::Yes(Box::new(made)))
    }

    /// How many there may be, if there are as many.
    pub(super) async fn has_no_room(
        &self,
        tx: &mut Tx<'_>,
        is_callback: bool,
    ) -> Result<Option<i64>, Error> {
        let (room, count, max) = if is_callback {
            (&self.room_of_callbacks, COUNT_CALLBACKS, CALLBACKS_MAX)
        } else {
            (&self.room_of_lasting, COUNT_LASTING, ENDPOINTS_MAX)
        };
        if !room.take() {
            let args = tx.args();
            let there = Columns::of(&tx.fetch_one(count, args).await?).int()?;
            if there >= max {
                return Ok(Some(max));
            }
            room.counted(there, max);
        }
        Ok(None)
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

    /// Lasting endpoints with a number above `after`, oldest first, each with its number; those of this
    /// owner, or all.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(
        &self,
        owner: Option<&Arc<str>>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, Endpoint)>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.int(after);
            args.int(i64::try_from(limit).unwrap_or(i64::MAX));
            let whose = match owner {
                None => "",
                Some(owner) => {
                    args.text(owner.clone());
                    "AND owner = $3 "
                }
            };
            let text = format!(
                "SELECT {ENDPOINT} FROM endpoints WHERE no > $1 AND is_callback = 0 {whose}ORDER BY no LIMIT $2"
            );
            let rows = tx.fetch_all(sqlx::AssertSqlSafe(text), args).await?;
            let found: Result<Vec<_>, Error> = rows
                .iter()
                .map(|row| endpoint(&mut Columns::of(row)))
                .collect();
            let mut found = found?;
            with_parts(&mut tx, &mut found).await?;
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
        filter.labels = change.labels.unwrap_or(std::mem::take(&mut filter.labels));
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
        args.text(labels_text(&found.filter.labels));
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
            remember(&mut tx, held.no, now).await?;
            remove(&mut tx, held.no).await?;
            if held.lasts {
                let args = tx.args();
                tx.execute("UPDATE state SET removal = generation", args)
                    .await?;
            }
            tx.commit().await?;
            Ok(Some(cancelled))
        };
        let deleted = self.order(work).await?;
        self.now_wanted();
        Ok(deleted)
    }
}

/// One endpoint with its number.
pub(super) async fn one(tx: &mut Tx<'_>, id: EndpointId) -> Result<Option<(i64, Endpoint)>, Error> {
    let mut args = tx.args();
    args.id(id.0);
    let text = format!("SELECT {ENDPOINT} FROM endpoints WHERE id = $1");
    let row = tx.fetch_optional(sqlx::AssertSqlSafe(text), args).await?;
    let Some(row) = row else { return Ok(None) };
    let mut found = vec![endpoint(&mut Columns::of(&row))?];
    with_parts(tx, &mut found).await?;
    Ok(found.pop())
}

/// Reads what is known of headers and keys.
async fn with_parts(tx: &mut Tx<'_>, found: &mut [(i64, Endpoint)]) -> Result<(), Error> {
    let rows = HEADER_NAMES
        .fetch(tx, found, |(no, _), args| args.int(*no))
        .await?;
    let keys = KEY_TIMES
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
    for row in &keys {
        let mut c = Columns::of(row);
        if let Some(endpoint) = by_number.get_mut(&c.int()?) {
            endpoint.key_times.push(KeyTimes {
                created_at: c.time()?,
                expires_at: c.opt_time()?,
            });
        }
    }
    Ok(())
}

fn labels_text(labels: &Selector) -> Option<Arc<str>> {
    (!labels.is_empty()).then(|| labels.text().into())
}

fn bind_filter(args: &mut taskledger_sql::Args, filter: &Filter) {
    args.text(filter.events.as_deref().map(|e| Arc::from(events_text(e))));
    args.opt_id(filter.flow.map(|flow| flow.0));
    args.text(filter.user.clone());
    let events = filter.events.as_deref().unwrap_or_default();
    let asks = |event: &EventName| EventName::ABOUT_ENDPOINTS.contains(event);
    args.int(i64::from(events.iter().any(asks)));
}

/// The state is held.
pub(super) async fn raise_generation(tx: &mut Tx<'_>) -> Result<(), Error> {
    let args = tx.args();
    tx.execute("UPDATE state SET generation = generation + 1", args)
        .await?;
    connect::announce(tx).await
}

const COUNT_CALLBACKS: &str = "SELECT count(*) FROM endpoints WHERE is_callback = 1 AND (run_ended = 0 OR report_name IS NOT NULL)";
const COUNT_LASTING: &str = "SELECT count(*) FROM endpoints WHERE is_callback = 0";
const INSERT: &str = "INSERT INTO endpoints (id, url, description, events, flow_id, user_id,
        about_endpoints, is_callback, ordering, schedule, since, created_at, updated_at, generation,
        run_ended, failures, window_attempts, window_failures, openings, lease_token, owner,
        report_name, auth_scheme, content_type, labels)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, (SELECT generation FROM state),
        0, 0, 0, 0, 0, 0, $13, $14, $15, $16, $17) RETURNING no";
const UPDATE: &str = "UPDATE endpoints SET url = $2, description = $3, events = $4, flow_id = $5,
        user_id = $6, about_endpoints = $7, ordering = $8, schedule = $9, updated_at = $10, labels = $11,
        generation = (SELECT generation FROM state)
    WHERE no = $1";
