//! Loads the rows that a batch of events will change, in as few statements as its size allows.

use super::flows::{Flow, Run};
use super::rows::{COLUMNS, read};
use super::working_set::WorkingSet;
use crate::Error;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};
use taskledger_domain::flow::Event;
use taskledger_domain::{FlowId, Recorded, RunId, TaskId};
use taskledger_sql::{Columns, MultiRow, Tx};

/// Loads flows, tasks with their ancestors, and runs. Cost: O(rows that are not in memory).
/// Flows of which a run is started are loaded whole when they have at most `whole_flow_tasks_max`
/// tasks; `whole_flows_tasks_max` bounds all of them together.
pub(super) async fn load(
    set: &mut WorkingSet,
    tx: &mut Tx<'_>,
    events: &[Arc<Recorded>],
    limits: Limits,
) -> Result<(), Error> {
    load_flows(set, tx, events).await?;
    load_tasks(set, tx, events).await?;
    load_whole_flows(set, tx, events, limits).await?;
    load_runs(set, tx, events).await
}

/// Bounds of memory for one batch, in tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// A run over a larger flow is given to its tasks in SQL.
    pub(super) whole_flow_tasks_max: usize,
    /// All flows that are loaded whole for a batch.
    pub(super) whole_flows_tasks_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Loading 256 rows costs about as much as the statements of the way through SQL.
            whole_flow_tasks_max: 256,
            // 4 MB of rows.
            whole_flows_tasks_max: 8192,
        }
    }
}

async fn load_flows(
    set: &mut WorkingSet,
    tx: &mut Tx<'_>,
    events: &[Arc<Recorded>],
) -> Result<(), Error> {
    let mut seen = HashSet::new();
    let mut missing: Vec<FlowId> = Vec::new();
    for recorded in events {
        if !seen.insert(recorded.flow) {
            continue;
        }
        if let Some(flow) = set.flows.get_mut(&recorded.flow) {
            flow.used = set.batch;
        } else if !begins_flow(recorded) {
            missing.push(recorded.flow);
        }
    }
    let rows = FLOWS.fetch(tx, &missing, |id, args| args.id(id.0)).await?;
    for row in &rows {
        let mut flow = Flow::read(row)?;
        flow.used = set.batch;
        set.flows.insert(flow.id, flow);
    }
    Ok(())
}

async fn load_tasks(
    set: &mut WorkingSet,
    tx: &mut Tx<'_>,
    events: &[Arc<Recorded>],
) -> Result<(), Error> {
    let mut known: HashSet<TaskId> = HashSet::new();
    let mut missing: Vec<TaskId> = Vec::new();
    for recorded in events {
        let (created, named) = match recorded.event.as_ref() {
            Event::TaskCreated(e) => (Some(e.task_id), [e.parent_id, None]),
            Event::TaskMoved(e) => (None, [Some(e.parent_id), Some(e.task_id)]),
            // The task that the run was asked for.
            Event::RunStarted(e) => (None, [Some(e.task_id), None]),
            Event::TaskRenamed(_)
            | Event::PriorityChanged(_)
            | Event::LabelsChanged(_)
            | Event::UserChanged(_)
            | Event::DependenciesChanged(_)
            | Event::TaskRespecified(_)
            | Event::TaskDeleted(_)
            | Event::MessageReceived(_)
            | Event::TaskStarted(_)
            | Event::TaskProgressed(_)
            | Event::TaskOutputAppended(_)
            | Event::TaskClaimRejected(_)
            | Event::TaskCompletionRejected(_)
            | Event::TaskSuspended(_)
            | Event::TaskReminded(_)
            | Event::TaskAnswered(_)
            | Event::TaskSuspensionExpired(_)
            | Event::TaskCompleted(_)
            | Event::TaskFailed(_)
            | Event::TaskRequeued(_)
            | Event::TaskDeferred(_)
            | Event::TaskCancelled(_)
            | Event::RunEnded(_)
            | Event::FlowArchived(_) => (None, [recorded.event.task_id(), None]),
        };
        for id in named.into_iter().flatten() {
            if !set.tasks.contains_key(&id) && known.insert(id) {
                missing.push(id);
            }
        }
        known.extend(created);
    }
    let rows = TASKS.fetch(tx, &missing, |id, args| args.id(id.0)).await?;
    for row in &rows {
        set.insert_stored(read(row)?);
    }
    Ok(())
}

async fn load_whole_flows(
    set: &mut WorkingSet,
    tx: &mut Tx<'_>,
    events: &[Arc<Recorded>],
    limits: Limits,
) -> Result<(), Error> {
    let mut budget = limits.whole_flows_tasks_max;
    let mut wanted: Vec<i64> = Vec::new();
    let mut seen = HashSet::new();
    for recorded in events {
        if !matches!(recorded.event.as_ref(), Event::RunStarted(_)) || !seen.insert(recorded.flow) {
            continue;
        }
        let Some(flow) = set.flows.get(&recorded.flow) else {
            continue;
        };
        let size = flow.total();
        if !flow.is_whole() && size <= limits.whole_flow_tasks_max.min(budget) {
            budget -= size;
            wanted.push(flow.no);
        }
    }
    let rows = WHOLE_FLOWS
        .fetch(tx, &wanted, |no, args| args.int(*no))
        .await?;
    for row in &rows {
        set.insert_stored(read(row)?);
    }
    Ok(())
}

