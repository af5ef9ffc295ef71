//! Writes of the outbox: messages, deliveries and its own place, in one transaction.

use super::lanes::lane;
use super::row::{ordering, reports};
use super::wants::wanted;
use super::{Error, Store, connect, for_update};
use crate::delivery::AttemptReport;
use crate::endpoint::{EndpointId, EventName, Ordering};
use crate::reports::Form;
use bytes::Bytes;
use serde_json::json;
use std::sync::{Arc, LazyLock};
use taskledger_domain::{CallbackId, FlowId, Position, RunId, TaskId, Timestamp};
use taskledger_sql::{Columns, Engine, MultiRow, Tx};
use taskledger_subscription::notice::Kind;

/// The state of the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Events up to here are dealt with; `None`: none was looked at yet.
    pub position: Option<Position>,
    /// Rises whenever what endpoints want has changed.
    pub generation: i64,
}

/// A recipient of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient {
    /// Number of the endpoint.
    pub endpoint: i64,
    /// Which messages wait for earlier ones there.
    pub ordering: Ordering,
    /// The format of its reports of a run; `None`: it gets notices about its tasks instead.
    pub reports: Option<Form>,
}

/// One message and all who get it.
#[derive(Debug, Clone)]
pub struct Message {
    /// `webhook-id`.
    pub id: Arc<str>,
    /// What it tells.
    pub event: EventName,
    /// About which task.
    pub task: Option<TaskId>,
    /// The flow that it is about, if it is about one.
    pub flow: Option<FlowId>,
    /// The event behind it.
    pub position: Option<Position>,
    /// The trace that led here.
    pub traceparent: Option<Arc<str>>,
    /// The exact bytes.
    pub body: Bytes,
    /// The endpoints that it is sent to.
    pub to: Vec<Recipient>,
}

/// A callback whose run has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Number of the endpoint.
    pub endpoint: i64,
    /// The run whose notices are sent to the endpoint.
    pub run: RunId,
    /// The flow that the run belongs to.
    pub flow: FlowId,
}

/// Everything that follows from events up to a position.
#[derive(Debug, Clone)]
pub struct Intake {
    /// Where the outbox was when it began.
    pub from: State,
    /// Where it is afterwards.
    pub to: Position,
    /// In the order of the log.
    pub messages: Vec<Message>,
    /// Callbacks whose runs have started.
    pub started: Vec<Started>,
    /// Callbacks whose last notice is among the messages.
    pub ended: Vec<i64>,
}

/// Whether the intake was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Written.
    Yes,
    /// Somebody else has moved the place, or endpoints want something else now: nothing was written.
    Moved,
}

impl Store {
    /// Where the outbox is.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn state(&self) -> Result<State, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let state = state(&mut tx).await?;
            tx.commit().await?;
            Ok(state)
        };
        self.order(work).await
    }

    /// The least position above which somebody wants events, callbacks included.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn first_since(&self) -> Result<Option<Position>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let row = tx
                .fetch_one("SELECT min(since) FROM endpoints", args)
                .await?;
            tx.commit().await?;
            let since = Columns::of(&row).opt_int()?;
            Ok(since.and_then(|since| Position::try_from(since).ok()))
        };
        self.order(work).await
    }

    /// The endpoint of a callback, if its row is still there.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn callback(&self, id: CallbackId) -> Result<Option<Recipient>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.id(id.0);
            let row = tx.fetch_optional(CALLBACK, args).await?;
            tx.commit().await?;
            let Some(row) = row else { return Ok(None) };
            let mut c = Columns::of(&row);
            Ok(Some(Recipient {
                endpoint: c.int()?,
                ordering: ordering(c.word()?)?,
                reports: reports(&mut c)?,
            }))
        };
        self.order(work).await
    }

    /// Writes what follows from events and moves the place, all or nothing; exactly once, however
    /// many servers try. Cost: O(deliveries).
    ///
    /// # Errors
    /// [`Error`]: nothing was written, or it is not known; look where the place is.
    pub async fn take(&self, intake: &Intake, now: Timestamp) -> Result<Taken, Error> {
        let taken = self.order(self.take_all(intake, now)).await?;
        if taken == Taken::Yes && !intake.messages.is_empty() {
            self.now_due();
        }
        Ok(taken)
    }

    /// Moves the place back to `head`, where the log ends since the operator accepted an older one, and lets every
    /// endpoint receive events behind it. Deliveries that are due stay.
    ///
    /// # Errors
    /// [`Error`]: nothing was changed, or it is not known; do it again.
    pub async fn rewind(&self, head: Position) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            for statement in [REWIND, REWIND_ENDPOINTS] {
                let mut args = tx.args();
                args.position(head);
                tx.execute(statement, args).await?;
            }
            tx.commit().await?;
            Ok(())
        };
        self.order(work).await
    }

    async fn take_all(&self, intake: &Intake, now: Timestamp) -> Result<Taken, Error> {
        let mut tx = self.write().await?;
        let mut args = tx.args();
        args.position(intake.to);
        args.int(i64::try_from(intake.messages.len()).unwrap_or(i64::MAX));
        args.int(stored(intake.from.position));
        args.int(intake.from.generation);
        let Some(row) = tx.fetch_optional(MOVE, args).await? else {
            tx.rollback().await?;
            return Ok(Taken::Moved);
        };
        let first = Columns::of(&row).int()? - intake.messages.len() as i64 + 1;
        for started in &intake.started {
            let mut args = tx.args();
            args.int(started.endpoint);
            args.id(started.run.0);
            args.id(started.flow.0);
            tx.execute(START, args).await?;
        }
        put(&mut tx, first, &intake.messages, now).await?;
        for endpoint in &intake.ended {
            let mut args = tx.args();
            args.int(*endpoint);
            args.time(now);
            tx.execute(END, args).await?;
        }
        tx.commit().await?;
        Ok(Taken::Yes)
    }

    /// Tells the endpoints that ask for it what became of another one.
    pub(super) async fn say(
        &self,
        tx: &mut Tx<'_>,
        event: EventName,
        (no, id): (i64, EndpointId),
        told: &AttemptReport,
    ) -> Result<(), Error> {
        let now = told.attempt.at;
        let mut args = tx.args();
        args.int(no);
        let rows = tx.fetch_all(ABOUT_ENDPOINTS, args).await?;
        let mut to = Vec::new();
        for row in &rows {
            let wanted = wanted(&mut Columns::of(row))?;
            let events = wanted.filter.events.as_deref().unwrap_or_default();
            if events.contains(&event) {
                to.push(wanted.to);
            }
        }
        if to.is_empty() {
            return Ok(());
        }
        let body = json!({
            "type": event,
            "timestamp": now,
            "endpoint_id": id,
            "failures": told.health.failures,
            "failing_since": told.health.failing_since,
            "disabled": told.disable,
        });
        let message = self.message(event, body, to);
        put_one(tx, message, now).await?;
        Ok(())
    }

    /// A message that is about no event of the log.
    pub(super) fn message(
        &self,
        event: EventName,
        body: serde_json::Value,
        to: Vec<Recipient>,
    ) -> Message {
        Message {
            id: Arc::from(self.clock.uuid().to_string()),
            event,
            task: None,
            flow: None,
            position: None,
            traceparent: None,
            body: Bytes::from(body.to_string()),
            to,
        }
    }
}

