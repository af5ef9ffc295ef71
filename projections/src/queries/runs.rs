//! Runs as whoever began them sees them: their status, results and messages; and lists of them, most recently changed
//! status first.
//!
//! Texts of messages and questions are in the log: rows name the events. A list goes on behind a cursor that fixes a
//! place of the log: later pages show the runs with the status that they had there, so no run is shown twice or left
//! out, whatever changes meanwhile.

mod cursor;
mod outputs;
mod past;
mod returned;

pub use cursor::RunCursor;
pub use outputs::Made;
pub use returned::Returned;

use super::rows;
use crate::tasks::{TaskProjector, read_counts};
use crate::{Error, ReadModels, TaskRow, checkpoint};
use past::Stands;
use std::sync::Arc;
use taskledger_domain::flow::{RunKind, RunStage, StatusCounts};
use taskledger_domain::question::Asks;
use taskledger_domain::{FlowId, Position, RunId, TaskId, Timestamp, Version};
use taskledger_sql::{Args, Columns, Row, Tx};

/// The row of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Identifies the run in its flow.
    pub run: RunId,
    /// The flow that the run belongs to.
    pub flow: FlowId,
    /// The task that was asked for.
    pub task: TaskId,
    /// What began it.
    pub kind: RunKind,
    /// Version of the event that started it.
    pub version: Version,
    /// Whether it was begun by a message.
    pub has_origin: bool,
    /// The owner of the flow; `None`: nobody.
    pub owner: Option<Arc<str>>,
    /// Its caller's text, else the id of the flow.
    pub context: Arc<str>,
    /// How it stands.
    pub stage: RunStage,
    /// Since when.
    pub status_at: Timestamp,
    /// By the event there.
    pub status_position: Position,
    /// Its tasks by status, groups left out.
    pub counts: StatusCounts,
    /// When it began.
    pub started_at: Timestamp,
    /// Position of the event that started it.
    no: i64,
}

/// The parts of a run that are read beside its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Results at most; 0: none are looked for.
    pub artifacts_max: usize,
    /// Bytes of tasks with results, unless the first alone has more.
    pub artifact_bytes_max: usize,
    /// Things that were said at most, the newest.
    pub said_max: usize,
}

/// A run with what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSnapshot {
    /// How it stands.
    pub run: RunRow,
    /// The rows reflect exactly the events up to here.
    pub position: Position,
    /// Tasks that the run has completed and that run something, and its root if it has; and those that have made a part
    /// of their output. By order of creation.
    pub artifacts: Vec<Made>,
    /// Such tasks beyond these.
    pub artifacts_left_out: u64,
    /// Versions of events in which something was said that does not wait for an answer, oldest first.
    pub said: Vec<Version>,
    /// Older ones.
    pub said_left_out: u64,
    /// Questions that wait for an answer, oldest first.
    pub waits: Vec<Wait>,
    /// Why the root failed in this run, or was cancelled.
    pub error: Option<Arc<str>>,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The event that asks.
    pub version: Version,
    /// The task that waits.
    pub task: TaskId,
    /// What the task waits for.
    pub asks: Asks,
}

/// A filter for runs; all of it must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only those of this owner.
    pub owner: Option<Arc<str>>,
    /// Only those of this context.
    pub context: Option<Arc<str>>,
    /// Only those that stand so.
    pub stage: Option<RunStage>,
    /// Only those whose status is of this time or later.
    pub since: Option<Timestamp>,
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct RunList {
    /// The runs of this page.
    pub runs: Vec<RunSnapshot>,
    /// Runs in the whole list.
    pub total: u64,
    /// Where it goes on; `None` at its end.
    pub next: Option<RunCursor>,
}

