//! The parts of outputs that a run's tasks have reported.

use super::{Parts, RunRow};
use crate::queries::rows;
use crate::{Error, TaskRow};
use std::collections::BTreeMap;
use taskledger_domain::Version;
use taskledger_domain::limits::OUTPUT_PARTS_MAX;
use taskledger_sql::{Columns, Tx};

/// Parts that are looked at for one answer: those of some tasks that have made as many as they may.
const PARTS_MAX: u32 = 5 * OUTPUT_PARTS_MAX;

/// A task of a run with what it has made.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// The task. Its result is that of the run, or absent.
    pub task: TaskRow,
    /// The attempt that has made it.
    pub attempt: u32,
    /// Versions of the events with the parts of its output that came before its result, in order.
    pub output: Vec<Version>,
}

impl Made {
    /// A task that has made nothing but its result.
    pub(super) const fn returned(task: TaskRow) -> Self {
        Self {
            attempt: task.attempt,
            task,
            output: Vec::new(),
        }
    }
}

/// The output of a task.
#[derive(Debug, Default)]
struct Output {
    task_no: i64,
    attempt: u32,
    /// Whether the same attempt has returned a result.
    has_returned: bool,
    versions: Vec<Version>,
    bytes: usize,
}

/// Adds outputs to tasks of a run that have returned something, and the tasks that have made a part of theirs and not
/// returned. Those whose output has no room are left out: how many.
pub(super) async fn add(
    tx: &mut Tx<'_>,
    run: &RunRow,
    returned: Vec<TaskRow>,
    parts: Parts,
) -> Result<(Vec<Made>, u64), Error> {
    let (mut outputs, known) = read(tx, run, -1).await?;
    if outputs.is_empty() {
        return Ok((returned.into_iter().map(Made::returned).collect(), 0));
    }
    let (mut made, mut left_out) = (Vec::new(), 0);
    let mut bytes: usize = returned.iter().map(TaskRow::outcome_bytes).sum();
    for task in returned {
        let output = take(&mut outputs, &task);
        let with_output = bytes + output.bytes;
        let has_room = output.versions.is_empty() || with_output <= parts.artifact_bytes_max;
        if !has_room || !known.has(task.ordinal) {
            left_out += 1;
            continue;
        }
        bytes = with_output;
        made.push(Made {
            output: output.versions,
            ..Made::returned(task)
        });
    }
    // Those that have returned and are here still had no room, and are counted as such.
    for output in outputs.into_values().filter(|it| !it.has_returned) {
        let has_room = bytes + output.bytes <= parts.artifact_bytes_max;
        if !has_room || made.len() >= parts.artifacts_max {
            left_out += 1;
            continue;
        }
        bytes += output.bytes;
        let row = rows::fetch(tx, &[output.task_no], usize::MAX).await?;
        made.extend(row.into_iter().map(|task| Made {
            attempt: output.attempt,
            output: output.versions.clone(),
            // Another run has returned it.
            task: TaskRow {
                result: None,
                ..task
            },
        }));
    }
    made.sort_by_key(|it| it.task.ordinal);
    Ok((made, left_out))
}

/// Adds outputs to tasks of a page. Ends the page before the first task whose output has no room, but never before the
/// first of all.
pub(super) async fn of_page(
    tx: &mut Tx<'_>,
    run: &RunRow,
    behind: Option<u32>,
    tasks: Vec<TaskRow>,
    bytes_max: usize,
) -> Result<Vec<Made>, Error> {
    let (mut outputs, known) = read(tx, run, behind.map_or(-1, i64::from)).await?;
    let (mut made, mut bytes) = (Vec::with_capacity(tasks.len()), 0);
    for task in tasks {
        let output = take(&mut outputs, &task);
        bytes += output.bytes;
        let has_room = bytes <= bytes_max && known.has(task.ordinal);
        if !has_room && !made.is_empty() {
            break;
        }
        made.push(Made {
            output: output.versions,
            ..Made::returned(task)
        });
    }
    Ok(made)
}

/// What the attempt that returned has made before.
fn take(outputs: &mut BTreeMap<u32, Output>, task: &TaskRow) -> Output {
    let output = outputs.remove(&task.ordinal);
    let output = output.filter(|it| it.attempt == task.attempt);
    output.unwrap_or_default()
}

/// The last task whose outputs were read; `None`: those of all tasks were.
struct Known(Option<u32>);

impl Known {
    fn has(&self, ordinal: u32) -> bool {
        self.0.is_none_or(|end| ordinal < end)
    }
}

/// The outputs of the latest attempts with one, by the ordinals of their tasks. Those of the first of them are whole.
async fn read(
    tx: &mut Tx<'_>,
    run: &RunRow,
    behind: i64,
) -> Result<(BTreeMap<u32, Output>, Known), Error> {
    let mut args = tx.args();
    args.int(run.no);
    args.int(behind);
    args.int(i64::from(PARTS_MAX));
    let found = tx.fetch_all(OUTPUTS, args).await?;
    let mut outputs: BTreeMap<u32, Output> = BTreeMap::new();
    for row in &found {
        let mut c = Columns::of(row);
        let (task_no, ordinal) = (c.int()?, c.number()?);
        let (number, attempt): (u32, u32) = (c.number()?, c.number()?);
        let (version, bytes): (Version, usize) = (c.number()?, c.number()?);
        let (last_attempt, is_completed): (u32, bool) = (c.number()?, c.int()? != 0);
        let output = outputs.entry(ordinal).or_default();
        if number == 1 {
            (output.task_no, output.attempt) = (task_no, attempt);
            output.has_returned = is_completed && last_attempt == attempt;
        }
        // What an earlier attempt has left behind the last part of this one.
        if output.attempt == attempt {
            output.versions.push(version);
            output.bytes += bytes;
        }
    }
    let is_cut = found.len() >= PARTS_MAX as usize;
    let cut = is_cut.then(|| outputs.pop_last()).flatten();
    Ok((outputs, Known(cut.map(|(ordinal, _)| ordinal))))
}

/// By primary key, then the indexes of run_status and tasks_flow_ordinal.
const OUTPUTS: &str =
    "SELECT t.created_position, o.ordinal, o.number, o.attempt, o.version, o.bytes, t.attempt,
        CAST(CASE WHEN t.status = 'completed' THEN 1 ELSE 0 END AS BIGINT)
    FROM run_output o
    JOIN run_status s ON s.run_no = o.run_no
    JOIN tasks t ON t.flow_no = s.flow_no AND t.ordinal = o.ordinal
    WHERE o.run_no = $1 AND o.ordinal > $2
    ORDER BY o.ordinal, o.number
    LIMIT $3";
