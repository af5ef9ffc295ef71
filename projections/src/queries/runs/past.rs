//! Runs as they were at an earlier place of the log, for later pages of a list: those whose status has changed since.

use super::{Error, RunCursor, RunFilter, RunRow, Wait, conditions_of, read_columns};
use taskledger_domain::{TaskId, Version};
use taskledger_sql::{Args, Columns, Row, Tx};

/// Which status of a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// The one that it has.
    Now,
    /// One that it had, with the question of this event.
    Then(Option<Version>),
}

/// At most one run more than `limit` whose status has changed since the first page, behind the last run that was shown.
/// Cost: O(statuses of this owner, or of everybody, that changed since).
pub(super) async fn page(
    tx: &mut Tx<'_>,
    filter: &RunFilter,
    after: RunCursor,
    limit: u32,
) -> Result<Vec<(RunRow, Stands)>, Error> {
    let (sql, args) = select(tx, filter, after, limit);
    let found = tx.fetch_all(sqlx::AssertSqlSafe(sql), args).await?;
    let read = |row: &Row| {
        let mut c = Columns::of(row);
        let run = read_columns(&mut c)?;
        let asked = c.opt_int()?;
        let asked = asked.map(|it| Version::try_from(it).unwrap_or_default());
        Ok((run, Stands::Then(asked)))
    };
    found.iter().map(read).collect()
}

pub(super) fn select(
    tx: &Tx<'_>,
    filter: &RunFilter,
    after: RunCursor,
    limit: u32,
) -> (String, Args) {
    let mut args = tx.args();
    let conditions = conditions_of("p", filter, &mut args);
    args.position(after.upto);
    args.time(after.at);
    args.int(after.no);
    args.int(i64::from(limit) + 1);
    let n = args.len();
    let (upto, at, no) = (n - 3, n - 2, n - 1);
    let text = format!(
        "{COLUMNS}
        WHERE {conditions} AND p.left_position > ${upto} AND p.status_position <= ${upto}
            AND (p.status_at, p.run_no) < (${at}, ${no})
        ORDER BY p.status_at DESC, p.run_no DESC
        LIMIT ${n}"
    );
    (text, args)
}

/// The question that a status showed.
pub(super) async fn wait(tx: &mut Tx<'_>, run: &RunRow, asked: Version) -> Result<Wait, Error> {
    let mut args = tx.args();
    args.int(run.no);
    args.position(asked);
    let row = tx.fetch_one(WAIT, args).await?;
    let mut c = Columns::of(&row);
    let (asks, task) = (c.named()?, c.opt_id()?);
    Ok(Wait {
        version: asked,
        // It may be gone.
        task: task.map_or(run.task, TaskId),
        asks,
    })
}

/// By one of the indexes run_past_left, run_past_owner and run_status_context, then by key.
const COLUMNS: &str =
    "SELECT p.run_no, r.run_id, r.flow_id, r.task_id, r.kind, r.started_at, s.version,
        s.has_origin, p.owner, s.context, p.stage, p.status_at, p.status_position, r.pending,
        r.in_progress, r.completed, r.failed, r.cancelled, p.asked
    FROM run_past p
    JOIN run_status s ON s.run_no = p.run_no
    JOIN runs r ON r.run_no = p.run_no";
/// By primary key, then by the index tasks_flow_ordinal.
const WAIT: &str = "SELECT w.kind, t.id
    FROM run_said w
    JOIN run_status s ON s.run_no = w.run_no
    LEFT JOIN tasks t ON t.flow_no = s.flow_no AND t.ordinal = w.ordinal
    WHERE w.run_no = $1 AND w.version = $2";