impl ReadModels {
    /// How a run stands; `None` when it does not exist. Cost: O(1).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn run_row(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        let mut tx = self.read().await?;
        row_of(&mut tx, run).await
    }

    /// A run with what was asked for, from one consistent state; `None` when it does not exist. Cost: O(tasks of the
    /// flow) when there are more results than are read, else O(tasks up to the last of them).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn run_snapshot(
        &self,
        run: RunId,
        parts: Parts,
    ) -> Result<Option<RunSnapshot>, Error> {
        let mut tx = self.read().await?;
        let Some(row) = row_of(&mut tx, run).await? else {
            return Ok(None);
        };
        let position = position(&mut tx).await?;
        let snapshot = snapshot(&mut tx, (row, Stands::Now), position, parts);
        snapshot.await.map(Some)
    }

    /// A page of at most `limit` runs, those whose status is newest first, behind `after`. Cost: O(limit) by an index;
    /// for the first page counting the list, which is O(runs in it); for later ones O(statuses of this owner that
    /// changed since the first).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn run_list(
        &self,
        filter: &RunFilter,
        after: Option<RunCursor>,
        limit: u32,
        parts: Parts,
    ) -> Result<RunList, Error> {
        let mut tx = self.read().await?;
        let position = position(&mut tx).await?;
        let total = match after {
            Some(after) => after.total,
            None => {
                let (sql, args) = count(&tx, filter);
                let total = tx.fetch_one(sqlx::AssertSqlSafe(sql), args).await?;
                Columns::of(&total).number()?
            }
        };
        let (sql, args) = page(&tx, filter, after, limit);
        let found = tx.fetch_all(sqlx::AssertSqlSafe(sql), args).await?;
        let now = |row| Ok((read(row)?, Stands::Now));
        let mut found: Vec<(RunRow, Stands)> =
            found.iter().map(now).collect::<Result<_, Error>>()?;
        if let Some(after) = after {
            found.extend(past::page(&mut tx, filter, after, limit).await?);
            found.sort_by_key(|(row, _)| std::cmp::Reverse((row.status_at, row.no)));
        }
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let next = found.last().filter(|_| more);
        let next = next.map(|(last, _)| RunCursor {
            upto: after.map_or(position, |after| after.upto),
            at: last.status_at,
            no: last.no,
            filter: filter.fingerprint(),
            total,
        });
        let mut runs = Vec::with_capacity(found.len());
        for row in found {
            runs.push(snapshot(&mut tx, row, position, parts).await?);
        }
        Ok(RunList { runs, total, next })
    }

    /// The database's plan for a page, one line for each step. For tests of the indexes.
    ///
    /// # Errors
    /// As [`Self::run_list`].
    pub async fn explain_run_list(
        &self,
        filter: &RunFilter,
        after: Option<RunCursor>,
    ) -> Result<Vec<String>, Error> {
        let mut tx = self.read().await?;
        let (sql, args) = page(&tx, filter, after, 1);
        Ok(tx.plan(&sql, args).await?)
    }

    /// The same for the runs whose status has changed since the first page.
    ///
    /// # Errors
    /// As [`Self::run_list`].
    pub async fn explain_run_past(
        &self,
        filter: &RunFilter,
        after: RunCursor,
    ) -> Result<Vec<String>, Error> {
        let mut tx = self.read().await?;
        let (sql, args) = past::select(&tx, filter, after, 1);
        Ok(tx.plan(&sql, args).await?)
    }
}

async fn position(tx: &mut Tx<'_>) -> Result<Position, Error> {
    match checkpoint::load::<TaskProjector>(tx).await? {
        Some((_, position)) => Ok(position),
        None => Err(Error::Damaged("the checkpoint has disappeared".to_owned())),
    }
}

async fn row_of(tx: &mut Tx<'_>, run: RunId) -> Result<Option<RunRow>, Error> {
    let sql = format!("{COLUMNS} WHERE r.run_id = $1");
    let mut args = tx.args();
    args.id(run.0);
    let row = tx.fetch_optional(sqlx::AssertSqlSafe(sql), args).await?;
    row.as_ref().map(read).transpose()
}

fn read(row: &Row) -> Result<RunRow, Error> {
    read_columns(&mut Columns::of(row))
}

fn read_columns(c: &mut Columns<'_>) -> Result<RunRow, Error> {
    Ok(RunRow {
        no: c.int()?,
        run: RunId(c.id()?),
        flow: FlowId(c.id()?),
        task: TaskId(c.id()?),
        kind: c.named()?,
        started_at: c.time()?,
        version: c.number()?,
        has_origin: c.int()? != 0,
        owner: c.opt_text()?,
        context: c.text()?,
        stage: c.named()?,
        status_at: c.time()?,
        status_position: c.number()?,
        counts: read_counts(c)?,
    })
}

