//! Flow summaries and runs in memory: their figures follow the status changes of tasks.

use super::standing::Standing;
use crate::Error;
use std::collections::BTreeMap;
use taskledger_domain::flow::{RunKind, RunState, StatusCounts};
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, Position, RunId, TaskId, Timestamp, Version};
use taskledger_sql::{Args, Columns, Row};

/// The counter of `status`.
pub(crate) fn count_mut(counts: &mut StatusCounts, status: Status) -> &mut u32 {
    match status {
        Status::Pending => &mut counts.pending,
        Status::InProgress => &mut counts.in_progress,
        Status::Completed => &mut counts.completed,
        Status::Failed => &mut counts.failed,
        Status::Cancelled => &mut counts.cancelled,
    }
}

/// Tasks in all states.
pub(crate) fn total(counts: &StatusCounts) -> usize {
    [
        counts.pending,
        counts.in_progress,
        counts.completed,
        counts.failed,
        counts.cancelled,
    ]
    .into_iter()
    .map(|n| n as usize)
    .sum()
}

pub(crate) fn read_counts(c: &mut Columns<'_>) -> Result<StatusCounts, Error> {
    Ok(StatusCounts {
        pending: c.number()?,
        in_progress: c.number()?,
        completed: c.number()?,
        failed: c.number()?,
        cancelled: c.number()?,
    })
}

fn bind_counts(counts: &StatusCounts, args: &mut Args) {
    args.int(i64::from(counts.pending));
    args.int(i64::from(counts.in_progress));
    args.int(i64::from(counts.completed));
    args.int(i64::from(counts.failed));
    args.int(i64::from(counts.cancelled));
}

/// A flow that the projector has in memory, with those of its tasks that are there too.
pub(crate) struct Flow {
    pub(super) id: FlowId,
    pub(super) no: i64,
    pub(super) counts: StatusCounts,
    pub(super) progress_sum: i64,
    pub(super) waiting: i64,
    pub(super) deadlines: i64,
    pub(super) open_runs: i64,
    pub(super) last_position: Position,
    /// Its root was deleted, the rest is still being deleted.
    pub(super) rootless: bool,
    /// What `open_runs.next_due_at` holds; `None` without a row.
    pub(super) due_written: Option<i64>,
    /// The tasks in memory by ordinal.
    pub(crate) tasks: BTreeMap<u32, TaskId>,
    pub(super) changed: bool,
    /// Number of the batch that last touched it.
    pub(super) used: u64,
}

impl Flow {
    pub(super) fn new(id: FlowId, no: i64) -> Self {
        Self {
            id,
            no,
            counts: StatusCounts::default(),
            progress_sum: 0,
            waiting: 0,
            deadlines: 0,
            open_runs: 0,
            last_position: 0,
            rootless: false,
            due_written: None,
            tasks: BTreeMap::new(),
            changed: false,
            used: 0,
        }
    }

    /// Reads [`super::load::FLOWS`].
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let mut c = Columns::of(row);
        let mut flow = Self::new(FlowId(c.id()?), c.int()?);
        flow.counts = read_counts(&mut c)?;
        flow.progress_sum = c.int()?;
        flow.waiting = c.int()?;
        flow.deadlines = c.int()?;
        flow.open_runs = c.int()?;
        flow.last_position = c.number()?;
        flow.rootless = c.int()? != 0;
        flow.due_written = c.opt_int()?;
        Ok(flow)
    }

    pub(super) fn bind(&self, args: &mut Args) {
        args.int(self.no);
        args.id(self.id.0);
        bind_counts(&self.counts, args);
        args.int(self.progress_sum);
        args.int(self.waiting);
        args.int(self.deadlines);
        args.int(self.open_runs);
        args.position(self.last_position);
        args.int(i64::from(self.rootless));
    }

    /// Live tasks, in memory or not.
    pub(super) fn total(&self) -> usize {
        total(&self.counts)
    }

    /// Whether all live tasks are in memory.
    pub(super) fn is_whole(&self) -> bool {
        self.tasks.len() == self.total()
    }

    /// Whether nothing of it can be shown any more.
    pub(super) fn is_gone(&self) -> bool {
        self.total() == 0 && self.open_runs == 0
    }

    /// Whether all that is left to do is known to be later: every task that is not terminal waits
    /// for its next attempt, and no deadline can come before it.
    pub(super) fn only_waits(&self) -> bool {
        self.counts.in_progress == 0
            && self.waiting > 0
            && self.waiting == i64::from(self.counts.pending)
            && self.deadlines == 0
    }
}

/// A run that the projector has in memory.
pub(crate) struct Run {
    pub(super) no: i64,
    pub(crate) id: RunId,
    pub(crate) flow_id: FlowId,
    pub(crate) task_id: TaskId,
    pub(super) kind: RunKind,
    pub(crate) state: RunState,
    pub(crate) counts: StatusCounts,
    pub(super) started_at: Timestamp,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) standing: Standing,
    /// Version of the question that its status shows.
    pub(super) shown: Option<Version>,
    /// It has just ended, and failed for nothing but that tasks were rejected.
    pub(super) rejected: bool,
}

impl Run {
    /// Reads [`super::load::RUNS`].
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let mut c = Columns::of(row);
        Ok(Self {
            no: c.int()?,
            id: RunId(c.id()?),
            flow_id: FlowId(c.id()?),
            task_id: TaskId(c.id()?),
            kind: c.named()?,
            state: c.named()?,
            counts: read_counts(&mut c)?,
            started_at: c.time()?,
            ended_at: c.opt_time()?,
            standing: Standing::read(&mut c)?,
            shown: None,
            rejected: false,
        })
    }

    pub(super) fn bind(&self, args: &mut Args) {
        args.int(self.no);
        args.id(self.id.0);
        args.id(self.flow_id.0);
        args.id(self.task_id.0);
        args.name(match self.kind {
            RunKind::Execute => "execute",
            RunKind::Retry => "retry",
        });
        args.name(match self.state {
            RunState::Running => "running",
            RunState::Completed => "completed",
            RunState::Failed => "failed",
            RunState::Cancelled => "cancelled",
        });
        bind_counts(&self.counts, args);
        args.time(self.started_at);
        args.time(self.ended_at);
    }

    /// Moves `by` tasks into (or out of) `status` while the run is on; true when that changed it.
    pub(super) fn count(&mut self, status: Status, by: i64) -> bool {
        let running = self.state == RunState::Running;
        if running {
            shift(&mut self.counts, status, by);
        }
        running
    }
}

/// Adds `by` to the counter of `status`.
pub(super) fn shift(counts: &mut StatusCounts, status: Status, by: i64) {
    let n = count_mut(counts, status);
    *n = u32::try_from(i64::from(*n) + by).unwrap_or(0);
}