async fn load_runs(
    set: &mut WorkingSet,
    tx: &mut Tx<'_>,
    events: &[Arc<Recorded>],
) -> Result<(), Error> {
    let mut known: HashSet<RunId> = HashSet::new();
    let mut missing: Vec<RunId> = Vec::new();
    for recorded in events {
        let event = recorded.event.as_ref();
        let named = match event {
            Event::TaskCreated(e) => e.run_id,
            Event::TaskStarted(e) => Some(e.run_id),
            Event::TaskRequeued(e) => Some(e.run_id),
            Event::TaskDeferred(e) => Some(e.run_id),
            Event::RunEnded(e) => Some(e.run_id),
            Event::MessageReceived(e) => Some(e.run_id),
            Event::RunStarted(e) => {
                known.insert(e.run_id);
                None
            }
            Event::TaskRenamed(_)
            | Event::PriorityChanged(_)
            | Event::LabelsChanged(_)
            | Event::UserChanged(_)
            | Event::TaskMoved(_)
            | Event::DependenciesChanged(_)
            | Event::TaskRespecified(_)
            | Event::TaskDeleted(_)
            | Event::TaskProgressed(_)
            | Event::TaskOutputAppended(_)
            | Event::TaskClaimRejected(_)
            | Event::TaskCompletionRejected(_)
            | Event::TaskSuspended(_)
            | Event::TaskReminded(_)
            | Event::TaskAnswered(_)
            | Event::TaskSuspensionExpired(_)
            | Event::TaskCompleted(_)
            | Event::TaskFailed(_)
            | Event::TaskCancelled(_)
            | Event::FlowArchived(_) => None,
        };
        let held = event
            .task_id()
            .and_then(|id| set.tasks.get(&id))
            .and_then(|task| task.placed.row.run_id);
        for id in [named, held].into_iter().flatten() {
            if !set.runs.contains_key(&id) && known.insert(id) {
                missing.push(id);
            }
        }
    }
    let rows = RUNS.fetch(tx, &missing, |id, args| args.id(id.0)).await?;
    let mut asking = BTreeMap::new();
    for row in &rows {
        let run = Run::read(row)?;
        if run.standing.waiting > 0 {
            asking.insert(run.no, run.id);
        }
        set.runs.insert(run.id, run);
    }
    let wanted: Vec<i64> = asking.keys().copied().collect();
    let rows = WAITS.fetch(tx, &wanted, |no, args| args.int(*no)).await?;
    for row in &rows {
        let mut c = Columns::of(row);
        let run = asking.get(&c.int()?).and_then(|id| set.runs.get_mut(id));
        if let Some(run) = run {
            run.standing.take_wait(&mut c)?;
        }
    }
    for id in asking.values() {
        if let Some(run) = set.runs.get_mut(id) {
            run.standing.waits.sort_unstable_by_key(|wait| wait.0);
            run.shown = run.standing.waits.first().map(|wait| wait.0);
        }
    }
    Ok(())
}

fn begins_flow(recorded: &Recorded) -> bool {
    matches!(recorded.event.as_ref(), Event::TaskCreated(e) if e.parent_id.is_none())
}

/// By the index tasks_id (the root has the flow's id), then by key.
pub(super) static FLOWS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "WITH wanted(id) AS (",
        1,
        ")
        SELECT s.flow_id, s.flow_no, s.pending, s.in_progress, s.completed, s.failed,
            s.cancelled, s.progress_sum, s.waiting, s.deadlines, s.open_runs, s.last_position,
            s.rootless, o.next_due_at
        FROM (
            SELECT t.flow_no
            FROM wanted
            JOIN tasks t ON t.id = wanted.id
            UNION ALL
            SELECT r.flow_no
            FROM wanted
            JOIN rootless_flows r ON r.flow_id = wanted.id) f
        JOIN flow_summary s ON s.flow_no = f.flow_no
        LEFT JOIN open_runs o ON o.flow_no = s.flow_no",
    )
});

/// Tasks and their ancestors. By the index tasks_id, then by key.
pub(super) static TASKS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "WITH RECURSIVE up(no) AS (
            SELECT created_position
            FROM tasks
            WHERE id IN (",
        1,
        &format!(
            ")
            UNION
            SELECT c.parent_no
            FROM up
            JOIN tasks c ON c.created_position = up.no
            WHERE c.parent_no IS NOT NULL)
        SELECT {COLUMNS}
        FROM up
        JOIN tasks t ON t.created_position = up.no"
        ),
    )
});

/// By the index tasks_flow_ordinal.
pub(super) static WHOLE_FLOWS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        &format!(
            "SELECT {COLUMNS}
        FROM tasks t
        WHERE t.flow_no IN ("
        ),
        1,
        ")",
    )
});

/// By the index runs_id, then by key.
pub(super) static RUNS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT r.run_no, r.run_id, r.flow_id, r.task_id, r.kind, r.state, r.pending, r.in_progress,
            r.completed, r.failed, r.cancelled, r.started_at, r.ended_at, s.flow_no, s.version,
            s.has_origin, s.owner, s.context, s.stage, s.status_at, s.status_position, s.waiting
        FROM runs r
        JOIN run_status s ON s.run_no = r.run_no
        WHERE r.run_id IN (",
        1,
        ")",
    )
});

/// Questions that wait. By the index run_said_waits.
pub(super) static WAITS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT run_no, version, ordinal, kind
        FROM run_said
        WHERE waits = 1 AND run_no IN (",
        1,
        ")",
    )
});