async fn snapshot(
    tx: &mut Tx<'_>,
    (run, stands): (RunRow, Stands),
    position: Position,
    parts: Parts,
) -> Result<RunSnapshot, Error> {
    let (returned, left_out) = artifacts(tx, &run, parts).await?;
    let (artifacts, without_room) = match parts.artifacts_max {
        0 => (Vec::new(), 0),
        _ => outputs::add(tx, &run, returned, parts).await?,
    };
    let artifacts_left_out = left_out + without_room;
    let (said, said_left_out) = said(tx, run.no, parts.said_max).await?;
    let waits = match stands {
        Stands::Then(None) => Vec::new(),
        Stands::Then(Some(asked)) => vec![past::wait(tx, &run, asked).await?],
        Stands::Now if run.stage.is_end() => Vec::new(),
        Stands::Now => waits(tx, run.no).await?,
    };
    let error = match run.stage {
        RunStage::Failed | RunStage::Cancelled | RunStage::Rejected => error(tx, &run).await?,
        RunStage::Submitted
        | RunStage::Working
        | RunStage::InputRequired
        | RunStage::AuthRequired
        | RunStage::Completed => None,
    };
    Ok(RunSnapshot {
        run,
        position,
        artifacts,
        artifacts_left_out,
        said,
        said_left_out,
        waits,
        error,
    })
}

async fn artifacts(
    tx: &mut Tx<'_>,
    run: &RunRow,
    parts: Parts,
) -> Result<(Vec<TaskRow>, u64), Error> {
    if parts.artifacts_max == 0 {
        return Ok((Vec::new(), 0));
    }
    let mut args = tx.args();
    args.id(run.flow.0);
    args.id(run.run.0);
    args.id(run.task.0);
    args.int(i64::try_from(parts.artifacts_max).unwrap_or(i64::MAX - 1) + 1);
    let found = tx.fetch_all(ARTIFACTS, args).await?;
    let nos: Vec<i64> = found
        .iter()
        .map(|row| Columns::of(row).int())
        .collect::<Result<_, _>>()?;
    let wanted = &nos[..nos.len().min(parts.artifacts_max)];
    let shown = rows::fetch(tx, wanted, parts.artifact_bytes_max).await?;
    let mut total = nos.len() as u64;
    if nos.len() > wanted.len() {
        let mut args = tx.args();
        args.id(run.flow.0);
        args.id(run.run.0);
        args.id(run.task.0);
        let row = tx.fetch_one(ARTIFACTS_TOTAL, args).await?;
        total = Columns::of(&row).number()?;
    }
    let left_out = total.saturating_sub(shown.len() as u64);
    Ok((shown, left_out))
}

async fn said(tx: &mut Tx<'_>, no: i64, max: usize) -> Result<(Vec<Version>, u64), Error> {
    if max == 0 {
        return Ok((Vec::new(), 0));
    }
    let mut args = tx.args();
    args.int(no);
    args.int(i64::try_from(max).unwrap_or(i64::MAX - 1) + 1);
    let found = tx.fetch_all(SAID, args).await?;
    let mut versions: Vec<Version> = found
        .iter()
        .map(|row| Columns::of(row).number())
        .collect::<Result<_, _>>()?;
    let mut left_out = 0;
    if versions.len() > max {
        let mut args = tx.args();
        args.int(no);
        let total = tx.fetch_one(SAID_TOTAL, args).await?;
        left_out = Columns::of(&total)
            .number::<u64>()?
            .saturating_sub(max as u64);
    }
    versions.truncate(max);
    versions.reverse();
    Ok((versions, left_out))
}

async fn waits(tx: &mut Tx<'_>, no: i64) -> Result<Vec<Wait>, Error> {
    let mut args = tx.args();
    args.int(no);
    let found = tx.fetch_all(WAITS, args).await?;
    let read = |row: &Row| {
        let mut c = Columns::of(row);
        Ok(Wait {
            version: c.number()?,
            task: TaskId(c.id()?),
            asks: c.named()?,
        })
    };
    found.iter().map(read).collect()
}

async fn error(tx: &mut Tx<'_>, run: &RunRow) -> Result<Option<Arc<str>>, Error> {
    let mut args = tx.args();
    args.id(run.task.0);
    args.id(run.run.0);
    let row = tx.fetch_optional(ERROR, args).await?;
    Ok(row
        .map(|row| Columns::of(&row).opt_text())
        .transpose()?
        .flatten())
}