/// Holds the row of the state until the transaction ends.
pub(super) async fn hold_state(tx: &mut Tx<'_>) -> Result<State, Error> {
    let text = format!("{STATE}{}", for_update(tx));
    let args = tx.args();
    let row = tx.fetch_one(sqlx::AssertSqlSafe(text), args).await?;
    read_state(&mut Columns::of(&row))
}

pub(super) async fn state(tx: &mut Tx<'_>) -> Result<State, Error> {
    let args = tx.args();
    let row = tx.fetch_one(STATE, args).await?;
    read_state(&mut Columns::of(&row))
}

fn read_state(c: &mut Columns<'_>) -> Result<State, Error> {
    Ok(State {
        position: Position::try_from(c.int()?).ok(),
        generation: c.int()?,
    })
}

fn stored(position: Option<Position>) -> i64 {
    position.map_or(-1, taskledger_sql::int)
}

/// Writes one message that comes from no event, whose number is made here. The state is held.
pub(super) async fn put_one(
    tx: &mut Tx<'_>,
    message: Message,
    now: Timestamp,
) -> Result<i64, Error> {
    let args = tx.args();
    let row = tx.fetch_one(NEXT_MESSAGE, args).await?;
    let no = Columns::of(&row).int()?;
    put(tx, no, &[message], now).await?;
    Ok(no)
}

/// One row of `deliveries`.
struct Given<'a> {
    no: i64,
    message: &'a Message,
    to: Recipient,
}

/// Writes messages, numbered from `first` on, and their deliveries. The state is held.
async fn put(
    tx: &mut Tx<'_>,
    first: i64,
    messages: &[Message],
    now: Timestamp,
) -> Result<(), Error> {
    if messages.is_empty() {
        return Ok(());
    }
    let numbered: Vec<(i64, &Message)> = (first..).zip(messages).collect();
    let rows: Vec<Given<'_>> = numbered
        .iter()
        .flat_map(|&(no, message)| message.to.iter().map(move |&to| Given { no, message, to }))
        .collect();
    let mut endpoints: Vec<i64> = rows.iter().map(|row| row.to.endpoint).collect();
    endpoints.sort_unstable();
    endpoints.dedup();
    if tx.engine() == Engine::Postgres {
        // Whoever ends a delivery holds its endpoint: what is asked below, nobody changes meanwhile.
        HOLD_ALL
            .fetch(tx, &endpoints, |no, args| args.int(*no))
            .await?;
    }
    INSERT_MESSAGES
        .execute(tx, &numbered, |(no, message), args| {
            args.int(*no);
            args.text(message.id.clone());
            args.name(message.event.as_str());
            args.opt_id(message.task.map(|task| task.0));
            args.opt_id(message.flow.map(|flow| flow.0));
            args.int(message.position.map(taskledger_sql::int));
            args.text(message.traceparent.clone());
            args.bytes(message.body.to_vec());
            args.time(now);
        })
        .await?;
    INSERT_DELIVERIES
        .execute(tx, &rows, |row, args| {
            let lane = lane(row.to.ordering, row.message.task);
            args.int(row.to.endpoint);
            args.int(row.no);
            args.opt_id(row.message.task.map(|task| task.0));
            args.opt_id(lane);
            args.int(i64::from(is_progress(row.message.event)));
            args.time(lane.is_none().then_some(now));
            args.time(now);
        })
        .await?;
    if messages.iter().any(|message| is_progress(message.event)) {
        let mut args = tx.args();
        args.int(first);
        args.time(now);
        tx.execute(SUPERSEDE, args).await?;
    }
    let mut args = tx.args();
    args.int(first);
    args.time(now);
    tx.execute(PROMOTE_NEW, args).await?;
    LOOK.execute(tx, &endpoints, |no, args| {
        args.int(*no);
        args.time(now);
    })
    .await?;
    connect::announce(tx).await
}

