//! How published tasks ended, for those who wait for it. Owns the rows of `outcomes`, the questions about them and the
//! marks of what was delivered; `intake` adds to them and `sweep` removes them. What a task returned is in the log.

use crate::keys::Owner;
use crate::published::Published;
use crate::{BrokerStore, Error, ROWS_MAX, stored};
use std::sync::{Arc, LazyLock};
use taskledger_domain::{FlowId, Position, Recorded, TaskId, Timestamp, Version};
use taskledger_sql::{Args, Columns, MultiRow, Row, Tx};

/// External ids in one question for their outcomes.
pub const NAMES_MAX: usize = ROWS_MAX as usize;

/// More external ids than one question may have. The caller asks in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{found} tasks are asked for; at most {NAMES_MAX} are answered at once")]
pub struct TooManyNames {
    /// How many there were.
    pub found: usize,
}

/// One end of a published task. Its content is that of the event at `version` of `flow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its place in all inboxes, from 1; rises in the order of the log and is never given again.
    pub number: u64,
    /// The task.
    pub task_id: TaskId,
    /// Its flow.
    pub flow: FlowId,
    /// The event that ended it, in its flow.
    pub version: Version,
    /// The same event in the log.
    pub position: Position,
    /// Who published the task.
    pub owner: Owner,
    /// The agent that waits for it.
    pub requester: Arc<str>,
    /// What agents call it.
    pub external_id: Arc<str>,
    /// When it ended.
    pub at: Timestamp,
    /// When it was first delivered; `None`: not yet.
    pub delivered_at: Option<Timestamp>,
}

/// An end that is to be noted.
pub(crate) struct New<'a> {
    pub(crate) number: u64,
    pub(crate) task: &'a Published,
    pub(crate) end: &'a Recorded,
}

impl BrokerStore {
    /// The outcomes for an agent of an owner that were not delivered, by number, at most `limit` (and [`ROWS_MAX`]) of
    /// those above `after`. Cost: O(rows of the answer).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn undelivered(
        &self,
        owner: &Owner,
        requester: &Arc<str>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Outcome>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.bytes(owner.inbox(requester));
            args.text(owner.tenant.clone());
            args.text(owner.actor.clone());
            args.text(requester.clone());
            args.int(stored(after));
            args.int(i64::from(limit.min(ROWS_MAX)));
            let rows = tx.fetch_all(UNDELIVERED, args).await?;
            let found = rows.iter().map(outcome).collect::<Result<_, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// The latest outcome of each of these external ids, delivered or not, by number; nothing of a task that has not
    /// ended. Of tasks that share an id, the one that ended last. Cost: O(ids).
    ///
    /// # Errors
    /// [`Error`]; within, [`TooManyNames`].
    pub async fn outcomes_of(
        &self,
        owner: &Owner,
        requester: &Arc<str>,
        external_ids: &[Arc<str>],
    ) -> Result<Result<Vec<Outcome>, TooManyNames>, Error> {
        if external_ids.len() > NAMES_MAX {
            let found = external_ids.len();
            return Ok(Err(TooManyNames { found }));
        }
        let mut names = external_ids.to_vec();
        names.sort_unstable();
        names.dedup();
        let bind = |name: &Arc<str>, args: &mut Args| {
            args.bytes(owner.name(name));
            args.bytes(owner.inbox(requester));
            args.text(owner.tenant.clone());
            args.text(owner.actor.clone());
            args.text(requester.clone());
            args.text(name.clone());
        };
        let work = async {
            let mut tx = self.read().await?;
            let rows = LATEST.fetch(&mut tx, &names, bind).await?;
            let found: Result<Vec<Outcome>, Error> = rows.iter().map(outcome).collect();
            tx.commit().await?;
            found
        };
        let mut found = self.order(work).await?;
        found.sort_unstable_by_key(|it| it.number);
        Ok(Ok(found))
    }

    /// Marks outcomes as delivered at `at`; of those that are marked already the first time stays. Returns the numbers
    /// that it has marked, ascending. A crash of the machine may undo it: then they are delivered again. Cost: O(numbers).
    ///
    /// # Errors
    /// [`Error`]: nothing was marked, or it is not known; do it again.
    pub async fn deliver(&self, numbers: &[u64], at: Timestamp) -> Result<Vec<u64>, Error> {
        // Servers that mark the same rows take them in one order.
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() {
            return Ok(numbers);
        }
        let work = async {
            let mut tx = self.change().await?;
            let bind = |number: &u64, args: &mut Args| {
                args.int(stored(*number));
                args.time(at);
            };
            let rows = DELIVER.fetch(&mut tx, &numbers, bind).await?;
            let marked = rows.iter().map(|row| Ok(Columns::of(row).number()?));
            let mut marked = marked.collect::<Result<Vec<u64>, Error>>()?;
            tx.commit().await?;
            marked.sort_unstable();
            Ok(marked)
        };
        self.order(work).await
    }
}

/// Adds outcomes. An event has one.
pub(crate) async fn add(tx: &mut Tx<'_>, outcomes: &[New<'_>]) -> Result<(), Error> {
    let bind = |new: &New<'_>, args: &mut Args| {
        let New { number, task, end } = new;
        args.int(stored(*number));
        args.id(task.task_id.0);
        args.id(end.flow.0);
        args.int(stored(end.version));
        args.position(end.position);
        args.text(task.owner.tenant.clone());
        args.text(task.owner.actor.clone());
        args.text(task.requester.clone());
        args.text(task.external_id.clone());
        args.bytes(task.owner.inbox(&task.requester));
        args.bytes(task.owner.name(&task.external_id));
        args.time(end.time);
    };
    Ok(ADD.execute(tx, outcomes, bind).await?)
}

fn outcome(row: &Row) -> Result<Outcome, Error> {
    let mut c = Columns::of(row);
    Ok(Outcome {
        number: c.number()?,
        task_id: TaskId(c.id()?),
        flow: FlowId(c.id()?),
        version: c.number()?,
        position: c.number()?,
        owner: Owner {
            tenant: c.text()?,
            actor: c.text()?,
        },
        requester: c.text()?,
        external_id: c.text()?,
        at: c.time()?,
        delivered_at: c.opt_time()?,
    })
}

// By `outcomes_undelivered`.
const UNDELIVERED: &str = "SELECT number, task_id, flow_id, version, position, tenant, actor, requester, external_id, at,
        delivered_at
    FROM outcomes
    WHERE inbox = $1 AND tenant = $2 AND actor = $3 AND requester = $4 AND number > $5 AND delivered_at IS NULL
    ORDER BY number LIMIT $6";
// By `outcomes_name`, once for each id.
static LATEST: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT number, task_id, flow_id, version, position, tenant, actor, requester, external_id, at, delivered_at
         FROM outcomes WHERE number IN (
           SELECT (SELECT max(o.number) FROM outcomes o
                   WHERE o.name = asked.column1 AND o.inbox = asked.column2 AND o.tenant = asked.column3
                     AND o.actor = asked.column4 AND o.requester = asked.column5
                     AND o.external_id = asked.column6)
           FROM (",
        6,
        ") AS asked)",
    )
});
static DELIVER: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "WITH told (number, at) AS (",
        2,
        ") UPDATE outcomes SET delivered_at = told.at
           FROM told
           WHERE outcomes.number = told.number AND outcomes.delivered_at IS NULL
           RETURNING outcomes.number",
    )
});
static ADD: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "INSERT INTO outcomes
           (number, task_id, flow_id, version, position, tenant, actor, requester, external_id, inbox, name, at)",
        12,
        "ON CONFLICT (position) DO NOTHING",
    )
});
