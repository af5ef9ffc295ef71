//! Reads whole tasks by their keys, and what other rows say about them.

use crate::tasks::read_counts;
use crate::tasks::rows::{BODY_COLUMNS, COLUMNS, Placed, read_with_body};
use crate::{Blocker, Error, RunView, TaskRow, TaskView};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};
use taskledger_domain::task::Status;
use taskledger_domain::{Payload, RunId, TaskId};
use taskledger_sql::{Columns, MultiRow, Tx};

/// Tasks that are read at once while a limit in bytes is watched.
const CHUNK: usize = 128;

/// The key of a task.
pub(super) async fn number(tx: &mut Tx<'_>, id: TaskId) -> Result<Option<i64>, Error> {
    let mut args = tx.args();
    args.id(id.0);
    let row = tx.fetch_optional(NUMBER, args).await?;
    Ok(row.map(|row| Columns::of(&row).int()).transpose()?)
}

/// The key of a task, if `owner` owns its flow. Costs the same whether it is another's or not there.
pub(super) async fn number_of(
    tx: &mut Tx<'_>,
    id: TaskId,
    owner: &Arc<str>,
) -> Result<Option<i64>, Error> {
    let mut args = tx.args();
    args.id(id.0);
    args.text(Arc::clone(owner));
    let row = tx.fetch_optional(NUMBER_OF, args).await?;
    Ok(row.map(|row| Columns::of(&row).int()).transpose()?)
}

/// The tasks with these keys, in this order. Stops before the first that would bring the payloads
/// to more than `bytes_max`, but never before the first of all. Cost: O(tasks).
pub(super) async fn fetch(
    tx: &mut Tx<'_>,
    nos: &[i64],
    bytes_max: usize,
) -> Result<Vec<TaskRow>, Error> {
    let mut found = Vec::with_capacity(nos.len());
    let mut bytes = 0_usize;
    for chunk in nos.chunks(CHUNK) {
        let rows = TASKS.fetch(tx, chunk, |no, args| args.int(*no)).await?;
        let mut by_no: HashMap<i64, Placed> = HashMap::with_capacity(rows.len());
        for row in &rows {
            let placed = read_with_body(row)?;
            by_no.insert(placed.no(), placed);
        }
        for no in chunk {
            let Some(placed) = by_no.remove(no) else {
                return Err(Error::Damaged(format!("task {no} has no body")));
            };
            bytes = bytes.saturating_add(weight(&placed.row));
            if bytes > bytes_max && !found.is_empty() {
                return Ok(found);
            }
            found.push(placed.row);
        }
    }
    Ok(found)
}

/// About how many bytes a task takes in an answer. Cost: O(1).
pub(super) fn weight(row: &TaskRow) -> usize {
    let payload = |p: Option<&Payload>| p.map_or(0, |p| p.as_str().len());
    512 + row.name.len()
        + row.inputs.as_str().len()
        + payload(row.schemas.as_ref())
        + payload(row.params.as_ref())
        + row.outcome_bytes()
        + row.dependencies.len() * 64
}

/// What is known of other rows, from call to call.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Which dependencies failed or were cancelled (`None`: did not).
    failed: HashMap<TaskId, Option<Status>>,
    /// Which runs have ended.
    ended: HashMap<RunId, bool>,
}

/// Adds what other rows say. Cost: O(dependencies and runs of pending tasks).
pub(super) async fn views(tx: &mut Tx<'_>, rows: Vec<TaskRow>) -> Result<Vec<TaskView>, Error> {
    views_with(tx, rows, &mut Known::default()).await
}

/// As [`views`], with what was found by calls before it.
pub(super) async fn views_with(
    tx: &mut Tx<'_>,
    rows: Vec<TaskRow>,
    known: &mut Known,
) -> Result<Vec<TaskView>, Error> {
    find_ended(tx, &rows, &mut known.ended).await?;
    let Known {
        failed: known,
        ended,
    } = known;
    let wanted: HashSet<TaskId> = rows
        .iter()
        .flat_map(required)
        .filter(|id| !known.contains_key(id))
        .collect();
    let wanted: Vec<TaskId> = wanted.into_iter().collect();
    let found = FAILED.fetch(tx, &wanted, |id, args| args.id(id.0)).await?;
    known.extend(wanted.iter().map(|id| (*id, None)));
    for row in &found {
        let mut c = Columns::of(row);
        known.insert(TaskId(c.id()?), Some(c.status()?));
    }
    Ok(rows
        .into_iter()
        .map(|row| {
            let blocked_by = required(&row)
                .filter_map(|id| {
                    let status = known.get(&id).copied().flatten()?;
                    Some(Blocker { id, status })
                })
                .collect();
            let skipped = covered(&row).is_some_and(|run| ended.get(&run) == Some(&true));
            TaskView {
                row: Arc::new(row),
                blocked_by,
                skipped,
                run: None,
            }
        })
        .collect())
}