fn count(tx: &Tx<'_>, filter: &RunFilter) -> (String, Args) {
    let mut args = tx.args();
    let conditions = conditions(filter, &mut args);
    let text = format!("SELECT COUNT(*) FROM run_status s WHERE {conditions}");
    (text, args)
}

fn page(tx: &Tx<'_>, filter: &RunFilter, after: Option<RunCursor>, limit: u32) -> (String, Args) {
    let mut args = tx.args();
    let mut conditions = conditions(filter, &mut args);
    if let Some(after) = after {
        args.position(after.upto);
        args.time(after.at);
        args.int(after.no);
        let n = args.len();
        conditions += &format!(
            " AND s.status_position <= ${} AND (s.status_at, s.run_no) < (${}, ${n})",
            n - 2,
            n - 1
        );
    }
    args.int(i64::from(limit) + 1);
    let n = args.len();
    let text =
        format!("{COLUMNS} WHERE {conditions} ORDER BY s.status_at DESC, s.run_no DESC LIMIT ${n}");
    (text, args)
}

fn conditions(filter: &RunFilter, args: &mut Args) -> String {
    conditions_of("s", filter, args)
}

/// `status`: the name of the table with the status.
fn conditions_of(status: &str, filter: &RunFilter, args: &mut Args) -> String {
    let mut all = vec!["1 = 1".to_owned()];
    if let Some(owner) = &filter.owner {
        args.text(owner.clone());
        all.push(format!("{status}.owner = ${}", args.len()));
    }
    if let Some(context) = &filter.context {
        args.text(context.clone());
        all.push(format!("s.context = ${}", args.len()));
    }
    if let Some(stage) = filter.stage {
        args.name(stage.as_str());
        all.push(format!("{status}.stage = ${}", args.len()));
    }
    if let Some(since) = filter.since {
        args.time(since);
        all.push(format!("{status}.status_at >= ${}", args.len()));
    }
    all.join(" AND ")
}

/// By the index runs_id, or by one of those of run_status and then by key.
const COLUMNS: &str =
    "SELECT s.run_no, r.run_id, r.flow_id, r.task_id, r.kind, r.started_at, s.version,
        s.has_origin, s.owner, s.context, s.stage, s.status_at, s.status_position, r.pending,
        r.in_progress, r.completed, r.failed, r.cancelled
    FROM run_status s
    JOIN runs r ON r.run_no = s.run_no";
/// Relies on the indexes tasks_id and tasks_flow_ordinal, then by key.
const ARTIFACTS: &str = "SELECT t.created_position
    FROM tasks f
    JOIN tasks t ON t.flow_no = f.flow_no
    JOIN attempts a ON a.task_no = t.created_position AND a.attempt = t.attempt
    WHERE f.id = $1 AND t.result IS NOT NULL AND a.run_id = $2
        AND (t.method IS NOT NULL OR t.id = $3)
    ORDER BY t.ordinal
    LIMIT $4";
/// As [`ARTIFACTS`].
const ARTIFACTS_TOTAL: &str = "SELECT COUNT(*)
    FROM tasks f
    JOIN tasks t ON t.flow_no = f.flow_no
    JOIN attempts a ON a.task_no = t.created_position AND a.attempt = t.attempt
    WHERE f.id = $1 AND t.result IS NOT NULL AND a.run_id = $2
        AND (t.method IS NOT NULL OR t.id = $3)";
/// By primary key.
const SAID: &str = "SELECT version
    FROM run_said
    WHERE run_no = $1 AND waits = 0
    ORDER BY version DESC
    LIMIT $2";
/// By primary key.
const SAID_TOTAL: &str = "SELECT COUNT(*)
    FROM run_said
    WHERE run_no = $1 AND waits = 0";
/// By the index run_said_waits, then tasks_flow_ordinal.
const WAITS: &str = "SELECT w.version, t.id, w.kind
    FROM run_said w
    JOIN run_status s ON s.run_no = w.run_no
    JOIN tasks t ON t.flow_no = s.flow_no AND t.ordinal = w.ordinal
    WHERE w.run_no = $1 AND w.waits = 1
    ORDER BY w.version";
/// By the index tasks_id, then by key.
const ERROR: &str = "SELECT a.error
    FROM tasks t
    JOIN attempts a ON a.task_no = t.created_position
    WHERE t.id = $1 AND a.run_id = $2
    ORDER BY a.attempt DESC
    LIMIT 1";
