//! Queries about flows and attempts.

use crate::tasks::read_counts;
use crate::{Error, ReadModels, RunView};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use taskledger_domain::flow::StatusCounts;
use taskledger_domain::task::Progress;
use taskledger_domain::{FlowId, Position, RunId, TaskId, Timestamp};
use taskledger_sql::Columns;

/// Flows whose active runs are counted: some hundred milliseconds of work for a database.
const ACTIVE_FLOWS_MAX: i64 = 100_000;

/// A flow in figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSummary {
    /// The flow's id, which is that of its root.
    pub flow_id: FlowId,
    /// Its tasks by status.
    pub counts: StatusCounts,
    /// The mean progress of all its tasks.
    pub progress: Progress,
    /// Runs that have not ended.
    pub open_runs: u32,
    /// Where in the log its last event is.
    pub last_position: Position,
}

/// One attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1.
    pub attempt: u32,
    /// The run that started it.
    pub run_id: Option<RunId>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended; absent while it runs.
    pub ended_at: Option<Timestamp>,
    /// `completed`, `failed` or `cancelled`; absent while it runs.
    pub outcome: Option<Arc<str>>,
    /// Why it failed or was cancelled, as the event names it.
    pub reason: Option<Arc<str>>,
    /// What it said when it failed or was cancelled.
    pub error: Option<Arc<str>>,
}

/// A run in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run, and how it stands.
    pub run: RunView,
    /// The task that was asked for.
    pub task_id: TaskId,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; absent while it is on.
    pub ended_at: Option<Timestamp>,
}

/// A flow in which a run is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenRun {
    /// Where in the log the flow was created; pages go on behind it.
    pub created_position: Position,
    /// The flow that the run belongs to.
    pub flow_id: FlowId,
    /// [`taskledger_domain::partition`] of the flow.
    pub partition: u8,
    /// Nothing in it is due earlier than this; 0 = look at once.
    pub next_due_at: Timestamp,
}

/// A flow in which nothing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtRest {
    /// The flow that is at rest.
    pub flow_id: FlowId,
    /// Tasks that have not ended.
    pub open_tasks: u32,
}

impl ReadModels {
    /// A flow in figures; `None` when it does not exist. Cost: O(1).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn flow_summary(&self, flow: FlowId) -> Result<Option<FlowSummary>, Error> {
        let mut tx = self.read().await?;
        let mut args = tx.args();
        args.id(flow.0);
        let row = tx.fetch_optional(SUMMARY, args).await?;
        row.map(|row| {
            let mut c = Columns::of(&row);
            let counts = read_counts(&mut c)?;
            let sum: u64 = c.number()?;
            let mean = sum
                .checked_div(crate::tasks::total(&counts) as u64)
                .unwrap_or(0);
            Ok(FlowSummary {
                flow_id: flow,
                counts,
                progress: Progress::from_millionths(u32::try_from(mean).unwrap_or(u32::MAX)),
                open_runs: c.number()?,
                last_position: c.number()?,
            })
        })
        .transpose()
    }

    /// Whether a run has covered a task of the flow that is still there. Cost: O(tasks) when none has.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn has_run(&self, flow: FlowId) -> Result<bool, Error> {
        let mut tx = self.read().await?;
        let mut args = tx.args();
        args.id(flow.0);
        Ok(tx.fetch_optional(HAS_RUN, args).await?.is_some())
    }

    /// The latest `limit` attempts of a task, oldest first; empty when it was never started or does
    /// not exist. Cost: O(limit).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn attempts(&self, task: TaskId, limit: u32) -> Result<Vec<Attempt>, Error> {
        let mut tx = self.read().await?;
        let mut args = tx.args();
        args.id(task.0);
        args.int(i64::from(limit));
        let found = tx.fetch_all(ATTEMPTS, args).await?;
        found
            .iter()
            .rev()
            .map(|row| {
                let mut c = Columns::of(row);
                Ok(Attempt {
                    attempt: c.number()?,
                    run_id: c.opt_id()?.map(RunId),
                    started_at: c.opt_time()?,
                    ended_at: c.opt_time()?,
                    outcome: c.opt_text()?,
                    reason: c.opt_text()?,
                    error: c.opt_text()?,
                })
            })
            .collect()
    }

    /// A run; `None` when it does not exist. Cost: O(1).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn run(&self, id: RunId) -> Result<Option<RunSummary>, Error> {
        let mut tx = self.read().await?;
        let mut args = tx.args();
        args.id(id.0);
        let row = tx.fetch_optional(RUN, args).await?;
        row.map(|row| {
            let mut c = Columns::of(&row);
            Ok(RunSummary {
                task_id: TaskId(c.id()?),
                started_at: c.time()?,
                ended_at: c.opt_time()?,
                run: RunView {
                    id,
                    state: c.named()?,
                    counts: read_counts(&mut c)?,
                },
            })
        })
        .transpose()
    }

    /// Flows in which nothing runs, oldest first, among the next `limit` of those that were created
    /// behind `after` and have no event above `upto`. With them, where to go on; `None` behind the
    /// last one. Cost: O(limit).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn at_rest(
        &self,
        after: Position,
        upto: Position,
        limit: u32,
    ) -> Result<(Vec<AtRest>, Option<Position>), Error> {
        let mut tx = self.read().await?;
        let mut args = tx.args();
        args.position(after);
        args.position(upto);
        args.int(i64::from(limit));
        let found = tx.fetch_all(AT_REST, args).await?;
        let mut flows = Vec::new();
        let mut last = None;
        for row in &found {
            let mut c = Columns::of(row);
            let created_position: Position = c.number()?;
            last = Some(created_position);
            let flow = AtRest {
                flow_id: FlowId(c.id()?),
                open_tasks: c.number()?,
            };
            let (open_runs, last_position): (u32, Position) = (c.number()?, c.number()?);
            if open_runs == 0 && last_position <= upto {
                flows.push(flow);
            }
        }
        let is_full = found.len() >= limit as usize;
        Ok((flows, last.filter(|_| is_full)))
    }

    /// Runs that have not ended, of the first `ACTIVE_FLOWS_MAX` flows with such. Cost: O(those flows).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn active_runs(&self) -> Result<u64, Error> {
        let mut tx = self.read().await?;
        let mut args = tx.args();
        args.int(ACTIVE_FLOWS_MAX);
        let row = tx.fetch_one(ACTIVE_RUNS, args).await?;
        Ok(Columns::of(&row).number()?)
    }

    /// Up to `limit` flows with a running run, oldest first, behind the one created at `after` (0
    /// for the first page). A page with fewer rows than `limit` is the last one. Cost: O(limit).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn open_runs(&self, after: Position, limit: u32) -> Result<Vec<OpenRun>, Error> {
        let mut tx = self.read().await?;
        let mut args = tx.args();
        args.position(after);
        args.int(i64::from(limit));
        let found = tx.fetch_all(OPEN_RUNS, args).await?;
        found
            .iter()
            .map(|row| {
                let mut c = Columns::of(row);
                Ok(OpenRun {
                    created_position: c.number()?,
                    flow_id: FlowId(c.id()?),
                    partition: c.number()?,
                    next_due_at: c.time()?,
                })
            })
            .collect()
    }
}

