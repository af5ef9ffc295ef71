//! Inboxes: how published tasks ended, for the requesters that wait for it. Owns the rows of `outcomes`, the questions
//! about them and the marks of what was delivered; `intake` adds to them and `sweep` removes them. What a task returned
//! is in the log.

use crate::keys::Owner;
use crate::published::{Published, bind_names};
use crate::{BrokerStore, Error, ROWS_MAX, stored};
use std::collections::HashSet;
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

/// One end of a published task. Its content is that of the event at `version` of `flow`: the one that ended it, or,
/// where it is another task's or a run's, the one because of which it cannot run any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its place in all inboxes, from 1; rises in the order of the log and is never given again.
    pub number: u64,
    /// The task that ended.
    pub task_id: TaskId,
    /// The flow that the task belongs to.
    pub flow: FlowId,
    /// The event, in its flow.
    pub version: Version,
    /// Position of the same event in the log.
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

impl Outcome {
    /// The same, not noted yet: how a published task has come to its end with an event of its flow.
    pub(crate) fn of(number: u64, task: &Published, end: &Recorded, at: Timestamp) -> Self {
        Self {
            number,
            task_id: task.task_id,
            flow: end.flow,
            version: end.version,
            position: end.position,
            owner: task.owner.clone(),
            requester: task.requester.clone(),
            external_id: task.external_id.clone(),
            at,
            delivered_at: None,
        }
    }
}

impl BrokerStore {
    /// The outcomes for an agent of an owner that were not delivered, by number, at most `limit` (and [`ROWS_MAX`]) of
    /// those above `after`. Cost: O(rows of the answer); no query for what this process has noted a moment ago, of
    /// which another server may have marked some since.
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
        let limit = limit.min(ROWS_MAX);
        // Whoever begins is told what no server has marked.
        let kept = match after {
            0 => None,
            _ => self.recent.above(owner, requester, after, limit as usize),
        };
        if let Some(found) = kept {
            return Ok(found);
        }
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.bytes(owner.inbox(requester).to_vec());
            args.text(owner.tenant.clone());
            args.text(owner.actor.clone());
            args.text(requester.clone());
            args.int(stored(after));
            args.int(i64::from(limit));
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
            args.bytes(owner.name(name).to_vec());
            args.bytes(owner.inbox(requester).to_vec());
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
    /// that it has marked, ascending. A crash of the machine may undo it: then they are delivered again. Cost:
    /// O(numbers).
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
            self.recent.delivered(&numbers, at);
            marked.sort_unstable();
            Ok(marked)
        };
        self.order(work).await
    }
}

/// An outcome that is to be noted.
pub(crate) struct New {
    pub(crate) outcome: Outcome,
    /// The task cannot run, and has neither begun nor ended since.
    pub(crate) is_blocked: bool,
}

/// Those of some tasks whose latest outcome is that they cannot run. Cost: one query, O(tasks).
pub(crate) async fn blocked(
    tx: &mut Tx<'_>,
    tasks: &[&Published],
) -> Result<HashSet<TaskId>, Error> {
    if tasks.is_empty() {
        return Ok(HashSet::new());
    }
    let bind = |it: &&Published, args: &mut Args| {
        args.bytes(it.owner.name(&it.external_id).to_vec());
        args.bytes(it.owner.inbox(&it.requester).to_vec());
        args.id(it.task_id.0);
    };
    let rows = BLOCKED.fetch(tx, tasks, bind).await?;
    let task = |row: &Row| Ok(TaskId(Columns::of(row).id()?));
    rows.iter().map(task).collect()
}

/// Whether any task could not run, as its requester was told, and has not begun since. Cost: one query.
pub(crate) async fn any_blocked(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let args = tx.args();
    Ok(tx.fetch_optional(ANY_BLOCKED, args).await?.is_some())
}

/// Those of some tasks of which that is so. Cost: one query, O(tasks).
pub(crate) async fn blocked_among(
    tx: &mut Tx<'_>,
    tasks: &[TaskId],
) -> Result<HashSet<TaskId>, Error> {
    if tasks.is_empty() {
        return Ok(HashSet::new());
    }
    let bind = |task: &TaskId, args: &mut Args| args.id(task.0);
    let rows = BLOCKED_AMONG.fetch(tx, tasks, bind).await?;
    let task = |row: &Row| Ok(TaskId(Columns::of(row).id()?));
    rows.iter().map(task).collect()
}

/// Those that begin of which it was said, or is, that they cannot. Cost: as [`blocked_among`].
pub(crate) async fn begun(
    tx: &mut Tx<'_>,
    started: &[TaskId],
    blocked: &[crate::Blocked],
) -> Result<HashSet<TaskId>, Error> {
    let mut found = blocked_among(tx, started).await?;
    let told: HashSet<TaskId> = blocked.iter().map(|it| it.task).collect();
    found.extend(started.iter().filter(|task| told.contains(*task)));
    Ok(found)
}

/// These tasks have begun or ended: later outcomes are reported again. Returns whether any of them could not run
/// before. Cost: one statement, O(tasks).
pub(crate) async fn unblock(tx: &mut Tx<'_>, tasks: &[TaskId]) -> Result<bool, Error> {
    if tasks.is_empty() {
        return Ok(false);
    }
    let bind = |task: &TaskId, args: &mut Args| args.id(task.0);
    Ok(!UNBLOCK.fetch(tx, tasks, bind).await?.is_empty())
}

/// Adds outcomes, but those of tasks that have come to their end with the same event before. Returns what was added.
pub(crate) async fn add(tx: &mut Tx<'_>, outcomes: Vec<New>) -> Result<Vec<Outcome>, Error> {
    if outcomes.is_empty() {
        return Ok(Vec::new());
    }
    let bind = |New {
                    outcome: it,
                    is_blocked,
                }: &New,
                args: &mut Args| {
        args.int(stored(it.number));
        args.id(it.task_id.0);
        args.id(it.flow.0);
        args.int(stored(it.version));
        args.position(it.position);
        bind_names(args, &it.owner, &it.requester, &it.external_id);
        args.time(it.at);
        args.int(i64::from(*is_blocked));
    };
    let rows = ADD.fetch(tx, &outcomes, bind).await?;
    let added = rows.iter().map(|row| Ok(Columns::of(row).number()?));
    let added = added.collect::<Result<HashSet<u64>, Error>>()?;
    let outcomes = outcomes.into_iter().map(|new| new.outcome);
    Ok(outcomes.filter(|it| added.contains(&it.number)).collect())
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
// By `outcomes_name`, once for each task.
static BLOCKED: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT task_id FROM outcomes WHERE blocked = 1 AND number IN (
           SELECT (SELECT max(o.number) FROM outcomes o
                   WHERE o.name = asked.column1 AND o.inbox = asked.column2 AND o.task_id = asked.column3)
           FROM (",
        3,
        ") AS asked)",
    )
});
// By `outcomes_blocked`.
const ANY_BLOCKED: &str = "SELECT number FROM outcomes WHERE blocked = 1 LIMIT 1";
// By `outcomes_blocked`.
static BLOCKED_AMONG: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT DISTINCT task_id FROM outcomes WHERE blocked = 1 AND task_id IN (",
        1,
        ")",
    )
});
// By `outcomes_blocked`.
static UNBLOCK: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "UPDATE outcomes SET blocked = 0 WHERE blocked = 1 AND task_id IN (",
        1,
        ") RETURNING number",
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
           (number, task_id, flow_id, version, position, tenant, actor, requester, external_id, inbox, name, at,
            blocked)",
        13,
        "ON CONFLICT (position, task_id) DO NOTHING RETURNING number",
    )
});
