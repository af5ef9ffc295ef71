//! The log of deliveries, as it is shown.

use super::row::{cause, state};
use super::{Error, Store};
use crate::delivery::DeliveryState;
use crate::endpoint::EndpointId;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use taskledger_domain::{TaskId, Timestamp};
use taskledger_sql::{Args, Columns, MultiRow, Tx};

/// A filter for deliveries.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// Only of this endpoint.
    pub endpoint: Option<EndpointId>,
    /// Only of endpoints of this owner, which may be gone.
    pub owner: Option<Arc<str>>,
    /// Only in this state.
    pub state: Option<DeliveryState>,
    /// Only about this task.
    pub task: Option<TaskId>,
    /// Only created at this time or later.
    pub since: Option<Timestamp>,
    /// Only created before this time.
    pub until: Option<Timestamp>,
    /// Below this id: the page before ended there.
    pub below: Option<i64>,
}

/// A delivery as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeliveryView {
    /// Identifies the delivery in later calls.
    pub id: i64,
    /// The endpoint, also when it is gone.
    pub endpoint_id: Option<EndpointId>,
    /// The header `webhook-id`: the same for each attempt, so receivers know repetitions by it.
    pub webhook_id: Arc<str>,
    /// What it tells.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// About which task.
    pub task_id: Option<TaskId>,
    /// Where it stands.
    pub state: DeliveryState,
    /// Attempts of the schedule.
    pub attempts: u32,
    /// Not before this time is the next one; null when none follows, or something else must happen first.
    pub next_at: Option<Timestamp>,
    /// What else it waits for.
    pub waits_for: Option<WaitsFor>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// All attempts, oldest first.
    pub log: Vec<AttemptView>,
}

/// What a delivery waits for, beside its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// An earlier message, which is on its way.
    EarlierMessage,
    /// The breaker of its endpoint lets nothing through.
    Breaker,
    /// Its endpoint is disabled.
    Enabling,
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
    /// What it was made for.
    pub trigger: &'static str,
}

static ATTEMPTS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT delivery, number, at, duration_ms, status, error, detail, remote, response, cause
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
                "SELECT d.id, coalesce(e.id, r.id), m.id, m.type, d.task_id, d.state, d.attempts, d.next_at, d.hand_at,
                    d.created_at, d.ended_at, e.disabled_reason, e.open_until
                 FROM deliveries d JOIN messages m ON m.no = d.message
                 LEFT JOIN endpoints e ON e.no = d.endpoint
                 LEFT JOIN removed_endpoints r ON r.no = d.endpoint
                 {wheres} ORDER BY d.id DESC LIMIT ${}",
                args.len()
            );
            let rows = tx.fetch_all(sqlx::AssertSqlSafe(text), args).await?;
            let now = self.clock.now();
            let views = rows.iter().map(|row| view(&mut Columns::of(row), now));
            let views: Result<Vec<_>, Error> = views.collect();
            let mut views = views?;
            with_attempts(&mut tx, &mut views).await?;
            tx.commit().await?;
            Ok(views)
        })
        .await
    }

    /// The owner of such an endpoint, also when it is deleted but its deliveries are kept. `None`: there was no such
    /// endpoint; `Some(None)`: it belongs to nobody.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn owner_of(&self, id: EndpointId) -> Result<Option<Option<Arc<str>>>, Error> {
        self.order(async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.id(id.0);
            let row = tx.fetch_optional(OWNER_OF, args).await?;
            tx.commit().await?;
            Ok(row.map(|row| Columns::of(&row).opt_text()).transpose()?)
        })
        .await
    }

    /// How many lasting endpoints are this owner's. Cost: O(result), by the index on owners.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn count_of(&self, owner: &Arc<str>) -> Result<u64, Error> {
        self.order(async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.text(owner.clone());
            let row = tx.fetch_one(COUNT_OF, args).await?;
            tx.commit().await?;
            Ok(u64::try_from(Columns::of(&row).int()?).unwrap_or(0))
        })
        .await
    }

    /// How many callbacks this owner has whose runs go on, at most `most`. Cost: O(endpoints of the owner), by the
    /// index
    /// on owners.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn callbacks_of(&self, owner: &Arc<str>, most: u32) -> Result<u64, Error> {
        self.order(async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.text(owner.clone());
            args.int(i64::from(most));
            let row = tx.fetch_one(CALLBACKS_OF, args).await?;
            tx.commit().await?;
            Ok(u64::try_from(Columns::of(&row).int()?).unwrap_or(0))
        })
        .await
    }

    /// Whether there is such an endpoint, or was one whose deliveries are kept.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn knew(&self, id: EndpointId) -> Result<bool, Error> {
        self.order(async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.id(id.0);
            let known = tx.fetch_optional(KNEW, args).await?.is_some();
            tx.commit().await?;
            Ok(known)
        })
        .await
    }
}