/// Relies on the index tasks_id (the root has the flow's id), then by key.
const SUMMARY: &str = "SELECT s.pending, s.in_progress, s.completed, s.failed, s.cancelled,
        s.progress_sum, s.open_runs, s.last_position
    FROM tasks r
    JOIN flow_summary s ON s.flow_no = r.created_position
    WHERE r.id = $1";
/// Relies on the indexes tasks_id and tasks_flow_ordinal.
const HAS_RUN: &str = "SELECT t.ordinal
    FROM tasks r
    JOIN tasks t ON t.flow_no = r.created_position
    WHERE r.id = $1 AND t.run_id IS NOT NULL
    LIMIT 1";
/// Relies on the index runs_id.
const RUN: &str = "SELECT task_id, started_at, ended_at, state, pending, in_progress, completed,
        failed, cancelled
    FROM runs
    WHERE run_id = $1";
/// Relies on the index tasks_id, then by primary key.
const ATTEMPTS: &str = "SELECT a.attempt, a.run_id, a.started_at, a.ended_at, a.outcome, a.reason,
        a.error
    FROM tasks t
    JOIN attempts a ON a.task_no = t.created_position
    WHERE t.id = $1
    ORDER BY a.attempt DESC
    LIMIT $2";
/// By primary key.
const OPEN_RUNS: &str = "SELECT flow_no, flow_id, partition, next_due_at
    FROM open_runs
    WHERE flow_no > $1
    ORDER BY flow_no
    LIMIT $2";
/// By primary key, both tables.
const ACTIVE_RUNS: &str = "SELECT CAST(COALESCE(SUM(s.open_runs), 0) AS BIGINT)
    FROM (SELECT flow_no FROM open_runs ORDER BY flow_no LIMIT $1) AS o
    JOIN flow_summary s ON s.flow_no = o.flow_no";
/// By primary key: a flow that was created behind the end of the span has no event in it.
const AT_REST: &str = "SELECT flow_no, flow_id, pending + in_progress, open_runs, last_position
    FROM flow_summary
    WHERE flow_no > $1 AND flow_no <= $2
    ORDER BY flow_no
    LIMIT $3";