const fn is_progress(event: EventName) -> bool {
    matches!(event, EventName::Task(Kind::ProgressUpdate))
}

const STATE: &str = "SELECT position, generation FROM state";
const MOVE: &str = "UPDATE state SET position = $1, messages = messages + $2
    WHERE position = $3 AND generation = $4 RETURNING messages";
const REWIND: &str =
    "UPDATE state SET position = $1, generation = generation + 1 WHERE position > $1";
/// Rare: the whole table.
const REWIND_ENDPOINTS: &str = "UPDATE endpoints SET since = $1 WHERE since > $1";
const NEXT_MESSAGE: &str = "UPDATE state SET messages = messages + 1 RETURNING messages";
// By `endpoints_about`.
const ABOUT_ENDPOINTS: &str =
    "SELECT no, events, flow_id, user_id, labels, ordering, since, run_id, run_flow, report_name, content_type
    FROM endpoints WHERE about_endpoints = 1 AND no <> $1
        AND (owner IS NULL OR owner = (SELECT owner FROM endpoints WHERE no = $1)) ORDER BY no";
const CALLBACK: &str = "SELECT no, ordering, report_name, content_type FROM endpoints WHERE id = $1 AND is_callback = 1";
const START: &str = "UPDATE endpoints SET run_id = $2, run_flow = $3 WHERE no = $1";
const END: &str = "UPDATE endpoints SET run_ended = 1, run_ended_at = $2 WHERE no = $1";
static HOLD_ALL: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT no FROM endpoints WHERE no IN (",
        1,
        ") ORDER BY no FOR UPDATE",
    )
});
static INSERT_MESSAGES: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "INSERT INTO messages
            (no, id, type, task_id, flow_id, position, traceparent, body, created_at)",
        9,
        "",
    )
});
static INSERT_DELIVERIES: LazyLock<MultiRow> = LazyLock::new(|| {
    let columns = "endpoint, message, task_id, lane, is_progress, next_at, created_at";
    MultiRow::new(
        &format!("WITH given ({columns}) AS ("),
        7,
        &format!(
            ") INSERT INTO deliveries ({columns}, state, attempts)
             SELECT {columns}, 'waiting', 0 FROM given"
        ),
    )
});
// Progress that nobody has begun to send gives way to newer progress of the same task. One that could
// be under way just now, because its endpoint is leased and it is the first of its lane, stays.
const SUPERSEDE: &str = "UPDATE deliveries SET state = 'superseded', next_at = NULL, ended_at = $2
    WHERE id IN (
        SELECT o.id FROM deliveries n
        JOIN endpoints e ON e.no = n.endpoint
        JOIN deliveries o ON o.endpoint = n.endpoint AND o.task_id = n.task_id
            AND o.state = 'waiting' AND o.is_progress = 1
        WHERE n.message >= $1 AND n.is_progress = 1 AND o.message < n.message
          AND o.attempts = 0 AND o.hand_at IS NULL
          AND (o.next_at IS NULL OR e.lease_until IS NULL OR e.lease_until <= $2))";
// By `deliveries_lane`, once for each lane that got something.
const PROMOTE_NEW: &str = "UPDATE deliveries SET next_at = $2
    WHERE next_at IS NULL AND id IN (
        SELECT (SELECT o.id FROM deliveries o
                WHERE o.endpoint = n.endpoint AND o.lane = n.lane AND o.state = 'waiting'
                ORDER BY o.message LIMIT 1)
        FROM (SELECT DISTINCT endpoint, lane FROM deliveries
              WHERE message >= $1 AND lane IS NOT NULL AND state = 'waiting') AS n)";
static LOOK: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "WITH told (no, at) AS (",
        2,
        ") UPDATE endpoints
           SET next_at = CASE WHEN endpoints.open_until > told.at THEN endpoints.open_until ELSE told.at END
           FROM told
           WHERE endpoints.no = told.no AND endpoints.disabled_reason IS NULL
             AND (endpoints.next_at IS NULL OR endpoints.next_at > told.at)",
    )
});