fn conditions(filter: &DeliveryFilter, args: &mut Args) -> String {
    let mut wheres = Vec::new();
    if let Some(endpoint) = filter.endpoint {
        args.id(endpoint.0);
        wheres.push(OF_ENDPOINT.to_owned());
    }
    if let Some(owner) = &filter.owner {
        args.text(owner.clone());
        let owner = args.len();
        wheres.push(format!("coalesce(e.owner, r.owner) = ${owner}"));
    }
    let mut add = |args: &Args, condition: &str| {
        wheres.push(format!("{condition} ${}", args.len()));
    };
    if let Some(task) = filter.task {
        args.id(task.0);
        add(args, "d.task_id =");
    }
    if let Some(state) = filter.state {
        args.name(state.as_str());
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
    format!("WHERE {}", wheres.join(" AND "))
}

fn view(c: &mut Columns<'_>, now: Timestamp) -> Result<DeliveryView, Error> {
    let id = c.int()?;
    let endpoint_id = c.opt_id()?.map(EndpointId);
    let webhook_id = c.text()?;
    let kind = c.text()?;
    let task_id = c.opt_id()?.map(TaskId);
    let state = state(c.word()?)?;
    let attempts = c.number()?;
    let (next_at, hand_at) = (c.opt_time()?, c.opt_time()?);
    let (created_at, ended_at) = (c.time()?, c.opt_time()?);
    let is_disabled = c.opt_word()?.is_some();
    let open_until = c.opt_time()?.filter(|until| *until > now);
    let is_open = state == DeliveryState::Waiting || hand_at.is_some();
    let at = hand_at.or(next_at);
    let (next_at, waits_for) = match (at, open_until) {
        _ if !is_open => (None, None),
        _ if is_disabled => (None, Some(WaitsFor::Enabling)),
        (None, _) => (None, Some(WaitsFor::EarlierMessage)),
        (Some(at), Some(until)) if until > at => (Some(until), Some(WaitsFor::Breaker)),
        (at, _) => (at, None),
    };
    Ok(DeliveryView {
        id,
        endpoint_id,
        webhook_id,
        kind,
        task_id,
        state,
        attempts,
        next_at,
        waits_for,
        created_at,
        ended_at,
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
            trigger: cause(c.int()?)?.as_str(),
        };
        if let Some(view) = by_id.get_mut(&delivery) {
            view.log.push(attempt);
        }
    }
    Ok(())
}

// By `deliveries_endpoint`: one endpoint, so that the rows come in its order. An id may have been used twice.
const OF_ENDPOINT: &str = "d.endpoint = (SELECT max(no) FROM (
        SELECT no FROM endpoints WHERE id = $1
        UNION ALL SELECT no FROM removed_endpoints WHERE id = $1) AS known)";
// The newest one: an id may have been used twice.
const OWNER_OF: &str = "SELECT owner FROM (
        SELECT no, owner FROM endpoints WHERE id = $1
        UNION ALL SELECT no, owner FROM removed_endpoints WHERE id = $1) AS known
    ORDER BY no DESC LIMIT 1";
/// By the index endpoints_owner.
const COUNT_OF: &str = "SELECT COUNT(*)
    FROM endpoints
    WHERE owner = $1 AND is_callback = 0";
// By `endpoints_owner`.
const CALLBACKS_OF: &str = "SELECT COUNT(*)
    FROM (
        SELECT no
        FROM endpoints
        WHERE owner = $1 AND is_callback = 1 AND (run_ended = 0 OR report_name IS NOT NULL)
        LIMIT $2
    ) AS callbacks";
const KNEW: &str = "SELECT no FROM endpoints WHERE id = $1
    UNION ALL SELECT no FROM removed_endpoints WHERE id = $1";