/// Finds out which of the runs that cover pending tasks have ended.
async fn find_ended(
    tx: &mut Tx<'_>,
    rows: &[TaskRow],
    ended: &mut HashMap<RunId, bool>,
) -> Result<(), Error> {
    let wanted = rows.iter().filter_map(covered);
    let wanted: HashSet<RunId> = wanted.filter(|run| !ended.contains_key(run)).collect();
    let wanted: Vec<RunId> = wanted.into_iter().collect();
    let found = ENDED.fetch(tx, &wanted, |id, args| args.id(id.0)).await?;
    ended.extend(wanted.iter().map(|id| (*id, false)));
    for row in &found {
        ended.insert(RunId(Columns::of(row).id()?), true);
    }
    Ok(())
}

/// The latest run that covers a task that is pending.
fn covered(row: &TaskRow) -> Option<RunId> {
    match row.status {
        Status::Pending => row.run_id,
        Status::InProgress | Status::Completed | Status::Failed | Status::Cancelled => None,
    }
}

/// A task with its blockers, and with its latest run when it is the root of that run or of the flow.
pub(super) async fn view(tx: &mut Tx<'_>, id: TaskId) -> Result<Option<TaskView>, Error> {
    let Some(no) = number(tx, id).await? else {
        return Ok(None);
    };
    let found = fetch(tx, &[no], usize::MAX).await?;
    let mut views = views(tx, found).await?;
    for view in &mut views {
        view.run = run_of(tx, &view.row).await?;
    }
    Ok(views.pop())
}

/// The latest run that covers the task, when the task is the root of that run or of the flow.
pub(super) async fn run_of(tx: &mut Tx<'_>, task: &TaskRow) -> Result<Option<RunView>, Error> {
    let Some(run) = task.run_id else {
        return Ok(None);
    };
    let mut args = tx.args();
    args.id(run.0);
    args.id(task.id.0);
    let row = tx.fetch_optional(RUN, args).await?;
    row.map(|row| {
        let mut c = Columns::of(&row);
        Ok(RunView {
            id: RunId(c.id()?),
            state: c.named()?,
            counts: read_counts(&mut c)?,
        })
    })
    .transpose()
}

/// The required dependencies of a task that is pending.
fn required(row: &TaskRow) -> impl Iterator<Item = TaskId> {
    let list = match row.status {
        Status::Pending => row.dependencies.as_slice(),
        Status::InProgress | Status::Completed | Status::Failed | Status::Cancelled => &[],
    };
    list.iter().filter(|d| d.when.is_required()).map(|d| d.id)
}

/// Relies on the index tasks_id.
const NUMBER: &str = "SELECT created_position
    FROM tasks
    WHERE id = $1";
/// Relies on the index tasks_id.
const NUMBER_OF: &str = "SELECT created_position
    FROM tasks
    WHERE id = $1 AND owner = $2";
/// Relies on the index runs_id. A flow has the id of its root.
const RUN: &str = "SELECT run_id, state, pending, in_progress, completed, failed, cancelled
    FROM runs
    WHERE run_id = $1 AND (task_id = $2 OR flow_id = $2)";

/// By key.
static TASKS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        &format!(
            "SELECT {COLUMNS}, {BODY_COLUMNS}
        FROM tasks t
        JOIN task_bodies b ON b.created_position = t.created_position
        WHERE t.created_position IN ("
        ),
        1,
        ")",
    )
});

/// Relies on the index runs_id.
static ENDED: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT run_id
        FROM runs
        WHERE run_id IN (",
        1,
        ") AND state <> 'running'",
    )
});

/// Relies on the index tasks_id.
static FAILED: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT id, status
        FROM tasks
        WHERE id IN (",
        1,
        ") AND status IN ('failed', 'cancelled')",
    )
});
